import StemmaHub
import StemmaReplication
import Testing

/// The manifests of a hub, read without the code of nodes and peers.
struct HubContents {
  /// The number of manifests.
  private(set) var manifests = 0
  /// The partitions of each object, by its key.
  private(set) var objects: [String: Set<String>] = [:]

  init(_ store: any ObjectStore) throws {
    var last: String?
    while true {
      let page = try store.list("logs/", after: last)
      for entry in page.entries {
        let manifest = try HubManifest(decoding: try #require(try store.get(entry.key, nil)))
        manifests += 1
        for object in manifest.objects {
          objects[object.key, default: []].formUnion(object.streams.map { $0.range.partition.description })
        }
      }
      guard !page.isLast, let end = page.entries.last?.key else { return }
      last = end
    }
  }
}
