import Foundation
import Servers
import StemmaHub
import Testing

/// The costs of a small clone of a large log.
@Suite(
  "Clones of one partition through a hub", .enabled(if: NginxServer.isInstalled, "nginx is not installed"),
  .enabled(if: RealData.hasPython))
struct HubCloneTests {
  private static let isLong = ProcessInfo.processInfo.environment["STEMMA_LONG"] != nil
  private static let events = isLong ? 1_000_000 : 100_000
  private static let partitions = 100

  /// Consecutive events are in different partitions.
  private static let lines = """
    import json
    for i in range(\(events)):
        fields = {"title": f"task {i * 2654435761 % 1000003} of {i}", "done": i % 3 == 0}
        print(json.dumps({"op": "create", "model": "Task", "key": {"tenant": f"t{i % \(partitions)}", "id": str(i)}, "fields": fields}))

    """

  @Test("a clone of one of a hundred partitions reads at most 3 % of the bytes, with few requests")
  func smallClone() throws {
    let peers = try Peers(.directory)
    let work = peers.work
    let python = try #require(RealData.python)
    try peers.make("hq")
    try work.write("lines.py", Self.lines)
    let imported = try ConsolePage.run(
      "'\(python)' lines.py > lines.ndjson && stemma -C hq import lines.ndjson 2> /dev/null", in: work.path,
      showsStatus: true)
    try #require(imported.last?.hasPrefix("[") != true, "\(imported)")
    try FileManager.default.createDirectory(
      atPath: work.file("site"), withIntermediateDirectories: false)
    try peers.stemma("-C", "hq", "publish", "site/sub")
    let contents = try HubContents(FolderStore(work.file("site/sub")))
    let sizes = try contents.objects.keys.map { key in
      try #require(
        FileManager.default.attributesOfItem(atPath: work.file("site/sub/\(key)"))[.size] as? Int, "\(key)")
    }
    let whole = sizes.reduce(0, +)

    let server = try NginxServer(work.file("site"))
    let start = Date()
    try peers.stemma(
      "clone", server.endpoint + "/sub/", "field", "--name", "field", "--partition", "tenant=t7")
    let seconds = Date().timeIntervalSince(start)
    #expect(try peers.digest("field", "tenant=t7") == peers.digest("hq", "tenant=t7"))
    let requests = try server.requests()
    let bytes = requests.reduce(0) { $0 + $1.bytes }
    let ofManifests = requests.filter { $0.path.contains("/logs/") }.reduce(0) { $0 + $1.bytes }
    let holders = contents.objects.values.count { $0.contains("tenant=t7") }
    print(
      "\(Self.events) events in \(sizes.count) objects of \(whole) bytes, \(holders) with the partition: "
        + "\(requests.count) requests, \(bytes) bytes, of these \(ofManifests) of \(contents.manifests) manifests; "
        + "\(Double(Int(seconds * 10)) / 10) s")
    #expect(requests.count <= holders * 3 + contents.manifests + 5)
    #expect(Double(bytes) <= Double(whole) * 0.03)
  }
}
