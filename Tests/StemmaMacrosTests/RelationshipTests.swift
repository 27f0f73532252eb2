import Testing

/// The expansion of each kind of relationship, and the generated members.
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

          struct Columns: Swift.Sendable {
            let id = Stemma.TableColumn<Person, Int>("id")
            init() {
            }
          }

          struct Relationships: Swift.Sendable {
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

  @Test("words of the language have ticks in code only, and names in strings and setters have none")
  func words() {
    expectExpansion(
      of: """
        @Table
        @Index("switch", "for")
        struct `default` {
          @Column(primaryKey: true) let `for`: Int
          var `switch`: Int?
          @Index("switch") var await: Int
          @BelongsTo("switch") var `class`: `default`?
          @HasMany(\\`default`.`switch`) var `in`: Related<`default`>
        }
        """,
      as: """
        struct `default` {
          let `for`: Int
          @Stemma._Tracked(0)
          var `switch`: Int?
          @Stemma._Tracked(1) var await: Int
          var `class`: `default`? {
            get async throws {
              try await self._record.parent(`default`.self, "class", of: self) {
                $0.`switch`
              }
            }
          }
          var `in`: Related<`default`> {
            get {
              Stemma.Related<`default`>(of: self, "in") {
                $0.`switch`
              }
            }
          }

          var _record: Stemma.RecordHandle = Stemma.RecordHandle()

          static let columns = Columns()

          static let relationships = Relationships()

          var primaryKey: Int {
            self.`for`
          }

          struct Draft: Stemma.TableDraft {
            var `for`: Int
            var `switch`: Int?
            var `await`: Int
            init(`for`: Int, `switch`: Int? = nil, `await`: Int) {
              self.`for` = `for`
              self.`switch` = `switch`
              self.`await` = `await`
            }
            @_disfavoredOverload
            init(`for`: Int, `await`: Int, `class`: `default`? = nil) {
              let _class: Int? = Stemma.ReferenceParts.of(`class`)
              self.`for` = `for`
              self.`await` = `await`
              self.`switch` = _class
            }
            init(_ row: `default`) {
              self.`for` = row.`for`
              self.`switch` = row.`switch`
              self.`await` = row.`await`
            }
            func write(to record: inout Stemma.RecordWriter) {
              record.key(self.`for`)
              record.value(self.`switch`)
              record.value(self.`await`)
            }
          }

          struct Columns: Swift.Sendable {
            let `for` = Stemma.TableColumn<`default`, Int>("for")
            let `switch` = Stemma.TableColumn<`default`, Int?>("switch")
            let `await` = Stemma.TableColumn<`default`, Int>("await")
            init() {
            }
          }

          struct Relationships: Swift.Sendable {
            let `class` = Stemma.RelationshipPath<`default`, `default`, `default`?>("class")
            let `in` = Stemma.RelationshipPath<`default`, `default`, [`default`]>("in")
            init() {
            }
          }

          mutating func setClass(_ `class`: `default`?) {
            let _class: Int? = Stemma.ReferenceParts.of(`class`)
            self.`switch` = _class
          }
        }

        extension `default`: Stemma.Table {
          static var modelName: String {
            "default"
          }
          static let description = Stemma.ModelDescription(
            "default", table: nil, indexes: [.init(["switch", "for"]), .init(["await", "switch"])],
            key: [
              .init("for", Int.self),
            ],
            columns: [
              .init("switch", (Int?).self),
              .init("await", Int.self),
            ],
            relationships: [
              .belongsTo("class", `default`.self, fields: ["switch"], isRequired: false),
              .hasMany("in", `default`.self, fields: ["switch"]),
            ])
          init(_ row: Stemma.RowReader) throws(Stemma.StoreError) {
            let value0 = try Int.read(row, 0)
            let value1 = try (Int?).read(row, 1)
            let value2 = try Int.read(row, 2)
            let value3 = try row.record(3)
            self.init(for: value0, switch: value1, await: value2, _record: value3)
          }
          func write(to record: inout Stemma.RecordWriter) {
            record.key(self.`for`)
            record.value(self.`switch`)
            record.value(self.`await`)
          }
        }
        """)
  }
}
