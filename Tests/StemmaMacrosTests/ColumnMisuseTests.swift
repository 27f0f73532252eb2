import Testing

/// Keys and columns that `@Table` refuses.
@Suite("Misuses of columns")
struct ColumnMisuseTests {
  @Test("no primary key, all on one line")
  func noKeyOnOneLine() {
    expectMisuse(
      """
      @Table struct Book { var title: String }
      """,
      "Book has no primary key: name a property `id`, or mark one with @Column(primaryKey: true)",
      line: 1, column: 15, fix: "add `let id: UUID`",
      fixed: """
        @Table struct Book { let id: UUID; var title: String }
        """)
  }

  @Test("a key with a value")
  func constantKey() {
    expectMisuse(
      """
      @Table struct Book {
        let id: UUID = UUID()
      }
      """,
      "`id` would be the same in every record; leave out its value",
      line: 2, column: 7, fix: "leave out the value",
      fixed: """
        @Table struct Book {
          let id: UUID
        }
        """)
  }

  @Test("a key that can be changed")
  func variableKey() {
    expectMisuse(
      """
      @Table struct Book {
        var id: Int
      }
      """,
      "the key of a record never changes; make `id` a `let`",
      line: 2, column: 3, severity: .warning, fix: "make it a `let`",
      fixed: """
        @Table struct Book {
          let id: Int
        }
        """)
  }

  @Test(
    "a key that can be changed, by a declaration that no constant has",
    arguments: [
      "private(set) var id: Int", "var id: Int { didSet { print(id) } }",
      "private(set) var id: Int = 1 { willSet {} }",
    ])
  func variableKeyOtherwise(_ property: String) {
    expectMisuse(
      """
      @Table struct Book {
        \(property)
        var title: String
      }
      """,
      "the key of a record never changes; make `id` a `let`",
      line: 2, column: property.hasPrefix("var") ? 3 : 16, severity: .warning, fix: "make it a `let`",
      fixed: """
        @Table struct Book {
          let id: Int
          var title: String
        }
        """)
  }

  @Test("a key that can be changed, with a value")
  func variableKeyWithValue() {
    expectMisuse(
      """
      @Table struct Book {
        var id = UUID()
      }
      """,
      "the key of a record never changes; make `id` a `let`",
      line: 2, column: 3, severity: .warning, fix: "make it a `let`",
      fixed: """
        @Table struct Book {
          let id: UUID
        }
        """)
  }

  @Test("what is not stored has no default")
  func ephemeral() {
    expectMisuse(
      inBook: "@Ephemeral var isOpen: Bool",
      "`isOpen` is not stored, so a record that is read needs a value for it: give a default",
      line: 1, column: 16, fix: "add a default",
      fixed: "@Ephemeral var isOpen: Bool = <#value#>")
  }

  @Test("what is not stored is no column")
  func ephemeralColumn() {
    expectMisuse(
      inBook: """
        @Ephemeral @Column("x") var isOpen = false
        """,
      "what is @Ephemeral is not stored; leave out @Column, or @Ephemeral",
      line: 1, column: 12, fix: "leave out @Column",
      fixed: "@Ephemeral var isOpen = false")
    expectMisuse(
      inBook: "@Index @Ephemeral var isOpen = false",
      "what is @Ephemeral is not stored; leave out @Index, or @Ephemeral",
      line: 1, column: 1, fix: "leave out @Index",
      fixed: "@Ephemeral var isOpen = false")
  }

  @Test("an implicitly unwrapped optional")
  func implicit() {
    expectMisuse(
      inBook: "var title: String!",
      "a column that may be null is an optional: the type of `title` is `String?`",
      line: 1, column: 12, fix: "write `String?`",
      fixed: "var title: String?")
  }

  @Test("two names in one pattern")
  func tuplePattern() {
    expectMisuse(
      inBook: "var (p, q): (Int, String)",
      "a column has one name; declare `p` and `q` one by one",
      line: 1, column: 5, fix: "declare them one by one",
      fixed: """
        var p: Int
        var q: String
        """)
  }

  @Test("a tuple")
  func tuple() {
    expectMisuse(
      inBook: "var pair: (Int, Int)",
      "a tuple is no column; make it a nested @Selection struct, or mark `pair` @Ephemeral",
      line: 1, column: 11)
  }

  @Test("a function")
  func function() {
    expectMisuse(
      inBook: "var action: @Sendable () -> Void",
      "a function is no column; mark `action` @Ephemeral",
      line: 1, column: 13)
  }

  @Test("an optional function")
  func optionalFunction() {
    expectMisuse(
      inBook: "var action: (() -> Void)?",
      "a function is no column; mark `action` @Ephemeral",
      line: 1, column: 13)
  }

  @Test("an optional group of columns")
  func optionalGroup() {
    expectMisuse(
      inBook: """
        @Selection struct Size { var width: Int }
        var size: Size?
        """,
      "the columns of a group are always there; make properties of `Size` optional instead",
      line: 2, column: 11, fix: "write `Size`",
      fixed: """
        @Selection struct Size { var width: Int }
        var size: Size
        """)
  }

  @Test("a nested struct that is no group")
  func plainNested() {
    expectMisuse(
      inBook: """
        struct Size { var width: Int }
        var size: Size
        """,
      "`Size` is no type of a column: mark it @Selection, and its properties are columns, or declare it as a ColumnValue",
      line: 2, column: 11, fix: "mark it @Selection",
      fixed: """
        @Selection struct Size { var width: Int }
        var size: Size
        """)
  }

  @Test("nested structs that are no group, and the fix of which has to say more")
  func plainNestedFixes() {
    let message =
      "`Size` is no type of a column: mark it @Selection, and its properties are columns, or declare it as a ColumnValue"
    expectMisuse(
      inBook: """
        struct Size { var width: Int }
        var size: Size?
        """,
      message, line: 2, column: 11, fix: "mark it @Selection",
      fixed: """
        @Selection struct Size { var width: Int }
        var size: Size
        """)
    expectMisuse(
      """
      @Table struct Book {
        struct Size: Sendable { let width: Int }
        let id: Size
      }
      """,
      message, line: 3, column: 11, fix: "mark it @Selection",
      fixed: """
        @Table struct Book {
          @Selection struct Size: Sendable, Hashable { let width: Int }
          let id: Size
        }
        """)
  }

  @Test("an optional group of columns, in other words")
  func optionalGroupByName() {
    expectMisuse(
      inBook: """
        @Selection struct Size { var width: Int }
        var size: Optional<Size> = nil
        """,
      "the columns of a group are always there; make properties of `Size` optional instead",
      line: 2, column: 11, fix: "write `Size`",
      fixed: """
        @Selection struct Size { var width: Int }
        var size: Size
        """)
  }

  @Test("a member that the conformance has: the key's type")
  func clashKey() {
    expectMisuse(
      inBook: "typealias PrimaryKey = Int",
      "@Table writes `PrimaryKey`; call this one otherwise",
      line: 1, column: 11)
  }

  @Test("a member that the conformance has: the initialiser")
  func clashInit() {
    expectMisuse(
      inBook: "init(_ row: RowReader) { id = 1 }",
      "@Table writes `init(_: RowReader)`; call this one otherwise",
      line: 1, column: 1)
  }

  @Test("a member that the conformance has: the writing")
  func clashWrite() {
    expectMisuse(
      inBook: "func write(to record: inout RecordWriter) {}",
      "@Table writes `write(to:)`; call this one otherwise",
      line: 1, column: 6)
  }

  @Test("a member that the conformance has: the columns")
  func clashColumns() {
    expectMisuse(
      inBook: "static let columns = 1",
      "@Table writes `columns`; call this one otherwise",
      line: 1, column: 12)
  }

  @Test("a setter of a reference")
  func clashSetter() {
    expectMisuse(
      inBook: """
        var teamId: Int?
        @BelongsTo("teamId") var team: Team?
        func setTeam(_ team: Team) {}
        """,
      "@Table writes `setTeam(_:)`; call this one otherwise",
      line: 3, column: 6)
  }

  @Test("an optional of an optional")
  func twiceOptional() {
    expectMisuse(
      inBook: "var pages: Int??",
      "a column is null or not: the type of `pages` is `Int?`",
      line: 1, column: 12, fix: "write `Int?`",
      fixed: "var pages: Int?")
  }

  @Test(
    "optionals that are so in more than one way",
    arguments: [
      ("String?!", "a column that may be null is an optional"),
      ("Optional<String>!", "a column that may be null is an optional"),
      ("Int???", "a column is null or not"), ("Optional<Int?>", "a column is null or not"),
      ("Optional<Int>?", "a column is null or not"), ("(Int?)?", "a column is null or not"),
      ("((Int?))?", "a column is null or not"),
    ])
  func optionals(_ type: String, _ message: String) {
    let optional = type.contains("Int") ? "Int?" : "String?"
    expectMisuse(
      inBook: "var pages: \(type)",
      "\(message): the type of `pages` is `\(optional)`", line: 1, column: 12, fix: "write `\(optional)`",
      fixed: "var pages: \(optional)")
  }

  @Test("a key that is an optional in another way", arguments: ["Int!", "Int??", "Optional<Int>!"])
  func optionalKey(_ type: String) {
    for (mark, name) in [("", "id"), ("@Column(primaryKey: true) ", "number")] {
      expectMisuse(
        """
        @Table struct Book {
          \(mark)let \(name): \(type)
          var title: String
        }
        """,
        "the primary key `\(name)` cannot be nil", line: 2, column: 7 + mark.count, fix: "write `Int`",
        fixed: """
          @Table struct Book {
            \(mark)let \(name): Int
            var title: String
          }
          """)
    }
  }

  @Test(
    "a group that is an optional in another way",
    arguments: ["Size!", "Size??", "Optional<Size>?", "Size! = nil"])
  func optionalGroupOtherwise(_ type: String) {
    expectMisuse(
      inBook: """
        @Selection struct Size { var width: Int }
        var size: \(type)
        """,
      "the columns of a group are always there; make properties of `Size` optional instead",
      line: 2, column: 11, fix: "write `Size`",
      fixed: """
        @Selection struct Size { var width: Int }
        var size: Size
        """)
  }

  @Test(
    "an `ID` that is to be the key, but could not be as it is",
    arguments: [
      "var ID: UUID?", "var ID: UUID", "let ID: UUID?", "var ID = UUID()", "private(set) var ID: UUID",
    ])
  func markedKey(_ property: String) {
    expectMisuse(
      """
      @Table struct Book {
        /// The identifier.
        public \(property)
      }
      """,
      "Book has no primary key: name a property `id`, or mark one with @Column(primaryKey: true)",
      line: 1, column: 15, fix: "mark `ID`",
      fixed: """
        @Table struct Book {
          /// The identifier.
          @Column(primaryKey: true) public let ID: UUID
        }
        """)
  }

  @Test(
    "an `ID` of a type that no key has is not to be marked",
    arguments: ["Decimal", "Float?", "Data", "[Int]", "Optional<Data>", "[Int]?", "Array<Int>", "(Data)"])
  func unfitKey(_ type: String) {
    expectMisuse(
      """
      @Table struct Book {
        var ID: \(type)
      }
      """,
      "Book has no primary key: name a property `id`, or mark one with @Column(primaryKey: true)",
      line: 1, column: 15)
  }

  @Test("a function that is implicitly unwrapped")
  func implicitFunction() {
    expectMisuse(
      inBook: "var action: (() -> Void)!",
      "a function is no column; mark `action` @Ephemeral", line: 1, column: 13)
  }

  @Test("any value of a protocol")
  func existential() {
    expectMisuse(
      inBook: "var owner: any Person",
      "a column has a type of its own; store `owner` as JSON of one, or mark it @Ephemeral",
      line: 1, column: 12)
  }

  @Test("two columns in one declaration")
  func together() {
    expectMisuse(
      inBook: "var pages, shelf: Int",
      "declare the columns `pages` and `shelf` one by one",
      line: 1, column: 5, fix: "declare them one by one",
      fixed: """
        var pages: Int
        var shelf: Int
        """)
    expectMisuse(
      """
      @Table struct Book { let id: Int; private var pages = 1, shelf: Int? }
      """,
      "declare the columns `pages` and `shelf` one by one",
      line: 1, column: 47, fix: "declare them one by one",
      fixed: """
        @Table struct Book { let id: Int; private var pages = 1; private var shelf: Int? }
        """)
  }

  @Test("a column that is lazy")
  func lazyColumn() {
    expectMisuse(
      inBook: """
        lazy var title: String = "a"
        """,
      "a column is not lazy: leave that out, or mark `title` @Ephemeral",
      line: 1, column: 1, fix: "mark it @Ephemeral",
      fixed: """
        @Ephemeral lazy var title: String = "a"
        """)
  }

  @Test("a column that is lazy, and marked")
  func lazyIndex() {
    expectMisuse(
      inBook: """
        @Index lazy var title: String = "a"
        """,
      "a column is not lazy: leave that out, or mark `title` @Ephemeral",
      line: 1, column: 8, fix: "mark it @Ephemeral",
      fixed: """
        @Ephemeral lazy var title: String = "a"
        """)
  }

  @Test("a column with both observers")
  func observers() {
    expectMisuse(
      inBook: """
        var pages: Int {
          willSet {}
          didSet {}
        }
        """,
      "`pages` can have one observer of its own, as @Table adds the other: leave out `willSet`, or `didSet`",
      line: 1, column: 5)
  }

  @Test("a class of columns")
  func selectionClass() {
    expectMisuse(
      "@Selection class Part { var name: String = \"\" }",
      "@Selection requires a struct: a selection is a value", line: 1, column: 1)
  }

  @Test("a time that the node would maintain, stored as something else")
  func representedTime() {
    expectMisuse(
      inBook: "@Column(as: Date.DayRepresentation.self) var createdAt: Date",
      "the node maintains `createdAt` only where it is stored as it is: leave out `as:`, or call the column otherwise",
      line: 1, column: 46, severity: .warning)
    expectMisuse(
      inBook: "@Column(as: Date.UnixTimeRepresentation?.self) var updatedAt: Date?",
      "the node maintains `updatedAt` only where it is stored as it is: leave out `as:`, or call the column otherwise",
      line: 1, column: 52, severity: .warning)
  }
}
