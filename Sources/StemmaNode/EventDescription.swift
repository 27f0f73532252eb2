import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema

/// Converts events to their display forms: node names for origins, declared for stored names.
package struct EventDescription: Sendable {
  package let schema: Schema
  package let metadata: NodeMetadata
  private let modelsByStoredName: [String: Model]

  init(schema: Schema, metadata: NodeMetadata) {
    self.schema = schema
    self.metadata = metadata
    modelsByStoredName = Dictionary(
      schema.models.map { ($0.storedName, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Describes events without a schema and without a node.
  package static let nameless = EventDescription(
    schema: Schema(),
    metadata: NodeMetadata(
      logID: LogID(0), name: "", origins: [],
      watermark: FileIdentity(inode: 0, birthSeconds: 0, birthNanoseconds: 0), scope: .everything))

  package func model(of event: Event) -> Model? { modelsByStoredName[event.model] }
  package func model(storedName name: String) -> Model? { modelsByStoredName[name] }

  package func name(of origin: Origin) -> String { metadata.displayName(of: origin) }

  /// `name:sequence`, which together with the partition is unique everywhere.
  package func name(_ id: EventID) -> String { "\(metadata.displayName(of: id.origin)):\(id.sequence)" }

  package func originName(_ origin: Origin) -> String { metadata.displayName(of: origin) }

  /// Reads `name:sequence` back. Empty if no origin has that name.
  package func ids(named text: String) -> [EventID] {
    guard let colon = text.lastIndex(of: ":"), let number = UInt64(text[text.index(after: colon)...])
    else { return [] }
    return metadata.origins(named: String(text[..<colon])).map { EventID($0, SequenceNumber(number)) }
  }

  /// `name.number`, the name of a commit.
  package func name(_ commit: CommitID) -> String {
    "\(metadata.displayName(of: commit.origin)).\(commit.number)"
  }

  /// Reads `name.number` back. Empty if no origin has that name.
  package func commits(named text: String) -> Set<CommitID> {
    guard let point = text.lastIndex(of: "."), let number = UInt64(text[text.index(after: point)...])
    else { return [] }
    return Set(metadata.origins(named: String(text[..<point])).map { CommitID($0, number) })
  }

  package func modelName(_ event: Event) -> String { model(of: event)?.name ?? event.model }

  /// The key as an object by part name; an array for a model outside of the schema.
  package func key(_ event: Event) -> JSON {
    if let model = model(of: event) { return schema.json(of: event.key, model: model) }
    return .array(event.key.parts.map(\.value.json))
  }

  /// The key in the form that people write.
  package func keyText(_ event: Event) -> String { keyText(event.key, model(of: event)) }

  package func keyText(_ key: Key, _ model: Model?) -> String {
    model.map { KeyWords.text(key, of: $0) } ?? KeyWords.text(key)
  }

  package func fieldName(_ stored: String, _ model: Model?) -> String {
    model?.fields.first { $0.storedName == stored }?.name ?? stored
  }

  /// The name of a stored field for people, with the usual name for existence.
  package func word(forField stored: String, _ model: Model?) -> String {
    stored == Event.existenceField ? ExistenceName.name(in: model) : fieldName(stored, model)
  }

  package func fields(_ event: Event) -> JSON {
    let model = model(of: event)
    return .object(event.assignments.map { (fieldName($0.field, model), $0.value.json) })
  }

  package func context(_ context: Context) -> JSON {
    .object(context.entries.map { (metadata.displayName(of: $0.origin), .int(Int64($0.sequence.rawValue))) })
  }

  package func time(_ timestamp: Timestamp) -> String { timestamp.utcText }

  /// The complete event in the form of `log --json`.
  package func json(_ stored: StoredEvent, _ message: CommitMessage) -> JSON {
    let event = stored.event
    var members: [(name: String, value: JSON)] = [
      ("event", .string(name(event.id))),
      ("partition", .string(event.partition.description)),
      ("position", .string(stored.position.description)),
      ("digest", .string(event.digest.description)),
      ("time", .string(time(event.timestamp))),
      ("timestamp", Value.int(Int64(bitPattern: event.timestamp.rawValue)).json),
      ("op", .string(event.operation.name)),
      ("model", .string(modelName(event))),
      ("key", key(event)),
    ]
    if let relationship = event.relationship { members.append(("relationship", .string(relationship))) }
    members.append(("fields", fields(event)))
    members += [
      ("version", .int(Int64(event.version.rawValue))),
      ("context", context(event.context)),
      ("origin", .string(event.id.origin.description)),
      ("sequence", .int(Int64(event.id.sequence.rawValue))),
      ("commit", .string(name(event.commit))),
    ]
    if let cause = event.cause {
      members.append(
        (
          "cause",
          .object([("event", .string(name(cause.id))), ("partition", .string(cause.partition.description))])
        ))
    }
    if let by = message.author { members.append(("author", .string(by))) }
    if let text = message.text { members.append(("message", .string(text))) }
    if let source = message.source { members.append(("source", .string(source))) }
    return .object(members)
  }

  /// The event as a mutation for import into another node, without its place in history.
  package func mutation(_ event: Event) -> JSON {
    let model = model(of: event)
    var operation = event.operation.name
    var fields: [(name: String, value: JSON)] = []
    switch event.operation {
    case .delete: break
    case .create: fields = event.assignments.map { (fieldName($0.field, model), $0.value.json) }
    case .update, .link, .unlink, .resolve:
      operation = "update"
      fields = event.assignments.filter { $0.field != Event.existenceField }
        .map { (fieldName($0.field, model), $0.value.json) }
    }
    var members: [(name: String, value: JSON)] = [
      ("op", .string(operation)), ("model", .string(modelName(event))), ("key", key(event)),
    ]
    if event.operation != .delete { members.append(("fields", .object(fields))) }
    let milliseconds = event.timestamp.milliseconds
    members.append(
      (
        "ts",
        milliseconds % 1000 == 0
          ? .int(Int64(milliseconds / 1000))
          : .number("\(milliseconds / 1000).\(String(milliseconds % 1000 + 1000).dropFirst())")
      ))
    return .object(members)
  }
}

extension Timestamp {
  /// RFC 3339 in UTC, with milliseconds unless they are zero, so that columns have one of two
  /// widths. `-` after the year 9999.
  package var utcText: String {
    let rest = milliseconds % 1000
    let second = DateText(millisecondsSince1970: Int64(clamping: milliseconds - rest)).utcText
    guard let second else { return "-" }
    return rest == 0 ? second : "\(second.dropLast()).\(String(rest + 1000).dropFirst())Z"
  }
}
