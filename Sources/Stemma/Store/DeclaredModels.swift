import StemmaSchema

/// The models that a program declares, as it names them when it opens a store.
struct DeclaredModels: Sendable {
  let tables: [any Table.Type]

  /// A schema of these models alone.
  func sdl() -> String { sdl(extending: Schema()) }

  /// The schema with these models in it: in the place of those of the same name, new ones at the end. Models that
  /// this program does not declare stay as they are.
  func sdl(extending schema: Schema) -> String {
    let declared = Dictionary(
      tables.map { ($0.modelName, $0.description) }, uniquingKeysWith: { first, _ in first })
    var enumerations: [(name: String, cases: [String])] = []
    for table in tables {
      for enumeration in table.description.enumerations
      where !enumerations.contains(where: { $0.name == enumeration.name }) {
        enumerations.append(enumeration)
      }
    }
    let kept = Schema(
      models: schema.models.filter { declared[$0.name] == nil },
      enums: schema.enums.filter { known in !enumerations.contains { $0.name == known.name } },
      embeddedTypes: schema.embeddedTypes)
    var parts = enumerations.map { "enum \($0.name) {\n\($0.cases.map { "  \($0)\n" }.joined())}\n" }
    var written: Set<String> = []
    // In the order of the schema that is there, so that opening twice changes nothing.
    for model in schema.models {
      if let description = declared[model.name] {
        parts.append(description.sdl)
        written.insert(model.name)
      }
    }
    for table in tables where written.insert(table.modelName).inserted {
      parts.append(table.description.sdl)
    }
    return parts.joined(separator: "\n") + "\n" + SDL.print(kept)
  }
}
