import Foundation
import StemmaEvents
import StemmaNode

/// Keeps a node in agreement with peers until it is stopped: exchanges events when either side has
/// new ones, and at an interval in any case.
///
/// Each peer has a thread of its own, so a slow or unreachable one delays no other.
package final class Follower: Sendable {
  /// The result of one exchange.
  package enum Outcome: Sendable {
    case exchanged(pulled: TransferReport?, pushed: TransferReport?, notices: [Notice])
    /// The next attempt follows after this many seconds.
    case failed(NodeError, retryAfter: Double)
  }

  package struct Options: Sendable {
    /// The time between two exchanges without hints, in seconds.
    package var interval = 30.0
    /// The first and the longest time after a failure, in seconds. Each is jittered by half.
    package var firstRetry = 0.5
    package var longestRetry = 60.0
    package var partitions: [String] = []
    package var pulls = true
    package var pushes = true

    package init() {}
  }

  /// Watches a peer, and wakes the follower at each sign of new events. It ends when the follower
  /// stops. A peer without one is asked at the interval.
  package typealias Watch = @Sendable (RemotePeer, Wake) -> Void

  private let open: @Sendable () throws(NodeError) -> Node
  private let connect: @Sendable (Node.OpeningOptions) -> Connector
  private let watch: Watch
  private let options: Options
  private let deliver: @Sendable (RemotePeer, Outcome) -> Void
  private let wakes = Mutex<[Wake]>([])
  private let isStopped = Mutex(false)

  /// - Parameters:
  ///   - open: opens the node for writing; called for each peer.
  ///   - connect: connects to peers.
  ///   - watch: watches peers on other machines.
  ///   - deliver: receives each result, on the thread of its peer.
  package init(
    _ options: Options, open: @escaping @Sendable () throws(NodeError) -> Node,
    connect: @escaping @Sendable (Node.OpeningOptions) -> Connector, watch: @escaping Watch,
    deliver: @escaping @Sendable (RemotePeer, Outcome) -> Void
  ) {
    self.options = options
    self.open = open
    self.connect = connect
    self.watch = watch
    self.deliver = deliver
  }

  /// Follows these peers; returns after `stop`, when all exchanges have ended.
  package func run(_ remotes: [RemotePeer]) throws(NodeError) {
    // A node that cannot be opened now is an error, not something to wait for.
    let directory = try open().directory
    let group = DispatchGroup()
    for remote in remotes {
      let wake = Wake()
      wakes.withLock { $0.append(wake) }
      start(in: group) { [self] in follow(remote, wake) }
      switch PeerAddress(remote.address) {
      case .directory(let path): start(in: group) { [self] in watchLog(path) { wake.signal() } }
      case .shell, .http: watch(remote, wake)
      }
    }
    start(in: group) { [self] in
      watchLog(directory) { [self] in for wake in wakes.withLock({ $0 }) { wake.signal() } }
    }
    group.wait()
  }

  /// Ends after the exchanges in progress. May be called on any thread, and more than once.
  package func stop() {
    isStopped.withLock { $0 = true }
    for wake in wakes.withLock({ $0 }) { wake.stop() }
  }

  private var isDone: Bool { isStopped.withLock { $0 } }

  private func start(in group: DispatchGroup, _ body: @escaping @Sendable () -> Void) {
    group.enter()
    let thread = Thread {
      body()
      group.leave()
    }
    thread.stackSize = 8 << 20
    thread.start()
  }

  private func follow(_ remote: RemotePeer, _ wake: Wake) {
    var failures = 0
    var node: Node?
    while !isDone {
      wake.clear()
      do throws(NodeError) {
        let opened = if let node { node } else { try open() }
        node = opened
        let report = try opened.exchange(
          with: remote, pulls: options.pulls, pushes: options.pushes, partitions: options.partitions,
          connect: connect(opened.options), recordsEach: false, progress: { _, _ in })
        failures = 0
        deliver(
          remote, .exchanged(pulled: report.pulled, pushed: report.pushed, notices: report.notices))
        wake.wait(options.interval)
      } catch {
        // Its state is unknown after a failure.
        node = nil
        let longest = min(options.longestRetry, options.firstRetry * pow(2, Double(min(failures, 10))))
        failures += 1
        let pause = longest * Double.random(in: 0.5...1)
        deliver(remote, .failed(error, retryAfter: pause))
        wake.pause(pause)
      }
    }
  }

  /// How often a log is looked at, in seconds.
  private static let look = 0.05

  private func watchLog(_ directory: String, _ changed: () -> Void) {
    let wake = Wake()
    wakes.withLock { $0.append(wake) }
    var node: Node?
    while !isDone {
      do throws(NodeError) {
        if let node {
          if try node.refreshLog() { changed() }
        } else {
          node = try Node.open(at: directory, Node.OpeningOptions(mode: .read))
          changed()
        }
      } catch {
        // The exchanges report why it cannot be read.
        node = nil
      }
      wake.pause(node == nil ? 1 : Self.look)
    }
  }
}

/// Wakes a thread that waits.
///
/// Sendable unchecked: the state is used under the lock of the condition.
package final class Wake: @unchecked Sendable {
  private let condition = NSCondition()
  private var isSignaled = false
  private var isStopped = false

  package init() {}

  private func change(_ body: () -> Void) {
    condition.lock()
    body()
    condition.broadcast()
    condition.unlock()
  }

  package func signal() { change { isSignaled = true } }
  package func stop() { change { isStopped = true } }
  package func clear() { change { isSignaled = false } }

  package var isDone: Bool {
    condition.lock()
    defer { condition.unlock() }
    return isStopped
  }

  /// Waits for a signal, or the time in seconds.
  package func wait(_ seconds: Double) { wait(seconds) { isSignaled || isStopped } }

  /// Waits the time in seconds; signals do not shorten it.
  package func pause(_ seconds: Double) { wait(seconds) { isStopped } }

  private func wait(_ seconds: Double, until isDue: () -> Bool) {
    let end = Date().addingTimeInterval(seconds)
    condition.lock()
    while !isDue(), condition.wait(until: end) {}
    condition.unlock()
  }
}
