import Measuring

/// The table, key, fields and links of a model.
struct BareModel {
  /// The change that a link from one record to another makes.
  struct Link {
    enum Place {
      /// The record's own row.
      case own(isRequired: Bool)
      /// The other record's row.
      case other
      /// A row of the join table between them.
      case between(model: String)
    }

    var place: Place
    /// The other record's model.
    var target: String
    /// The columns that hold the record's key (`other`, `between`) and the other record's key
    /// (`own`, `between`).
    var mine: [String] = []
    var theirs: [String] = []
  }

  struct Field {
    var name: String
    var type: String
    var isList = false
    var isRequired: Bool
    /// The text of `@default`.
    var standard: String?
  }

  var name: String
  var table: String
  var fields: [Field] = []
  var key: [String] = []
  var links: [String: Link] = [:]
  /// The fields that the clock sets at the creation and at each change, unless a value is written.
  var createdAt: String?
  var updatedAt: String?

  func field(_ name: String) -> Field? { fields.first { $0.name == name } }

  var sortedLinks: [Link] { links.sorted { $0.key < $1.key }.map(\.value) }

  /// The given columns without those of the key.
  func free(_ columns: [String]) -> [String] { columns.filter { !key.contains($0) } }

  /// Whether the links determine the key: setting them creates the record, removing them deletes
  /// it.
  var isJoin: Bool {
    let own = links.values.compactMap { if case .own = $0.place { $0.theirs } else { nil } }
    return own.count > 1 && Set(own.joined()).isSuperset(of: key)
  }
}

/// The models of a schema: tables, keys and reference fields as docs and GraphQL define them.
///
/// Relationships must name their reference fields, as in the output of `stemma schema show`.
struct BareSchema {
  private(set) var models: [String: BareModel] = [:]
  private(set) var enums: Set<String> = []

  init(_ text: String, name: String) throws {
    let sdl = try BareSDL(text, name: name)
    enums = sdl.enums
    let types = sdl.types.filter { $0.directives["model"] != nil }
    for type in types { models[type.name] = try Self.model(type, sdl) }
    for type in types {
      for field in type.fields {
        guard let directive = field.directives.first(where: { Self.relationships.contains($0.name) }) else {
          continue
        }
        let link =
          directive.name == "manyToMany"
          ? try self.link(throughJoin: field, directive, of: type, types, sdl)
          : try self.link(field, directive, of: type, types, sdl)
        models[type.name]?.links[field.name] = link
      }
    }
  }

  private static let relationships = ["hasMany", "hasOne", "belongsTo", "manyToMany"]

  // MARK: Models

  private static func model(_ type: BareSDL.TypeDefinition, _ sdl: BareSDL) throws -> BareModel {
    var model = BareModel(
      name: type.name, table: type.directives["table"]?.arguments["name"]?.first ?? table(of: type.name))
    for field in type.fields where !field.directives.contains(where: { relationships.contains($0.name) }) {
      model.fields.append(
        BareModel.Field(
          name: field.name, type: field.type, isList: field.isList, isRequired: field.isRequired,
          standard: field.directives["default"]?.arguments["value"]?.first))
      if let key = field.directives["primaryKey"] {
        model.key = [field.name] + (key.arguments["sortKeyFields"] ?? [])
      }
    }
    if model.key.isEmpty {
      model.key = ["id"]
      if model.field("id") == nil {
        model.fields.append(BareModel.Field(name: "id", type: "ID", isRequired: true))
      }
    }
    // `{ createdAt: "createdOn", updatedAt: null }`, `null`, or absent.
    let names = type.directives["model"]?.arguments["timestamps"] ?? []
    func time(_ name: String) -> String? {
      let given = names.firstIndex(of: name).map { names[$0 + 1] }
      let column = names == ["null"] || given == "null" ? nil : given ?? name
      guard let column else { return nil }
      if given != nil, model.field(column) == nil {
        model.fields.append(BareModel.Field(name: column, type: "AWSDateTime", isRequired: false))
      }
      return model.field(column)?.type == "AWSDateTime" && !model.key.contains(column) ? column : nil
    }
    model.createdAt = time("createdAt")
    model.updatedAt = time("updatedAt")
    return model
  }

  /// `Book` → `books`, `URLEntry` → `urlEntries`.
  private static func table(of model: String) -> String {
    let capitals = model.prefix { $0.isUppercase }.count
    let isFollowed =
      capitals > 1 && capitals < model.count && model.dropFirst(capitals).first?.isLowercase == true
    let small = isFollowed ? capitals - 1 : capitals
    let name = model.prefix(small).lowercased() + model.dropFirst(small)
    let lower = name.lowercased()
    if ["ch", "sh", "s", "x", "z"].contains(where: lower.hasSuffix) { return name + "es" }
    if lower.hasSuffix("y"), let before = lower.dropLast().last, !"aeiou".contains(before) {
      return name.dropLast() + "ies"
    }
    return name + "s"
  }

  // MARK: Links

  private func link(
    _ field: BareSDL.Field, _ directive: BareSDL.Directive, of type: BareSDL.TypeDefinition,
    _ types: [BareSDL.TypeDefinition], _ sdl: BareSDL
  ) throws -> BareModel.Link {
    let fields = directive.arguments["fields"]
    let references = directive.arguments["references"]
    let own = directive.name == "belongsTo" ? fields ?? references : directive.name == "hasOne" ? fields : nil
    if let own {
      return BareModel.Link(
        place: .own(isRequired: field.isRequired), target: field.type, theirs: own)
    }
    // The `fields` of a `hasMany` are its own key. An index or the key of the target begins with
    // its reference fields.
    var theirs = references
    if theirs == nil, fields != nil || directive.arguments["indexName"] != nil,
      let key = models[type.name]?.key
    {
      let index = directive.arguments["indexName"]?.first
      let columns =
        index.map { Self.index($0, types.first { $0.name == field.type }) } ?? models[field.type]?.key
      theirs = columns.map { Array($0.prefix(key.count)) }
    }
    guard let theirs else {
      throw sdl.failure(
        field.line,
        "`\(field.name)` of \(type.name) names no reference fields, and the baseline does not make them up; "
          + "take the schema that `stemma schema show` prints")
    }
    return BareModel.Link(place: .other, target: field.type, mine: theirs)
  }

  private static func index(_ name: String, _ type: BareSDL.TypeDefinition?) -> [String] {
    for field in type?.fields ?? [] {
      for index in field.directives where index.name == "index" {
        let columns = [field.name] + (index.arguments["sortKeyFields"] ?? [])
        let given = index.arguments["name"]?.first
        if given ?? "by" + columns.map(capital).joined(separator: "And") == name { return columns }
      }
    }
    return []
  }

  /// The join model has the name of the relation. Its key consists of the keys of both sides.
  private mutating func link(
    throughJoin field: BareSDL.Field, _ directive: BareSDL.Directive, of type: BareSDL.TypeDefinition,
    _ types: [BareSDL.TypeDefinition], _ sdl: BareSDL
  ) throws -> BareModel.Link {
    let relation = directive.arguments["relationName"]?.first ?? ""
    var sides: [(model: String, field: String)] = []
    for type in types {
      for field in type.fields
      where field.directives["manyToMany"]?.arguments["relationName"]?.first == relation {
        sides.append((type.name, field.name))
      }
    }
    guard sides.count == 2 else { throw sdl.failure(field.line, "`\(relation)` has \(sides.count) sides") }
    sides.sort { $0 < $1 }
    let isReflexive = sides[0].model == sides[1].model
    var join = BareModel(name: relation, table: Self.table(of: relation))
    var columns: [[String]] = []
    for side in sides {
      guard let model = models[side.model] else { continue }
      let prefix =
        side.model.prefix(1).lowercased() + side.model.dropFirst()
        + (isReflexive ? Self.capital(side.field) : "")
      let names = model.key.enumerated().map { prefix + ($0 == 0 ? Self.capital($1) : $1) }
      for (name, part) in zip(names, model.key) {
        join.fields.append(
          BareModel.Field(name: name, type: model.field(part)?.type ?? "ID", isRequired: true))
      }
      join.key += names
      join.links[prefix] = BareModel.Link(
        place: .own(isRequired: true), target: side.model, theirs: names)
      columns.append(names)
    }
    models[relation] = join
    let mine = sides[0] == (type.name, field.name) ? 0 : 1
    return BareModel.Link(
      place: .between(model: relation), target: field.type, mine: columns[mine], theirs: columns[1 - mine])
  }

  private static func capital(_ word: String) -> String { word.prefix(1).uppercased() + word.dropFirst() }

  // MARK: Deleting

  /// Triggers that treat the children of a deleted record as a node does. Children with a required
  /// reference are deleted, others lose the reference.
  var triggers: [String] {
    var triggers: [String] = []
    let sorted = models.values.sorted { $0.name < $1.name }
    for model in sorted {
      // Both sides may declare one reference.
      var seen: Set<[String]> = []
      for link in model.sortedLinks {
        guard case .own(let isRequired) = link.place else { continue }
        seen.insert([link.target] + link.theirs)
        triggers.append(trigger(model, link.theirs, to: link.target, isRequired, triggers.count))
      }
      for parent in sorted {
        for link in parent.sortedLinks where link.target == model.name {
          guard case .other = link.place, seen.insert([parent.name] + link.mine).inserted else { continue }
          triggers.append(trigger(model, link.mine, to: parent.name, false, triggers.count))
        }
      }
    }
    return triggers
  }

  private func trigger(
    _ child: BareModel, _ columns: [String], to parent: String, _ isRequired: Bool, _ number: Int
  ) -> String {
    guard let parent = models[parent] else { return "" }
    let terms = zip(columns, parent.key).map { "\"\($0)\" = OLD.\"\($1)\"" }.joined(separator: " AND ")
    let free = child.free(columns)
    let isNeeded = isRequired || free.isEmpty || free.contains { child.field($0)?.isRequired ?? false }
    let action =
      isNeeded
      ? "DELETE FROM \"\(child.table)\""
      : "UPDATE \"\(child.table)\" SET " + free.map { "\"\($0)\" = NULL" }.joined(separator: ", ")
    return """
      CREATE TRIGGER "deleted \(number)" AFTER DELETE ON "\(parent.table)" BEGIN \(action) WHERE \(terms); END
      """
  }
}
