import StemmaEvents
import StemmaHistory
import StemmaNode

/// Writes a sequence of events in one of the forms of `log`.
final class EventWriter {
  enum Form {
    case full(patch: Bool)
    case oneline
    case graph(EventBranches, EventFormat?)
    case template(EventFormat)
    case mutations
    case json(patch: Bool)
    case ndjson(patch: Bool)
  }

  private let form: Form
  private let text: EventText
  private let node: Node
  /// Events whose changes are not computed yet. Large batches cost less per event, but the first
  /// events should appear early, so batches grow. A slow stream of events waits no longer than one
  /// computation takes.
  private var waiting: [LoggedEvent] = []
  private var waitingSince = ContinuousClock.now
  /// The duration of the last computation.
  private var cost = Duration.zero
  /// The maximum batch size. It doubles up to `mostPatience`.
  private var patience = 32
  private static let mostPatience = 1 << 14
  private var isFirst = true

  init(_ node: Node, _ form: Form) {
    self.form = form
    text = EventText(node)
    self.node = node
  }

  private var description: EventDescription { text.description }

  /// Whether the form needs more than the event itself.
  private var needsAccounts: Bool {
    switch form {
    case .full(let patch), .json(let patch), .ndjson(let patch): patch
    case .graph: true
    case .oneline, .template, .mutations: false
    }
  }

  func write(_ stored: StoredEvent, _ message: CommitMessage) throws {
    guard needsAccounts else { return try write(stored, message, nil) }
    if waiting.isEmpty { waitingSince = .now }
    waiting.append(LoggedEvent(stored: stored, message: message))
    if waiting.count >= patience || .now - waitingSince >= cost { try writeWaiting() }
  }

  /// Writes the waiting events.
  func writeWaiting() throws {
    if waiting.isEmpty { return }
    let began = ContinuousClock.now
    var events = waiting.map(\.event)
    if case .graph(let branches, _) = form { events.removeAll { !branches.needsAccount(of: $0) } }
    let accounts = try EventAccounts(of: events, in: node)
    cost = .now - began
    if waiting.count >= patience { patience = min(2 * patience, Self.mostPatience) }
    for noted in waiting { try write(noted.stored, noted.message, accounts) }
    waiting.removeAll(keepingCapacity: true)
  }

  private func write(_ stored: StoredEvent, _ message: CommitMessage, _ accounts: EventAccounts?) throws {
    switch form {
    case .mutations: Output.line(description.mutation(stored.event))
    case .json:
      // Streams one array; no more than a line is in memory.
      Output.bytes([isFirst ? UInt8(ascii: "[") : UInt8(ascii: ",")])
      var element: [UInt8] = []
      json(stored, message, accounts).append(to: &element)
      Output.bytes(element)
    case .ndjson: Output.line(json(stored, message, accounts))
    case .template(let template): Output.line(template.line(stored, message, description))
    case .oneline: Output.line(text.summary(stored))
    case .graph(let branches, let template):
      let line = template?.line(stored, message, description) ?? text.summary(stored)
      branches.lines(of: stored, line, accounts).forEach { Output.line($0) }
    case .full:
      if !isFirst { Output.line() }
      let changes = accounts?.changes(of: stored.event)
      for line in text.lines(stored, message, changes: changes) { Output.line(line) }
    }
    isFirst = false
  }

  private func json(_ stored: StoredEvent, _ message: CommitMessage, _ accounts: EventAccounts?) -> JSON {
    let json = description.json(stored, message)
    guard let accounts, case .object(let members) = json else { return json }
    let changes = accounts.changes(of: stored.event)
    return .object(members + [("changes", changes.map { .array($0.map(\.json)) } ?? .null)])
  }

  func finish() throws {
    try writeWaiting()
    if case .json = form { Output.line(isFirst ? "[]" : "]") }
  }
}
