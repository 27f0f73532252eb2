import StemmaEvents
import StemmaSchema

/// Checks additions of a schema against events of the log from another schema or a peer.
///
/// Events of one model must have keys of one shape, in the partitions derived from them, because
/// tables cannot hold others. A value must be valid for its field. Reports the first misfit for
/// each model and field.
struct LogComparison {
  private let schema: Schema
  /// By stored name.
  private let additions: [String: ModelAddition]
  /// By stored names of model and field.
  private let fields: [String: [String: Field]]
  private(set) var refusals: [SchemaRefusal] = []
  private var reported: Set<Subject> = []

  private struct Subject: Hashable {
    var model: String
    var field: String?
  }

  init(_ additions: [ModelAddition], _ schema: Schema) {
    self.schema = schema
    self.additions = Dictionary(
      additions.map { ($0.model.storedName, $0) }, uniquingKeysWith: { first, _ in first })
    fields = self.additions.mapValues { addition in
      Dictionary(addition.fields.map { ($0.storedName, $0) }, uniquingKeysWith: { first, _ in first })
    }
  }

  func isAbout(_ storedName: String) -> Bool { additions[storedName] != nil }

  mutating func compare(_ event: Event) {
    guard let addition = additions[event.model], let fields = fields[event.model] else { return }
    let model = addition.model
    if addition.isNewModel {
      guard fits(event, model) else { return }
      if event.operation == .create { compareRequired(event, addition) }
    }
    for assignment in event.assignments {
      guard let field = fields[assignment.field] else { continue }
      if assignment.value.isNull {
        if addition.isNewModel, needsValue(field, of: model) { refuseNull(event, field, of: model) }
      } else if !schema.fits(assignment.value, field, of: model) {
        let value = printable(String(assignment.value.json.canonicalText.prefix(Self.shownLength)), as: .json)
        refuse(
          model, field,
          "the type is \(SDL.typeText(field.type)), but the log has the value \(value), of record "
            + KeyWords.text(event.key, of: model),
          "declare a field with another stored name")
      }
    }
  }

  /// The number of characters of a value in a refusal.
  private static let shownLength = 60

  /// Whether an event's key fits the model, and its partition follows from the key.
  private mutating func fits(_ event: Event, _ model: Model) -> Bool {
    guard schema.fits(event.key, of: model) else {
      refuse(
        model, nil,
        "the key is \(model.keyText), but the log has an event with the key \(KeyWords.text(event.key))",
        "declare the key that the log has, or a model with another name")
      return false
    }
    guard event.partition == Partition(model: model, key: event.key) else {
      refuse(
        model, nil,
        "the partition rule is \(model.partitionText), but the log has an event in the partition "
          + printable(event.partition.description),
        "declare the rule that the log has, or a model with another name")
      return false
    }
    return true
  }

  private mutating func compareRequired(_ event: Event, _ addition: ModelAddition) {
    for field in addition.fields where needsValue(field, of: addition.model) {
      let isThere = event.assignments.contains {
        $0.field.hasSameBytes(as: field.storedName) && !$0.value.isNull
      }
      if !isThere { refuseNull(event, field, of: addition.model) }
    }
  }

  private func needsValue(_ field: Field, of model: Model) -> Bool {
    field.isRequired && field.defaultValue == nil && field.name != model.createdAt
      && field.name != model.updatedAt
  }

  private mutating func refuseNull(_ event: Event, _ field: Field, of model: Model) {
    refuse(
      model, field,
      "the field is required, but the log has the record \(KeyWords.text(event.key, of: model)) without it",
      "make it optional, or give it a `@default`")
  }

  private mutating func refuse(_ model: Model, _ field: Field?, _ message: String, _ advice: String) {
    guard reported.insert(Subject(model: model.storedName, field: field?.storedName)).inserted else { return }
    refusals.append(
      SchemaRefusal(type: model.name, field: field?.name, message: message, advice: advice))
  }
}
