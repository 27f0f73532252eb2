import StemmaEvents
import StemmaSchema

/// What the merge has to know about a model: which fields are written together, and who wins.
///
/// Made once per model and schema, then shared by all records. A `RecordState` numbers fields by the rules
/// with which it was made, so it has to be used with those of an equal schema.
///
/// Registers: 0 is existence, 1 the *base* (what `create` writes for fields that nobody has named), then
/// those of the model. Under OPTIMISTIC there is one for the whole record; otherwise the free reference
/// fields of a reference (whichever side declares it) share one, and every other field has its own. Relationships that share a free
/// reference field share a register. Fields that the schema does not know follow, each with a register of its
/// own (under OPTIMISTIC they belong to the one of the record).
package final class MergeRules: Sendable {
  /// Stored names of the model's fields without its key, sorted by their bytes. The values of a record are
  /// given and taken in this order.
  package let fields: [String]
  /// Where each of `fields` stands in `Model.fields`.
  package let modelFields: [Int]
  package let conflictPolicy: ConflictPolicy
  package let deletePolicy: DeletePolicy

  let registers: [UInt32]
  /// Whether each field has a register of its own.
  let areFieldsAlone: Bool
  /// One above the last register of the model.
  let registerCount: UInt32
  let createdAt: Int?
  let updatedAt: Int?
  /// For each of `fields` the value of `@default`: what is shown where no event has written the field.
  private let defaults: [Value?]
  private let areRequired: [Bool]
  /// Whether any field has a default.
  package let hasDefaults: Bool
  private let columnTypes: [ColumnType]
  private let keyFields: [String]

  static let existence: UInt32 = 0
  static let base: UInt32 = 1
  static let firstRegister: UInt32 = 2

  /// `nil`: a model that the schema does not know. Each of its fields is a register of its own.
  package convenience init(_ model: Model?) {
    guard let model else {
      self.init(fields: [], modelFields: [], registers: [], model: nil)
      return
    }
    let order = model.fields.indices.filter { !model.isKeyField($0) }
      .sorted { model.fields[$0].storedName.hasBytes(before: model.fields[$1].storedName) }
    self.init(
      fields: order.map { model.fields[$0].storedName }, modelFields: order,
      registers: Self.registers(of: order.map { model.fields[$0].name }, model), model: model)
  }

  private init(fields: [String], modelFields: [Int], registers: [UInt32], model: Model?) {
    self.fields = fields
    self.modelFields = modelFields
    self.registers = registers
    conflictPolicy = model?.conflictPolicy ?? .automerge
    areFieldsAlone = conflictPolicy != .optimistic && Set(registers).count == registers.count
    registerCount =
      conflictPolicy == .optimistic
      ? Self.firstRegister + 1 : (registers.max() ?? Self.firstRegister - 1) + 1
    deletePolicy = model?.deletePolicy ?? .byVersion
    let index = { (name: String?) in
      name.flatMap { model?.index(ofField: $0) }.flatMap { modelFields.firstIndex(of: $0) }
    }
    let (createdAt, updatedAt) = (index(model?.createdAt), index(model?.updatedAt))
    self.createdAt = createdAt
    self.updatedAt = updatedAt
    // Every event writes the times that the node maintains.
    let defaults = modelFields.enumerated().map { place, field in
      place == createdAt || place == updatedAt
        ? nil : model.flatMap { $0.defaultValue(of: $0.fields[field]) }
    }
    self.defaults = defaults
    hasDefaults = defaults.contains { $0 != nil }
    areRequired = modelFields.map { model?.fields[$0].isRequired ?? false }
    columnTypes = modelFields.compactMap { model.map { $0.fields }?[$0].type }.map(ColumnType.init)
    keyFields = model.map { model in model.keyFields.map { model.fields[$0].storedName } } ?? []
  }

  /// The register of each field. A group's number is that of its first field in this order.
  private static func registers(of names: [String], _ model: Model) -> [UInt32] {
    if model.conflictPolicy == .optimistic { return names.map { _ in firstRegister } }
    var leaders = Array(names.indices)
    // A model that stands in no schema yet knows only the references that it declares itself.
    let declared = model.relationships.filter(\.storesReference).map { model.freeReferenceFields(of: $0) }
    for group in declared + model.referenceRegisters {
      let members = group.compactMap { names.firstIndex(of: $0) }
      let joined = Set(members.map { leaders[$0] })
      guard let leader = joined.min() else { continue }
      for index in leaders.indices where joined.contains(leaders[index]) { leaders[index] = leader }
    }
    var registers: [UInt32] = []
    var count = firstRegister
    for (index, leader) in leaders.enumerated() {
      if leader == index {
        registers.append(count)
        count += 1
      } else {
        registers.append(registers[leader])
      }
    }
    return registers
  }

  /// Whether a field's table column gives exactly this value back. One that it would not (a text where the
  /// schema has a number, from a peer with another schema) stays in the state's bytes; what the column shows
  /// of it then is up to the table.
  package func column(_ field: Int, holds value: Value) -> Bool { columnTypes[field].holds(value) }

  /// Whether a field's column gives every value of this type back; none does so with JSON where it has text.
  package func column(_ field: Int, holds tag: ValueTag) -> Bool {
    tag == .null || columnTypes[field].tag == tag
  }

  /// The type of all values that a field's column gives back.
  package func tag(ofField field: Int) -> ValueTag { columnTypes[field].tag }

  // MARK: Defaults

  /// The value of `@default`, which is shown where no event has written the field; nil if it has none.
  package func defaultValue(ofField field: Int) -> Value? {
    field < defaults.count ? defaults[field] : nil
  }

  /// The same, by the field's stored name.
  package func defaultValue(of name: String) -> Value? {
    var hint = 0
    return index(of: name, hint: &hint).flatMap { defaults[$0] }
  }

  /// Whether null differs from a field that no event has written: it has a default and may be null. A required field
  /// shows its default in both cases.
  package func distinguishesNull(_ field: Int) -> Bool {
    defaultValue(ofField: field) != nil && !areRequired[field]
  }

  /// The same, by the field's stored name.
  package func distinguishesNull(_ name: String) -> Bool {
    var hint = 0
    return index(of: name, hint: &hint).map(distinguishesNull) ?? false
  }

  /// The fields that share a field's register, itself included.
  package func fieldsWritten(with field: Int) -> [Int] {
    registers.indices.filter { registers[$0] == registers[field] }
  }

  /// The register of one of `fields`, as `LinearRecord` takes it.
  package func register(ofField field: Int) -> UInt32 { registers[field] }

  /// What becomes of an assignment to a field of this name.
  package enum Place: Sendable {
    case field(Int)
    /// Changes nothing.
    case ignored
    case unknown
  }

  package func place(of name: String) -> Place {
    var hint = 0
    if let index = index(of: name, hint: &hint) { return .field(index) }
    return isIgnored(name) ? .ignored : .unknown
  }

  var isOptimistic: Bool { conflictPolicy == .optimistic }

  /// Whether concurrent values of the field merge by time, without a conflict.
  func mergesByTime(_ field: Int) -> Bool { field == createdAt || field == updatedAt }

  /// The register of a field; numbers behind the known ones are those of names that the schema does not know.
  func register(of field: UInt32) -> UInt32 {
    if Int(field) < registers.count { return registers[Int(field)] }
    return isOptimistic ? Self.firstRegister : registerCount + field - UInt32(registers.count)
  }

  /// The number of a known field. The search starts at `hint`: assignments and fields stand in one order.
  func index(of name: String, hint: inout Int) -> Int? {
    let length = name.utf8.count
    for index in hint..<fields.count where fields[index].isSame(as: name, length: length) {
      hint = index + 1
      return index
    }
    for index in 0..<min(hint, fields.count) where fields[index].isSame(as: name, length: length) {
      hint = index + 1
      return index
    }
    return nil
  }

  /// Parts of the key and pseudo fields are no registers; events that assign them change nothing there.
  func isIgnored(_ name: String) -> Bool {
    let length = name.utf8.count
    return Event.existenceField.isSame(as: name, length: length)
      || keyFields.contains { $0.isSame(as: name, length: length) }
  }

  private enum ColumnType: Sendable, Equatable {
    case integer, real, boolean, text, json

    init(_ type: FieldType) {
      if type.isList {
        self = .json
        return
      }
      switch type.base {
      case .embedded: self = .json
      case .enumeration: self = .text
      case .scalar(let scalar):
        switch scalar {
        case .int, .awsTimestamp: self = .integer
        case .float: self = .real
        case .boolean: self = .boolean
        default: self = .text
        }
      }
    }

    var tag: ValueTag {
      switch self {
      case .integer: .int
      case .real: .double
      case .boolean: .bool
      case .text: .string
      case .json: .json
      }
    }

    func holds(_ value: Value) -> Bool {
      switch (value, self) {
      case (.null, _), (.bool, .boolean), (.int, .integer), (.string, .text), (.json, .json): true
      case (.double(let number), .real): !number.isNaN && (number != 0 || number.sign == .plus)
      default: false
      }
    }
  }
}

extension String {
  /// Equality of bytes where one of the two is ASCII, as names of fields in a schema are. Swift's `==` is
  /// fast on ASCII; it also finds canonically equivalent texts equal, but no such text is as short as its
  /// ASCII equivalent.
  func isSame(as other: String, length: Int) -> Bool { utf8.count == length && self == other }
}
