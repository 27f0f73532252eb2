import SwiftSyntaxMacrosGenericTestSupport
import Testing

/// What `@Table` refuses, where it says so, and what its advice makes of the source.
@Suite("Misuses of macros")
struct MisuseTests {
  @Test("no primary key")
  func noKey() {
    expectMisuse(
      """
      @Table struct Book {
        var title: String
      }
      """,
      "Book has no primary key: name a property `id`, or mark one with @Column(primaryKey: true)", line: 1,
      column: 15, fix: "add `let id: UUID`",
      fixed: """
        @Table struct Book {
          let id: UUID
          var title: String
        }
        """)
  }

  @Test("two primary keys")
  func twoKeys() {
    expectMisuse(
      """
      @Table struct Book {
        @Column(primaryKey: true) let a: Int
        @Column(primaryKey: true) let b: Int
      }
      """,
      "Book has a primary key already, `a`; a key of several parts is a nested @Selection struct", line: 3,
      column: 33)
  }

  @Test("a class")
  func notAStruct() {
    expectMisuse(
      """
      @Table class Book {
        let id: Int
      }
      """, "@Table stands on a struct: a record is a value", line: 1, column: 1, fix: "make it a struct",
      fixed: """
        @Table struct Book {
          let id: Int
        }
        """)
  }

  @Test("a constant with a value")
  func constant() {
    expectMisuse(
      """
      @Table struct Book {
        let id: Int
        let kind = "a"
      }
      """, "`kind` is the same in every row; make it a `var`, or mark it @Ephemeral", line: 3, column: 7,
      fix: "make it a `var`",
      fixed: """
        @Table struct Book {
          let id: Int
          var kind = "a"
        }
        """)
  }

  @Test("a type that cannot be told")
  func untyped() {
    expectMisuse(
      """
      @Table struct Book {
        let id: Int
        var limit = Int.max
      }
      """, "write the type of `limit`: it cannot be told from its value", line: 3, column: 7,
      fix: "write a type",
      fixed: """
        @Table struct Book {
          let id: Int
          var limit: <#Type#> = Int.max
        }
        """)
  }

  @Test("many of something that is not Related")
  func notRelated() {
    expectMisuse(
      """
      @Table struct Team {
        let id: Int
        @HasMany("teamId") var members: [Member]
      }
      """, "the type of a @HasMany property is Related<Model>", line: 3, column: 35,
      fix: "write `Related<Member>`",
      fixed: """
        @Table struct Team {
          let id: Int
          @HasMany("teamId") var members: Related<Member>
        }
        """)
  }

  @Test("an optional record over a field that cannot be nil")
  func optionalOverRequired() {
    expectMisuse(
      """
      @Table struct Member {
        let id: Int
        var teamId: Int
        @BelongsTo("teamId") var team: Team?
      }
      """, "`teamId` cannot be nil, so there is always a Team", line: 4, column: 34, fix: "write `Team`",
      fixed: """
        @Table struct Member {
          let id: Int
          var teamId: Int
          @BelongsTo("teamId") var team: Team
        }
        """)
  }

  @Test("a reference without fields")
  func noFields() {
    expectMisuse(
      """
      @Table struct Member {
        let id: Int
        var teamID: Int?
        @BelongsTo() var team: Team?
      }
      """, "name the reference fields: @BelongsTo(\"teamID\")", line: 4, column: 3, fix: "name `teamID`",
      fixed: """
        @Table struct Member {
          let id: Int
          var teamID: Int?
          @BelongsTo("teamID") var team: Team?
        }
        """)
  }

  @Test("a member that @Table writes")
  func clash() {
    expectMisuse(
      """
      @Table struct Member {
        let id: Int
        var teamId: Int?
        var _record: Int { 1 }
      }
      """, "@Table writes `_record`; call this one otherwise", line: 4, column: 7)
  }

  @Test("a key struct that is not Hashable")
  func unhashable() {
    expectMisuse(
      """
      @Table struct Member {
        @Selection struct ID {
          let a: Int
        }
        let id: ID
      }
      """, "a primary key is Hashable", line: 2, column: 21, fix: "make it Hashable",
      fixed: """
        @Table struct Member {
          @Selection struct ID: Hashable {
            let a: Int
          }
          let id: ID
        }
        """)
  }

  @Test("a refused declaration is a model for others all the same")
  func refused() {
    expectExpansion(
      of: """
        @Table public struct Book {
          let id: Int
          let kind = "a"
        }
        """,
      as: """
        public struct Book {
          let id: Int
          let kind = "a"

          public var _record: Stemma.RecordHandle = Stemma.RecordHandle()
        }

        extension Book: Stemma.Table, Stemma.RefusedTable {
          public typealias PrimaryKey = Int
          public typealias Columns = Stemma.RefusedMembers
          public typealias Relationships = Stemma.RefusedMembers
          public struct Draft: Stemma.TableDraft {
            public typealias Row = Book
            public init(_ row: Book) {
            }
            public func write(to record: inout Stemma.RecordWriter) {
            }
          }
        }
        """,
      diagnostics: [
        DiagnosticSpec(
          message: "`kind` is the same in every row; make it a `var`, or mark it @Ephemeral", line: 3,
          column: 7, fixIts: [FixItSpec(message: "make it a `var`")])
      ])
  }
}
