import Foundation
import StemmaEvents
import StemmaNode
import StemmaReplication
import StemmaSchema

/// The partitions that a store holds or exchanges: one of a model, or all that a pattern matches.
///
/// A string literal is a pattern, such as `"tenant=a*"`. An interpolated string is not, because
/// values need their canonical form and escapes: `partition(_:_:)` writes both.
public struct PartitionPattern: Sendable, ExpressibleByStringLiteral {
  private enum Content: Sendable {
    case pattern(String)
    case parts(any Table.Type, [Datum])
  }
  private let content: Content

  /// A pattern as `stemma` prints it, from a setting or another program.
  ///
  /// A pattern that can match no partition of the models throws at its use.
  public init(pattern: String) { content = .pattern(pattern) }

  /// A pattern that is a literal of the source.
  public init(stringLiteral pattern: String) { self.init(pattern: pattern) }

  private init(_ content: Content) { self.content = content }

  /// The partition of a model whose name has these values of the leading key parts, in their order:
  /// `.partition(Task.self, workspace.id)`. A model with a single partition takes no parts.
  ///
  /// A wrong number of parts or a wrong type throws at its use.
  public static func partition<Row: Table, each Part: KeyValue>(
    _ type: Row.Type, _ parts: repeat each Part
  ) -> PartitionPattern {
    var data: [Datum] = []
    for part in repeat each parts { data.append(part.keyDatum) }
    return PartitionPattern(.parts(type, data))
  }

  /// The pattern as text. Only parts of a key are checked.
  func text(in schema: Schema) throws(StoreError) -> String {
    switch content {
    case .pattern(let text): text
    case .parts(let type, let data): try Self.name(type.modelName, data, schema).description
    }
  }

  /// As `text`; throws if the pattern can match no partition of the models.
  func checkedText(in schema: Schema) throws(StoreError) -> String {
    let text = try text(in: schema)
    if case .pattern = content { try Self.check(text, schema) }
    return text
  }

  private static func name(
    _ name: String, _ data: [Datum], _ schema: Schema
  ) throws(StoreError) -> Partition {
    guard let model = schema.model(named: name) else {
      throw .models("\(name) was not among the models that the store was opened with")
    }
    let fields = model.keyFields.prefix(model.partitionDepth).map { model.fields[$0] }
    guard data.count == fields.count else {
      throw .failed(
        .invalidValue,
        "partition of \(name): expected \(fields.count) parts (\(fields.map(\.name).joined(separator: ", "))), "
          + "found \(data.count). Give a value for each part.")
    }
    var parts: [KeyPart] = []
    for (field, datum) in zip(fields, data) {
      do throws(ValueError) {
        if let part = KeyPart(try schema.value(datum.value.json, for: field, of: name)) { parts.append(part) }
      } catch { throw StoreError(.mutation(.value(error))) }
    }
    return Partition(model: model, key: Key(parts))
  }

  // MARK: Patterns

  private static func check(_ text: String, _ schema: Schema) throws(StoreError) {
    let pattern: ScopePattern
    do throws(ReplicationError) { pattern = try ScopePattern(text) } catch {
      throw StoreError(.replication(error))
    }
    var advice = "Use `.partition(_:_:)`, which writes names of partitions."
    for model in schema.models {
      guard let partition = pattern.partition else {
        if canMatch(pattern, model) { return }
        continue
      }
      guard let canonical = canonical(partition.description, model, schema) else { continue }
      if canonical == partition { return }
      advice = "Write \(canonical), or use `.partition(_:_:)`."
    }
    throw .failed(.invalidValue, "\(text): no partition of these models can have this name. \(advice)")
  }

  /// Whether the text before the first wildcard can begin a partition name of the model.
  private static func canMatch(_ pattern: ScopePattern, _ model: Model) -> Bool {
    let head = pattern.bytes.prefix {
      ![UInt8(ascii: "*"), UInt8(ascii: "?"), UInt8(ascii: "[")].contains($0)
    }
    if let only = Partition(of: model) { return only.bytes.starts(with: head) }
    let field = Array("\(model.fields[model.keyFields[0]].storedName)=".utf8)
    return field.starts(with: head) || head.starts(with: field)
  }

  /// The model's partition with this name in any spelling; nil if it is of another model.
  private static func canonical(_ name: String, _ model: Model, _ schema: Schema) -> Partition? {
    if let only = Partition(of: model) { return only.description == name ? only : nil }
    let words = name.split(separator: ",", omittingEmptySubsequences: false)
    guard words.count == model.partitionDepth else { return nil }
    var parts: [KeyPart] = []
    for (word, position) in zip(words, model.keyFields) {
      let field = model.fields[position]
      let prefix = "\(field.storedName)="
      guard word.hasPrefix(prefix), let text = word.dropFirst(prefix.count).removingPercentEncoding else {
        return nil
      }
      do throws(ValueError) {
        guard let part = KeyPart(try schema.value(text: text, for: field, of: model.name)) else { return nil }
        parts.append(part)
      } catch { return nil }
    }
    return Partition(model: model, key: Key(parts))
  }
}
