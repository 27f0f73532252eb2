import ArgumentParser
import StemmaNode
import StemmaSchema

/// Errors of a `--field` that selects nothing. `models`: the candidates; `model`: the named model.
enum FieldChoice {
  static func unknown(_ name: String, _ models: [Model], _ model: Model?, _ code: ExitCode) -> Failure {
    let names = models.flatMap { $0.fields.map(\.name) + $0.relationships.map(\.name) }
    var known: [String] = []
    for name in names + [ExistenceName.usual] where !known.contains(name) { known.append(name) }
    let all: Notice? = known.count > 12 ? "\(step: .listModels) lists all" : nil
    let who = model.map { "\($0.name) has no" } ?? "no model has a"
    return Failure(
      "\(who) field `\(name)`\(Explanations.suggestion(name, known, else: all).withCommands)", code)
  }

  /// Refuses a field that is only part of a key. `reason`: the reason here, and an alternative.
  static func refuseKeyPart(_ name: String, _ models: [Model], _ reason: String) throws {
    let owners = models.filter { $0.field(named: name) != nil }
    let isPart = owners.allSatisfy { model in model.keyFields.contains { model.fields[$0].name == name } }
    guard let owner = owners.first, isPart else { return }
    throw Failure("`\(name)` is a part of the key of \(owner.name), \(reason)", .usage)
  }

  /// Refuses a relationship that the other side stores, and names that side. `word`: its field
  /// there, nil for a part of the key.
  static func refuseStoredElsewhere(
    _ name: String, _ schema: Schema, _ models: [Model], _ word: (InverseReference) -> String?
  ) throws {
    for model in models {
      guard let relationship = model.relationship(named: name), !relationship.storesReference else {
        continue
      }
      let stored = schema.inverseReferences(to: model).first {
        $0.child.name == relationship.joinModel ?? relationship.target
          && $0.relationship.referenceFields == relationship.referenceFields
      }
      guard let stored else { continue }
      let child = stored.child.name
      let field = word(stored).map { " --field \($0)" } ?? ""
      throw Failure(
        "`\(name)` of \(model.name) is stored by \(child); write --model \(child)\(field)", .badData)
    }
  }
}
