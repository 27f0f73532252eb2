import StemmaNode
import StemmaReplication

/// Writes a node to a folder as a hub that any web server with range requests can serve, read only.
package struct Publication {
  private let folder: FolderStore
  private let address: HubAddress

  /// - Parameter directory: made if it is not there.
  package init(_ directory: String, keyFile: String?) throws(NodeError) {
    let path = PeerAddress.absolute(directory)
    folder = FolderStore(path)
    var address = try HubAddress("file://")
    address.base = "file://" + HubAddress.percentEncoded(path)
    address.keyFile = keyFile.map(PeerAddress.absolute)
    self.address = address
  }

  /// Publishes what the folder lacks. A web site has no lists, so their place is taken by files.
  package func publish(
    _ node: Node, partitions: [String], progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> ExchangeReport {
    let options = Hub.Options.ordinary(node.ports)
    _ = try HubDescription.make(in: try address.open().store, options, isSealed: address.keyFile != nil)
    let report = try node.exchange(
      with: RemotePeer(name: folder.name, address: address.text), pulls: false, pushes: true,
      partitions: partitions, connect: HubLink.connect, progress: progress)
    let calls = HubCalls(store: folder, options: options)
    do throws(HubError) {
      for prefix in [HubLayout.heads, HubLayout.peers] {
        let entries = try calls.calling { () throws(ObjectError) in
          try folder.list(prefix, after: nil).entries
        }
        let lines = entries.filter { HubLayout.log(ofKey: $0.key, below: prefix) != nil }
          .map { "\($0.key)\t\($0.tag)\n" }
        _ = try calls.calling { () throws(ObjectError) in
          try folder.put(prefix + "index", Array(lines.joined().utf8), ifAbsent: false)
        }
      }
    } catch { throw NodeError(error) }
    return report
  }
}
