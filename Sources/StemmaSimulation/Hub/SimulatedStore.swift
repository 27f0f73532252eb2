import StemmaEvents
import StemmaReplication

/// A store in memory with the faults of real ones: answers that are lost after success, requests
/// that arrive late or twice, refusals at random, and lists that lag behind.
///
/// A key that was written can be read at once. `heal` ends all faults.
package final class SimulatedStore: ObjectStore {
  /// Chances in percent.
  package struct Faults: Sendable {
    /// A write happens, and its answer is lost.
    package var lostAnswer = 0
    /// A request is lost before it arrives.
    package var lostRequest = 0
    /// A write arrives after later calls, and its sender learns nothing.
    package var lateWrite = 0
    /// A write arrives again after later calls.
    package var repeatedWrite = 0
    /// The store answers 409 or 503 and does nothing.
    package var busy = 0
    /// A list omits what has changed in the last calls.
    package var lateList = 0

    package init() {}
  }

  private struct Content {
    var bytes: [UInt8]
    var version: UInt64
    /// When the key was first written, and what a late list shows of it.
    var created: UInt64
    var olderVersion: UInt64
    var changed: UInt64
  }

  private struct Write {
    var key: String
    var bytes: [UInt8]
    var ifAbsent: Bool
    var due: UInt64
  }

  private struct State {
    var objects: [String: Content] = [:]
    var late: [Write] = []
    var random: SplitMix64
    var faults: Faults
    /// Counts calls.
    var clock: UInt64 = 0
    var versions: UInt64 = 0
    /// Calls that have failed without a success in between.
    var failures = 0
    /// Keys that are absent for a time.
    var hidden: Set<String> = []
  }

  /// How many calls in a row fail at most: fewer than a caller attempts.
  private static let failuresInARow = HubLimits.attempts - 2
  /// The longest delay of a write, and the longest lag of a list, in calls.
  private static let delay = 40

  private let state: Mutex<State>
  /// Runs before each call: another node may act in between.
  private let between = Mutex<(@Sendable () -> Void)?>(nil)

  package init(seed: UInt64, _ faults: Faults) {
    state = Mutex(State(random: SplitMix64(seed: seed), faults: faults))
  }

  package var name: String { "simulated store" }

  package func actBetweenCalls(_ body: (@Sendable () -> Void)?) { between.withLock { $0 = body } }

  /// All objects, without faults.
  package var objects: [String: [UInt8]] { state.withLock { $0.objects.mapValues(\.bytes) } }

  /// Delivers late writes, and has no faults from now on.
  package func heal() {
    state.withLock { state in
      state.faults = Faults()
      for write in state.late { Self.write(write, &state) }
      state.late = []
      state.hidden = []
    }
  }

  /// Makes an object absent until `heal`.
  package func hide(_ key: String) { state.withLock { _ = $0.hidden.insert(key) } }
  package var isHiding: Bool { state.withLock { !$0.hidden.isEmpty } }

  private func call<Result>(_ body: (inout State) throws(ObjectError) -> Result) throws(ObjectError) -> Result
  {
    if let between = between.withLock({ $0 }) { between() }
    return try state.withLock { (state) throws(ObjectError) in
      state.clock += 1
      let due = state.late.filter { $0.due <= state.clock }
      state.late.removeAll { $0.due <= state.clock }
      for write in due { Self.write(write, &state) }
      if state.failures >= Self.failuresInARow {
        let faults = state.faults
        state.faults = Faults()
        defer { state.faults = faults }
        let result = try body(&state)
        state.failures = 0
        return result
      }
      do throws(ObjectError) {
        let result = try body(&state)
        state.failures = 0
        return result
      } catch {
        state.failures += 1
        throw error
      }
    }
  }

  @discardableResult
  private static func write(_ write: Write, _ state: inout State) -> Bool {
    let old = state.objects[write.key]
    if write.ifAbsent, old != nil { return false }
    state.versions += 1
    state.objects[write.key] = Content(
      bytes: write.bytes, version: state.versions, created: old?.created ?? state.clock,
      olderVersion: old?.version ?? 0, changed: state.clock)
    return true
  }

  private static func fail(_ state: inout State) throws(ObjectError) {
    if state.random.chance(state.faults.lostRequest) { throw .unknown("timeout") }
    if state.random.chance(state.faults.busy) { throw .unknown(state.random.chance(50) ? "409" : "503") }
  }

  package func get(_ key: String, _ range: Range<UInt64>?) throws(ObjectError) -> [UInt8]? {
    try call { (state) throws(ObjectError) in
      try Self.fail(&state)
      guard !state.hidden.contains(key), let bytes = state.objects[key]?.bytes else { return nil }
      guard let range else { return bytes }
      let end = min(Int(clamping: range.upperBound), bytes.count)
      return Array(bytes[min(Int(clamping: range.lowerBound), end)..<end])
    }
  }

  package func put(_ key: String, _ bytes: [UInt8], ifAbsent: Bool) throws(ObjectError) -> Bool {
    try call { (state) throws(ObjectError) in
      try Self.fail(&state)
      var write = Write(key: key, bytes: bytes, ifAbsent: ifAbsent, due: 0)
      if state.random.chance(state.faults.lateWrite) {
        write.due = state.clock + UInt64(1 + state.random.below(Self.delay))
        state.late.append(write)
        throw .unknown("timeout, and it arrives later")
      }
      let isWritten = Self.write(write, &state)
      if state.random.chance(state.faults.repeatedWrite) {
        write.due = state.clock + UInt64(1 + state.random.below(Self.delay))
        state.late.append(write)
      }
      if state.random.chance(state.faults.lostAnswer) { throw .unknown("the answer is lost") }
      return isWritten
    }
  }

  package func list(_ prefix: String, after last: String?) throws(ObjectError) -> ObjectPage {
    try call { (state) throws(ObjectError) in
      try Self.fail(&state)
      let lag = state.random.chance(state.faults.lateList) ? UInt64(state.random.below(Self.delay)) : 0
      let horizon = state.clock > lag ? state.clock - lag : 0
      var entries: [ObjectPage.Entry] = []
      for (key, content) in state.objects
      where key.hasPrefix(prefix) && key > last ?? "" && content.created <= horizon {
        let version = content.changed <= horizon ? content.version : content.olderVersion
        entries.append(.init(key: key, tag: "\(version)"))
      }
      entries.sort { $0.key < $1.key }
      // Pages are short, so that there are several.
      return ObjectPage(entries: Array(entries.prefix(3)), isLast: entries.count <= 3)
    }
  }

  package func delete(_ key: String) throws(ObjectError) {
    try call { (state) throws(ObjectError) in
      try Self.fail(&state)
      state.objects[key] = nil
    }
  }
}
