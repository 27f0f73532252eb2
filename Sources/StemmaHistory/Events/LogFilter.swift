import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSchema

/// Selects events of a log. All conditions must hold.
package struct LogFilter: Sendable {
  /// The models whose partitions are read; empty: all.
  package var models: [Model] = []
  /// With one of `models`: reads only the blocks that may contain that record.
  package var key: Key?
  /// Stored names of models, including those outside of the schema; empty: all.
  package var modelNames: Set<String> = []
  package var scope = NarrowedScope(.everything)
  package var origins: Set<Origin>?
  package var operations: Set<EventOperation>?
  package var commits: Set<CommitID>?
  /// Stored field names, at least one of which the event writes; empty: any event.
  package var fields: Set<String> = []
  /// Texts, one of which occurs in the message, author or source of the commit, in the key or in a
  /// value. Empty: any event.
  package var texts: [String] = []
  /// Authors, one of whom made the commit. Empty: any author.
  package var authors: Set<String> = []
  /// The first and the last point in time, both included.
  package var since: PointInTime?
  package var until: PointInTime?

  package init() {}

  /// The only element of `models`; nil if there are none or several.
  package var model: Model? {
    get { models.count == 1 ? models[0] : nil }
    set { models = newValue.map { [$0] } ?? [] }
  }

  package func contains(_ stored: StoredEvent, _ message: @autoclosure () -> CommitMessage) -> Bool {
    let event = stored.event
    if !modelNames.isEmpty, !modelNames.contains(event.model) { return false }
    if let key, event.key != key { return false }
    if let origins, !origins.contains(event.id.origin) { return false }
    if let operations, !operations.contains(event.operation) { return false }
    if let commits, !commits.contains(event.commit) { return false }
    if !fields.isEmpty, !event.assignments.contains(where: { fields.contains($0.field) }) { return false }
    if let since, !isSince(since, event.timestamp, stored.position) { return false }
    if let until, !until.includes(stored) { return false }
    if !scope.isEverything, !scope.contains(event.partition) { return false }
    if readsNoMessages { return true }
    let message = message()
    if !authors.isEmpty, !(message.author.map(authors.contains) ?? false) { return false }
    return texts.isEmpty || texts.contains { contains(event, message, $0) }
  }

  private var readsNoMessages: Bool { texts.isEmpty && authors.isEmpty }

  private func isSince(_ pointInTime: PointInTime, _ timestamp: Timestamp, _ position: Position) -> Bool {
    switch pointInTime {
    case .now: false
    case .time(let first): timestamp.milliseconds >= first.milliseconds
    case .position(let first): position >= first
    }
  }

  /// Whether the filter may select only some events of a record.
  package var dividesRecords: Bool {
    origins != nil || operations != nil || commits != nil || !fields.isEmpty || !readsNoMessages
      || since != nil
      || until != nil
  }

  /// Whether the filter can decide without decoding events: it tests no key, field or commit note.
  package var needsNoEvents: Bool { key == nil && fields.isEmpty && readsNoMessages }

  /// As `contains`, for a filter that `needsNoEvents`. The reader applies the scope.
  func contains(_ event: ScannedEvent) -> Bool {
    let (block, index) = (event.block, event.index)
    if !modelNames.isEmpty, !modelNames.contains(block.reader.model(ofKey: block.key(index))) { return false }
    if let origins, !origins.contains(block.id(index).origin) { return false }
    if let operations, !operations.contains(block.operation(index)) { return false }
    if let commits, !commits.contains(block.commit(index)) { return false }
    if let since, !isSince(since, block.timestamp(index), event.position) { return false }
    if let until { return until.includes(block.timestamp(index), event.position) }
    return true
  }

  private func contains(_ event: Event, _ message: CommitMessage, _ text: String) -> Bool {
    for part in [message.text, message.author, message.source] {
      if part?.mentions(text) ?? false { return true }
    }
    if event.key.parts.contains(where: { $0.text.mentions(text) }) { return true }
    return event.assignments.contains { assignment in
      if assignment.field == Event.existenceField, ExistenceName.usual.mentions(text) { return true }
      return switch assignment.value {
      case .string(let value), .json(let value): value.mentions(text)
      case .null: false
      default: assignment.value.json.text.mentions(text)
      }
    }
  }

  /// The partitions with events that may pass; nil: all.
  var partitions: PartitionFilter? {
    let scope = scope
    let ofModels = models.map(PartitionFilter.init(of:))
    if ofModels.isEmpty, scope.isEverything { return nil }
    if scope.isEverything, ofModels.count == 1 { return ofModels[0] }
    if let named = scope.named, ofModels.isEmpty { return PartitionFilter(named: named) }
    return PartitionFilter { partition in
      (ofModels.isEmpty || ofModels.contains { $0(partition) }) && scope.contains(partition)
    }
  }

  /// The range of positions whose events may pass.
  var positions: Range<Position> {
    var range = Position.first..<Position.end
    if case .position(let first) = since { range = first..<range.upperBound }
    if let end = until?.end { range = range.lowerBound..<max(range.lowerBound, end) }
    return range
  }
}

extension String {
  /// Whether another text occurs in this one. Equal texts may differ in bytes: an é is one code
  /// point, or two. Comparing characters is slow, so ASCII is searched as bytes.
  fileprivate func mentions(_ other: String) -> Bool {
    guard other.utf8.allSatisfy(UTF8.isASCII) else {
      return !utf8.allSatisfy(UTF8.isASCII) && contains(other)
    }
    var (text, wanted) = (self, other)
    return text.withUTF8 { text in
      wanted.withUTF8 { wanted in
        guard let first = wanted.first else { return true }
        guard text.count >= wanted.count else { return false }
        return (0...text.count - wanted.count).contains { start in
          text[start] == first && text[start..<start + wanted.count].elementsEqual(wanted)
        }
      }
    }
  }
}
