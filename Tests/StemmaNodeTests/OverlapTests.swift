import Foundation
import StemmaEvents
import StemmaNode
import StemmaReplication
import Synchronization
import Testing

/// Several instances of one node, as several processes would have them, at work at once.
@Suite struct OverlapTests {
  private static func options() -> Node.OpeningOptions {
    var options = Node.OpeningOptions(mode: .write)
    options.wait = 60
    return options
  }

  @Test func overlappingShipmentsFromTwoPeersAreTakenOnce() throws {
    let bench = try Bench(segmentSize: 4000)
    let b = try bench.node("b", DirectoryTests.tenants)
    let c = try bench.node("c", DirectoryTests.tenants)
    for tenant in ["x", "y"] {
      for number in 0..<60 {
        try b.commit(#"{"op":"create","model":"Row","key":{"tenant":"\#(tenant)","n":\#(number)}}"#)
      }
    }
    try c.sync(b)
    for number in 60..<90 {
      try b.commit(#"{"op":"create","model":"Row","key":{"tenant":"x","n":\#(number)}}"#)
      try c.commit(#"{"op":"create","model":"Row","key":{"tenant":"y","n":\#(number)}}"#)
    }
    for round in 0..<3 {
      let name = "a\(round)"
      try { _ = try bench.node(name, DirectoryTests.tenants) }()
      let path = bench.path(name)
      let peers = [b.directory, c.directory]
      let failures = Mutex<[String]>([])
      let reported = Mutex<UInt64>(0)
      DispatchQueue.concurrentPerform(iterations: 4) { turn in
        do {
          let node = try Node.open(at: path, Self.options())
          let report = try node.exchange(
            with: RemotePeer(name: "p", address: peers[turn % 2]), pulls: true, pushes: false, partitions: [],
            progress: { _, _ in })
          reported.withLock { $0 += report.pulled?.events ?? 0 }
        } catch { failures.withLock { $0.append("\(error)") } }
      }
      #expect(failures.withLock { $0 } == [])
      // Each reported all that it had been sent.
      #expect(reported.withLock { $0 } == 180, "round \(round)")
      let a = try bench.open(name)
      #expect(try a.history.count == 180, "round \(round)")
      #expect(Set(try a.history).count == 180)
      #expect(try Node.verify(at: path, options: .init()).damage.isEmpty)
    }
    try b.sync(c)
    #expect(try bench.open("a0").digestTexts == (try bench.open("b").digestTexts))
  }

  /// Partitions whose events another process had brought meanwhile were told as fetched.
  @Test func onlyPartitionsOfWhichEventsArrivedAreTold() throws {
    let bench = try Bench(segmentSize: 1000)
    let b = try bench.node("b", DirectoryTests.tenants)
    for tenant in ["x", "y"] {
      for number in 0..<60 {
        try b.commit(#"{"op":"create","model":"Row","key":{"tenant":"\#(tenant)","n":\#(number)}}"#)
      }
      try b.sealIfWanted()
    }
    _ = try bench.node("a", DirectoryTests.tenants)
    let peer = RemotePeer(name: "b", address: b.directory)
    func pull(_ progress: @escaping (UInt64) -> Void) throws -> Node.TransferReport? {
      try Node.open(at: bench.path("a"), Self.options())
        .exchange(with: peer, pulls: true, pushes: false, partitions: []) { events, _ in progress(events) }
        .pulled
    }
    var other: Node.TransferReport?
    let report = try pull { _ in
      guard other == nil else { return }
      do { other = try pull { _ in } } catch { Issue.record(error) }
    }
    #expect(report?.partitions == ["tenant=x"] && report?.events == 60)
    #expect(other?.partitions == ["tenant=y"] && other?.events == 60)
  }

  @Test func twoWritersAndAFollowerShareANode() throws {
    let bench = try Bench(segmentSize: 3000)
    try { _ = try bench.node("a", DirectoryTests.tenants) }()
    try { _ = try bench.node("b", DirectoryTests.tenants) }()
    let (path, peer) = (bench.path("a"), bench.path("b"))
    let failures = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 3) { turn in
      do {
        let node = try Node.open(at: path, Self.options())
        for number in 0..<40 {
          if turn == 2 {
            _ = try node.exchange(
              with: RemotePeer(name: "b", address: peer), pulls: true, pushes: true, partitions: [],
              progress: { _, _ in })
          } else {
            try node.commit(
              #"{"op":"create","model":"Row","key":{"tenant":"t\#(turn)","n":\#(number)}}"#,
              #"{"op":"update","model":"Row","key":{"tenant":"t\#(turn)","n":\#(number)},"fields":{}}"#)
          }
        }
      } catch { failures.withLock { $0.append("\(error)") } }
    }
    #expect(failures.withLock { $0 } == [])
    let a = try bench.open("a")
    #expect(try a.history.count == 80)
    try a.sync(try bench.open("b"))
    #expect(try a.digestTexts == (try bench.open("b").digestTexts))
    #expect(try Node.verify(at: path, options: .init()).damage.isEmpty)
  }
}
