import Foundation
import Measuring

extension BareChanges {
  /// Turns the lines of a mutation file into statements. A line that depends on more than its text
  /// and the schema is refused with its number. Examples are a key that a node would mint and a
  /// time from its clock.
  ///
  /// `name`: the name of the file, for errors.
  init(lines: [UInt8], name: String, _ schema: BareSchema) throws {
    self.init()
    triggers = schema.triggers
    var number = 0
    for line in lines.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      number += 1
      if line.allSatisfy({ $0 <= 0x20 }) { continue }
      do { try add(line, schema) } catch let error as BenchError {
        throw BenchError("\(name), line \(number): \(error.description)")
      } catch { throw BenchError("\(name), line \(number): no JSON: \(error)") }
    }
  }

  private mutating func add(_ line: ArraySlice<UInt8>, _ schema: BareSchema) throws {
    guard let members = try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any],
      let name = members["model"] as? String
    else { throw BenchError("no mutation of a model") }
    guard let model = schema.models[name] else { throw BenchError("the schema has no model \(name)") }
    let operation = members["op"] as? String ?? "upsert"
    let key = try self.key(members["key"], of: model, schema)
    let fields = (members["fields"] as? [String: Any] ?? [:]).sorted { $0.key < $1.key }
    switch operation {
    case "create", "update", "upsert": try write(model, key, fields, schema, isUpdate: operation == "update")
    case "delete": delete(model.table, key: Array(zip(model.key, key)))
    case "link", "unlink": try link(model, key, fields, schema, isUnlink: operation == "unlink")
    default: throw BenchError("the baseline does not know the operation \(operation)")
    }
  }

  // MARK: Fields

  private mutating func write(
    _ model: BareModel, _ key: [BareValue], _ fields: [(key: String, value: Any)], _ schema: BareSchema,
    isUpdate: Bool
  ) throws {
    var columns: [String: BareValue] = [:]
    for (name, json) in fields {
      if let link = model.links[name] {
        guard case .own = link.place, let target = schema.models[link.target] else {
          throw BenchError("`\(name)` of \(model.name) is no field: write it with `link`")
        }
        let other = json is NSNull ? nil : try self.key(json, of: target, schema)
        for (column, value) in pairs(link.theirs, other) { columns[column] = value }
      } else if let field = model.field(name) {
        columns[name] = try value(json, field, of: model, schema)
      } else {
        throw BenchError("\(model.name) has no field `\(name)`")
      }
    }
    try set(columns, model, key, schema, isUpdate: isUpdate)
  }

  /// Writes columns of a row. Key columns never change.
  private mutating func set(
    _ columns: [String: BareValue], _ model: BareModel, _ key: [BareValue], _ schema: BareSchema,
    isUpdate: Bool = true
  ) throws {
    for time in [isUpdate ? nil : model.createdAt, model.updatedAt].compactMap(\.self) {
      // A null at the creation counts as absent.
      if case .text? = columns[time] { continue }
      throw BenchError(
        "`\(time)` of \(model.name) is not given, and the baseline cannot know what a node's clock says")
    }
    var defaults: [(String, BareValue)] = []
    if !isUpdate {
      for field in model.fields {
        guard let text = field.standard, columns[field.name] == nil else { continue }
        defaults.append((field.name, try standard(text, field, of: model, schema)))
      }
    }
    let fields = columns.filter { !model.key.contains($0.key) }.sorted { $0.key < $1.key }
    upsert(
      model.table, key: Array(zip(model.key, key)), fields: fields.map { ($0.key, $0.value) },
      defaults: defaults)
  }

  private func pairs(_ columns: [String], _ values: [BareValue]?) -> [(String, BareValue)] {
    columns.enumerated().map { ($1, values?[$0] ?? .null) }
  }

  // MARK: Links

  /// Sets or clears columns. Links create the row of a join model, and unlinks delete it.
  private mutating func link(
    _ model: BareModel, _ key: [BareValue], _ fields: [(key: String, value: Any)], _ schema: BareSchema,
    isUnlink: Bool
  ) throws {
    var own: [String: BareValue] = [:]
    for (name, json) in fields {
      guard let link = model.links[name], let target = schema.models[link.target] else {
        throw BenchError("\(model.name) has no relationship `\(name)`")
      }
      let other = isUnlink && json is NSNull ? nil : try self.key(json, of: target, schema)
      switch (link.place, other) {
      case (.own, _): for (column, value) in pairs(link.theirs, other) { own[column] = value }
      case (_, nil): throw BenchError("unlink of `\(name)` needs the key of the record on the other side")
      case (.other, let other?):
        let columns = pairs(link.mine, isUnlink ? nil : key)
        try set(Dictionary(columns) { $1 }, target, other, schema)
      case (.between(let between), let other?):
        guard let join = schema.models[between] else { continue }
        let parts = Dictionary(pairs(link.mine, key) + pairs(link.theirs, other)) { $1 }
        let row = join.key.map { ($0, parts[$0] ?? .null) }
        if isUnlink { delete(join.table, key: row) } else { upsert(join.table, key: row, fields: []) }
      }
    }
    let isWhole = model.isJoin && Set(own.keys).isSuperset(of: model.key)
    if isUnlink, isWhole || (model.isJoin && fields.isEmpty) {
      return delete(model.table, key: Array(zip(model.key, key)))
    }
    guard !own.isEmpty else { return }
    try set(isUnlink ? own.mapValues { _ in .null } : own, model, key, schema, isUpdate: !isWhole)
  }

  // MARK: Values

  /// The parts of a key, in key order. A key of one part may be a bare value.
  private mutating func key(_ json: Any?, of model: BareModel, _ schema: BareSchema) throws -> [BareValue] {
    var members = json as? [String: Any] ?? [:]
    if let json, !(json is [String: Any]), model.key.count == 1 { members = [model.key[0]: json] }
    guard Set(members.keys) == Set(model.key) else {
      throw BenchError(
        "the key of a \(model.name) is made of \(model.key.joined(separator: ", ")), and the baseline makes none up"
      )
    }
    var values: [BareValue] = []
    for part in model.key {
      guard let field = model.field(part), let json = members[part] else { continue }
      values.append(try value(json, field, of: model, schema, isKey: true))
    }
    return values
  }

  private mutating func standard(
    _ text: String, _ field: BareModel.Field, of model: BareModel, _ schema: BareSchema
  ) throws -> BareValue {
    switch field.type {
    case "Float": .double(Double(text) ?? 0)
    case "Boolean": .int(text == "true" ? 1 : 0)
    default: try value(text, field, of: model, schema)
    }
  }

  /// A value in its stored form.
  private mutating func value(
    _ json: Any, _ field: BareModel.Field, of model: BareModel, _ schema: BareSchema, isKey: Bool = false
  ) throws -> BareValue {
    if json is NSNull { return .null }
    func refusal() -> BenchError {
      BenchError("the baseline does not know how `\(field.name)` of \(model.name) is stored: \(json)")
    }
    if field.isList {
      // Removes optional JSON escapes.
      guard let elements = json as? [String],
        Self.textTypes.contains(field.type) || schema.enums.contains(field.type)
      else { throw refusal() }
      let list = try JSONSerialization.data(withJSONObject: elements, options: .withoutEscapingSlashes)
      return texts.text(String(decoding: list, as: UTF8.self))
    }
    switch (field.type, json) {
    case ("Int", let number as NSNumber), ("AWSTimestamp", let number as NSNumber):
      return .int(number.int64Value)
    case ("Int", let text as String), ("AWSTimestamp", let text as String):
      guard let number = Int64(text) else { throw refusal() }
      return .int(number)
    case ("Float", let number as NSNumber):
      return .double(number.doubleValue == 0 ? 0 : number.doubleValue)
    case ("Boolean", let flag as Bool): return .int(flag ? 1 : 0)
    case ("ID", let number as NSNumber): return texts.text(number.stringValue)
    case ("ID", let text as String):
      // A UUID is stored in lower case.
      return texts.text(UUID(uuidString: text) == nil ? text : text.lowercased())
    case ("AWSDateTime", let text as String):
      // Keys and the reference fields to them store a time in UTC.
      let isPart = isKey || model.links.values.contains { $0.theirs.contains(field.name) }
      guard !isPart || text.wholeMatch(of: Self.utc) != nil else { throw refusal() }
      return texts.text(text)
    case (let type, let text as String) where Self.textTypes.contains(type) || schema.enums.contains(type):
      return texts.text(text)
    default: throw refusal()
    }
  }

  private static let textTypes: Set = [
    "String", "AWSDate", "AWSTime", "AWSDateTime", "AWSEmail", "AWSPhone", "AWSURL", "AWSIPAddress",
  ]

  /// The form in keys: no fraction that is zero.
  nonisolated(unsafe) private static let utc = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d*[1-9])?Z/
}
