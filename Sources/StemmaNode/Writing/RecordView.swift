import StemmaEvents
import StemmaMerge

/// The part of a record's history that a value read from it has seen.
package struct RecordView: Equatable, Sendable {
  /// The record's context when the value was read. It includes later changes from the value, as
  /// long as no other writer changes the record.
  package var read: Context
  /// Changes from the value after another writer's change, unless they are superseded.
  package var own: [EventID] = []
  /// The record's context after the last of these; nil if there are none.
  package var after: Context?

  package init(read: Context) { self.read = read }

  /// The view after `events` were recorded from the value.
  ///
  /// - Parameters:
  ///   - before: the record's context before them.
  ///   - state: the record after them.
  func moved(by events: ArraySlice<Event>, from before: Context, to state: RecordState) -> RecordView {
    if read == before { return RecordView(read: state.context) }
    var moved = self
    moved.own = (own + events.map(\.id)).filter(state.hasSibling)
    moved.after = state.context
    return moved
  }
}

/// A record as a value has seen it: the state that was read, and the changes made from the value.
struct SeenRecord {
  private let view: RecordView
  private let read: RecordState
  /// The record after the last change from the value, including concurrent writes of others.
  private let after: RecordState?
  private let rules: MergeRules

  init(view: RecordView, read: RecordState, after: RecordState?, _ rules: MergeRules) {
    self.view = view
    self.read = read
    // An event of a commit in the same group is not in the log yet.
    self.after = after?.context == view.after ? after : nil
    self.rules = rules
  }

  func value(of field: String) -> Value {
    guard let after else { return read.value(of: field, rules) }
    if isSeen(field, in: after) { return after.value(of: field, rules) }
    let own = after.valuesBySibling(of: field, rules).last { view.own.contains($0.id) }
    return own?.value ?? read.value(of: field, rules)
  }

  /// The state on which a write of these fields is based, so that it supersedes no unseen write.
  func base(of changes: [Assignment]) -> RecordState {
    guard let after, changes.allSatisfy({ isSeen($0.field, in: after) }) else { return read }
    return after
  }

  private func isSeen(_ field: String, in state: RecordState) -> Bool {
    state.valuesBySibling(of: field, rules).allSatisfy {
      view.read.covers($0.id) || view.own.contains($0.id)
    }
  }
}
