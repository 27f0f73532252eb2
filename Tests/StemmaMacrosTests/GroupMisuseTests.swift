import Testing

/// What groups of columns and keys cannot hold.
@Suite("Misuses of groups and key types")
struct GroupMisuseTests {
  @Test("a relationship in a group")
  func relationshipInGroup() {
    expectMisuse(
      """
      @Table struct Book {
        let id: Int
        @Selection struct Print {
          var year: Int
          var shopId: Int?
          @BelongsTo("shopId") var shop: Shop?
        }
        var print: Print
      }
      """,
      "@BelongsTo stands in the struct with @Table itself, beside its reference fields; a group of columns and other types "
        + "have no relationships",
      line: 6, column: 5)
  }

  @Test("a relationship in a struct that is no model")
  func relationshipOutside() {
    expectMisuse(
      """
      struct Book {
        let id: Int
        @HasMany("bookId") var pages: Related<Page>
      }
      """,
      "@HasMany stands in the struct with @Table itself, beside its reference fields; a group of columns and other types "
        + "have no relationships",
      line: 3, column: 3)
  }

  @Test("a group in a group, declared in it")
  func nestedSelection() {
    expectMisuse(
      """
      @Selection struct Print {
        var year: Int
        @Selection struct Paper {
          var weight: Int
        }
      }
      """,
      "a @Selection holds values, no other @Selection; declare the properties of `Paper` in its place",
      line: 3, column: 21)
  }

  @Test("a group in a group, declared beside it")
  func selectionOfSelection() {
    expectMisuse(
      """
      @Table struct Book {
        let id: Int
        @Selection struct Paper {
          var weight: Int
        }
        @Selection struct Print {
          var year: Int
          var paper: Paper?
        }
        var print: Print
      }
      """,
      "a @Selection holds values, no other @Selection; declare the properties of `Paper` in its place",
      line: 8, column: 16)
  }

  @Test("keys of types that are none")
  func keyTypes() {
    expectMisuse(
      """
      @Table struct Book {
        let id: [Int]
      }
      """,
      "`id` cannot be a part of a key, as it is a list; make it a model of its own, or a nested @Selection of its parts",
      line: 2, column: 11)
    expectMisuse(
      """
      @Table struct Book {
        @Column(primaryKey: true) let price: Decimal
      }
      """,
      "`price` cannot be a part of a key, as it is a number that can be written in several ways; make it an Int or a String",
      line: 2, column: 40)
    expectMisuse(
      """
      @Table struct Book {
        @Selection struct ID: Hashable {
          let shop: Int
          let cover: Data
        }
        let id: ID
      }
      """, "`cover` cannot be a part of a key, as it is bytes; make it a String", line: 4, column: 16)
  }
}
