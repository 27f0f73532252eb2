import StemmaEvents
import StemmaSchema

/// The merge rules of a model: which fields are written together, and which sibling wins.
///
/// Created once per model and schema, and shared by all records. A `RecordState` numbers fields by
/// its rules, so use it only with the rules of an equal schema.
///
/// Registers: 0 is existence, 1 the *base* (the value that `create` writes for unnamed fields),
/// then those of the model. Under OPTIMISTIC the model has one register for the whole record.
/// Otherwise the free fields of a reference share one, whichever side declares it, and every other
/// field has its own. Relationships that share a free reference field share a register. Fields that
/// the schema lacks follow, each with its own register (under OPTIMISTIC, the record's).
package final class MergeRules: Sendable {
  /// The stored names of the model's fields without its key, in byte order. The values of a record
  /// have this order everywhere.
  package let fields: [String]
  /// The index of each of `fields` in `Model.fields`.
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
  /// For each of `fields` its `@default`, which is shown if no event has written the field.
  private let defaults: [Value?]
  private let areRequired: [Bool]
  /// Whether any field has a default.
  package let hasDefaults: Bool
  private let columnTypes: [ColumnType]
  private let keyFields: [String]

  static let existence: UInt32 = 0
  static let base: UInt32 = 1
  static let firstRegister: UInt32 = 2

  /// `nil`: a model that the schema lacks. Each of its fields has its own register.
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
    // Every event writes the times that the node maintains, so they need no default.
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

  /// The register of each field. A group has the number of its first field in this order.
  private static func registers(of names: [String], _ model: Model) -> [UInt32] {
    if model.conflictPolicy == .optimistic { return names.map { _ in firstRegister } }
    var leaders = Array(names.indices)
    // A model outside of a schema knows only the references that it declares itself.
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

  /// Whether a field's table column returns exactly this value. Any other value stays in the
  /// state's bytes, for example a text from a peer whose schema has no number there. The table
  /// determines what the column then shows.
  package func column(_ field: Int, holds value: Value) -> Bool { columnTypes[field].holds(value) }

  /// Whether a field's column returns every value of this type exactly.
  package func column(_ field: Int, holds tag: ValueTag) -> Bool {
    tag == .null || columnTypes[field].tag == tag
  }

  /// The type of all values that a field's column returns.
  package func tag(ofField field: Int) -> ValueTag { columnTypes[field].tag }

  // MARK: Defaults

  /// The value of `@default`, which is shown if no event has written the field; nil without one.
  package func defaultValue(ofField field: Int) -> Value? {
    field < defaults.count ? defaults[field] : nil
  }

  package func defaultValue(of name: String) -> Value? {
    var hint = 0
    return index(of: name, hint: &hint).flatMap { defaults[$0] }
  }

  /// Whether null differs from an unwritten field: it has a default and may be null. A required
  /// field shows its default in both cases.
  package func distinguishesNull(_ field: Int) -> Bool {
    defaultValue(ofField: field) != nil && !areRequired[field]
  }

  package func distinguishesNull(_ name: String) -> Bool {
    var hint = 0
    return index(of: name, hint: &hint).map(distinguishesNull) ?? false
  }

  /// The fields that share a field's register, including itself.
  package func fieldsWritten(with field: Int) -> [Int] {
    registers.indices.filter { registers[$0] == registers[field] }
  }

  /// The register of one of `fields`, for `LinearRecord`.
  package func register(ofField field: Int) -> UInt32 { registers[field] }

  /// The target of an assignment to a field of this name.
  package enum Place: Sendable {
    case field(Int)
    /// The assignment has no effect.
    case ignored
    case unknown
  }

  package func place(of name: String) -> Place {
    var hint = 0
    if let index = index(of: name, hint: &hint) { return .field(index) }
    return isIgnored(name) ? .ignored : .unknown
  }

  var isOptimistic: Bool { conflictPolicy == .optimistic }

  func mergesByTime(_ field: Int) -> Bool { field == createdAt || field == updatedAt }

  /// The register of a field; numbers after the known ones belong to names that the schema lacks.
  func register(of field: UInt32) -> UInt32 {
    if Int(field) < registers.count { return registers[Int(field)] }
    return isOptimistic ? Self.firstRegister : registerCount + field - UInt32(registers.count)
  }

  /// The number of a known field. The search starts at `hint`: assignments are in field order.
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

  /// Key parts and pseudo fields have no register; assigning them has no effect on fields.
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
  /// Byte equality if one text is ASCII, as field names of a schema are. Swift's `==` is fast on
  /// ASCII. It also accepts canonically equivalent texts, but none is as short as its ASCII
  /// equivalent.
  func isSame(as other: String, length: Int) -> Bool { utf8.count == length && self == other }
}
