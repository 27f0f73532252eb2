import StemmaSchema

/// Generates random valid schemas with every directive, key shape, relationship form and type.
package struct SchemaGenerator {
  private var random: SplitMix64
  private let isLoose: Bool

  /// - Parameter isLoose: also generates schemas that may be rejected. They declare reference
  ///   fields that relationships imply, with any type and requirement, and omit required markers.
  package init(seed: UInt64, isLoose: Bool = false) {
    random = SplitMix64(seed: seed)
    self.isLoose = isLoose
  }

  private mutating func next(_ bound: Int) -> Int { random.below(bound) }
  private mutating func chance(_ percent: Int) -> Bool { random.chance(percent) }
  private mutating func pick(_ words: [String]) -> String { random.element(words) }

  package mutating func text() -> String {
    let count = 1 + next(5)
    let keys = (0..<count).map { _ in next(5) }
    var text = "enum E { A B C }\ntype Inner { n: Int! @default(value: \"3\") }\n"
    text += "type Outer { inner: [Inner!] e: E again: Outer at: AWSDateTime! }\n"
    var models = (0..<count).map { model(number: $0, key: keys[$0]) }
    for relation in 0..<next(4) {
      let (parent, child) = (next(count), next(count))
      switch next(isLoose ? 7 : 6) {
      case 0:
        models[parent].body += "  r\(relation)cs: [M\(child)] @hasMany\n"
        declare("m\(parent)R\(relation)cs", keys[parent], in: &models[child].body)
      case 1:
        models[parent].body += "  r\(relation)one: M\(child)\(chance(40) ? "!" : "") @hasOne\n"
        declare("m\(parent)R\(relation)one", keys[child], in: &models[parent].body)
      case 6:
        models[child].body += "  r\(relation)up: M\(parent)\(chance(40) ? "!" : "") @belongsTo\n"
        declare("m\(child)R\(relation)up", keys[parent], in: &models[child].body)
      case 2 where parent != child:
        models[parent].body += "  r\(relation)a: [M\(child)] @manyToMany(relationName: \"J\(relation)\")\n"
        models[child].body += "  r\(relation)b: [M\(parent)] @manyToMany(relationName: \"J\(relation)\")\n"
      case 3:
        let marker = chance(40) ? "!" : ""
        let names = references("r\(relation)", keys[parent], marker, into: &models[child].body)
        models[child].body += "  r\(relation)p: M\(parent)\(marker) @belongsTo(fields: [\(names)])\n"
        if chance(50) {
          models[parent].body +=
            "  r\(relation)m: [M\(child)] @hasMany(references: [\(names)]\(chance(30) ? ", onDelete: RESTRICT" : ""))\n"
        }
      case 4:
        let names = references("r\(relation)", keys[parent], "", into: &models[child].body)
        models[parent].body += "  r\(relation)o: M\(child) @hasOne(references: [\(names)])\n"
      default:
        let names = references("r\(relation)", keys[child], "", into: &models[parent].body)
        models[parent].body += "  r\(relation)g: M\(child) @hasOne(fields: [\(names)])\n"
      }
    }
    text += models.map { "\($0.head) {\n\($0.body)}\n" }.joined()
    if isLoose, chance(20) {
      let markers = text.indices.filter { text[$0] == "!" }
      if !markers.isEmpty { text.remove(at: markers[next(markers.count)]) }
    }
    return text
  }

  /// Declares some of the reference fields that a relationship to a model with this key implies.
  private mutating func declare(_ prefix: String, _ key: Int, in body: inout String) {
    guard isLoose, chance(70) else { return }
    for (position, type) in Self.keyTypes[key].enumerated() where chance(70) {
      let name = prefix + (key < 2 ? "Id" : "K\(position)")
      body += "  \(name): \(chance(5) ? "AWSURL" : type)\(chance(50) ? "!" : "")\n"
    }
  }

  private static let keyTypes: [[String]] = [
    ["ID"], ["ID"], ["Int"], ["String", "Int"], ["E", "AWSDateTime", "Float"],
  ]

  private mutating func references(
    _ prefix: String, _ key: Int, _ marker: String, into body: inout String
  ) -> String {
    let types = Self.keyTypes[key]
    for (position, type) in types.enumerated() { body += "  \(prefix)f\(position): \(type)\(marker)\n" }
    return types.indices.map { "\"\(prefix)f\($0)\"" }.joined(separator: ", ")
  }

  private mutating func model(number: Int, key: Int) -> (head: String, body: String) {
    var head = "type M\(number) @model"
    if chance(20) {
      head += "(timestamps: \(pick(["null", "{ createdAt: \"on\" }", "{ updatedAt: null }"])))"
    }
    if chance(20) { head += " @mapsTo(name: \"Old\(number)\")" }
    if chance(20) { head += " @table(name: \"table\(number)\")" }
    if chance(30) {
      head += " @conflict(policy: \(pick(["AUTOMERGE", "LATEST", "OPTIMISTIC"])), deletes: UPDATE_WINS)"
    }
    var body = ""
    let types = Self.keyTypes[key]
    switch key {
    case 0: break
    case 1: body += "  id: ID!\n"
    default:
      if chance(30) { head += " @partition(fields: [\(chance(50) ? "\"k0\"" : "")])" }
      let rest = types.indices.dropFirst().map { "\"k\($0)\"" }.joined(separator: ", ")
      for (position, type) in types.enumerated() {
        body += "  k\(position): \(type)!"
        if position == 0 { body += rest.isEmpty ? " @primaryKey" : " @primaryKey(sortKeyFields: [\(rest)])" }
        body += "\n"
      }
    }
    for field in 0..<next(6) {
      let type = pick(Scalar.allCases.map(\.rawValue) + ["E", "Outer"])
      let isList = chance(25)
      body +=
        "  f\(field): " + (isList ? "[\(type)\(chance(50) ? "!" : "")]" : type) + (chance(40) ? "!" : "")
      if !isList, ["String", "ID"].contains(type), chance(30) {
        body += " @default(value: \"a\\\"é\\n\\u0001\")"
      }
      if !isList, type == "Int", chance(30) { body += " @default(value: \"-7\")" }
      if !isList, type == "E", chance(30) { body += " @default(value: \"B\")" }
      if chance(15) { body += " @mapsTo(name: \"was\(field)\")" }
      if !isList, type != "Outer", chance(30) { body += " @index" }
      if !isList, type != "Outer", chance(20) { body += " @index(name: \"i\(field)\(number)\")" }
      body += "\n"
    }
    if chance(40) { body += "  createdAt: AWSDateTime\n" }
    if chance(40) { body += "  updatedAt: \(pick(["AWSDateTime!", "String"]))\n" }
    return (head, body)
  }
}
