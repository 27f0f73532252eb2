import Foundation
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

  /// `publication.json` in the folder: its publisher, and the partitions that it publishes.
  private struct Publisher: Codable {
    static let key = "publication.json"

    var log: String
    /// Patterns; empty: everything.
    var partitions: [String]

    func encoded() throws(NodeError) -> [UInt8] {
      do { return Array(try JSONEncoder().encode(self)) + [0x0a] } catch { throw .unforeseen("\(error)") }
    }
  }

  /// Publishes what the folder lacks. A web site has no lists, so their place is taken by files.
  ///
  /// - Parameter partitions: patterns, which the folder keeps; empty: the kept ones, or everything.
  /// - Throws: `.occupied` for the folder of a node, or of a hub that another node fills.
  package func publish(
    _ node: Node, partitions: [String], progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> ExchangeReport {
    let options = Hub.Options.ordinary(node.ports)
    let calls = HubCalls(store: folder, options: options)
    let publisher = try publisher(node, partitions, calls)
    let opened = try address.open()
    _ = try HubDescription.make(in: opened.store, options, key: opened.key)
    let bytes = try publisher.encoded()
    do throws(HubError) {
      _ = try calls.calling { () throws(ObjectError) in
        try folder.put(Publisher.key, bytes, ifAbsent: false)
      }
    } catch { throw NodeError(error) }
    let report = try node.exchange(
      with: RemotePeer(name: folder.name, address: address.text), pulls: false, pushes: true,
      partitions: publisher.partitions, connect: HubLink.connect, progress: progress)
    try writeIndexes(calls)
    return report
  }

  private func publisher(
    _ node: Node, _ partitions: [String], _ calls: HubCalls
  ) throws(NodeError) -> Publisher {
    let own = node.metadata.logID.description
    func read(_ key: String) throws(HubError) -> [UInt8]? {
      try calls.calling { () throws(ObjectError) in try folder.get(key, nil) }
    }
    let (found, isHub, isNode): ([UInt8]?, Bool, Bool)
    do throws(HubError) {
      found = try read(Publisher.key)
      isHub = try read(HubLayout.description) != nil
      isNode = try read(NodeMetadata.fileName) != nil
    } catch { throw NodeError(error) }
    if isNode { throw .occupied(path: folder.name, what: "is the directory of a node") }
    guard let found else {
      if isHub { throw .occupied(path: folder.name, what: "is a hub that nodes share") }
      return Publisher(log: own, partitions: partitions)
    }
    var known: Publisher
    do { known = try JSONDecoder().decode(Publisher.self, from: Data(found)) } catch {
      throw .occupied(path: folder.name, what: "has a publication.json that cannot be read")
    }
    guard known.log == own else { throw .occupied(path: folder.name, what: "is published by another node") }
    if !partitions.isEmpty { known.partitions = partitions }
    return known
  }

  private func writeIndexes(_ calls: HubCalls) throws(NodeError) {
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
  }
}
