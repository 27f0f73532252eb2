import StemmaEvents
import StemmaMerge

/// What a value that was read from a record has seen of it.
package struct RecordView: Equatable, Sendable {
  /// The record's context when the value was read. It moves on with what is recorded from the value, as long as nobody
  /// else changes the record.
  package var read: Context
  /// What was recorded from the value after somebody else had changed the record, as far as it is not superseded.
  package var own: [Dot] = []
  /// The record's context behind the last of these; nil if there are none.
  package var after: Context?

  package init(read: Context) { self.read = read }

  /// After `events` were recorded from the value.
  ///
  /// - Parameters:
  ///   - before: the record's context in front of them.
  ///   - state: the record behind them.
  func moved(by events: ArraySlice<Event>, from before: Context, to state: RecordState) -> RecordView {
    if read == before { return RecordView(read: state.context) }
    var moved = self
    moved.own = (own + events.map(\.dot)).filter(state.hasSibling)
    moved.after = state.context
    return moved
  }
}

/// A record as a value has seen it: as it was read, with what was recorded from the value since.
struct SeenRecord {
  private let view: RecordView
  private let read: RecordState
  /// The record behind the last change that was recorded from the value, with what others had written by then.
  private let after: RecordState?
  private let rules: MergeRules

  init(view: RecordView, read: RecordState, after: RecordState?, _ rules: MergeRules) {
    self.view = view
    self.read = read
    // An event of a commit that shares the sync of this one is not in the log yet.
    self.after = after?.context == view.after ? after : nil
    self.rules = rules
  }

  func value(of field: String) -> Value {
    guard let after else { return read.value(of: field, rules) }
    if isSeen(field, in: after) { return after.value(of: field, rules) }
    let own = after.valuesBySibling(of: field, rules).last { view.own.contains($0.dot) }
    return own?.value ?? read.value(of: field, rules)
  }

  /// The state that an event has to follow which writes these fields: the one of which nobody else's write is buried.
  func base(of changes: [Assignment]) -> RecordState {
    guard let after, changes.allSatisfy({ isSeen($0.field, in: after) }) else { return read }
    return after
  }

  private func isSeen(_ field: String, in state: RecordState) -> Bool {
    state.valuesBySibling(of: field, rules).allSatisfy {
      view.read.covers($0.dot) || view.own.contains($0.dot)
    }
  }
}
