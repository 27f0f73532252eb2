import StemmaEvents
import StemmaNode
import Synchronization

/// That a property of a value was set, and whether that was recorded.
///
/// Copies share the marks of what was set before they were made. So a value knows what was recorded from another copy of
/// itself as far as it holds the same settings, and nothing of what was set in the other one alone.
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

  /// What a value that has this setting has seen of its record since; nil if another mark says it.
  var view: RecordView? { state.withLock { $0.view } }

  /// Traps if it contradicts itself. For tests, on any thread.
  func checkInvariants() {
    state.withLock { precondition($0.isRecorded || !$0.isDurable, "what is durable is not taken back") }
  }

  func record() { state.withLock { $0.isRecorded = true } }

  /// Gives the view that it had before.
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
  /// The oldest first, never none: as far back as to what was recorded last.
  private var steps: [Step]

  private struct Step {
    var mark: SettingMark
    /// What the column held before; nil if that is not known any more.
    var before: Value?
  }

  /// How many settings are remembered that were not recorded. A copy that was made between any two of them can still record
  /// each; of those that are forgotten, that is not noticed here.
  private static let limit = 4096

  init(column: Int, _ old: Value) {
    self.column = column
    steps = [Step(mark: SettingMark(), before: old)]
  }

  var last: SettingMark { steps[steps.count - 1].mark }
  var marks: [SettingMark] { steps.map(\.mark) }

  mutating func note(_ old: Value) {
    // One that no copy has can be recorded from this value only, and then as it is now.
    if isKnownUniquelyReferenced(&steps[steps.count - 1].mark), !last.isRecorded { return }
    steps.append(Step(mark: SettingMark(), before: old))
    forget()
  }

  /// Leaves out what is older than what was recorded last, but for the mark that says what the value has seen.
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

  /// That a column differs from what it was.
  struct Difference {
    var column: Int
    /// From what was recorded from the value since it was read, which may have been what it is now.
    var isFromRecorded: Bool
  }
}

/// Settings that a commit has recorded, to be taken back if it is not made.
///
/// Values that were read in the commit behind its first event know it: what they show may be what was never written.
final class RecordedSettings: Sendable {
  private struct Change {
    var recorded: [SettingMark]
    var newest: SettingMark
    /// What `newest` said before.
    var view: RecordView?
  }

  private let changes = Mutex<[Change]>([])
  private let hasFailed = Atomic<Bool>(false)

  /// Whether the commit is not made.
  var isTakenBack: Bool { hasFailed.load(ordering: .acquiring) }

  /// `newest`: of all settings of the value, as whoever has that one has all of them. It tells what the value has seen.
  func note(_ recorded: [SettingMark], newest: SettingMark, _ view: RecordView) {
    for mark in recorded { mark.record() }
    let change = Change(recorded: recorded, newest: newest, view: newest.see(view))
    changes.withLock { $0.append(change) }
  }

  /// Traps if something is still to be taken back of a commit that was. For tests, on any thread.
  func checkInvariants() {
    changes.withLock { precondition(!isTakenBack || $0.isEmpty, "what is taken back is so as a whole") }
  }

  /// The commit is durable.
  func confirm() {
    for change in take() { change.recorded.forEach { $0.confirm() } }
  }

  /// The commit is not made. On the thread that writes, before anybody else writes there.
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
