import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSync

/// The state of a hub, for `hub status`. Reads all manifests and the records of nodes.
package struct HubOverview: Sendable {
  package struct Node: Sendable {
    /// The id of its log in the hub.
    package var log: String
    package var name: String
    package var manifests: UInt64
    /// Nil: it has no record.
    package var scope: [String]?
    /// Manifests that it had not read at the time of its record.
    package var unread: UInt64?
    /// Milliseconds since 1970.
    package var time: UInt64?
  }

  package var id: String
  package var isSealed: Bool
  package var partitions: Int
  package var events: UInt64
  package var objects: Int
  package var objectBytes: UInt64
  package var nodes: [Node]

  /// Throws `.notAPeer` if there is no hub.
  package init(_ address: HubAddress, _ options: Hub.Options = .ordinary()) throws(NodeError) {
    let opened = try address.open()
    let store = opened.store
    guard let description = try HubDescription(of: store, options, key: opened.key) else {
      throw .notAPeer(path: store.name, reason: .noHub)
    }
    let hub: Hub
    var told: [LogID: HubPeer] = [:]
    do throws(HubError) {
      hub = try Hub(store, journal: BriefJournal(), options)
      try hub.look(everything: true)
      let calls = HubCalls(store: store, options: options)
      var last: String?
      while true {
        let page = try calls.calling { () throws(ObjectError) in try store.list(HubLayout.peers, after: last)
        }
        for entry in page.entries {
          guard let log = HubLayout.log(ofKey: entry.key, below: HubLayout.peers),
            let bytes = try calls.calling({ () throws(ObjectError) in try store.get(entry.key, nil) })
          else { continue }
          do { told[log] = try JSONDecoder().decode(HubPeer.self, from: Data(bytes)) } catch {
            throw .content(.malformed(entry.key, "it is no record of a node"))
          }
        }
        guard !page.isLast, let end = page.entries.last?.key else { break }
        last = end
      }
    } catch { throw NodeError(error) }
    let catalog = hub.catalog
    id = description.hub
    isSealed = description.isSealed
    partitions = catalog.versionVector.partitions.count
    events = catalog.versionVector.eventCount
    objects = catalog.entries.count
    objectBytes = catalog.entries.reduce(0) { $0 + $1.object.segment.size }
    nodes = Set(catalog.logs.keys).union(told.keys).map { log in
      let peer = told[log]
      let unread = peer.map { peer in
        catalog.logs.reduce(UInt64(0)) { sum, known in
          sum + known.value.number - min(known.value.number, peer.read[known.key.description] ?? 0)
        }
      }
      return Node(
        log: log.description, name: peer?.node ?? catalog[log].nodeName, manifests: catalog[log].number,
        scope: peer?.scope, unread: unread, time: peer?.time)
    }.sorted { ($0.name, $0.log) < ($1.name, $1.log) }
  }

  package var json: JSON {
    .object([
      ("hub", .string(id)), ("sealed", .bool(isSealed)), ("partitions", .int(Int64(partitions))),
      ("events", .int(Int64(clamping: events))), ("objects", .int(Int64(objects))),
      ("objectBytes", .int(Int64(clamping: objectBytes))),
      (
        "nodes",
        .array(
          nodes.map { node in
            .object([
              ("name", .string(node.name)), ("log", .string(node.log)),
              ("manifests", .int(Int64(clamping: node.manifests))),
              ("scope", node.scope.map { .array($0.map { .string($0) }) } ?? .null),
              ("unread", node.unread.map { .int(Int64(clamping: $0)) } ?? .null),
              ("time", node.time.map { .string(Timestamp(milliseconds: $0).utcText) } ?? .null),
            ])
          })
      ),
    ])
  }
}
