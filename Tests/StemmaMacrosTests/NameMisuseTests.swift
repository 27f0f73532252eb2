import Testing

/// Names that a schema would refuse.
@Suite("Misuses of names")
struct NameMisuseTests {
  @Test("a property whose name no schema takes")
  func columnName() {
    expectMisuse(
      inBook: "var größe: Int",
      "`größe` cannot name a column: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them",
      line: 1, column: 5, fix: "name the column",
      fixed: """
        @Column("<#name#>") var größe: Int
        """)
  }

  @Test("a column whose name no schema takes")
  func writtenName() {
    expectMisuse(
      inBook: """
        @Column("with space") var size: Int
        """,
      "`with space` cannot name a column: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them",
      line: 1, column: 1)
  }

  @Test("a name that begins with `_`")
  func underscore() {
    expectMisuse(
      inBook: "var _size: Int",
      "`_size` cannot name a column: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them",
      line: 1, column: 5, fix: "name the column",
      fixed: """
        @Column("<#name#>") var _size: Int
        """)
  }

  @Test("a table that only SQLite may have")
  func tableName() {
    expectMisuse(
      """
      @Table("sqlite_books") struct Book {
        let id: Int
      }
      """,
      "`sqlite_books` cannot name a table: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them; `sqlite_` is SQLite's own",
      line: 1, column: 1)
  }

  @Test("a table without a name")
  func emptyName() {
    expectMisuse(
      """
      @Table("") struct Book {
        let id: Int
      }
      """,
      "`` cannot name a table: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them; `sqlite_` is SQLite's own",
      line: 1, column: 1)
  }

  @Test("a model whose name no schema takes")
  func modelName() {
    expectMisuse(
      """
      @Table struct Café {
        let id: Int
      }
      """,
      "`Café` cannot name a model: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them",
      line: 1, column: 15)
  }

  @Test("a relationship whose name no schema takes")
  func relationshipName() {
    expectMisuse(
      inBook: """
        var ownerId: Int?
        @BelongsTo("ownerId") var eigentümer: Owner?
        """,
      "`eigentümer` cannot name a relationship: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them",
      line: 2, column: 27)
  }

  @Test("a column and a relationship of one name")
  func columnAndRelationship() {
    expectMisuse(
      inBook: """
        @Column("team") var teamId: Int?
        @BelongsTo("teamId") var team: Team?
        """,
      "the relationship `team` and the column `team` of `teamId` have one name; call one of them otherwise",
      line: 1, column: 1)
    expectMisuse(
      inBook: """
        @Selection struct Print { var Team: String }
        var print: Print
        @HasOne("bookId") var team: Team?
        """,
      "the relationship `team` and the column `Team` of `print.Team` have one name; call one of them otherwise",
      line: 3, column: 23)
    expectMisuse(
      """
      @Table struct Seat {
        @Selection struct ID: Hashable { let team: Int; let number: Int }
        let id: ID
        @BelongsTo("team") var team: Team
      }
      """,
      "the relationship `team` and the column `team` of `id.team` have one name; call one of them otherwise",
      line: 4, column: 26)
  }

  @Test("two relationships of one name")
  func relationships() {
    expectMisuse(
      inBook: """
        @HasMany("bookId") var pages: Related<Page>
        @HasOne("firstId") var Pages: Page?
        """,
      "the relationships `Pages` and `pages` differ only in case; call one of them otherwise",
      line: 2, column: 24)
  }

  @Test("a part of a key, and what else has its name")
  func partOfKey() {
    expectMisuse(
      """
      @Table struct Book {
        @Selection struct ID: Hashable { let print: Int }
        @Selection struct Print { var year: Int }
        let id: ID
        var print: Print
      }
      """, "`print` is a part of the key already; call this one otherwise", line: 5, column: 7)
    expectMisuse(
      """
      @Table struct Book {
        @Selection struct ID: Hashable { let shelf: Int }
        let id: ID
        @Column("place") var shelf: Int
      }
      """, "`shelf` is a part of the key already; call this one otherwise", line: 4, column: 24)
    expectMisuse(
      """
      @Table struct Book {
        @Selection struct ID: Hashable { @Column("number") let shelf: Int }
        let id: ID
        @HasMany("bookShelf") var shelf: Related<Page>
      }
      """, "`shelf` is a part of the key already; call this one otherwise", line: 4, column: 29)
  }

  @Test("columns of one name, across groups and keys")
  func columnsOfGroups() {
    expectMisuse(
      inBook: """
        @Selection struct Print { var year: Int }
        var print: Print
        var year: Int
        """, "`year` and `print.year` would be one column, `year`", line: 3, column: 5)
    expectMisuse(
      """
      @Table struct Book {
        @Selection struct ID: Hashable { let shelf: Int }
        @Selection struct Place { @Column("Shelf") var name: String }
        let id: ID
        var place: Place
      }
      """, "`place.name` and `id.shelf` would be one column, `Shelf`", line: 3, column: 50)
  }

  @Test("an index whose name no schema takes")
  func indexName() {
    expectMisuse(
      """
      @Index("title", name: "a b")
      @Table struct Book {
        let id: Int
        var title: String
      }
      """,
      "`a b` cannot name an index: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them",
      line: 1, column: 1)
  }

  @Test("an index of what is no column")
  func indexField() {
    expectMisuse(
      """
      @Index("titel")
      @Table struct Book {
        let id: Int
        var title: String
      }
      """,
      "Book has no column `titel`; it has id, title",
      line: 1, column: 1)
  }

  @Test("a name that every value has already")
  func selfMember() {
    expectMisuse(
      inBook: "var `self`: Int",
      "every value has a member `self`; call this one otherwise, and its column with @Column(\"self\")",
      line: 1, column: 5)
    expectMisuse(
      inBook: """
        var shopId: Int
        @BelongsTo("shopId") var `self`: Shop
        """, "every value has a member `self`; call this one otherwise", line: 2, column: 26)
    expectMisuse(
      "@Selection struct Shown { var `self`: Int }",
      "every value has a member `self`; call this one otherwise", line: 1, column: 31)
    expectMisuse(
      """
      @Table struct Book {
        let id: Int
        @Selection struct Part { var `self`: Int }
        var part: Part
      }
      """,
      "every value has a member `self`; call this one otherwise, and its column with @Column(\"self\")",
      line: 3, column: 32)
  }

  @Test("a name that what macros write takes for something else")
  func takenMember() {
    expectMisuse(
      inBook: "@Column(\"stemma\") var Stemma: Int",
      "`Stemma` is the library in what the macro writes; call this one otherwise", line: 1, column: 23)
    expectMisuse(
      inBook: "var `primaryKey`: Int",
      "@Table writes `primaryKey`; call this one otherwise", line: 1, column: 5)
  }

  @Test("a model whose name what @Table writes has", arguments: ["Draft", "Stemma", "Swift", "String"])
  func takenModel(_ name: String) {
    expectMisuse(
      """
      @Table struct \(name) {
        let id: Int
      }
      """,
      "a type with @Table cannot be called \(name): what that writes has this name; the model can, with @Table(model: \"\(name)\")",
      line: 1, column: 15)
  }
}
