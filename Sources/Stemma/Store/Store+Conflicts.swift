import StemmaEvents
import StemmaNode
import Synchronization

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

  /// The open conflicts now, and again after each commit that changes which there are.
  public func observeConflicts() -> ConflictObservation { ConflictObservation(store: self) }

  /// Decides a conflict, in a commit of its own. Peers take the decision over; the same decision on two nodes is one.
  ///
  /// - Throws: `restricted` if the record is to go and the delete rule of a relationship forbids it; `invalid` if the field
  ///   takes no such value, `requiredReference` if it is a reference that has to lead somewhere; `failed` if the conflict is
  ///   decided already, or the decision does not fit its kind. It is open then as before.
  public func resolve(
    _ conflict: Conflict, _ resolution: Resolution, by: String? = nil, note: String? = nil
  ) async throws {
    try await write(by: by, note: note) { transaction in
      try transaction.resolve(conflict, resolution)
    }
  }

  /// Asks `resolver` about each open conflict of values and deletions of a model, now and whenever a commit or a sync of
  /// this store leaves one. Nil leaves the conflict open.
  ///
  /// It is not asked about conflicts between decisions alone: two nodes that decide differently would otherwise never end.
  /// It runs on the thread that writes, inside of the call that has made the conflict, and has to be quick.
  ///
  /// A decision that cannot be, as of a deletion that a delete rule forbids, leaves its conflict open, and no other. It is told
  /// once, by the call that first meets it; the resolver is asked again at each later commit, as what forbids it may be gone.
  ///
  /// - Throws: `unresolved` if some of the decisions cannot be; the resolver is in place, and all others are made.
  public func resolveConflicts<Row: Table>(
    of type: Row.Type, with resolver: @escaping @Sendable (Conflict) -> Resolution?
  ) async throws {
    if writer.isClosed { throw StoreError.closed }
    resolvers.set(resolver, for: Row.modelName)
    try await resolveConflicts()
  }

  /// - Throws: `unresolved` for decisions that cannot be made, once for each. Earlier writes stay, and so do the other
  ///   decisions.
  func resolveConflicts() async throws {
    let known = resolvers.all
    guard !known.isEmpty else { return }
    do {
      let failures = try await writer.access { [self] node in
        let (isChanged, failures) = try decide(known, node)
        if isChanged {
          noteCommit()
          // Here, before anybody else writes.
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

  /// Asks the resolvers, and makes those of their decisions that can be, in one commit.
  private func decide(
    _ resolvers: [Resolvers.Entry], _ node: Node
  ) throws -> (isChanged: Bool, failures: [UndecidedConflict]) {
    let models = resolvers.compactMap { node.schema.model(named: $0.model) }
    guard try models.contains(where: { try node.openConflicts($0) > 0 }) else { return (false, []) }
    // A sync has a node of its own, and other processes have, too.
    try node.takeInOthers()
    var decisions: [(Conflict, Resolution)] = []
    for (name, resolver) in resolvers {
      try Self.forEachUndecided(name, node) { conflict in
        if let decision = resolver(conflict) { decisions.append((conflict, decision)) }
      }
    }
    guard !decisions.isEmpty else { return (false, []) }
    var failures: [UndecidedConflict] = []
    var isChanged = false
    try node.write(CommitNote(by: options.author, note: "decided by the program's resolver")) {
      write throws(NodeError) in
      // Not what an attempt before this one has left.
      var (tried, waiting) = (decisions, decisions)
      isChanged = false
      // What forbids a decision may be what another one takes away.
      repeat {
        tried = waiting
        (waiting, failures) = ([], [])
        for (conflict, decision) in tried {
          do throws(NodeError) {
            try write.separately { write throws(NodeError) in try write.resolve(conflict, decision) }
            isChanged = true
          } catch {
            switch error {
            case .mutation, .damagedPartition: break
            // Nothing else would fare better.
            default: throw error
            }
            waiting.append((conflict, decision))
            failures.append(UndecidedConflict(conflict, error))
          }
        }
      } while !waiting.isEmpty && waiting.count < tried.count
    }
    // A conflict of values is none any more where another decision has deleted the record.
    var open: Set<[String]> = []
    for (name, _) in resolvers where !failures.isEmpty {
      try Self.forEachUndecided(name, node) { open.insert($0.identity) }
    }
    return (isChanged, failures.filter { open.contains($0.conflict) })
  }

  /// Gives the conflicts of values and deletions of a model that are not between decisions alone.
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
  /// - Throws: As `Store.resolve`; nothing of the decision is left.
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
  /// Why a decision cannot be one about this conflict; nil if it can.
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

/// A conflict that a resolver's decision did not end.
struct UndecidedConflict: Sendable {
  /// Its identity.
  let conflict: [String]
  let reason: String

  init(_ conflict: Conflict, _ error: NodeError) {
    self.conflict = conflict.identity
    reason = "\(conflict.model) \(conflict.key): \(StoreError(error))"
  }
}

/// Those who decide conflicts, by model.
final class Resolvers: Sendable {
  typealias Entry = (model: String, resolver: @Sendable (Conflict) -> Resolution?)

  private struct State {
    var resolvers: [String: @Sendable (Conflict) -> Resolution?] = [:]
    /// The conflicts of which it was said that a decision cannot be.
    var told: Set<[String]> = []
  }

  private let state = Mutex(State())

  var all: [Entry] {
    state.withLock { state in state.resolvers.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
  }

  /// Traps if something was said of the decisions of nobody. For tests, on any thread.
  func checkInvariants() {
    state.withLock {
      precondition($0.told.isEmpty || !$0.resolvers.isEmpty, "only resolvers decide what cannot be")
    }
  }

  /// The new one's decisions are others: what cannot be of them is told anew.
  func set(_ resolver: @escaping @Sendable (Conflict) -> Resolution?, for model: String) {
    state.withLock {
      $0.resolvers[model] = resolver
      $0.told.removeAll()
    }
  }

  /// Those of which nothing was said yet. `failures`: all that there are.
  func untold(_ failures: [UndecidedConflict]) -> [UndecidedConflict] {
    state.withLock { state in
      let untold = failures.filter { !state.told.contains($0.conflict) }
      state.told = Set(failures.map(\.conflict))
      return untold
    }
  }
}

/// The open conflicts, again and again.
public struct ConflictObservation: AsyncSequence, Sendable {
  /// All open conflicts, not only new ones.
  public typealias Element = [Conflict]

  let store: Store

  /// Begins an observation of its own: its first element is what is open when `next` is called.
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

    /// The open conflicts: at once the first time, even if there are none; then once others are open. Nil
    /// when the store is closed or the task cancelled.
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
