import Testing

@Suite("@Table")
struct TableTests {
  @Test("a model with a key, a default and comments in the way")
  func simple() {
    expectExpansion(
      of: """
        @Table struct Reminder {
          let id: UUID  // the key
          var title: String  // behind
          var isDone = false  // a comment behind a default
          @Ephemeral var isSelected = false
        }
        """,
      as: """
        struct Reminder {
          let id: UUID  // the key
          @Stemma._Tracked(0)
          var title: String  // behind
          @Stemma._Tracked(1)
          var isDone = false  // a comment behind a default
          var isSelected = false

          var _record: Stemma.RecordHandle = Stemma.RecordHandle()

          static let columns = Columns()

          static let relationships = Relationships()

          var primaryKey: UUID {
            self.id
          }

          struct Draft: Stemma.TableDraft {
            var id: UUID?
            var title: String
            var isDone: Bool
            init(id: UUID? = nil, title: String, isDone: Bool = false) {
              self.id = id
              self.title = title
              self.isDone = isDone
            }
            init(_ row: Reminder) {
              self.id = row.id
              self.title = row.title
              self.isDone = row.isDone
            }
            func write(to record: inout Stemma.RecordWriter) {
              record.key(self.id)
              record.value(self.title)
              record.value(self.isDone)
            }
          }

          struct Columns: Swift.Sendable {
            let id = Stemma.TableColumn<Reminder, UUID>("id")
            let title = Stemma.TableColumn<Reminder, String>("title")
            let isDone = Stemma.TableColumn<Reminder, Bool>("isDone")
            init() {
            }
          }

          struct Relationships: Swift.Sendable {
            init() {
            }
          }
        }

        extension Reminder: Stemma.Table {
          static var modelName: String {
            "Reminder"
          }
          static let description = Stemma.ModelDescription(
            "Reminder", table: nil,
            key: [
              .init("id", UUID.self),
            ],
            columns: [
              .init("title", String.self),
              .init("isDone", Bool.self, defaultValue: false),
            ],
            relationships: [

            ])
          init(_ row: Stemma.RowReader) throws(Stemma.StoreError) {
            let value0 = try UUID.read(row, 0)
            let value1 = try String.read(row, 1)
            let value2 = try row.isNull(2) ? false : Bool.read(row, 2)
            let value3 = try row.record(3)
            self.init(id: value0, title: value1, isDone: value2, _record: value3)
          }
          func write(to record: inout Stemma.RecordWriter) {
            record.key(self.id)
            record.value(self.title)
            record.value(self.isDone)
          }
        }
        """)
  }

  @Test("a key of several parts, references, and setters for what can be set")
  func references() {
    expectExpansion(
      of: """
        @Table struct Order {
          @Selection struct ID: Hashable {
            let tenant: String
            let id: UUID
          }
          let id: ID
          var number: Int?
          var sellerId: Int
          @BelongsTo("tenant", "number") var customer: Customer?
          @BelongsTo("sellerId") var seller: Seller
          @HasMany("orderTenant", "orderId") var lines: Related<Line>
        }
        """,
      as: """
        struct Order {
          struct ID: Hashable {
            let tenant: String
            let id: UUID

            struct Columns: Stemma.SelectionColumns {
              typealias Output = ID
              let selected: [Stemma.SelectedColumn]
              init(tenant: some Stemma.ExpressionProtocol<String>, id: some Stemma.ExpressionProtocol<UUID>) {
                self.selected = [Stemma.SelectedColumn(tenant), Stemma.SelectedColumn(id)]
              }
            }
          }
          let id: ID
          @Stemma._Tracked(0)
          var number: Int?
          @Stemma._Tracked(1)
          var sellerId: Int
          var customer: Customer? {
            get async throws {
              try await self._record.parent(Customer.self, "customer", of: self) {
                ($0.tenant, $0.number)
              }
            }
          }
          var seller: Seller {
            get async throws {
              try await self._record.required(self._record.parent(Seller.self, "seller", of: self) {
                  $0.sellerId
                }, "seller", of: self)
            }
          }
          var lines: Related<Line> {
            get {
              Stemma.Related<Line>(of: self, "lines") {
                ($0.orderTenant, $0.orderId)
              }
            }
          }

          var _record: Stemma.RecordHandle = Stemma.RecordHandle()

          static let columns = Columns()

          static let relationships = Relationships()

          var primaryKey: ID {
            self.id
          }

          struct Draft: Stemma.TableDraft {
            var tenant: String
            var id: UUID?
            var number: Int?
            var sellerId: Int
            init(tenant: String, id: UUID? = nil, number: Int? = nil, sellerId: Int) {
              self.tenant = tenant
              self.id = id
              self.number = number
              self.sellerId = sellerId
            }
            init(id: ID, number: Int? = nil, sellerId: Int) {
              self.tenant = id.tenant
              self.id = id.id
              self.number = number
              self.sellerId = sellerId
            }
            @_disfavoredOverload
            init(tenant: String, id: UUID? = nil, customer: Customer? = nil, seller: Seller) throws(Stemma.StoreError) {
              let _customer: (String?, Int?) = Stemma.ReferenceParts.of(customer)
              let _seller: Int = Stemma.ReferenceParts.of(seller)
              if customer != nil, _customer.0 != tenant {
                throw .fixedReference(model: Order.modelName, relationship: "customer", field: "tenant")
              }
              self.tenant = tenant
              self.id = id
              self.sellerId = _seller
              self.number = _customer.1
            }
            @_disfavoredOverload
            init(id: UUID? = nil, customer: Customer, seller: Seller) {
              let _customer: (String, Int) = Stemma.ReferenceParts.of(customer)
              let _seller: Int = Stemma.ReferenceParts.of(seller)
              self.id = id
              self.tenant = _customer.0
              self.number = _customer.1
              self.sellerId = _seller
            }
            init(_ row: Order) {
              self.tenant = row.id.tenant
              self.id = row.id.id
              self.number = row.number
              self.sellerId = row.sellerId
            }
            func write(to record: inout Stemma.RecordWriter) {
              record.key(self.tenant)
              record.key(self.id)
              record.value(self.number)
              record.value(self.sellerId)
            }
          }

          struct Columns: Swift.Sendable {
            let tenant = Stemma.TableColumn<Order, String>("tenant")
            let number = Stemma.TableColumn<Order, Int?>("number")
            let sellerId = Stemma.TableColumn<Order, Int>("sellerId")
            let id = ID()
            struct ID: Stemma.ColumnGroup {
              typealias Output = Order.ID
              let tenant = Stemma.TableColumn<Order, String>("tenant")
              let id = Stemma.TableColumn<Order, UUID>("id")
              var _columns: [Stemma.GroupColumn] {
                [Stemma.GroupColumn(self.tenant), Stemma.GroupColumn(self.id)]
              }
              init() {
              }
            }
            init() {
            }
          }

          struct Relationships: Swift.Sendable {
            let customer = Stemma.RelationshipPath<Order, Customer, Customer?>("customer")
            let seller = Stemma.RelationshipPath<Order, Seller, Seller?>("seller")
            let lines = Stemma.RelationshipPath<Order, Line, [Line]>("lines")
            init() {
            }
          }

          var tenant: String {
            self.id.tenant
          }

          mutating func setCustomer(_ customer: Customer?) throws(Stemma.StoreError) {
            let _customer: (String?, Int?) = Stemma.ReferenceParts.of(customer)
            if customer != nil, _customer.0 != self.id.tenant {
              throw .fixedReference(model: Self.modelName, relationship: "customer", field: "tenant")
            }
            self.number = _customer.1
          }

          mutating func setSeller(_ seller: Seller) {
            let _seller: Int = Stemma.ReferenceParts.of(seller)
            self.sellerId = _seller
          }
        }

        extension Order.ID: Stemma.TableKey {
          init?(optionalParts: (String?, UUID?)) {
            guard let part0 = optionalParts.0, let part1 = optionalParts.1 else {
              return nil
            }
            self.tenant = part0
            self.id = part1
          }
          var parts: (String, UUID) {
            (self.tenant, self.id)
          }
          func write(to record: inout Stemma.RecordWriter) {
            record.key(self.tenant)
            record.key(self.id)
          }
        }

        extension Order.ID: Stemma.Selection {
          init(_ row: Stemma.RowReader) throws(Stemma.StoreError) {
            let value0 = try String.read(row, 0)
            let value1 = try UUID.read(row, 1)
            self.tenant = value0
            self.id = value1
          }
        }

        extension Order: Stemma.Table {
          static var modelName: String {
            "Order"
          }
          static let description = Stemma.ModelDescription(
            "Order", table: nil,
            key: [
              .init("tenant", String.self),
              .init("id", UUID.self),
            ],
            columns: [
              .init("number", (Int?).self),
              .init("sellerId", Int.self),
            ],
            relationships: [
              .belongsTo("customer", Customer.self, fields: ["tenant", "number"], isRequired: false),
              .belongsTo("seller", Seller.self, fields: ["sellerId"], isRequired: true),
              .hasMany("lines", Line.self, fields: ["orderTenant", "orderId"]),
            ])
          init(_ row: Stemma.RowReader) throws(Stemma.StoreError) {
            let value0 = ID(tenant: try String.read(row, 0), id: try UUID.read(row, 1))
            let value1 = try (Int?).read(row, 2)
            let value2 = try Int.read(row, 3)
            let value3 = try row.record(4)
            self.init(id: value0, number: value1, sellerId: value2, _record: value3)
          }
          func write(to record: inout Stemma.RecordWriter) {
            self.id.write(to: &record)
            record.value(self.number)
            record.value(self.sellerId)
          }
        }
        """)
  }

  @Test("a public model, with columns under other names, as other types, and in groups")
  func columns() {
    expectExpansion(
      of: """
        @Table("notes_", policy: .latest, partition: [])
        @Index("title", name: "byTitle")
        public struct Note: Hashable, Codable {
          @Selection public struct Span {
            public var start: Date
            public var end: Date?
          }
          @Column(primaryKey: true) public let code: String
          @Column("headline") public var title: String
          @Column(as: [String].JSONRepresentation.self) public var tags: [String] = []
          public var span: Span
          public var createdAt: Date
        }
        """,
      as: """

        public struct Note: Hashable, Codable {
          public struct Span {
            public var start: Date
            public var end: Date?

            public init(start: Date, end: Date? = nil) {
              self.start = start
              self.end = end
            }

            public struct Columns: Stemma.SelectionColumns {
              public typealias Output = Span
              public let selected: [Stemma.SelectedColumn]
              public init(start: some Stemma.ExpressionProtocol<Date>, end: some Stemma.ExpressionProtocol<Date?>) {
                self.selected = [Stemma.SelectedColumn(start), Stemma.SelectedColumn(end)]
              }
            }
          }
          public let code: String
          @Stemma._Tracked(0) public var title: String
          @Stemma._Tracked(1) public var tags: [String] = []
          @Stemma._Tracked(2, "start", "end")
          public var span: Span
          @Stemma._Tracked(4)
          public var createdAt: Date

          public var _record: Stemma.RecordHandle = Stemma.RecordHandle()

          public init(code: String, title: String, tags: [String] = [], span: Span, createdAt: Date) {
            self.code = code
            self.title = title
            self.tags = tags
            self.span = span
            self.createdAt = createdAt
          }

          fileprivate init(code: String, title: String, tags: [String], span: Span, createdAt: Date, _record: Stemma.RecordHandle) {
            self.code = code
            self.title = title
            self.tags = tags
            self.span = span
            self.createdAt = createdAt
            self._record = _record
          }

          public static let columns = Columns()

          public static let relationships = Relationships()

          public var primaryKey: String {
            self.code
          }

          public struct Draft: Stemma.TableDraft, Hashable, Codable {
            public var code: String
            public var title: String
            public var tags: [String]
            public var span: Span
            public var createdAt: Date?
            public init(code: String, title: String, tags: [String] = [], span: Span, createdAt: Date? = nil) {
              self.code = code
              self.title = title
              self.tags = tags
              self.span = span
              self.createdAt = createdAt
            }
            public init(_ row: Note) {
              self.code = row.code
              self.title = row.title
              self.tags = row.tags
              self.span = row.span
              self.createdAt = row.createdAt
            }
            public func write(to record: inout Stemma.RecordWriter) {
              record.key(self.code)
              record.value(self.title)
              record.represented(self.tags, as: [String].JSONRepresentation.self)
              record.value(self.span.start)
              record.value(self.span.end)
              record.value(self.createdAt)
            }
          }

          public struct Columns: Swift.Sendable {
            public let code = Stemma.TableColumn<Note, String>("code")
            public let title = Stemma.TableColumn<Note, String>("headline")
            public let tags = Stemma.TableColumn<Note, [String].JSONRepresentation>("tags")
            public let createdAt = Stemma.TableColumn<Note, Date>("createdAt")
            public let span = Span()
            public struct Span: Stemma.ColumnGroup {
              public typealias Output = Note.Span
              public let start = Stemma.TableColumn<Note, Date>("start")
              public let end = Stemma.TableColumn<Note, Date?>("end")
              public var _columns: [Stemma.GroupColumn] {
                [Stemma.GroupColumn(self.start), Stemma.GroupColumn(self.end)]
              }
              public init() {
              }
            }
            public init() {
            }
          }

          public struct Relationships: Swift.Sendable {
            public init() {
            }
          }
        }

        extension Note.Span: Stemma.Selection {
          public init(_ row: Stemma.RowReader) throws(Stemma.StoreError) {
            let value0 = try Date.read(row, 0)
            let value1 = try (Date?).read(row, 1)
            self.start = value0
            self.end = value1
          }
        }

        extension Note: Stemma.Table {
          public static var modelName: String {
            "Note"
          }
          public static let description = Stemma.ModelDescription(
            "Note", table: "notes_", policy: .latest, partition: [], indexes: [.init(["title"], name: "byTitle")],
            key: [
              .init("code", String.self),
            ],
            columns: [
              .init("headline", String.self, property: "title"),
              .init("tags", [String].JSONRepresentation.self),
              .init("start", Date.self),
              .init("end", (Date?).self),
              .init("createdAt", Date.self),
            ],
            relationships: [

            ])
          public init(_ row: Stemma.RowReader) throws(Stemma.StoreError) {
            let value0 = try String.read(row, 0)
            let value1 = try String.read(row, 1)
            let value2 = try row.represented(2, as: [String].JSONRepresentation.self) { (own: Self) in
              own.tags
            }
            let value3 = Span(start: try Date.read(row, 3), end: try (Date?).read(row, 4))
            let value4 = try Date.read(row, 5)
            let value5 = try row.record(6)
            self.init(code: value0, title: value1, tags: value2, span: value3, createdAt: value4, _record: value5)
          }
          public func write(to record: inout Stemma.RecordWriter) {
            record.key(self.code)
            record.value(self.title)
            record.represented(self.tags, as: [String].JSONRepresentation.self)
            record.value(self.span.start)
            record.value(self.span.end)
            record.value(self.createdAt)
          }
        }
        """)
  }

  @Test("a column notes that it was set")
  func tracked() {
    expectExpansion(
      of: "@_Tracked(4) var title: String",
      as: """
        var title: String {
          didSet {
            self._record.noteSet(4, from: oldValue)
          }
        }
        """)
    expectExpansion(
      of: "@_Tracked(4) @Stemma.Column(as: [String].JSONRepresentation?.self) var tags: [String]?",
      as: """
        @Stemma.Column(as: [String].JSONRepresentation?.self) var tags: [String]? {
          didSet {
            self._record.noteSet(4, from: oldValue, as: ([String].JSONRepresentation?).self)
          }
        }
        """)
  }

  @Test("a group notes each of its columns, one with an observer of its own by the other one")
  func trackedOtherwise() {
    expectExpansion(
      of: #"@_Tracked(2, "street", "tags:[String].JSONRepresentation") var address: Address"#,
      as: """
        var address: Address {
          didSet {
            self._record.notePart(2, from: oldValue.street);
            self._record.noteSet(3, from: oldValue.tags, as: [String].JSONRepresentation.self)
          }
        }
        """)
    expectExpansion(
      of: """
        @_Tracked(0) var price: Int {
          didSet { check() }
        }
        """,
      as: """
        var price: Int {
          didSet { check() }
          willSet {
            self._record.noteSet(0, from: self.price)
          }
        }
        """)
  }

  /// In the generated draft, `Self` would mean the draft. Default arguments of a public initializer
  /// must not use internal names.
  @Test("types and default values that say `Self` name the model, and those of a public model are its own")
  func selves() {
    expectExpansion(
      of: """
        @Table public struct Note {
          static let limit = 3
          public let id: Int
          public var size: Int = Self.limit
          public var kinds: [Self.Kind] = []
          var count: Self.Kind = Self.Kind.plain
        }
        """,
      as: """
        public struct Note {
          static let limit = 3
          public let id: Int
          @Stemma._Tracked(0)
          public var size: Int = Self.limit
          @Stemma._Tracked(1)
          public var kinds: [Self.Kind] = []
          @Stemma._Tracked(2)
          var count: Self.Kind = Self.Kind.plain

          public var _record: Stemma.RecordHandle = Stemma.RecordHandle()

          init(id: Int, size: Int = Note._Defaults.size, kinds: [Note.Kind] = [], count: Note.Kind = Note.Kind.plain) {
            self.id = id
            self.size = size
            self.kinds = kinds
            self.count = count
          }

          fileprivate init(id: Int, size: Int, kinds: [Note.Kind], count: Note.Kind, _record: Stemma.RecordHandle) {
            self.id = id
            self.size = size
            self.kinds = kinds
            self.count = count
            self._record = _record
          }

          public static let columns = Columns()

          public static let relationships = Relationships()

          public var primaryKey: Int {
            self.id
          }

          public enum _Defaults {
            public static var size: Int {
              Note.limit
            }
          }

          public struct Draft: Stemma.TableDraft {
            public var id: Int?
            public var size: Int
            public var kinds: [Note.Kind]
            var count: Note.Kind
            init(id: Int? = nil, size: Int = Note._Defaults.size, kinds: [Note.Kind] = [], count: Note.Kind = Note.Kind.plain) {
              self.id = id
              self.size = size
              self.kinds = kinds
              self.count = count
            }
            public init(_ row: Note) {
              self.id = row.id
              self.size = row.size
              self.kinds = row.kinds
              self.count = row.count
            }
            public func write(to record: inout Stemma.RecordWriter) {
              record.key(self.id)
              record.value(self.size)
              record.value(self.kinds)
              record.value(self.count)
            }
          }

          public struct Columns: Swift.Sendable {
            public let id = Stemma.TableColumn<Note, Int>("id")
            public let size = Stemma.TableColumn<Note, Int>("size")
            public let kinds = Stemma.TableColumn<Note, [Note.Kind]>("kinds")
            let count = Stemma.TableColumn<Note, Note.Kind>("count")
            public init() {
            }
          }

          public struct Relationships: Swift.Sendable {
            public init() {
            }
          }
        }

        extension Note: Stemma.Table {
          public static var modelName: String {
            "Note"
          }
          public static let description = Stemma.ModelDescription(
            "Note", table: nil,
            key: [
              .init("id", Int.self),
            ],
            columns: [
              .init("size", Int.self),
              .init("kinds", [Note.Kind].self),
              .init("count", Note.Kind.self),
            ],
            relationships: [

            ])
          public init(_ row: Stemma.RowReader) throws(Stemma.StoreError) {
            let value0 = try Int.read(row, 0)
            let value1 = try Int.read(row, 1)
            let value2 = try row.value(2, as: [Note.Kind].self)
            let value3 = try row.value(3, as: Note.Kind.self)
            let value4 = try row.record(4)
            self.init(id: value0, size: value1, kinds: value2, count: value3, _record: value4)
          }
          public func write(to record: inout Stemma.RecordWriter) {
            record.key(self.id)
            record.value(self.size)
            record.value(self.kinds)
            record.value(self.count)
          }
        }
        """)
  }
}
