import Foundation
import StemmaEvents
import StemmaHTTP
import StemmaNode
import StemmaSync

/// `sync --follow`. Prints one line for each exchange with events, and for each failure that
/// differs from the last one.
final class Following: Sendable {
  private let peers: [SyncPeer]
  private let follower: Follower
  private let isJSON: Bool
  private let lines: Lines

  init(_ options: PeerOptions, interval: TimeSpan?) throws {
    let node = try options.node.openForWriting(isQuiet: true)
    for notice in node.notices { Output.warning(notice) }
    let directory = node.directory
    let remotes = try node.peers(options.peer)
    isJSON = options.format.isJSON
    lines = Lines(isJSON: isJSON)
    var following = Follower.Options()
    following.partitions = options.partition
    if let interval { following.interval = Double(interval.milliseconds) / 1000 }
    let (wait, connection, lines) = (options.node.wait, options.connection, lines)
    @Sendable func open(_ mode: Node.Mode) throws(NodeError) -> Node {
      var opening = Node.OpeningOptions(mode: mode)
      opening.wait = wait
      return try Node.open(at: directory, opening)
    }
    peers = remotes.map { remote in
      let watch: SyncPeer.Watch =
        switch PeerAddress(remote.address) {
        case .directory(let path): .log(path)
        case .shell, .hub: .none
        case .http:
          .hints { wake in
            HTTPPeer.watch(wake) {
              let options = try connection.token.options(for: remote.address, try open(.read))
              return try HTTPPeer.at(remote.address, options)
            }
          }
        }
      return SyncPeer(remote.name, address: remote.address, watch: watch) { options, _ in
        connection.connections(options, progress: { _, _ in }).connect
      }
    }
    follower = Follower(
      following, open: { () throws(NodeError) in try open(.write) },
      deliver: { peer, outcome in lines.tell(peer.name, outcome) })
  }

  func run() throws {
    let follower = follower
    receiveStopSignals()
    let stopping = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { follower.stop() }
      source.resume()
      return source
    }
    try follower.run(peers)
    stopping.forEach { $0.cancel() }
  }
}

/// The output of all peers.
private final class Lines: Sendable {
  private let isJSON: Bool
  /// The last failure of each peer.
  private let failures = Mutex<[String: String]>([:])

  init(isJSON: Bool) { self.isJSON = isJSON }

  func tell(_ peer: String, _ outcome: Follower.Outcome) {
    failures.withLock { failures in
      switch outcome {
      case .behind: break
      case .exchanged(let pulled, let pushed, _):
        if failures.removeValue(forKey: peer) != nil {
          Output.error("stemma: " + printable(peer) + ": reached again")
        }
        for (verb, word, report) in [("pulled", "from", pulled), ("pushed", "to", pushed)] {
          guard let report, report.events > 0 else { continue }
          if isJSON {
            Output.line(.object([("peer", .string(peer)), (verb, report.json)]))
          } else {
            Output.line(printable("\(verb) \(report.text) \(word) \(peer)"))
          }
        }
        Output.flush()
      case .failed(let error, _):
        let message = Explanation(error).message
        guard failures.updateValue(message, forKey: peer) != message else { return }
        Output.error("stemma: " + printable(peer) + ": " + message)
      }
    }
  }
}
