import StemmaEvents
import StemmaTables

/// Queued elements of one observer of rows, in commit order.
final class PendingRows<Output: Sendable>: Sendable {
  private typealias Element = Result<[Output], any Error>

  private let observation: RowObservation<Output>
  private let state: Mutex<State>

  private struct State {
    /// The digest of the rows that were read last; nil: the next rows count as different.
    var read: Int?
    /// The digest of the last durable rows.
    var given: Int?
    /// Elements of commits that are not durable yet.
    var held: [Element] = []
    var elements: ArraySlice<Element> = []
    var rowCount = 0
  }

  /// Reads the current rows, and from then on the rows after each commit.
  static func begin(_ observation: RowObservation<Output>) async throws -> (PendingRows, first: [Output]) {
    let text = observation.text
    let (tables, first) = try await observation.store.read { (connection: ReadConnection) in
      let tables = try connection.modelTables(readBy: text.sql)
      return (tables, try connection.snapshot { try observation.rows { try connection.statement($0) } })
    }
    let rows = try first.rows.get()
    let pending = PendingRows(observation, first.digest)
    let observer = RowFeed.Observer(
      tables: tables, read: { [weak pending] in pending?.read($0) },
      settle: { [weak pending] in pending?.settle($0) })
    observation.store.rows.add(observer, for: ObjectIdentifier(pending))
    return (pending, rows)
  }

  private init(_ observation: RowObservation<Output>, _ digest: Int) {
    self.observation = observation
    state = Mutex(State(read: digest, given: digest))
  }

  deinit { observation.store.rows.remove(ObjectIdentifier(self)) }

  /// Removes and returns the oldest element.
  func takeFirst() throws -> [Output]? {
    let element = state.withLock { state -> Element? in
      guard let element = state.elements.popFirst() else { return nil }
      state.rowCount -= Self.count(element)
      return element
    }
    return try element?.get()
  }

  private func read(_ prepare: RowFeed.Prepare) {
    let element: Element
    var digest: Int?
    do {
      let last = state.withLock { $0.read }
      guard let found = try observation.rows(since: last, prepare) else { return }
      (digest, element) = (found.digest, found.rows.mapError { observation.store.translated($0) })
    } catch { element = .failure(observation.store.translated(error)) }
    state.withLock { state in
      state.read = digest
      state.held.append(element)
    }
  }

  private func settle(_ isDurable: Bool) {
    let limits = observation.limits
    state.withLock { state in
      defer { state.held = [] }
      guard isDurable else { return state.read = state.given }
      state.given = state.read
      for element in state.held {
        state.elements.append(element)
        state.rowCount += Self.count(element)
      }
      // Each element has all rows, so the oldest ones can be dropped.
      while state.elements.count > limits.elements || state.rowCount > limits.rows, state.elements.count > 1 {
        state.rowCount -= state.elements.popFirst().map(Self.count) ?? 0
      }
    }
  }

  private static func count(_ element: Element) -> Int {
    if case .success(let rows) = element { rows.count } else { 0 }
  }

  /// Traps if what is kept contradicts itself. For tests, on any thread.
  func checkInvariants() {
    state.withLock { state in
      precondition(state.rowCount == state.elements.map(Self.count).reduce(0, +), "each row is counted once")
      let limits = observation.limits
      precondition(state.elements.count <= limits.elements, "memory is bounded")
      precondition(state.rowCount <= limits.rows || state.elements.count == 1, "memory is bounded")
    }
  }
}
