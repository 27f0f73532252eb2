import Testing

/// Names that a schema would refuse.
@Suite("Misuses of names")
struct NameMisuseTests {
  @Test("a property whose name no schema takes")
  func columnName() {
    expectMisuse(
      """
      @Table struct Book {
        let id: Int
        var größe: Int
      }
      """,
      "`größe` cannot name a column: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them",
      line: 3, column: 7, fix: "name the column",
      fixed: """
        @Table struct Book {
          let id: Int
          @Column("<#name#>") var größe: Int
        }
        """)
  }

  @Test("a column whose name no schema takes")
  func writtenName() {
    expectMisuse(
      """
      @Table struct Book {
        let id: Int
        @Column("with space") var size: Int
      }
      """,
      "`with space` cannot name a column: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them",
      line: 3, column: 3)
  }

  @Test("a name that begins with `_`")
  func underscore() {
    expectMisuse(
      """
      @Table struct Book {
        let id: Int
        var _size: Int
      }
      """,
      "`_size` cannot name a column: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them",
      line: 3, column: 7, fix: "name the column",
      fixed: """
        @Table struct Book {
          let id: Int
          @Column("<#name#>") var _size: Int
        }
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
      """
      @Table struct Book {
        let id: Int
        var ownerId: Int?
        @BelongsTo("ownerId") var eigentümer: Owner?
      }
      """,
      "`eigentümer` cannot name a relationship: a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them",
      line: 4, column: 29)
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
}
