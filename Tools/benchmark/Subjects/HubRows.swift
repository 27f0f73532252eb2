import Foundation
import Measuring
import StemmaEvents
import StemmaHub
import StemmaImport
import StemmaNode
import StemmaReplication

/// A push of all events to a hub, and a clone from it, against the same with a node in a directory.
/// The hub is a folder, and a bucket of SeaweedFS.
///
/// Then the requests of small exchanges, from which one can compute the cost of a day.
func measureHubs(_ bench: Bench) throws {
  let directory = try bench.node(bench.events)
  let node = try Node.open(at: directory, .init(mode: .write))
  var hubs = [MeasuredHub(name: "a folder") { number in "file://" + (try bench.fresh("hub-\(number)")) }]
  let weed = try SeaweedProgram(bench)
  if let weed {
    hubs.append(
      MeasuredHub(name: "SeaweedFS") { number in
        "s3://hub/\(UUID().uuidString)-\(number)?endpoint=\(weed.endpoint)&region=us-east-1"
      })
  }
  for hub in hubs {
    var last = try hub.make(0)
    var number = 0
    let pushes = try bench.byTurns(
      rounds: bench.roundsOfSeconds,
      ours: {
        number += 1
        last = try hub.make(number)
        let connect = last.connector
        return try Cost.of { try bench.exchange(node, connect, pushes: true) }
      },
      baseline: {
        let target = try bench.fresh("pushed")
        _ = try Node.create(at: target, schema: Workload.schema, name: "pushed")
        return try Cost.of { try bench.exchange(node, nil, address: target, pushes: true) }
      })
    bench.add("push to \(hub.name); to a directory", pushes, count: bench.events, "events", .none)
    let stored = last.counted.requestCount
    bench.say("push to \(hub.name): \(words(stored))")

    let clones = try bench.byTurns(
      rounds: bench.roundsOfSeconds,
      ours: {
        let target = try bench.fresh("cloned")
        let connect = last.connector
        return try Cost.of {
          _ = try Node.clone(from: last.address, to: target, partitions: [], name: "cloned", connect: connect)
          {
            _, _ in
          }
        }
      },
      baseline: {
        let target = try bench.fresh("copied")
        return try Cost.of {
          _ = try Node.clone(from: directory, to: target, partitions: [], name: "copied") { _, _ in }
        }
      })
    bench.add("clone from \(hub.name); from a directory", clones, count: bench.events, "events", .none)

    let before = last.counted.requestCount
    let target = try bench.fresh("part")
    let part = try Cost.of {
      _ = try Node.clone(
        from: last.address, to: target, partitions: [Workload.onePartition], name: "part",
        connect: last.connector
      ) { _, _ in }
    }
    let used = last.counted.requestCount.since(before)
    bench.say("clone of 1 % from \(hub.name): \(Report.number(part.wall * 1000)) ms, \(words(used))")
    bench.add(
      "bytes of a clone of 1 % from \(hub.name); 3 % of all", ours: Double(used.bytesIn) / 1000,
      baseline: Double(stored.bytesOut) * 0.03 / 1000, "kB", .atMost(1))
    try requests(bench, hub)
    for name in ["pushed", "cloned", "copied", "part"] { _ = try bench.fresh(name) }
  }
}

/// The requests of two nodes that keep in sync.
private func requests(_ bench: Bench, _ hub: MeasuredHub) throws {
  let made = try hub.make(1000)
  let (first, second) = (try bench.emptyNode("first"), try bench.emptyNode("second"))
  var dice = 0
  func write(_ node: Node) throws {
    dice += 1
    let line =
      #"{"op":"create","model":"Task","key":{"tenant":"tenant-100","id":"hub-\#(dice)"},"#
      + #""fields":{"title":"a small change","status":"OPEN","priority":1}}"#
    let mutation = try Array(line.utf8).withUnsafeBytes { try Mutation(line: $0) }
    _ = try node.write { transaction throws(NodeError) in _ = try transaction.perform(mutation) }
  }
  func counting(_ body: () throws -> Void) throws -> RequestCount {
    let before = made.counted.requestCount
    try body()
    return made.counted.requestCount.since(before)
  }
  func sync(_ node: Node) throws { try bench.exchange(node, made.connector, pulls: true, pushes: true) }
  // Both have logs in the hub, and have read that of the other.
  for _ in 0..<2 {
    for node in [first, second] {
      try write(node)
      try sync(node)
    }
  }
  try sync(first)
  try write(first)
  let push = try counting { try sync(first) }
  let pull = try counting { try sync(second) }
  let nothing = try counting { try sync(first) }
  for (name, count) in [("a commit", push), ("another node's commit", pull), ("nothing new", nothing)] {
    bench.say("sync with \(hub.name), \(name): \(words(count))")
  }
  bench.add(
    "requests of a sync with nothing new, \(hub.name); 3", ours: Double(nothing.total), baseline: 3,
    "requests",
    .atMost(1))
  for name in ["first", "second"] { _ = try bench.fresh(name) }
}

private func words(_ count: RequestCount) -> String {
  "\(count.total) requests (\(count.reads) reads, \(count.writes) writes, \(count.lists) lists), "
    + "\(count.bytesIn) bytes in, \(count.bytesOut) bytes out"
}

extension RequestCount {
  fileprivate func since(_ other: RequestCount) -> RequestCount {
    var count = self
    count.reads -= other.reads
    count.writes -= other.writes
    count.lists -= other.lists
    count.bytesIn -= other.bytesIn
    count.bytesOut -= other.bytesOut
    return count
  }
}

extension Bench {
  fileprivate func exchange(
    _ node: Node, _ connect: Connector?, address: String = "hub", pulls: Bool = false, pushes: Bool
  ) throws {
    _ = try node.exchange(
      with: RemotePeer(name: "hub", address: address), pulls: pulls, pushes: pushes, partitions: [],
      connect: connect
    ) { _, _ in }
  }
}

/// A kind of hub.
private struct MeasuredHub {
  struct Made {
    var address: String
    var counted: any CountedStore

    var connector: Connector {
      { [counted] (_, node, writes) throws(NodeError) in
        try HubLink("hub", counted, key: nil, node, writes: writes, .ordinary())
      }
    }
  }

  var name: String
  /// The address of a new one with this number.
  var address: (Int) throws -> String

  func make(_ number: Int) throws -> Made {
    let address = try address(number)
    let counted = try HubAddress(address).open().counted
    _ = try HubDescription.make(in: counted, .ordinary(), key: nil)
    return Made(address: address, counted: counted)
  }
}

/// SeaweedFS in one process, with the bucket `hub`. Nil if it is not installed.
private final class SeaweedProgram {
  private let program: BackgroundProgram
  let endpoint: String

  init?(_ bench: Bench) throws {
    let folder = ProcessInfo.processInfo.environment["STEMMA_PEERS"] ?? ""
    guard FileManager.default.isExecutableFile(atPath: folder + "/bin/weed"), let curl = bench.program("curl")
    else {
      bench.say("STEMMA_PEERS does not name the folder of SeaweedFS: its rows are left out")
      return nil
    }
    let files = try bench.fresh("weed")
    try FileManager.default.createDirectory(atPath: files, withIntermediateDirectories: true)
    let port = 20_000 + Int(getpid()) % 20_000
    endpoint = "http://127.0.0.1:\(port)"
    let ports = ["-master.port=\(port + 1)", "-volume.port=\(port + 2)", "-filer.port=\(port + 3)"]
    program = try BackgroundProgram(
      folder + "/bin/weed",
      ["server", "-dir=\(files)", "-ip=127.0.0.1", "-s3", "-s3.port=\(port)"] + ports
        + ["-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false"], readsLine: false)
    let deadline = Date().addingTimeInterval(60)
    while true {
      do {
        _ = try ChildCost.of(curl, ["--silent", "--fail", "-X", "PUT", endpoint + "/hub"])
        // SeaweedFS would refuse others than these, if they were in its environment.
        setenv("AWS_ACCESS_KEY_ID", "bench", 1)
        setenv("AWS_SECRET_ACCESS_KEY", "bench", 1)
        return
      } catch {
        guard Date() < deadline else { throw BenchError("SeaweedFS does not answer") }
        usleep(200_000)
      }
    }
  }
}
