import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication

/// Keeps a node in agreement with peers until it is stopped: exchanges events when either side has
/// new ones, and at an interval in any case.
///
/// Each peer has a thread of its own, so a slow or unreachable one delays no other.
package final class Follower: Sendable {
  /// The course of an exchange.
  package enum Outcome: Sendable {
    /// The node receives events. So many are missing.
    case behind(events: UInt64)
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

    package init() {}
  }

  private let open: @Sendable () throws(NodeError) -> Node
  private let options: Options
  private let deliver: @Sendable (SyncPeer, Outcome) -> Void
  private let wakes = Mutex<[Wake]>([])
  private let isStopped = Mutex(false)
  private let interruption = Interruption()

  /// - Parameters:
  ///   - open: opens the node for writing; called for each peer.
  ///   - deliver: receives each outcome, on the thread of its peer, which may wait.
  package init(
    _ options: Options, open: @escaping @Sendable () throws(NodeError) -> Node,
    deliver: @escaping @Sendable (SyncPeer, Outcome) -> Void
  ) {
    self.options = options
    self.open = open
    self.deliver = deliver
  }

  /// Follows these peers; returns after `stop`, when all exchanges have ended.
  ///
  /// - Throws: the error of `open`, if the node cannot be opened at the beginning.
  package func run(_ peers: [SyncPeer]) throws(NodeError) {
    // A node that cannot be opened now is an error, not something to wait for.
    let directory = try open().directory
    let group = DispatchGroup()
    for peer in peers {
      let wake = newWake()
      start(in: group) { [self] in follow(peer, wake) }
      switch peer.watch {
      case .log(let path): start(in: group) { [self] in watchLog(path) { wake.signal($0) } }
      case .hints(let watch): watch(wake)
      case .none: break
      }
    }
    start(in: group) { [self] in
      watchLog(directory) { [self] news in for wake in wakes.withLock({ $0 }) { wake.signal(news) } }
    }
    group.wait()
  }

  /// As `run`, on a thread of its own.
  package func runOnThread(_ peers: [SyncPeer]) async throws(NodeError) {
    let result = await withCheckedContinuation { continuation in
      Self.start { [self] in
        do throws(NodeError) {
          try run(peers)
          continuation.resume(returning: Result<Void, NodeError>.success(()))
        } catch { continuation.resume(returning: .failure(error)) }
      }
    }
    try result.get()
  }

  /// Ends after the exchanges in progress. May be called on any thread, and more than once.
  package func stop() {
    isStopped.withLock { $0 = true }
    for wake in wakes.withLock({ $0 }) { wake.stop() }
  }

  /// As `stop`. Exchanges end at once, except those with directories and through a shell.
  package func interrupt() {
    stop()
    interruption.interrupt()
  }

  private func newWake() -> Wake {
    let wake = Wake()
    wakes.withLock { $0.append(wake) }
    // `stop` may have missed it.
    if isDone { wake.stop() }
    return wake
  }

  private var isDone: Bool { isStopped.withLock { $0 } }

  private func start(in group: DispatchGroup, _ body: @escaping @Sendable () -> Void) {
    group.enter()
    Self.start {
      body()
      group.leave()
    }
  }

  private static func start(_ body: @escaping @Sendable () -> Void) {
    let thread = Thread(block: body)
    thread.stackSize = 8 << 20
    thread.start()
  }

  private func follow(_ peer: SyncPeer, _ wake: Wake) {
    var failures = 0
    var node: Node?
    var agreement = Agreement()
    var news = News.everything
    // The time of the next exchange of everything.
    var due = Date.distantPast
    var isNarrow = false
    while !isDone {
      do throws(NodeError) {
        let opened = if let node { node } else { try open() }
        node = opened
        if let partitions = patterns(of: news, agreement, opened) {
          isNarrow = partitions != options.partitions
          let report = try opened.exchange(
            with: peer.remote, pulls: true, pushes: true, partitions: partitions,
            connect: peer.connect(opened.options, interruption), recordsEach: false
          ) { [deliver] adopted, total in
            if adopted < total { deliver(peer, .behind(events: total - adopted)) }
          }
          failures = 0
          agreement.add(report)
          if !isNarrow { due = Date().addingTimeInterval(options.interval) }
          deliver(
            peer, .exchanged(pulled: report.pulled, pushed: report.pushed, notices: report.notices))
        }
        news = wake.wait(until: due)
      } catch {
        // Its state is unknown after a failure.
        node = nil
        agreement = Agreement()
        news = .everything
        // The peer may refuse a partition by its name that it omits from everything.
        if isNarrow {
          isNarrow = false
          continue
        }
        let longest = min(options.longestRetry, options.firstRetry * pow(2, Double(min(failures, 10))))
        failures += 1
        let pause = longest * Double.random(in: 0.5...1)
        deliver(peer, .failed(error, retryAfter: pause))
        wake.pause(pause)
      }
    }
  }

  /// The partitions to exchange, as patterns; nil: neither side has anything new.
  ///
  /// With everything or with chosen partitions, these are those of the options.
  private func patterns(of news: News, _ agreement: Agreement, _ node: Node) -> [String]? {
    guard case .heads(let heads) = news else { return options.partitions }
    let new = heads.filter { node.metadata.scope.contains($0.key.partition) && !agreement.covers($0) }
    if new.isEmpty { return nil }
    let partitions = Set(new.map(\.key.partition))
    guard options.partitions.isEmpty, partitions.allSatisfy(\.isExactPattern) else {
      return options.partitions
    }
    return partitions.map(\.description).sorted()
  }

  /// How often a log is looked at, in seconds.
  private static let look = 0.05

  private func watchLog(_ directory: String, _ changed: (News) -> Void) {
    let wake = newWake()
    var watched: (node: Node, position: Position)?
    while !isDone {
      do throws(NodeError) {
        if let (node, position) = watched {
          if try node.refreshLog() {
            let (heads, end) = try node.heads(from: position)
            watched?.position = end
            changed(.heads(heads))
          }
        } else {
          let node = try Node.open(at: directory, Node.OpeningOptions(mode: .read))
          watched = (node, node.durableEnd)
          changed(.everything)
        }
      } catch {
        // An exchange reports why it cannot be read.
        if watched != nil { changed(.everything) }
        watched = nil
      }
      wake.pause(watched == nil ? 1 : Self.look)
    }
  }
}

/// The events that a peer held after the last exchange. This node holds them, too.
private struct Agreement {
  private var heads = VersionVector()
  private var scope = Scope.everything

  mutating func add(_ report: ExchangeReport) {
    scope = report.peerScope
    heads.partitions = heads.partitions.filter { report.exchanged?.contains($0.key) != true }
    heads.partitions.merge(report.peerVector.partitions) { $1 }
  }

  /// Whether the peer holds the event, or does not hold its partition.
  func covers(_ head: (key: StreamID, value: SequenceNumber)) -> Bool {
    !scope.contains(head.key.partition)
      || heads[head.key.partition, head.key.origin].sequence >= head.value
  }
}

extension Partition {
  /// Whether its name as a pattern denotes this partition alone.
  fileprivate var isExactPattern: Bool {
    do throws(ReplicationError) {
      return try Scope(patterns: [description]).list.map(\.partition) == [self]
    } catch {
      return false
    }
  }
}
