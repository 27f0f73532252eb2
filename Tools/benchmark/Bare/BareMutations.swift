import Foundation
import Measuring
import StemmaSchema

/// Where the mutations of a model are written.
struct BareModel {
  /// What a link from a record to another changes.
  struct Link {
    enum Place {
      /// The record's own row, or the other one's.
      case own, other
      /// A row of a table between them.
      case between(table: String)
    }

    let place: Place
    /// The other record's model.
    let target: String
    /// The columns that hold the record's key, and the other one's.
    var mine: [String] = []
    var theirs: [String] = []
  }

  let table: String
  let key: [String]
  let links: [String: Link]

  /// Of each model of a schema, by its name: what its tables and their columns are called.
  static func all(of schema: Schema) -> [String: BareModel] {
    var all: [String: BareModel] = [:]
    for model in schema.models {
      var links: [String: Link] = [:]
      for relationship in model.relationships {
        links[relationship.name] = link(relationship, of: model, schema)
      }
      all[model.name] = BareModel(
        table: model.tableName, key: model.keyFields.map { model.fields[$0].name }, links: links)
    }
    return all
  }

  private static func link(_ relationship: Relationship, of model: Model, _ schema: Schema) -> Link? {
    let (target, columns) = (relationship.target, relationship.referenceFields)
    guard let joined = relationship.joinModel else {
      return relationship.storesReference
        ? Link(place: .own, target: target, theirs: columns)
        : Link(place: .other, target: target, mine: columns)
    }
    // Between records of one model there are two relationships in one list.
    let facing = schema.model(named: target)?.relationships.first {
      $0.joinModel == joined && !($0.name == relationship.name && target == model.name)
    }
    guard let facing, let table = schema.model(named: joined)?.tableName else { return nil }
    return Link(place: .between(table: table), target: target, mine: columns, theirs: facing.referenceFields)
  }
}

extension BareChanges {
  /// The mutations of a file as statements, but for what a mutation changes in other rows than it names.
  init(lines: [UInt8], _ models: [String: BareModel]) throws {
    self.init()
    for line in lines.split(separator: UInt8(ascii: "\n")) {
      guard let members = try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any],
        let name = members["model"] as? String, let model = models[name],
        let values = key(members["key"], of: model)
      else {
        throw BenchError(
          "a line is no mutation of a model of the schema: \(String(decoding: line, as: UTF8.self))")
      }
      let key = Array(zip(model.key, values))
      let fields = (members["fields"] as? [String: Any] ?? [:]).sorted { $0.key < $1.key }
      switch members["op"] as? String ?? "upsert" {
      case "create", "update", "upsert":
        upsert(model.table, key: key, fields: fields.map { ($0.key, value($0.value)) })
      case "delete": delete(model.table, key: key)
      case "link": try link(model, key, fields, models)
      case "unlink": try link(model, key, fields, models, isUnlink: true)
      case let other: throw BenchError("the baseline of --data does not know the operation \(other)")
      }
    }
  }

  /// Sets columns or clears them. A row whose whole key is that of others is made by its links, and goes with them.
  private mutating func link(
    _ model: BareModel, _ key: [(String, BareValue)], _ fields: [(key: String, value: Any)],
    _ models: [String: BareModel], isUnlink: Bool = false
  ) throws {
    var own: [(String, BareValue)] = []
    for (name, json) in fields {
      guard let link = model.links[name], let target = models[link.target],
        let other = self.key(json, of: target)
      else { throw BenchError("the baseline of --data does not know the link \(name), or the key in it") }
      switch link.place {
      case .own: own += zip(link.theirs, other)
      case .other:
        let values = key.map { isUnlink ? .null : $0.1 }
        set(Array(zip(link.mine, values)), of: target, key: Array(zip(target.key, other)))
      case .between(let table):
        let row = Array(zip(link.mine + link.theirs, key.map(\.1) + other))
        if isUnlink { delete(table, key: row) } else { upsert(table, key: row, fields: []) }
      }
    }
    if own.isEmpty { return }
    if isUnlink, Set(own.map(\.0)).isSuperset(of: model.key) { return delete(model.table, key: key) }
    set(own.map { ($0.0, isUnlink ? .null : $0.1) }, of: model, key: key)
  }

  /// Columns of the key stay what they are.
  private mutating func set(_ columns: [(String, BareValue)], of model: BareModel, key: [(String, BareValue)])
  {
    upsert(model.table, key: key, fields: columns.filter { !model.key.contains($0.0) })
  }

  /// The parts of a key; nil if it is none. One of one part may stand by itself.
  private mutating func key(_ json: Any?, of model: BareModel) -> [BareValue]? {
    if let members = json as? [String: Any] {
      return members.count == model.key.count ? model.key.map { value(members[$0]) } : nil
    }
    return model.key.count == 1 && json != nil ? [value(json)] : nil
  }

  private mutating func value(_ json: Any?) -> BareValue {
    switch json {
    case let text as String: texts.text(text)
    case let number as NSNumber where String(cString: number.objCType) == "d": .double(number.doubleValue)
    case let number as NSNumber: .int(number.int64Value)
    default: .null
    }
  }
}
