import Testing

/// What each kind of relationship becomes, and the members that go with it.
@Suite("Relationship macros")
struct RelationshipExpansionTests {
  @Test("one, many, and many through a join model, with key paths and a rule for deletion")
  func kinds() {
    expectExpansion(
      of: """
        @Table struct Person {
          let id: Int
          @HasOne(\\Cart.ownerId) var cart: Cart?
          @HasMany("bossId", onDelete: .restrict) var staff: Related<Employee>
          @ManyToMany(through: Rating.self) var rated: Related<Article>
          @ManyToMany(through: Friendship.self, by: "first") var friends: Related<Person>
        }
        """,
      as: """
        struct Person {
          let id: Int
          var cart: Cart? {
            get async throws {
              try await self._record.child(Cart.self, "cart", of: self) {
                $0.ownerId
              }
            }
          }
          var staff: Related<Employee> {
            get {
              Stemma.Related<Employee>(of: self, "staff") {
                $0.bossId
              }
            }
          }
          var rated: Related<Article> {
            get {
              Stemma.Related<Article>(of: self, "rated")
            }
          }
          var friends: Related<Person> {
            get {
              Stemma.Related<Person>(of: self, "friends")
            }
          }

          var _record: Stemma.RecordHandle = Stemma.RecordHandle()

          static let columns = Columns()

          static let relationships = Relationships()

          var primaryKey: Int {
            self.id
          }

          struct Draft: Stemma.TableDraft {
            var id: Int?
            init(id: Int? = nil) {
              self.id = id
            }
            init(_ row: Person) {
              self.id = row.id
            }
            func write(to record: inout Stemma.RecordWriter) {
              record.key(self.id)
            }
          }

          struct Columns: Sendable {
            let id = Stemma.TableColumn<Person, Int>("id")
            init() {
            }
          }

          struct Relationships: Sendable {
            let cart = Stemma.RelationshipPath<Person, Cart, Cart?>("cart")
            let staff = Stemma.RelationshipPath<Person, Employee, [Employee]>("staff")
            let rated = Stemma.RelationshipPath<Person, Article, [Article]>("rated")
            let friends = Stemma.RelationshipPath<Person, Person, [Person]>("friends")
            init() {
            }
          }
        }

        extension Person: Stemma.Table {
          static var modelName: String {
            "Person"
          }
          static let description = Stemma.ModelDescription(
            "Person", table: nil,
            key: [
              .init("id", Int.self),
            ],
            columns: [

            ],
            relationships: [
              .hasOne("cart", Cart.self, fields: ["ownerId"]),
              .hasMany("staff", Employee.self, fields: ["bossId"], onDelete: .restrict),
              .manyToMany("rated", Article.self, through: Rating.self),
              .manyToMany("friends", Person.self, through: Friendship.self, by: "first"),
            ])
          init(_ row: Stemma.RowReader) throws(Stemma.StoreError) {
            let value0 = try Int.read(row, 0)
            let value1 = try row.record(1)
            self.init(id: value0, _record: value1)
          }
          func write(to record: inout Stemma.RecordWriter) {
            record.key(self.id)
          }
        }
        """)
  }
}
