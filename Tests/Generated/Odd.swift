// swift-format-ignore-file
import Stemma

enum DateEnum: String, Codable, CaseIterable, KeyValue {
  case aCase = "A"
  case a
  case inProgressCase = "IN_PROGRESS"
  case inProgress
  case allCasesCase = "allCases"
  case selfCase = "self"
  case initCase = "init"
  case none
  case type = "Type"
  case `default`
  case readCase = "read"
  case columnTypeCase = "columnType"
  case misfitCase = "misfit"
  case rawValue
  case datum
  static var columnType: ColumnType { .enumeration("Date", of: Self.self) }
}

enum BoolEnum: String, Codable, CaseIterable, KeyValue {
  case yes
  case no
  static var columnType: ColumnType { .enumeration("Bool", of: Self.self) }
}

enum SelfEnum: String, Codable, CaseIterable, KeyValue {
  case me
  case you
  static var columnType: ColumnType { .enumeration("Self", of: Self.self) }
}

enum Plain: String, Codable, CaseIterable, KeyValue {
  case red = "RED"
  case green = "GREEN"
}

struct URLType: Codable, Hashable, Sendable {
  var Date: String?
  var `self`: BoolEnum?
  var list: [String]?
  var nested: Place?
  var when: String
  var at: Int?
  var url: String?
  var colors: [Plain?]?
  var dates: [String?]?
  var ids: [String]?
}

struct Place: Codable, Hashable, Sendable {
  var street: String
  var number: Int?
  var mood: DateEnum?
}

@Table(model: "UUID")
struct UUIDModel {
  let id: String.ID
  @Column(as: URLType?.JSONRepresentation.self) var url: URLType?
  @Column(as: [URLType].JSONRepresentation.self) var urls: [URLType]
  var kind: DateEnum?
  var kinds: [DateEnum]?
  var truth: Bool
  var yes: BoolEnum
  var me: SelfEnum?
}

@Table(model: "Double")
struct DoubleModel {
  let id: String.ID
  var value: Double
}

@Table
struct Texts {
  @Selection struct ID: Hashable {
    let text: String
    @Column("self") let selfField: String.ID
    @Column("Int") let intField: Int
    @Column("Bool") let boolField: BoolEnum
  }
  let id: ID
  var `in`: Bool?
}

@Table(model: "Related")
@Index("stringField", "selfField", name: "byTwo")
struct RelatedModel {
  let id: String.ID
  var date: Date
  @Column("self") var selfField: String
  @Column("await") var awaitField: Int?
  var `try`: Int?
  @Column("primaryKey") var primaryKeyField: String?
  @Column("String") var stringField: String?
  @Column(as: String.ID?.self) var UUIDs: String?
  @Column("init") var initField: Int?
  @Column("Type") var typeField: String?
  @Column("Draft") var draftField: String?
  var columns: Int?
  var description: String?
  var relationships: String?
  var modelName: String?
  var row: Int?
  var record: String?
  var value0: String?
  var setParent: Int?
  @Column(as: String.ID?.self) var key: String?
}

@Table(model: "Sendable")
struct SendableModel {
  let id: String.ID
  var parentId: String.ID?
  @BelongsTo("parentId") var parent: RelatedModel?
}

@Table(model: "Any")
struct AnyModel {
  let id: String.ID
}

@Table(model: "Draft")
struct DraftModel {
  @Selection struct ID: Hashable {
    let name: String
    let id: String.ID
  }
  let id: ID
}

@Table(model: "Columns")
struct ColumnsModel {
  @Selection struct Key: Hashable {
    let name: String
    let key: String.ID
  }
  @Column(primaryKey: true) let key_: Key
  var id: String?
  var key2: String?
}

@Table
struct Depot {
  @Selection struct ID: Hashable {
    let site: String
    @Column("parts") let partsField: Int
    @Column("hashValue") let hashValueField: Int
  }
  let id: ID
}

@Table
struct Parts {
  let id: String.ID
  var parts: Int?
  var hashValue: Int?
}

@Table(model: "Relationships")
struct RelationshipsModel {
  let id: String.ID
  // `self` leads to PrimaryKeyModel; Swift has no property of that name.
  @HasMany("selfField") var others: Related<PrimaryKeyModel>
}

@Table(model: "PrimaryKey")
struct PrimaryKeyModel {
  let id: String.ID
  var relId: String.ID?
  @Column("self") var selfField: String.ID?
  @BelongsTo("relId") var rel: RelationshipsModel?
  @BelongsTo("selfField") var other: RelationshipsModel?
  // `primaryKey` leads to RelationshipsModel; Swift has no property of that name.
}

@Table(model: "Stemma")
struct StemmaModel {
  @Column(primaryKey: true) let ts: Date.UnixTimeRepresentation
  @Column(as: Date.UnixTimeRepresentation?.self) var at: Date?
}

@Table
struct Stamps {
  @Selection struct ID: Hashable {
    let name: String
    let ts: Date.UnixTimeRepresentation
    let dt: String.AWSDateTime
    let day: String.AWSDate
    let ok: Bool
    let f: Double
    let u: String.AWSURL
    let e: Plain
  }
  let id: ID
  var createdAt: Date
  var updatedAt: Date
  var refTs: Date.UnixTimeRepresentation?
  @BelongsTo("refTs") var ref: StemmaModel?
}

@Table(model: "Codable")
struct CodableModel {
  let id: String.ID
  var made: Date
  var changed: Date?
  @ManyToMany(through: SwiftModel.self) var codables: Related<HashableModel>
}

@Table(model: "Hashable")
struct HashableModel {
  let id: String.ID
  var createdAt: Date?
  var updatedAt: Date
  @ManyToMany(through: SwiftModel.self) var codables: Related<CodableModel>
}

@Table("kv", model: "KeyValue")
struct KeyValueModel {
  let id: String.ID
}

@Table(model: "Table")
struct TableModel {
  let id: String.ID
}

@Table(model: "Column")
struct ColumnModel {
  let id: String.ID
}

@Table
struct ID2 {
  let id: String.ID
}

@Table
struct Foundation {
  let id: String.ID
}

@Table
struct Optional {
  let id: String.ID
  var a: Int?
}

@Table
struct Array {
  let id: String.ID
  var b: [Int?]?
}

@Table
struct Result {
  let id: String.ID
}

@Table
struct Error {
  let id: String.ID
}

@Table
struct Store {
  let id: String.ID
}

@Table
struct Transaction {
  let id: String.ID
}

@Table
struct Void {
  let id: String.ID
}

@Table
struct Never {
  let id: String.ID
}

@Table
struct Character {
  let id: String.ID
}

@Table
struct Data {
  let id: String.ID
}

@Table
struct Decimal {
  let id: String.ID
}

@Table(model: "Type")
struct TypeModel {
  let id: String.ID
}

@Table(model: "Protocol")
struct ProtocolModel {
  let id: String.ID
}

@Table(model: "Key")
struct KeyModel {
  @Selection struct ID: Hashable {
    let a: String.ID
    let b: String.ID
  }
  let id: ID
}

@Table
struct Class {
  @Column(primaryKey: true) let `for`: String.ID
  @HasMany("classId") var `default`: Related<Student>
  @HasOne("switch") var `while`: Student?
}

@Table
@Index("switch", "classId", name: "byClass")
struct Student {
  let id: String.ID
  var classId: String.ID?
  var `switch`: String.ID?
  @BelongsTo("classId") var `class`: Class?
  @BelongsTo("switch") var `repeat`: Class?
  // `await` leads to Class; Swift has no property of that name.
}

@Table(partition: ["in", "case"])
@Index("as", "to", name: "byAs")
struct Mail {
  @Selection struct ID: Hashable {
    let `in`: String.ID
    let `case`: String
    let number: Int
  }
  let id: ID
  var to: Int?
  var `as`: String?
  @BelongsTo("in") var `class`: Class
}

@Table
struct Words {
  let id: String.ID
  var Array: Int?
  var Optional: String?
  var Foundation: Int?
  var Store: Int?
  var `as`: Int?
  var `is`: Int?
  var async: Int?
  var `throws`: Int?
  var some: Int?
  var any: Int?
  var get: Int?
  var set: Int?
  var didSet: Int?
  var willSet: Int?
  var lazy: Int?
  var weak: Int?
  var unowned: Int?
  var mutating: Int?
  var consuming: Int?
  var borrowing: Int?
  var each: Int?
  var macro: Int?
  var actor: Int?
  var `nil`: Int?
  var `true`: Int?
  var `subscript`: Int?
  var `operator`: Int?
  var `super`: Int?
  var `extension`: Int?
  @Column("inout") var inoutField: Int?
  @Column("let") var letField: Int?
  @Column("var") var varField: Int?
  var discard: Int?
  var yield: Int?
  var package: Int?
  var open: Int?
  var indirect: Int?
  var dynamic: Int?
  var final: Int?
  var convenience: Int?
  var required: Int?
  var override: Int?
  var prefix: Int?
  var none: Int?
  var `repeat`: Int?
  var sending: Int?
  var copy: Int?
  var consume: Int?
  var fetch: Int?
  var write: Int?
  var hash: Int?
  var hashValue: Int?
  var debugDescription: Int?
  var zone: Int?
  var then: Int?
  var newValue: Int?
  var oldValue: Int?
  var error: Int?
}

@Table(model: "Swift")
@Index("hashableId", name: "byHashable")
struct SwiftModel {
  @Selection struct ID: Hashable {
    let codableId: String.ID
    let hashableId: String.ID
  }
  let id: ID
  @BelongsTo("codableId") var codable: CodableModel
  @BelongsTo("hashableId") var hashable: HashableModel
}
