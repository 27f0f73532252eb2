import StemmaEvents
import StemmaNode
import struct Synchronization.Atomic

/// A setting of a property, and whether a commit has recorded it.
///
/// A copy shares the marks of all earlier settings with its original. A commit of one therefore
/// counts for both, as far as they share settings.
final class SettingMark: Sendable {
  private struct State {
    /// In a commit that is being made, or in one that is durable.
    var isRecorded = false
    var isDurable = false
    var view: RecordView?
  }

  /// Higher than those of all settings that were made before in this process.
  let number: UInt64
  private let state = Mutex(State())

  private static let lastNumber = Atomic<UInt64>(0)

  init() { number = Self.lastNumber.add(1, ordering: .relaxed).newValue }

  var isRecorded: Bool { state.withLock { $0.isRecorded } }
  var isDurable: Bool { state.withLock { $0.isDurable } }

  /// The state of the record that a value with this setting has seen; nil: another mark has it.
  var view: RecordView? { state.withLock { $0.view } }

  /// Traps if it contradicts itself. For tests, on any thread.
  func checkInvariants() {
    state.withLock { precondition($0.isRecorded || !$0.isDurable, "what is durable is not taken back") }
  }

  func record() { state.withLock { $0.isRecorded = true } }

  /// Returns the previous view.
  func see(_ view: RecordView?) -> RecordView? {
    state.withLock { state in
      defer { state.view = view }
      return state.view
    }
  }

  func takeBack() { state.withLock { $0.isRecorded = false } }

  func confirm() { state.withLock { $0.isDurable = true } }
}

/// A column that was set in a copy of a value.
struct Setting: Sendable {
  /// Counted without the key.
  let column: Int
  /// The oldest first, never empty. They reach back to the last durable setting.
  private var steps: [Step]

  private struct Step {
    var mark: SettingMark
    /// The column's previous value; nil if it was forgotten.
    var before: Value?
  }

  /// The limit of remembered settings that are not recorded. Another copy can record a forgotten
  /// one too, but this copy does not notice that.
  private static let limit = 4096

  init(column: Int, _ old: Value) {
    self.column = column
    steps = [Step(mark: SettingMark(), before: old)]
  }

  var last: SettingMark { steps[steps.count - 1].mark }
  var marks: [SettingMark] { steps.map(\.mark) }

  mutating func note(_ old: Value) {
    // No other copy has this setting, so only this value can record it, with its current content.
    if isKnownUniquelyReferenced(&steps[steps.count - 1].mark), !last.isRecorded { return }
    steps.append(Step(mark: SettingMark(), before: old))
    forget()
  }

  /// Drops settings older than the last durable one, except the newest of them that has a view.
  private mutating func forget() {
    var first = steps.lastIndex { $0.mark.isDurable } ?? 0
    if steps.count - first > Self.limit {
      first = steps.count - Self.limit / 2
      steps[first].before = nil
    }
    let seen = steps[..<first].lastIndex { $0.mark.view != nil }.map { [steps[$0]] } ?? []
    steps = seen + steps[first...]
  }

  /// Traps if it contradicts itself. For tests.
  func checkInvariants() {
    for (a, b) in zip(steps, steps.dropFirst()) {
      precondition(a.mark.number < b.mark.number, "the oldest first")
    }
    precondition(!steps.isEmpty && steps.count <= Self.limit + 1, "as many are remembered as need be")
    precondition(steps.dropFirst(2).allSatisfy { $0.before != nil }, "only what is forgotten is not known")
    for step in steps { step.mark.checkInvariants() }
  }

  /// How a value differs from what was read, or recorded last; nil if it does not.
  func difference(of value: Value) -> Difference? {
    let recorded = steps.lastIndex { $0.mark.isRecorded }
    let first = recorded.map { $0 + 1 } ?? 0
    guard first < steps.count, steps[first].before != value else { return nil }
    return Difference(column: column, isFromRecorded: recorded != nil || steps[first].before == nil)
  }

  /// A column that differs from its earlier value.
  struct Difference {
    var column: Int
    /// Whether the earlier value is one recorded since the read, or unknown.
    var isFromRecorded: Bool
  }
}

/// Settings that a commit has recorded, to be reverted if it fails.
///
/// A value read after the commit's first event refers to them: it may show uncommitted data.
final class RecordedSettings: Sendable {
  private struct Change {
    var recorded: [SettingMark]
    var newest: SettingMark
    /// The previous view of `newest`.
    var view: RecordView?
  }

  private let changes = Mutex<[Change]>([])
  private let hasFailed = Atomic<Bool>(false)

  /// Whether the commit failed.
  var isTakenBack: Bool { hasFailed.load(ordering: .acquiring) }

  /// `newest`: the latest setting of the value; its holder has all settings. It carries the view.
  func note(_ recorded: [SettingMark], newest: SettingMark, _ view: RecordView) {
    for mark in recorded { mark.record() }
    let change = Change(recorded: recorded, newest: newest, view: newest.see(view))
    changes.withLock { $0.append(change) }
  }

  /// Traps if a failed commit has anything left to revert. For tests, on any thread.
  func checkInvariants() {
    changes.withLock { precondition(!isTakenBack || $0.isEmpty, "what is taken back is so as a whole") }
  }

  /// The commit is durable.
  func confirm() {
    for change in take() { change.recorded.forEach { $0.confirm() } }
  }

  /// The commit failed. Called on the writer's thread, before the next write there.
  func takeBack() {
    hasFailed.store(true, ordering: .releasing)
    for change in take().reversed() {
      change.recorded.forEach { $0.takeBack() }
      _ = change.newest.see(change.view)
    }
  }

  private func take() -> [Change] {
    changes.withLock { changes in
      defer { changes = [] }
      return changes
    }
  }
}
