import Testing

/// Members that groups of columns and keys cannot have.
@Suite("Misuses of groups and key types")
struct GroupMisuseTests {
  @Test("a relationship in a group")
  func relationshipInGroup() {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          var year: Int
          var shopId: Int?
          @BelongsTo("shopId") var shop: Shop?
        }
        var print: Print
        """,
      "@BelongsTo belongs in the struct with @Table itself, beside its reference fields; "
        + "a group of columns and other types have no relationships",
      line: 4, column: 3)
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
      "@HasMany belongs in the struct with @Table itself, beside its reference fields; "
        + "a group of columns and other types have no relationships",
      line: 3, column: 3)
  }

  /// The advice must be valid inside of a group.
  @Test("related records in a group", arguments: ["", "@Table "])
  func relatedInGroup(_ table: String) {
    let message =
      "`pages` leads to other records, and so belongs in the model: a group of columns has no relationships"
    if table.isEmpty {
      expectMisuse(
        """
        @Selection struct Print {
          var year: Int
          var pages: Related<Page>
        }
        """, message, line: 3, column: 14)
    } else {
      expectMisuse(
        inBook: """
          @Selection struct Print {
            var pages: Related<Page>
          }
          var print: Print
          """, message, line: 2, column: 14)
    }
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
      inBook: """
        @Selection struct Paper {
          var weight: Int
        }
        @Selection struct Print {
          var year: Int
          var paper: Paper?
        }
        var print: Print
        """,
      "a @Selection holds values, no other @Selection; declare the properties of `Paper` in its place",
      line: 6, column: 14)
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

  @Test("an optional type that no key has is refused once", arguments: ["Data?", "Data!", "Optional<Data>"])
  func optionalKeyType(_ type: String) {
    expectMisuse(
      """
      @Table struct Book {
        let id: \(type)
      }
      """,
      "`id` cannot be a part of a key, as it is bytes; make it a String", line: 2, column: 11)
  }

  @Test("a part of a key that is an optional in another way", arguments: ["Int!", "Int??", "(Int?)?"])
  func optionalPart(_ type: String) {
    expectMisuse(
      """
      @Table struct Book {
        @Selection struct ID: Hashable {
          let shelf: \(type)
        }
        let id: ID
      }
      """,
      "the type of `shelf` is `Int`, as in a key; or, where it can be null and is in none, `Int?`", line: 3,
      column: 16, fix: "write `Int`",
      fixed: """
        @Table struct Book {
          @Selection struct ID: Hashable {
            let shelf: Int
          }
          let id: ID
        }
        """)
  }

  @Test("an implicitly unwrapped or doubly optional part of a group", arguments: ["Int!", "Int??"])
  func optionalPartOfAGroup(_ type: String) {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          var year: \(type)
        }
        var print: Print
        """,
      "the type of `year` is `Int`, as in a key; or, where it can be null and is in none, `Int?`", line: 2,
      column: 13, fix: "write `Int`",
      fixed: """
        @Selection struct Print {
          var year: Int
        }
        var print: Print
        """)
  }

  @Test("a selection outside of tables is no key")
  func optionalPartOfASelection() {
    expectMisuse(
      """
      @Selection struct Size {
        let width: Int!
      }
      """, "a column that may be null is an optional: the type of `width` is `Int?`", line: 2, column: 14,
      fix: "write `Int?`",
      fixed: """
        @Selection struct Size {
          let width: Int?
        }
        """)
  }

  @Test("a group in parentheses is that group", arguments: ["(Print)", "((Print))", "Print"])
  func parentheses(_ type: String) {
    expectNone(
      """
      @Table struct Book {
        @Selection struct Key: Hashable {
          let shop: Int
          let number: (Int)
        }
        @Selection struct Print {
          var year: Int
        }
        let id: \(type.replacing("Print", with: "Key"))
        var print: \(type)
      }
      """)
  }

  @Test("an optional group in parentheses", arguments: ["(Print)?", "(Print?)", "(Print?)?"])
  func optionalInParentheses(_ type: String) {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          var year: Int
        }
        var print: \(type)
        """, "the columns of a group are always there; make properties of `Print` optional instead",
      line: 4, column: 12, fix: "write `Print`",
      fixed: """
        @Selection struct Print {
          var year: Int
        }
        var print: Print
        """)
  }

  @Test("a constant with a value in a group, and in a key")
  func constant() {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          var year: Int
          let kind = "a"
        }
        var print: Print
        """, "`kind` is the same in every row; make it a `var`, or mark it @Ephemeral", line: 3, column: 7,
      fix: "make it a `var`",
      fixed: """
        @Selection struct Print {
          var year: Int
          var kind = "a"
        }
        var print: Print
        """)
    expectMisuse(
      """
      @Table struct Book {
        @Selection struct ID: Hashable {
          let shop: Int
          let kind = "a"
        }
        let id: ID
      }
      """, "`kind` would be the same in every record; leave out its value", line: 4, column: 9,
      fix: "leave out the value",
      fixed: """
        @Table struct Book {
          @Selection struct ID: Hashable {
            let shop: Int
            let kind: String
          }
          let id: ID
        }
        """)
  }

  @Test("what is not stored has no default, in a selection of no model")
  func ephemeral() {
    expectMisuse(
      """
      @Selection struct Print {
        var year: Int
        @Ephemeral var isOpen: Bool
      }
      """,
      "`isOpen` is not stored, so a record that is read needs a value for it: give a default",
      line: 3, column: 18, fix: "add a default",
      fixed: """
        @Selection struct Print {
          var year: Int
          @Ephemeral var isOpen: Bool = <#value#>
        }
        """)
  }

  @Test("properties of a group that stand inside of #if")
  func conditional() {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          var year: Int
          #if DEBUG
            var trace: String
          #endif
        }
        var print: Print
        """, "a column cannot stand inside of #if; take it out, or mark it @Ephemeral", line: 4, column: 5)
  }

  @Test("a property of a group that is lazy")
  func lazyPart() {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          var year: Int
          lazy var title: String = "a"
        }
        var print: Print
        """,
      "a column is not lazy: leave that out, or mark `title` @Ephemeral", line: 3, column: 3,
      fix: "mark it @Ephemeral",
      fixed: """
        @Selection struct Print {
          var year: Int
          @Ephemeral lazy var title: String = "a"
        }
        var print: Print
        """)
  }

  @Test("a type that no column has, in a group: said once")
  func partType() {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          var pair: (Int, Int)
        }
        var print: Print
        """, "a tuple is no column; make it a nested @Selection struct, or mark `pair` @Ephemeral", line: 2,
      column: 13)
  }

  @Test("an index on a property of a group")
  func partIndex() {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          @Index var year: Int
        }
        var print: Print
        """, "an index is one of the model: write @Index(\"year\") on the struct with @Table", line: 2,
      column: 3)
  }

  @Test("a property of a group as the key")
  func partKey() {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          @Column(primaryKey: true) var year: Int
        }
        var print: Print
        """, "the key is a property of the model, not one of a @Selection: mark the model's", line: 2,
      column: 3
    )
  }

  @Test("a column for a whole group", arguments: ["\"prints\"", "as: Print.JSONRepresentation.self"])
  func groupColumn(_ argument: String) {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          var year: Int
        }
        @Column(\(argument)) var print: Print
        """, "the columns of `print` are the properties of `Print`: mark these with @Column", line: 4,
      column: 1
    )
  }

  @Test("a reference field in a group")
  func fieldInGroup() {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          var shopId: Int?
        }
        var print: Print
        @BelongsTo("shopId") var shop: Shop?
        """,
      "`shopId` belongs to the group `print`; a reference field is a property of Book itself, or a part of its key",
      line: 5, column: 1)
  }

  @Test("a reference field in a group, of a model that leads to itself")
  func childFieldInGroup() {
    expectMisuse(
      inBook: """
        @Selection struct Print {
          var firstId: Int?
        }
        var print: Print
        @HasMany("firstId") var copies: Related<Book>
        """,
      "`firstId` belongs to the group `print`; a reference field is a property of Book itself, or a part of its key",
      line: 5, column: 1)
  }

  @Test("a part of a key that is stored as something else")
  func representedPart() {
    expectMisuse(
      """
      @Table struct Book {
        @Selection struct ID: Hashable {
          let shelf: String
          @Column(as: Date.UnixTimeRepresentation.self) let day: Date
        }
        let id: ID
      }
      """, "the key part `day` is stored as it is; leave out `as:`", line: 4, column: 55)
  }

  @Test(
    "a member that @Selection writes",
    arguments: [
      ("struct Columns {}", "Columns", 10), ("let parts: Int", "parts", 7),
      ("func write(to record: inout RecordWriter) {}", "write(to:)", 8),
    ])
  func clash(_ member: String, _ name: String, _ column: Int) {
    expectMisuse(
      """
      @Selection struct ID: Hashable {
        let number: Int
        \(member)
      }
      """, "@Selection writes `\(name)`; call this one otherwise", line: 3, column: column)
  }

  @Test("a part of a key that is called as the key is in a record")
  func clashPart() {
    expectMisuse(
      """
      @Table struct Book {
        @Selection struct ID: Hashable {
          let primaryKey: Int
        }
        let id: ID
      }
      """, "@Table writes `primaryKey`; call this one otherwise", line: 3, column: 9)
  }

  @Test("a selection of nothing")
  func empty() {
    expectMisuse(
      """
      @Selection struct Load {
        var sum: Int { 0 }
      }
      """, "`Load` has no property that is stored", line: 1, column: 19)
    expectMisuse(
      inBook: """
        @Selection struct Print {
        }
        var print: Print
        """, "`Print` has no property that is stored", line: 1, column: 19)
  }
}
