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
  /// - Throws: `failed` if it is decided already, or the decision does not fit its kind.
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
  public func resolveConflicts<Row: Table>(
    of type: Row.Type, with resolver: @escaping @Sendable (Conflict) -> Resolution?
  ) async throws {
    resolvers.set(resolver, for: Row.modelName)
    try await resolveConflicts()
  }

  /// - Throws: `unresolved`; what was written before stays.
  func resolveConflicts() async throws {
    let known = resolvers.all
    guard !known.isEmpty else { return }
    do {
      let isChanged = try await writer.access { node in
        var decisions: [(Conflict, Resolution)] = []
        for (name, resolver) in known {
          guard let model = node.schema.model(named: name) else { continue }
          try node.conflicts(ConflictFilter(model: model)) { description in
            let conflict = Conflict(description)
            guard conflict.kind == .value || conflict.kind == .delete,
              !conflict.candidates.allSatisfy(\.isResolution), let decision = resolver(conflict)
            else { return }
            decisions.append((conflict, decision))
          }
        }
        guard !decisions.isEmpty else { return false }
        try node.write(CommitNote(note: "decided by the program's resolver")) { write throws(NodeError) in
          for (conflict, decision) in decisions { try write.resolve(conflict, decision) }
        }
        return true
      }
      if isChanged { noteCommit() }
    } catch { throw StoreError.unresolved("\(StoreError.translated(error))") }
  }
}

extension Store.Transaction {
  /// Decides a conflict as a part of this commit.
  public func resolve(_ conflict: Conflict, _ resolution: Resolution) throws {
    try writing { try $0.resolve(conflict, resolution) }
  }
}

extension WriteTransaction {
  fileprivate func resolve(_ conflict: Conflict, _ resolution: Resolution) throws(NodeError) {
    try resolve(
      conflict.model, conflict.keyJSON, field: conflict.field, kind: .init(rawValue: conflict.kind.rawValue),
      resolution.decision)
  }
}

/// Those who decide conflicts, by model.
final class Resolvers: Sendable {
  private let resolvers = Mutex<[String: @Sendable (Conflict) -> Resolution?]>([:])

  var all: [(model: String, resolver: @Sendable (Conflict) -> Resolution?)] {
    resolvers.withLock { $0.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
  }

  func set(_ resolver: @escaping @Sendable (Conflict) -> Resolution?, for model: String) {
    resolvers.withLock { $0[model] = resolver }
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
        do { conflicts = try await store.conflicts() } catch StoreError.closed { return nil }
        let names = conflicts.map { [$0.model, $0.key, $0.field ?? ""] + $0.candidates.map(\.event) }
        if names == last { continue }
        last = names
        return conflicts
      }
      return nil
    }
  }
}
