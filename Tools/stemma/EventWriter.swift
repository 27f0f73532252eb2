import StemmaEvents
import StemmaNode

/// Writes events one after the other, in one of the forms that `log` has.
final class EventWriter {
  enum Form {
    case full(patch: Bool)
    case oneline
    /// Branches of nodes, or of the one record that is shown.
    case graph(ofRecord: Bool, EventFormat?)
    case template(EventFormat)
    case mutations
    case json(patch: Bool)
    case ndjson(patch: Bool)
  }

  /// What a lane of the drawing leads to.
  private enum Branch: Hashable {
    case origin(Origin)
    case event(Dot)
  }

  private let form: Form
  private let text: EventText
  private let accounts: EventAccounts
  private var drawing = BranchDrawing<Branch>()
  private var array: [JSON] = []
  private var isFirst = true

  init(_ node: Node, _ form: Form) {
    self.form = form
    text = EventText(node)
    accounts = EventAccounts(node)
  }

  private var description: EventDescription { text.description }

  func write(_ stored: StoredEvent, _ note: CommitNote) throws {
    switch form {
    case .mutations: Output.line(description.mutation(stored.event))
    case .json(let patch): array.append(try json(stored, note, patch))
    case .ndjson(let patch): Output.line(try json(stored, note, patch))
    case .template(let template): Output.line(template.line(stored, note, description))
    case .oneline: Output.line(text.summary(stored))
    case .graph(let ofRecord, let template):
      let drawn = try draw(stored.event, ofRecord: ofRecord)
      if let before = drawn.before { Output.line(before) }
      let line = template?.line(stored, note, description) ?? text.summary(stored)
      Output.line(drawn.line + line)
      if let after = drawn.after { Output.line(after) }
    case .full(let patch):
      if !isFirst { Output.line() }
      let changes = patch ? try accounts.changes(of: stored.event) : nil
      for line in text.lines(stored, note, changes: changes) { Output.line(line) }
    }
    isFirst = false
  }

  private func draw(
    _ event: Event, ofRecord: Bool
  ) throws -> (before: String?, line: String, after: String?) {
    let parents = try accounts.parents(of: event)
    if ofRecord { return drawing.draw(.event(event.dot), parents: parents.map { .event($0) }) }
    let own = event.dot.origin
    let others = Set(parents.map(\.origin)).subtracting([own]).sorted()
    return drawing.draw(.origin(own), parents: ([own] + others).map { .origin($0) })
  }

  private func json(_ stored: StoredEvent, _ note: CommitNote, _ patch: Bool) throws -> JSON {
    let json = description.json(stored, note)
    guard patch, case .object(let members) = json else { return json }
    return .object(members + [("changes", .array(try accounts.changes(of: stored.event).map(\.json)))])
  }

  func finish() {
    if case .json = form { Output.line(.array(array)) }
  }
}
