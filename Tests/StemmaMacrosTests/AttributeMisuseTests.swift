import Testing

/// Arguments of attributes that would otherwise be ignored.
@Suite("Misuses of attributes")
struct AttributeMisuseTests {
  @Test(
    "an argument of @Table that is no literal",
    arguments: ["tableName", "model: name", "partition: [field]", "partition: fields", "\"book\" + suffix"])
  func tableArgument(_ argument: String) {
    expectMisuse(
      """
      @Table(\(argument)) struct Book {
        let id: Int
      }
      """, unreadable("Table", argument), line: 1, column: 1)
  }

  @Test(
    "an argument of @Column that is no literal",
    arguments: ["columnName", "\"book\\(number)\"", "primaryKey: isKey", "as: stored"])
  func columnArgument(_ argument: String) {
    expectMisuse(
      """
      @Table struct Book {
        @Column(\(argument)) let id: Int
      }
      """, unreadable("Column", argument), line: 2, column: 3)
  }

  @Test("a key that is marked by what is no literal, where no other is")
  func keyArgument() {
    expectMisuse(
      """
      @Table struct Book {
        @Column(primaryKey: isKey) let number: Int
      }
      """, unreadable("Column", "primaryKey: isKey"), line: 2, column: 3)
  }

  @Test("an argument of @Column that is no literal, in a group")
  func partArgument() {
    expectMisuse(
      """
      @Selection struct Print {
        @Column(columnName) var year: Int
      }
      """, unreadable("Column", "columnName"), line: 2, column: 3)
  }

  @Test("an argument of an index that is no literal", arguments: ["other", "name: indexName"])
  func indexArgument(_ argument: String) {
    expectMisuse(
      """
      @Table @Index("id", \(argument)) struct Book {
        let id: Int
      }
      """, unreadable("Index", argument), line: 1, column: 8)
    expectMisuse(
      inBook: "@Index(\(argument)) var title: String", unreadable("Index", argument), line: 1, column: 1)
  }

  @Test("an index that names nothing but what is no literal")
  func onlyIndexArgument() {
    expectMisuse(
      """
      @Table @Index(field) struct Book {
        let id: Int
      }
      """, unreadable("Index", "field"), line: 1, column: 8)
  }

  @Test(
    "an argument of a relationship to many that is no literal",
    arguments: [
      "HasMany(\"teamId\", onDelete: rule)", "HasMany(\"teamId\", onDelete: Rules.restrict)",
      "HasMany(field)", "HasMany(\"teamId\", field)", "ManyToMany(through: join)",
      "ManyToMany(through: Join.self, by: side)",
    ])
  func relationshipArgument(_ attribute: String) {
    let arguments = attribute.dropLast().split(separator: "(")[1]
    let last = arguments.split(separator: ", ").last.map(String.init) ?? ""
    expectMisuse(
      """
      @Table struct Team {
        let id: Int
        @\(attribute) var members: Related<Member>
      }
      """, unreadable(String(attribute.prefix { $0 != "(" }), last), line: 3, column: 3)
  }

  @Test("an argument of a reference that is no literal")
  func referenceArgument() {
    expectMisuse(
      """
      @Table struct Member {
        let id: Int
        var teamId: Int
        @BelongsTo(field) var team: Team
      }
      """, unreadable("BelongsTo", "field"), line: 4, column: 3)
  }

  private func unreadable(_ name: String, _ argument: String) -> String {
    "@\(name) cannot read `\(argument)`: write it out, as a macro sees no values"
  }

  @Test(
    "fields as GraphQL names them",
    arguments: [
      ("BelongsTo(fields: [\"a\", \"b\"])", "BelongsTo(\"a\", \"b\")"),
      ("BelongsTo(fields: \"a\")", "BelongsTo(\"a\")"), ("BelongsTo([\\.a])", "BelongsTo(\\.a)"),
    ])
  func fieldLists(_ attribute: String, _ plain: String) {
    expectMisuse(
      """
      @Table struct Member {
        let id: Int
        var a: Int?
        var b: Int?
        @\(attribute) var team: Team?
      }
      """, "properties are named one by one, without a label: @\(plain)", line: 5, column: 3,
      fix: "write `@\(plain)`",
      fixed: """
        @Table struct Member {
          let id: Int
          var a: Int?
          var b: Int?
          @\(plain) var team: Team?
        }
        """)
  }

  @Test("fields of the other side, and of an index, as GraphQL names them")
  func otherFieldLists() {
    expectMisuse(
      """
      @Table struct Team {
        let id: Int
        @HasMany(references: ["teamId"], onDelete: .restrict) var members: Related<Member>
      }
      """, "properties are named one by one, without a label: @HasMany(\"teamId\", onDelete: .restrict)",
      line: 3,
      column: 3, fix: "write `@HasMany(\"teamId\", onDelete: .restrict)`",
      fixed: """
        @Table struct Team {
          let id: Int
          @HasMany("teamId", onDelete: .restrict) var members: Related<Member>
        }
        """)
    expectMisuse(
      """
      @Table @Index(fields: ["name", "id"], name: "byName") struct Team {
        let id: Int
        var name: String
      }
      """, "properties are named one by one, without a label: @Index(\"name\", \"id\", name: \"byName\")",
      line: 1,
      column: 8, fix: "write `@Index(\"name\", \"id\", name: \"byName\")`",
      fixed: """
        @Table @Index("name", "id", name: "byName") struct Team {
          let id: Int
          var name: String
        }
        """)
  }

  @Test(
    "fields of this side, or an index, of a relationship whose fields are of the other side, as in Amplify's first GraphQL",
    arguments: [
      "fields: [\"id\"]", "indexName: \"byTeam\", fields: [\"id\"]", "fields: [\"id\"], onDelete: .restrict",
      "indexName: \"byTeam\"",
    ])
  func fieldsOfThisSide(_ arguments: String) {
    for (kind, type) in [("HasMany", "Related<Member>"), ("HasOne", "Member?")] {
      let label = arguments.prefix { $0 != ":" }
      expectMisuse(
        """
        @Table struct Team {
          let id: Int
          @\(kind)(\(arguments)) var member: \(type)
        }
        """,
        "@\(kind) names the reference fields that the other model has, not `\(label):`: write @\(kind)(\"…\")",
        line: 3, column: 3)
    }
  }

  @Test("fields as GraphQL names them, behind other arguments")
  func fieldsBehind() {
    expectMisuse(
      """
      @Table struct Team {
        let id: Int
        @HasMany(onDelete: .restrict, references: ["teamId"]) var members: Related<Member>
      }
      """, "properties are named one by one, without a label: @HasMany(\"teamId\", onDelete: .restrict)",
      line: 3, column: 3, fix: "write `@HasMany(\"teamId\", onDelete: .restrict)`",
      fixed: """
        @Table struct Team {
          let id: Int
          @HasMany("teamId", onDelete: .restrict) var members: Related<Member>
        }
        """)
    expectMisuse(
      """
      @Table @Index(name: "byName", fields: ["name"]) struct Team {
        let id: Int
        var name: String
      }
      """, "properties are named one by one, without a label: @Index(\"name\", name: \"byName\")",
      line: 1, column: 8, fix: "write `@Index(\"name\", name: \"byName\")`",
      fixed: """
        @Table @Index("name", name: "byName") struct Team {
          let id: Int
          var name: String
        }
        """)
  }

  @Test("a list of no fields", arguments: ["fields: []", "[]", "references: []"])
  func emptyFieldList(_ argument: String) {
    expectMisuse(
      """
      @Table struct Member {
        let id: Int
        @BelongsTo(\(argument)) var team: Team?
      }
      """, "properties are named one by one, without a label: @BelongsTo(\"…\")", line: 3, column: 3)
  }

  @Test("an index that names its own property in another case")
  func ownFieldMisspelt() {
    expectMisuse(
      inBook: """
        @Index("Title") var title: String
        """, "Book has no column `Title`; it has id, title", line: 1, column: 1)
  }

  @Test("what is said of columns, where the model's own mark depends on the build: that is said of the model")
  func conditionalModel() {
    expectNone(
      """
      #if SERVER
      @Table
      #endif
      struct Book {
        @Column(primaryKey: true) let isbn: String
        @Index var title: String
        @Ephemeral var isOpen = false
      }
      """)
    expectMisuse(
      """
      #if SERVER
      #if os(Linux)
      @Table
      #endif
      #endif
      struct Book {
        let id: Int
        @HasMany("bookId") var pages: Related<Page>
      }
      """, "@HasMany belongs in a struct whose @Table is not inside of #if", line: 8, column: 3)
  }

  @Test("two attributes for one column")
  func twoColumns() {
    expectMisuse(
      inBook: """
        @Column("name") @Column(as: Title.self) var title: String
        """, secondColumn, line: 1, column: 17)
    expectMisuse(
      """
      @Selection struct Print {
        @Column("name") @Column("other") var title: String
      }
      """, secondColumn, line: 2, column: 19)
  }

  private let secondColumn = "a property is one column; say all of it in one @Column"

  @Test(
    "what is said of a column, on a property that is computed",
    arguments: ["@Column(\"name\")", "@Column(primaryKey: true)", "@Index"])
  func computed(_ attribute: String) {
    let name = attribute.dropFirst().prefix { $0 != "(" }
    let message = "`title` is not stored in a record; leave out @\(name)"
    for (kind, first, member) in [
      ("@Table", "let id: Int", "var title: String { \"\" }"),
      ("@Selection", "var year: Int", "var title: String { \"\" }"),
      ("@Table", "let id: Int", "static let title = \"\""),
    ] {
      expectMisuse(
        """
        \(kind) struct Book {
          \(first)
          \(attribute) \(member)
        }
        """, message, line: 3, column: 3, fix: "leave out @\(name)",
        fixed: """
          \(kind) struct Book {
            \(first)
            \(member)
          }
          """)
    }
  }

  @Test(
    "what is said of a column, where no columns are",
    arguments: [
      ("struct Book {", "var title: String", "}"), ("enum Book {", "case title", "}"),
      ("extension Book {", "var title: String { \"\" }", "}"),
      ("@Table struct Book {\n  let id: Int", "func title() {}", "}"),
      ("@Table struct Book {\n  let id: Int", "struct Title {}", "}"),
      ("@Table struct Book {\n  let id: Int\n  struct Title {", "var text: String", "}\n}"),
    ])
  func misplaced(_ head: String, _ member: String, _ tail: String) {
    for name in ["Column", "Ephemeral", "Index"] {
      let place =
        name == "Index"
        ? "the struct with @Table, or on a property of it"
        : "a property of a struct with @Table or @Selection"
      expectMisuse(
        """
        \(head)
          @\(name) \(member)
        \(tail)
        """, "@\(name) belongs on \(place); leave it out here", line: head.count { $0 == "\n" } + 2,
        column: 3, fix: "leave out @\(name)",
        fixed: """
          \(head)
            \(member)
          \(tail)
          """)
    }
  }

  @Test("an index on a group of columns")
  func indexOfGroup() {
    expectMisuse(
      inBook: """
        @Index("year") @Selection struct Print { var year: Int }
        var print: Print
        """, "@Index belongs on the struct with @Table, or on a property of it; leave it out here", line: 1,
      column: 1, fix: "leave out @Index",
      fixed: """
        @Selection struct Print { var year: Int }
        var print: Print
        """)
  }

  @Test("an index that names a field twice")
  func fieldTwice() {
    expectMisuse(
      inBook: """
        @Index("title") var title: String
        """, "an index names each property once; `title` is named twice", line: 1, column: 1,
      fix: "name it once",
      fixed: "@Index var title: String")
    expectMisuse(
      """
      @Table @Index("title", "id", "title", name: "shelf") struct Book {
        let id: Int
        var title: String
      }
      """, "an index names each property once; `title` is named twice", line: 1, column: 8,
      fix: "name it once",
      fixed: """
        @Table @Index("title", "id", name: "shelf") struct Book {
          let id: Int
          var title: String
        }
        """)
  }

  @Test(
    "two indexes of one name",
    arguments: [
      ("@Index(\"title\", name: \"first\")", "@Index(\"year\", name: \"First\")", "First"),
      ("@Index(\"title\")", "@Index(\"title\")", "byTitle"),
      ("@Index(\"title\", \"year\")", "@Index(\"id\", name: \"byTitleAndYear\")", "byTitleAndYear"),
    ])
  func sameIndex(_ first: String, _ second: String, _ name: String) {
    expectMisuse(
      """
      @Table
      \(first)
      \(second)
      struct Book {
        let id: Int
        var title: String
        var year: Int
      }
      """, "Book has an index `\(name)` already; give this one another name", line: 3, column: 1)
  }
}
