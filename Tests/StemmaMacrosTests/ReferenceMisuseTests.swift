import Testing

/// Relationships that `@Table` refuses.
@Suite("Misuses of relationships")
struct ReferenceMisuseTests {
  @Test("fewer reference fields than the key has parts")
  func fieldCount() {
    expectMisuse(
      """
      @Table struct Team {
        @Selection struct ID: Hashable {
          let a: String
          let b: Int
        }
        let id: ID
        @HasMany("teamA") var members: Related<Member>
      }
      """,
      "the key of Team has 2 parts, `a`, `b`, but the relationship has 1 reference field of Member; name one for each, in this order",
      line: 7, column: 3)
  }

  @Test("more reference fields than the key has parts")
  func fieldCountOne() {
    expectMisuse(
      """
      @Table struct Team {
        let id: Int
        @HasOne("a", "b") var coach: Member?
      }
      """,
      "the key of Team has 1 part, `id`, but the relationship has 2 reference fields of Member; name one for each, in this order",
      line: 3, column: 3)
  }

  @Test("a key path of the wrong model")
  func foreignField() {
    expectMisuse(
      """
      @Table struct Team {
        let id: Int
        @HasMany(\\Team.teamId) var members: Related<Member>
      }
      """,
      "the reference fields of `members` are fields of Member, not of Team",
      line: 3, column: 3, fix: "write `\\Member.teamId`",
      fixed: """
        @Table struct Team {
          let id: Int
          @HasMany(\\Member.teamId) var members: Related<Member>
        }
        """)
  }

  @Test("a reference to the model itself, in the wrong order")
  func order() {
    expectMisuse(
      """
      @Table struct Node {
        @Selection struct ID: Hashable {
          let a: String
          let b: Int
        }
        let id: ID
        var upA: String?
        var upB: Int?
        @BelongsTo("upB", "upA") var up: Node?
      }
      """,
      "the key of Node is `a`, `b` of the types String, Int; the reference fields are of Int, String",
      line: 9, column: 3, fix: "write them in the key's order",
      fixed: """
        @Table struct Node {
          @Selection struct ID: Hashable {
            let a: String
            let b: Int
          }
          let id: ID
          var upA: String?
          var upB: Int?
          @BelongsTo("upA", "upB") var up: Node?
        }
        """)
  }

  @Test("a reference to the model itself, of another type")
  func type() {
    expectMisuse(
      """
      @Table struct Node {
        let id: Int
        var upId: String?
        @HasMany("upId") var below: Related<Node>
      }
      """,
      "the key of Node is `id` of the types Int; the reference fields are of String",
      line: 4, column: 3)
  }

  @Test("a reference to the model itself by what is no column")
  func unknownOwn() {
    expectMisuse(
      """
      @Table struct Node {
        let id: Int
        @HasMany("upId") var below: Related<Node>
      }
      """,
      "Node has no column `upId`; it has id",
      line: 3, column: 3)
  }

  @Test("reference fields whose names differ in case")
  func misspelt() {
    expectMisuse(
      inBook: """
        var teamId: Int?
        var shopId: Int?
        @BelongsTo("teamId", "shopID") var team: Team?
        """,
      "Book has no column `shopID`; it has id, teamId, shopId",
      line: 3, column: 1, fix: "write `shopId`",
      fixed: """
        var teamId: Int?
        var shopId: Int?
        @BelongsTo("teamId", "shopId") var team: Team?
        """)
    // The fix would name the field twice.
    expectMisuse(
      inBook: """
        var teamId: Int?
        @BelongsTo("teamId", "teamID") var team: Team?
        """,
      "Book has no column `teamID`; it has id, teamId", line: 2, column: 1)
    expectMisuse(
      """
      @Table struct Node {
        let id: Int
        var upId: Int?
        @HasMany("upID", onDelete: .restrict) var below: Related<Node>
      }
      """,
      "Node has no column `upID`; it has id, upId",
      line: 4, column: 3, fix: "write `upId`",
      fixed: """
        @Table struct Node {
          let id: Int
          var upId: Int?
          @HasMany("upId", onDelete: .restrict) var below: Related<Node>
        }
        """)
  }

  @Test("reference fields of which one can be nil")
  func mixedFields() {
    expectMisuse(
      inBook: """
        var a: Int?
        var b: Int
        @BelongsTo("a", "b") var team: Team?
        """,
      "`a` and `b` make up one reference: all are optional, or none",
      line: 3, column: 1)
  }

  @Test("a required record over a field that can be nil")
  func requiredOverOptional() {
    expectMisuse(
      inBook: """
        var teamId: Int?
        @BelongsTo("teamId") var team: Team
        """,
      "`teamId` can be nil, while team cannot; it is taken for required",
      line: 2, column: 32, severity: .warning, fix: "write `Team?`",
      fixed: """
        var teamId: Int?
        @BelongsTo("teamId") var team: Team?
        """)
  }

  @Test("a child that has to be there")
  func requiredChild() {
    expectMisuse(
      inBook: """
        @HasOne("bookId") var cover: Cover
        """,
      "there may be no Cover yet: the type is `Cover?`",
      line: 1, column: 30, fix: "write `Cover?`",
      fixed: """
        @HasOne("bookId") var cover: Cover?
        """)
  }

  @Test("a relationship that is a constant")
  func constantRelationship() {
    expectMisuse(
      inBook: """
        @HasOne("bookId") let cover: Cover?
        """,
      "a relationship is read when it is asked for; make it a `var`",
      line: 1, column: 19, fix: "make it a `var`",
      fixed: """
        @HasOne("bookId") var cover: Cover?
        """)
  }

  @Test("a key that is stored as something else")
  func representedKey() {
    expectMisuse(
      """
      @Table struct Book {
        @Column(primaryKey: true, as: String.ID.self) let id: String
      }
      """,
      "the primary key `id` is stored as it is; leave out `as:`",
      line: 2, column: 53)
  }

  @Test("a relationship to one record with a list for its type")
  func oneRecord() {
    expectMisuse(
      inBook: """
        var teamId: Int?
        @BelongsTo("teamId") var team: [Team]
        """,
      "@BelongsTo leads to one record: its type is `Team?`; many are a @HasMany of Related<Team>",
      line: 2, column: 32, fix: "write `Team?`",
      fixed: """
        var teamId: Int?
        @BelongsTo("teamId") var team: Team?
        """)
  }

  @Test(
    "a relationship to one record with another container for its type",
    arguments: ["[Team]?", "Array<Team>", "Related<Team>", "List<Team>?", "Team??", "Team!"])
  func oneOfContainers(_ type: String) {
    // The fix follows the types of the fields.
    for (field, one) in [("Int", "Team"), ("Int?", "Team?")] {
      expectMisuse(
        inBook: """
          var teamId: \(field)
          @BelongsTo("teamId") var team: \(type)
          """,
        "@BelongsTo leads to one record: its type is `\(one)`; many are a @HasMany of Related<Team>",
        line: 2, column: 32, fix: "write `\(one)`",
        fixed: """
          var teamId: \(field)
          @BelongsTo("teamId") var team: \(one)
          """)
    }
    expectMisuse(
      inBook: """
        @HasOne("bookId") var team: \(type)
        """,
      "@HasOne leads to one record: its type is `Team?`; many are a @HasMany of Related<Team>",
      line: 1, column: 29, fix: "write `Team?`",
      fixed: """
        @HasOne("bookId") var team: Team?
        """)
  }

  @Test("a relationship of the type, not of a record")
  func staticRelationship() {
    expectMisuse(
      inBook: """
        @HasMany("bookId") static var pages: Related<Page>
        """,
      "a relationship is one of each record; leave out `static`", line: 1, column: 20,
      fix: "leave out `static`",
      fixed: """
        @HasMany("bookId") var pages: Related<Page>
        """)
  }

  @Test("a relationship of the type, on a line of its own")
  func staticOnItsLine() {
    for (modifiers, kept) in [("static ", ""), ("static public ", "public "), ("public static ", "public ")] {
      expectMisuse(
        """
        @Table public struct Book {
          public let id: Int
          @HasMany("bookId")
          \(modifiers)var pages: Related<Page>
        }
        """,
        "a relationship is one of each record; leave out `static`", line: 4,
        column: modifiers.hasPrefix("public") ? 10 : 3, fix: "leave out `static`",
        fixed: """
          @Table public struct Book {
            public let id: Int
            @HasMany("bookId")
            \(kept)var pages: Related<Page>
          }
          """)
    }
  }

  @Test(
    "a model's name in parentheses is that model's", arguments: ["(Team)?", "((Team))?", "Optional<(Team)>"])
  func parentheses(_ type: String) {
    expectNone(
      """
      @Table struct Book {
        let id: Int
        var teamId: Int?
        @BelongsTo("teamId") var team: \(type)
      }
      """)
  }

  @Test("a relationship to what is no name of a type")
  func modelType() {
    expectMisuse(
      inBook: """
        var teamId: Int?
        @BelongsTo("teamId") var team: (any Team)?
        """,
      "@BelongsTo leads to a model: its type is the name of one, or that with a question mark",
      line: 2, column: 32)
  }

  @Test("a reference field that is named twice")
  func fieldTwice() {
    expectMisuse(
      inBook: """
        var teamId: Int?
        @BelongsTo("teamId", "teamId") var team: Team?
        """,
      "each part of the key has a reference field of its own; name each once",
      line: 2, column: 1)
  }

  @Test("two relationships whose setters would be one")
  func setterTwice() {
    expectMisuse(
      inBook: """
        var a: Int?
        var b: Int?
        @BelongsTo("a") var team: Team?
        @BelongsTo("b") var Team: Team?
        """,
      "@Table writes `setTeam(_:)` for `team` already; call this one otherwise",
      line: 4, column: 1)
  }

  @Test("a relationship without a type")
  func untyped() {
    expectMisuse(
      inBook: """
        var teamId: Int?
        @BelongsTo("teamId") var team
        """, "a relationship's property has a type", line: 2, column: 1)
  }

  @Test("one field for two models")
  func sharedReference() {
    expectMisuse(
      inBook: """
        var ownerId: Int?
        @BelongsTo("ownerId") var team: Team?
        @BelongsTo("ownerId") var shop: Shop?
        """,
      "`ownerId` leads to a Team already; the same key is one of a Shop by chance only",
      line: 3, column: 1, severity: .warning)
  }

  @Test("one field for one model twice")
  func sameReference() {
    expectMisuse(
      inBook: """
        var ownerId: Int?
        @BelongsTo("ownerId") var owner: Team?
        @BelongsTo("ownerId") var team: Team?
        """,
      "`ownerId` is what `owner` is stored in already: set one of the two, and both are; leave one out",
      line: 3, column: 1, severity: .warning)
  }

  @Test(
    "related records without the attribute that says which",
    arguments: ["Related<Book>", "Stemma.Related<Book>"])
  func unmarkedRelated(_ type: String) {
    expectMisuse(
      """
      @Table struct Shop {
        let id: Int
        var books: \(type)
      }
      """,
      "`books` leads to other records: put @HasMany(\"…\") with their reference field, or @ManyToMany(through: …), in "
        + "front of it", line: 3, column: 14)
  }
}
