import SwiftSyntaxMacrosGenericTestSupport
import Testing

/// Misuses that `@Table` refuses, their places, and the source after the advised fix.
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

  @Test("no primary key, where a fix has to look at more")
  func noKeyFixes() {
    let message = "Book has no primary key: name a property `id`, or mark one with @Column(primaryKey: true)"
    expectMisuse(
      """
      @Table public struct Book {
        /// The title on the cover.
        public var title: String
      }
      """, message, line: 1, column: 22, fix: "add `public let id: UUID`",
      fixed: """
        @Table public struct Book {
          public let id: UUID
          /// The title on the cover.
          public var title: String
        }
        """)
    expectMisuse(
      """
      @Table struct Book {
      }
      """, message, line: 1, column: 15, fix: "add `let id: UUID`",
      fixed: """
        @Table struct Book {
          let id: UUID
        }
        """)
    expectMisuse(
      "@Table struct Book {}", message, line: 1, column: 15, fix: "add `let id: UUID`",
      fixed: "@Table struct Book { let id: UUID }")
    expectMisuse(
      """
      @Table struct Book {
        let ID: UUID
      }
      """, message, line: 1, column: 15, fix: "mark `ID`",
      fixed: """
        @Table struct Book {
          @Column(primaryKey: true) let ID: UUID
        }
        """)
    // The fix would create a second name.
    expectMisuse(
      """
      @Table struct Book {
        var title: String
        var id: String { title }
      }
      """, message, line: 1, column: 15)
  }

  @Test("an `id` that is not to be the key")
  func deniedKey() {
    let message =
      "Book has no primary key: leave out `primaryKey: false` at `id`, or mark another property with @Column(primaryKey: true)"
    expectMisuse(
      """
      @Table struct Book {
        @Column(primaryKey: false) let id: UUID
      }
      """, message, line: 2, column: 3, fix: "leave out @Column",
      fixed: """
        @Table struct Book {
          let id: UUID
        }
        """)
    expectMisuse(
      """
      @Table struct Book {
        @Column("number", primaryKey: false) let id: Int
      }
      """, message, line: 2, column: 3, fix: "leave it out",
      fixed: """
        @Table struct Book {
          @Column("number") let id: Int
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
      """, "@Table requires a struct: a record is a value", line: 1, column: 1, fix: "make it a struct",
      fixed: """
        @Table struct Book {
          let id: Int
        }
        """)
  }

  @Test("a final class, an actor, and an enum")
  func notStructs() {
    let message = "@Table requires a struct: a record is a value"
    expectMisuse(
      """
      @Table public final class Book {
        public let id: Int
      }
      """, message, line: 1, column: 1, fix: "make it a struct",
      fixed: """
        @Table public struct Book {
          public let id: Int
        }
        """)
    expectMisuse(
      """
      @Table actor Book {
        let id: Int
      }
      """, message, line: 1, column: 1, fix: "make it a struct",
      fixed: """
        @Table struct Book {
          let id: Int
        }
        """)
    for (modifiers, kept) in [("final ", ""), ("final public ", "public "), ("public final ", "public ")] {
      expectMisuse(
        """
        @Table
        \(modifiers)class Book {
          public let id: Int
        }
        """, message, line: 1, column: 1, fix: "make it a struct",
        fixed: """
          @Table
          \(kept)struct Book {
            public let id: Int
          }
          """)
    }
    expectMisuse(
      """
      @Table enum Book {
        case novel
      }
      """, message, line: 1, column: 1)
    expectMisuse(
      """
      @Table extension Book {
      }
      """, message, line: 1, column: 1)
  }

  @Test("a constant with a value")
  func constant() {
    expectMisuse(
      inBook: """
        let kind = "a"
        """, "`kind` is the same in every row; make it a `var`, or mark it @Ephemeral", line: 1, column: 5,
      fix: "make it a `var`",
      fixed: """
        var kind = "a"
        """)
  }

  @Test("a type that cannot be determined")
  func untyped() {
    expectMisuse(
      inBook: "var limit = Int.max", "write the type of `limit`: it cannot be determined from its value",
      line: 1, column: 5,
      fix: "write a type",
      fixed: "var limit: <#Type#> = Int.max")
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

  @Test(
    "many in other containers",
    arguments: [
      "[Member]?", "Array<Member>", "List<Member>?", "[Member]!", "Optional<[Member]>", "Related<Member?>",
      "Related<Member>?", "Member", "Member?", "Related<[Member]>", "([Member])",
    ])
  func otherContainers(_ type: String) {
    for attribute in ["HasMany(\"teamId\")", "ManyToMany(through: Seat.self)"] {
      let name = attribute.prefix { $0 != "(" }
      expectMisuse(
        """
        @Table struct Team {
          let id: Int
          @\(attribute)
          var members: \(type)
        }
        """, "the type of a @\(name) property is Related<Model>", line: 4, column: 16,
        fix: "write `Related<Member>`",
        fixed: """
          @Table struct Team {
            let id: Int
            @\(attribute)
            var members: Related<Member>
          }
          """)
    }
  }

  @Test(
    "many of what is no name of a type", arguments: ["[any Pet]", "Related<(Pet, Pet)>", "[String: Pet]"])
  func manyOfNoModel(_ type: String) {
    expectMisuse(
      """
      @Table struct Owner {
        let id: Int
        @HasMany("ownerId") var pets: \(type)
      }
      """, "@HasMany leads to models: its type is Related<Model>", line: 3, column: 33)
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

  @Test("relationships without what their attributes need, where nothing can be guessed")
  func noNames() {
    for (attribute, type) in [
      ("HasMany", "Related<Member>"), ("HasOne", "Member?"), ("BelongsTo", "Member?"),
    ] {
      expectMisuse(
        """
        @Table struct Team {
          let id: Int
          @\(attribute) var other: \(type)
        }
        """, "name the reference fields: @\(attribute)(\"…\")", line: 3, column: 3)
    }
    for arguments in ["", "()", "(by: \"team\")"] {
      expectMisuse(
        """
        @Table struct Team {
          let id: Int
          @ManyToMany\(arguments) var members: Related<Member>
        }
        """, "name the model that belongs to both sides: @ManyToMany(through: <Model>.self)", line: 3,
        column: 3)
    }
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
    expectMisuse(
      """
      @Table struct Member {
        @Selection struct ID: Sendable {
          let a: Int
        }
        let id: ID
      }
      """, "a primary key is Hashable", line: 2, column: 21, fix: "make it Hashable",
      fixed: """
        @Table struct Member {
          @Selection struct ID: Sendable, Hashable {
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
