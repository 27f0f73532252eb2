import SwiftSyntaxMacrosGenericTestSupport
import Testing

/// Declarations that `@Table` refuses as a whole.
@Suite("Misuses of declarations")
struct DeclarationMisuseTests {
  @Test("a generic struct")
  func generic() {
    expectMisuse(
      """
      @Table struct Box<Value> {
        let id: Int
      }
      """,
      "a model cannot be generic", line: 1, column: 18)
  }

  @Test("a model of one actor")
  func isolated() {
    expectMisuse(
      """
      @MainActor @Table struct Book {
        let id: Int
      }
      """,
      "a record is a value for every actor; leave out @MainActor", line: 1, column: 1,
      fix: "leave out @MainActor",
      fixed: """
        @Table struct Book {
          let id: Int
        }
        """)
  }

  @Test(
    "a model of an actor by another name",
    arguments: ["Swift.MainActor", "_Concurrency.MainActor", "DatabaseActor", "Storage.DatabaseActor"])
  func isolatedOtherwise(_ actor: String) {
    expectMisuse(
      """
      @\(actor)
      @Table struct Book {
        let id: Int
      }
      """,
      "a record is a value for every actor; leave out @\(actor)", line: 1, column: 1,
      fix: "leave out @\(actor)",
      fixed: """
        @Table struct Book {
          let id: Int
        }
        """)
  }

  @Test("a type that is called as what is written into it")
  func reservedName() {
    expectMisuse(
      """
      @Table struct Draft {
        let id: Int
      }
      """,
      "a type with @Table cannot be called Draft: what that writes has this name; the model can, with "
        + "@Table(model: \"Draft\")", line: 1, column: 15)
  }

  @Test("a model whose other name no schema takes")
  func modelName() {
    expectMisuse(
      """
      @Table(model: "a b") struct Book {
        let id: Int
      }
      """,
      "`a b` cannot name a model: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them",
      line: 1, column: 1)
  }

  @Test("a model inside of a function")
  func local() {
    expectMisuse(
      """
      func shelve() {
        @Table struct Book {
          let id: Int
        }
      }
      """,
      "a model cannot be declared inside of a function; declare it in a file or a type", line: 2, column: 3)
  }

  @Test("two attributes for one model: both are refused")
  func twice() {
    let message = "a model has one @Table"
    expectExpansion(
      of: """
        @Table @Table("books") struct Book {
          let id: Int
        }
        """,
      as: """
        struct Book {
          let id: Int
        }
        """,
      diagnostics: [
        DiagnosticSpec(message: message, line: 1, column: 1),
        DiagnosticSpec(message: message, line: 1, column: 8),
      ])
  }

  @Test(
    "a model in a generic type",
    arguments: ["enum Shelf<Paper>", "struct Shelf<Paper> where Paper: Sendable"])
  func genericContext(_ outer: String) {
    expectMisuse(
      """
      \(outer) {
        @Table struct Book {
          let id: Int
        }
      }
      """, "a model cannot be nested in a generic type; declare it outside of `Shelf`", line: 2, column: 3)
  }

  @Test("a column that depends on the build")
  func conditional() {
    expectMisuse(
      inBook: """
        #if DEBUG
        var trace: String
        #endif
        """,
      "a column cannot stand inside of #if; take it out, or mark it @Ephemeral", line: 2, column: 1)
    expectMisuse(
      inBook: """
        #if DEBUG
        #if os(Linux)
        var trace: String
        #endif
        #endif
        """,
      "a column cannot stand inside of #if; take it out, or mark it @Ephemeral", line: 3, column: 1)
  }

  @Test("what else depends on the build")
  func conditionalMembers() {
    expectMisuse(
      inBook: """
        #if DEBUG
        @HasMany("bookId") var pages: Related<Page>
        #endif
        """,
      "a relationship cannot stand inside of #if; take it out", line: 2, column: 1)
    expectMisuse(
      inBook: """
        #if DEBUG
        @Selection struct Size { var width: Int }
        #endif
        """,
      "a @Selection of a model cannot stand inside of #if; take it out", line: 2, column: 19)
    expectMisuse(
      inBook: """
        #if DEBUG
        @Index var trace: String { "" }
        #endif
        """,
      "`trace` is not stored in a record; leave out @Index", line: 2, column: 1, fix: "leave out @Index",
      fixed: """
        #if DEBUG
        var trace: String { "" }
        #endif
        """)
  }

  @Test("attributes that depend on the build", arguments: ["@Index", "@Column(\"shelf\")", "@Ephemeral"])
  func conditionalAttributes(_ attribute: String) {
    let name = attribute.prefix { $0 != "(" }
    expectMisuse(
      inBook: """
        #if DEBUG
        \(attribute)
        #endif
        var title = ""
        """,
      "\(name) cannot stand inside of #if; take it out", line: 2, column: 1)
  }

  @Test("an index of the model that depends on the build")
  func conditionalIndex() {
    expectMisuse(
      """
      @Table
      #if DEBUG
      @Index("id")
      #endif
      struct Book {
        let id: Int
      }
      """,
      "@Index cannot stand inside of #if; take it out", line: 3, column: 1)
  }

  @Test("columns that differ in case only")
  func sameName() {
    expectMisuse(
      inBook: """
        var title: String
        var Title: String
        """,
      "`Title` and `title` would be one column, `Title`", line: 2, column: 5)
  }

  @Test("a partition that is not the first parts of the key")
  func partition() {
    expectMisuse(
      """
      @Table(partition: ["b"]) struct Book {
        @Selection struct ID: Hashable {
          let a: String
          let b: String
        }
        let id: ID
      }
      """,
      "a partition is named by the first parts of the key, [\"a\", \"b\"], in this order", line: 1, column: 33
    )
  }

  @Test("an index of nothing")
  func emptyIndex() {
    expectMisuse(
      """
      @Index @Table struct Book {
        let id: Int
      }
      """,
      "name the properties of the index: @Index(\"title\")", line: 1, column: 1)
  }

  @Test("a key that can be nil, and a part of one")
  func optionalKeys() {
    expectMisuse(
      """
      @Table struct Book {
        let id: Int?
      }
      """,
      "the primary key `id` cannot be nil", line: 2, column: 7, fix: "write `Int`",
      fixed: """
        @Table struct Book {
          let id: Int
        }
        """)
    expectMisuse(
      """
      @Table struct Book {
        @Selection struct ID: Hashable {
          let shelf: String?
        }
        let id: ID
      }
      """,
      "the key part `shelf` cannot be nil", line: 3, column: 9, fix: "write `String`",
      fixed: """
        @Table struct Book {
          @Selection struct ID: Hashable {
            let shelf: String
          }
          let id: ID
        }
        """)
  }

  @Test("a key without parts")
  func emptyKey() {
    expectMisuse(
      """
      @Table struct Book {
        @Selection struct ID: Hashable {
        }
        let id: ID
      }
      """,
      "`ID` has no property that is stored", line: 2, column: 21)
  }

  @Test("a relationship with a value")
  func initialValue() {
    expectMisuse(
      inBook: """
        var shelfId: Int?
        @BelongsTo("shelfId") var shelf: Shelf? = nil
        """,
      "what @BelongsTo leads to has no initial value", line: 2, column: 27)
  }

  @Test("a reference by what is no column")
  func unknownField() {
    expectMisuse(
      inBook: """
        @BelongsTo("shelfId") var shelf: Shelf?
        """,
      "Book has no column `shelfId`; it has id", line: 1, column: 1)
  }

  @Test("a member that the conformance has: the key")
  func clashKey() {
    expectMisuse(
      inBook: "var primaryKey: Int { 1 }",
      "@Table writes `primaryKey`; call this one otherwise", line: 1, column: 5)
  }

  @Test("a dictionary, and a set")
  func dictionary() {
    expectMisuse(
      inBook: "var pages: [String: Int]?",
      "a dictionary is no column; store `pages` as JSON", line: 1, column: 12, fix: "store it as JSON",
      fixed: "@Column(as: [String: Int]?.JSONRepresentation.self) var pages: [String: Int]?")
    expectMisuse(
      inBook: "var pages: Set<Int>",
      "a set is no column; store `pages` as JSON", line: 1, column: 12, fix: "store it as JSON",
      fixed: "@Column(as: Set<Int>.JSONRepresentation.self) var pages: Set<Int>")
  }

  @Test("what is said of a column, on a relationship")
  func markedRelationship() {
    expectMisuse(
      inBook: """
        var shelfId: Int?
        @BelongsTo("shelfId") @Index var shelf: Shelf?
        """,
      "what @BelongsTo leads to is no column, and one relationship; leave out @Index, or @BelongsTo", line: 2,
      column: 23, fix: "leave out @Index",
      fixed: """
        var shelfId: Int?
        @BelongsTo("shelfId") var shelf: Shelf?
        """)
    expectMisuse(
      inBook: """
        var shelfId: Int?
        @Ephemeral
        @BelongsTo("shelfId") var shelf: Shelf?
        """,
      "what @BelongsTo leads to is no column, and one relationship; leave out @Ephemeral, or @BelongsTo",
      line: 2, column: 1, fix: "leave out @Ephemeral",
      fixed: """
        var shelfId: Int?
        @BelongsTo("shelfId") var shelf: Shelf?
        """)
    expectMisuse(
      inBook: """
        @HasMany("bookId") @ManyToMany(through: Page.self) var pages: Related<Page>
        """,
      "what @HasMany leads to is no column, and one relationship; leave out @ManyToMany, or @HasMany",
      line: 1, column: 20, fix: "leave out @ManyToMany",
      fixed: """
        @HasMany("bookId") var pages: Related<Page>
        """)
  }

  @Test("a list of lists")
  func nestedList() {
    expectMisuse(
      inBook: "var grid: [[Int]]",
      "a list of lists is no column; store `grid` as JSON", line: 1, column: 11, fix: "store it as JSON",
      fixed: "@Column(as: [[Int]].JSONRepresentation.self) var grid: [[Int]]")
  }

  @Test("a public model whose key, or whose key's type, others do not see")
  func hiddenKey() {
    expectMisuse(
      """
      @Table public struct Book {
        let id: Shelfmark
      }
      """,
      "the key of a public model is public, and so is its type", line: 2, column: 7, fix: "make it public",
      fixed: """
        @Table public struct Book {
          public let id: Shelfmark
        }
        """)
    expectMisuse(
      """
      @Table public struct Book {
        enum Kind: String, ColumnValue { case novel }
        public let id: UUID
        public var kind: Kind?
      }
      """,
      "`kind` is public, so its type is", line: 2, column: 8, fix: "make it public",
      fixed: """
        @Table public struct Book {
          public enum Kind: String, ColumnValue { case novel }
          public let id: UUID
          public var kind: Kind?
        }
        """)
  }

  @Test("a public model whose key, or whose key's type, say how far they are seen")
  func hiddenOtherwise() {
    expectMisuse(
      """
      @Table public struct Book {
        @Column(primaryKey: true)
        private let mark: Shelfmark
      }
      """,
      "the key of a public model is public, and so is its type", line: 3, column: 15, fix: "make it public",
      fixed: """
        @Table public struct Book {
          @Column(primaryKey: true)
          public let mark: Shelfmark
        }
        """)
    expectMisuse(
      """
      @Table public struct Book {
        @Selection internal struct ID: Hashable { public let shelf: Int }
        public let id: ID
      }
      """,
      "`id` is public, so its type is", line: 2, column: 30, fix: "make it public",
      fixed: """
        @Table public struct Book {
          @Selection public struct ID: Hashable { public let shelf: Int }
          public let id: ID
        }
        """)
  }
}
