import Foundation
import ServiceLifecycle
import StemmaEvents
import StemmaNode
import StemmaSync

/// Keeps a store in sync with peers while `run()` runs. `Store.keepInSync(with:partitions:)` makes
/// one.
///
/// It is a `Service` of swift-service-lifecycle, and needs no `ServiceGroup`: a task that calls
/// `run()` is enough. Each peer has threads of its own, so a slow one delays no other.
public final class ContinuousSync: Service {
  /// The distance of the store from a peer.
  public enum State: Sendable, Equatable {
    /// An exchange ended at this time. Both sides then held the same events of the shared
    /// partitions, except for partitions that the notices name.
    case synced(at: Date)
    /// An exchange is in progress, and the store lacks so many events of the peer.
    case behind(events: UInt64)
    /// The exchanges have failed since then; the error is that of the last one. The next attempt
    /// follows within a minute.
    case offline(since: Date, error: StoreError)
  }

  /// The state of one peer.
  public struct Status: Sendable, Equatable {
    /// The name of the peer.
    public let peer: String
    /// The state of the peer.
    public let state: State
    /// Notices of the exchange for a person, of one sentence each. An error of a conflict resolver
    /// is one of them.
    public let notices: [String]
  }

  private struct Course {
    var isRunning = false
    /// The last status of each peer.
    var last: [String: Status] = [:]
    var streams: [UUID: AsyncStream<Status>.Continuation] = [:]
  }

  private let store: Store
  private let peers: [SyncPeer]
  private let partitions: [PartitionPattern]
  private let course = Mutex(Course())
  /// Values that a stream keeps for a slow reader.
  private static let buffer = 100

  init(_ store: Store, _ peers: [SyncPeer], _ partitions: [PartitionPattern]) {
    self.store = store
    self.peers = peers
    self.partitions = partitions
  }

  // MARK: Status

  /// The last status of each peer at once, and then each new one, until `run()` ends.
  ///
  /// Each call makes a separate stream, also before `run()` begins. A reader that is more than 100
  /// values behind loses the oldest ones.
  public var statuses: AsyncStream<Status> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Status.self, bufferingPolicy: .bufferingNewest(Self.buffer))
    let id = UUID()
    continuation.onTermination = { [weak self] _ in
      self?.course.withLock { course in _ = course.streams.removeValue(forKey: id) }
    }
    course.withLock { course in
      course.streams[id] = continuation
      for peer in peers { if let status = course.last[peer.name] { continuation.yield(status) } }
    }
    return stream
  }

  private func publish(_ peer: SyncPeer, _ notices: [String] = [], _ state: (State?) -> State) {
    course.withLock { course in
      let last = course.last[peer.name]
      let status = Status(peer: peer.name, state: state(last?.state), notices: notices)
      guard status != last else { return }
      course.last[peer.name] = status
      for stream in course.streams.values { stream.yield(status) }
    }
  }

  /// Called on the thread of the peer.
  private func receive(_ peer: SyncPeer, _ outcome: Follower.Outcome) {
    switch outcome {
    case .behind(let events): publish(peer) { _ in .behind(events: events) }
    case .failed(let error, _):
      publish(peer) { last in
        if case .offline(let since, _)? = last { return .offline(since: since, error: StoreError(error)) }
        return .offline(since: Date(), error: StoreError(error))
      }
    case .exchanged(let pulled, _, let notices):
      var texts = notices.map(\.description)
      do {
        try Interruption().wait { [store] in
          if let pulled, pulled.events > 0 { await store.noteOthers() }
          // A peer may have pushed events, too.
          try await store.resolveConflicts()
        }
      } catch { texts.append("\(StoreError.translated(error))") }
      publish(peer, texts) { _ in .synced(at: Date()) }
    }
  }

  // MARK: Service

  /// Exchanges events with the peers until a graceful shutdown, or until the task is cancelled.
  ///
  /// It begins with an exchange. Commits of this store, also of other processes, reach a peer
  /// within about 200 milliseconds. Those of a peer in a directory or behind HTTP arrive as fast.
  /// Every 30 seconds it asks each peer in any case. After a failure it retries at growing
  /// intervals, up to a minute. Received events are durable before a status reports them.
  /// Observations then show them, and the resolvers have seen their conflicts.
  ///
  /// A graceful shutdown finishes the exchanges in progress. A cancellation ends them at once,
  /// except those with directories. Complete batches stay, and the next exchange transfers the
  /// rest.
  ///
  /// A second call during a run is a programmer error.
  /// - Throws: `closed` when the store is closed; `readOnly`; `failed` if the store cannot be
  ///   opened, or a pattern can match no partition. An error of a peer does not end it: it is a
  ///   status.
  public func run() async throws {
    begin()
    defer { end() }
    if store.options.isReadOnly { throw StoreError.readOnly }
    var options = Follower.Options()
    do {
      options.partitions = try await store.inspect { [partitions] node in
        try partitions.map { try $0.checkedText(in: node.schema) }
      }
    } catch is CancellationError { return }
    let (directory, wait, ports) = (store.directory.path, store.options.wait, store.options.ports)
    let follower = Follower(
      options,
      open: { () throws(NodeError) in
        var opening = Node.OpeningOptions(mode: .write)
        opening.wait = wait
        opening.ports = ports
        return try Node.open(at: directory, opening)
      }, deliver: { [self] peer, outcome in receive(peer, outcome) })
    let changes = store.changes.stream()
    // The stream ends when the store is closed.
    let closing = Task {
      for await _ in changes {}
      follower.stop()
    }
    defer { closing.cancel() }
    do {
      try await withTaskCancellationHandler {
        try await withGracefulShutdownHandler {
          try await follower.runOnThread(peers)
        } onGracefulShutdown: {
          follower.stop()
        }
      } onCancel: {
        follower.interrupt()
      }
    } catch { throw StoreError.translated(error) }
    if store.writer.isClosed { throw StoreError.closed }
  }

  private func begin() {
    course.withLock { course in
      precondition(!course.isRunning, "run() is in progress; make another value with keepInSync(with:)")
      course.isRunning = true
    }
  }

  private func end() {
    let streams = course.withLock { course in
      course.isRunning = false
      return Array(course.streams.values)
    }
    // Each removes itself, with the lock.
    for stream in streams { stream.finish() }
  }
}
