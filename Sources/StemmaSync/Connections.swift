import StemmaNode

extension Notice {
  /// The reason of `.notAPeer` for an address without a hub.
  package static let noHub: Notice = "there is no hub"

  /// Begins the reason of `.notAPeer` for a web server that answers with another protocol.
  package static let otherProtocol = "it is no server of this protocol"
}

/// Connects to peers by the form of their address.
package struct Connections {
  /// The words of the remote shell.
  package static let shell = "ssh"

  private let options: Node.OpeningOptions
  private let shell: String
  private let http: Connector?
  private let hub: Connector?
  private let progress: (UInt64, UInt64) -> Void

  /// - Parameters:
  ///   - options: for nodes in directories.
  ///   - shell: the words of the remote shell.
  ///   - http: connects to `http://` and `https://` addresses; nil: they are refused.
  ///   - hub: connects to hubs; nil: they are refused.
  package init(
    options: Node.OpeningOptions, shell: String = Self.shell, http: Connector? = nil, hub: Connector? = nil,
    progress: @escaping (UInt64, UInt64) -> Void = { _, _ in }
  ) {
    self.options = options
    self.shell = shell
    self.http = http
    self.hub = hub
    self.progress = progress
  }

  package func connect(_ remote: RemotePeer, _ node: Node?, _ writes: Bool) throws(NodeError) -> any PeerLink
  {
    switch PeerAddress(remote.address) {
    case .directory(let path): return try Node.directoryLink(path, node, options, writes: writes, progress)
    case .shell(let host, let path): return try ShellLink(host: host, path: path, command: shell)
    case .http:
      guard let http else {
        throw .notAPeer(path: remote.address, reason: "HTTP needs the module StemmaHTTP")
      }
      do throws(NodeError) { return try http(remote, node, writes) } catch {
        // A web site that is no server can hold a hub.
        guard let hub, case .notAPeer(_, let reason) = error,
          "\(reason)".hasPrefix(Notice.otherProtocol)
        else { throw error }
        do throws(NodeError) { return try hub(remote, node, writes) } catch let failure {
          if case .notAPeer(_, .noHub) = failure { throw error }
          throw failure
        }
      }
    case .hub:
      guard let hub else { throw .notAPeer(path: remote.address, reason: "hubs need the module StemmaHub") }
      return try hub(remote, node, writes)
    }
  }
}
