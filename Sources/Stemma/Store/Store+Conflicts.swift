import StemmaEvents
import StemmaHistory
import StemmaNode

extension Store {
  /// The open conflicts of all models.
  public func conflicts() async throws -> [Conflict] { try await conflicts(ofModel: nil) }

  /// The open conflicts of one model.
  public func conflicts<Row: Table>(of type: Row.Type) async throws -> [Conflict] {
    try await conflicts(ofModel: Row.modelName)
  }

  func conflicts(ofModel name: String?) async throws -> [Conflict] {
    try await inspect { node in
      var found: [Conflict] = []
      let filter = ConflictFilter(model: name.flatMap { node.schema.model(named: $0) })
      try node.conflicts(filter) { found.append(Conflict($0)) }
      return found
    }
  }

  /// The open conflicts now, and again after each commit that changes the list.
  public func observeConflicts() -> ConflictObservation { ConflictObservation(store: self) }

  /// Decides a conflict, in its own commit. Peers adopt it; equal decisions of two nodes are one.
  ///
  /// - Throws: `restricted` if a delete rule forbids it, `invalid` for a value that the field does
  ///   not allow, `requiredReference` if a reference would lead nowhere. Throws `failed` if the
  ///   conflict is decided already, or the decision does not fit its kind. It then stays as it is.
  public func resolve(
    _ conflict: Conflict, _ resolution: Resolution, author: String? = nil, message: String? = nil
  ) async throws {
    try await write(author: author, message: message) { transaction in
      try transaction.resolve(conflict, resolution)
    }
  }

  /// Asks `resolver` about each open conflict of values and deletions of a model, at once and after
  /// each commit or sync of this store that leaves one. Nil leaves the conflict open.
  ///
  /// Conflicts between decisions alone are excluded: nodes that decide differently would never
  /// finish. The resolver runs on the writer's thread, inside the call that made the conflict, and
  /// must be fast.
  ///
  /// A decision that fails, such as a deletion that a delete rule forbids, leaves only its conflict
  /// open. The first call that meets it reports it once. Each later commit asks the resolver again.
  ///
  /// - Throws: `unresolved` if decisions fail; the resolver is in place, and all others are made.
  public func resolveConflicts<Row: Table>(
    of type: Row.Type, with resolver: @escaping @Sendable (Conflict) -> Resolution?
  ) async throws {
    if writer.isClosed { throw StoreError.closed }
    resolvers.set(resolver, for: Row.modelName)
    try await resolveConflicts()
  }

  /// - Throws: `unresolved` for decisions that fail, once for each. Earlier writes and the other
  ///   decisions stay.
  func resolveConflicts() async throws {
    let known = resolvers.all
    guard !known.isEmpty else { return }
    do {
      let failures = try await writer.access { [self] node in
        let (isChanged, failures) = try decide(known, node)
        if isChanged {
          noteCommit()
          // Here, before the next write.
          rows.noteOthers()
          rows.lookIfDue()
        }
        return failures
      }
      let untold = resolvers.untold(failures)
      guard untold.isEmpty else { throw StoreError.unresolved(untold.map(\.reason).joined(separator: "; ")) }
    } catch StoreError.unresolved(let what) {
      throw StoreError.unresolved(what)
    } catch { throw StoreError.unresolved("\(StoreError.translated(error))") }
  }

  /// Asks the resolvers, and makes all of their decisions that are possible, in one commit.
  private func decide(
    _ resolvers: [Resolvers.Entry], _ node: Node
  ) throws -> (isChanged: Bool, failures: [UndecidedConflict]) {
    let models = resolvers.compactMap { node.schema.model(named: $0.model) }
    guard try models.contains(where: { try node.openConflicts($0) > 0 }) else { return (false, []) }
    // Reads the events that syncs and other processes have written.
    try node.adoptOthers()
    var decisions: [(Conflict, Resolution)] = []
    for (name, resolver) in resolvers {
      try Self.forEachUndecided(name, node) { conflict in
        if let decision = resolver(conflict) { decisions.append((conflict, decision)) }
      }
    }
    guard !decisions.isEmpty else { return (false, []) }
    var failures: [UndecidedConflict] = []
    var isChanged = false
    try node.write(CommitMessage(author: options.author, text: "decided by the program's resolver")) {
      write throws(NodeError) in
      // A retry starts over.
      var (tried, waiting) = (decisions, decisions)
      isChanged = false
      // One decision can remove the obstacle of another.
      repeat {
        tried = waiting
        (waiting, failures) = ([], [])
        for (conflict, decision) in tried {
          do throws(NodeError) {
            try write.separately { write throws(NodeError) in try write.resolve(conflict, decision) }
            isChanged = true
          } catch {
            switch error {
            case .mutation, .corruptPartition: break
            // Every other decision would meet this error, too.
            default: throw error
            }
            waiting.append((conflict, decision))
            failures.append(UndecidedConflict(conflict, error))
          }
        }
      } while !waiting.isEmpty && waiting.count < tried.count
    }
    // A decision that deletes a record ends the record's conflicts of values.
    var open: Set<[String]> = []
    for (name, _) in resolvers where !failures.isEmpty {
      try Self.forEachUndecided(name, node) { open.insert($0.identity) }
    }
    return (isChanged, failures.filter { open.contains($0.conflict) })
  }

  /// Passes the open conflicts of values and deletions, except those between decisions alone.
  private static func forEachUndecided(
    _ name: String, _ node: Node, _ body: (Conflict) throws -> Void
  ) throws {
    guard let model = node.schema.model(named: name) else { return }
    try node.conflicts(ConflictFilter(model: model)) { description in
      let conflict = Conflict(description)
      guard conflict.kind == .value || conflict.kind == .delete,
        !conflict.candidates.allSatisfy(\.isResolution)
      else { return }
      try body(conflict)
    }
  }
}

extension Store.Transaction {
  /// Decides a conflict as a part of this commit.
  ///
  /// - Throws: as `Store.resolve`; a failed decision leaves no trace.
  public func resolve(_ conflict: Conflict, _ resolution: Resolution) throws {
    try writing { try $0.resolve(conflict, resolution) }
  }
}

extension WriteTransaction {
  fileprivate func resolve(_ conflict: Conflict, _ resolution: Resolution) throws(NodeError) {
    if let reason = conflict.refusal(of: resolution) { throw .mutation(.wrongShape(reason)) }
    try resolve(
      conflict.model, conflict.keyJSON, field: conflict.field, kind: .init(rawValue: conflict.kind.rawValue),
      resolution.decision)
  }
}

extension Conflict {
  /// Why a decision does not fit this conflict; nil if it fits.
  fileprivate func refusal(of resolution: Resolution) -> String? {
    let place = "\(field.map { "`\($0)` of " } ?? "")\(model) \(key)"
    switch (kind, resolution.decision) {
    case (.cardinality, _):
      return "\(place) is that of several records, and takes no decision: link or delete all of them but one"
    case (.dangling, _):
      return "\(place) leads to a record that is not here, and takes no decision: create that, link another "
        + "one, or delete this one"
    case (.value, .keep), (.value, .delete):
      return "\(place) is a conflict of values, decided by `.take`, `.set`, `.shown` or `.newest`"
    case (.delete, .set):
      return "whether \(place) exists is decided by `.keep`, `.delete`, `.take`, `.shown` or `.newest`"
    default: return nil
    }
  }
}

/// A conflict whose decision by a resolver failed.
struct UndecidedConflict: Sendable {
  /// The conflict's `identity`.
  let conflict: [String]
  let reason: String

  init(_ conflict: Conflict, _ error: NodeError) {
    self.conflict = conflict.identity
    reason = "\(conflict.model) \(conflict.key): \(StoreError(error))"
  }
}

/// The resolvers, by model.
final class Resolvers: Sendable {
  typealias Entry = (model: String, resolver: @Sendable (Conflict) -> Resolution?)

  private struct State {
    var resolvers: [String: @Sendable (Conflict) -> Resolution?] = [:]
    /// The conflicts whose failed decisions were reported.
    var told: Set<[String]> = []
  }

  private let state = Mutex(State())

  var all: [Entry] {
    state.withLock { state in state.resolvers.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
  }

  /// Traps if decisions were reported without a resolver. For tests, on any thread.
  func checkInvariants() {
    state.withLock {
      precondition($0.told.isEmpty || !$0.resolvers.isEmpty, "only resolvers decide what cannot be")
    }
  }

  /// A new resolver makes new decisions, whose failures are reported again.
  func set(_ resolver: @escaping @Sendable (Conflict) -> Resolution?, for model: String) {
    state.withLock {
      $0.resolvers[model] = resolver
      $0.told.removeAll()
    }
  }

  /// The failures that were not reported yet. `failures` has all current ones.
  func untold(_ failures: [UndecidedConflict]) -> [UndecidedConflict] {
    state.withLock { state in
      let untold = failures.filter { !state.told.contains($0.conflict) }
      state.told = Set(failures.map(\.conflict))
      return untold
    }
  }
}

/// The open conflicts, repeatedly.
public struct ConflictObservation: AsyncSequence, Sendable {
  /// All open conflicts, not only new ones.
  public typealias Element = [Conflict]

  let store: Store

  /// Begins a separate observation: its first element has the conflicts at the time of `next`.
  public func makeAsyncIterator() -> Iterator {
    Iterator(store: store, changes: store.changes.stream().makeAsyncIterator())
  }

  /// One observation of the conflicts, which keeps the store alive.
  public struct Iterator: AsyncIteratorProtocol {
    let store: Store
    var changes: AsyncStream<Void>.Iterator
    private var last: [[String]]?

    init(store: Store, changes: AsyncStream<Void>.Iterator) {
      self.store = store
      self.changes = changes
    }

    /// The open conflicts: at once the first time, even if there are none; then after each change.
    /// Nil when the store is closed or the task cancelled.
    ///
    /// - Throws: `failed` if they cannot be read.
    public mutating func next() async throws -> [Conflict]? {
      while await changes.next() != nil {
        let conflicts: [Conflict]
        do { conflicts = try await store.conflicts() } catch StoreError.closed {
          return nil
        } catch is CancellationError {
          return nil
        }
        let names = conflicts.map(\.identity)
        if names == last { continue }
        last = names
        return conflicts
      }
      return nil
    }
  }
}
