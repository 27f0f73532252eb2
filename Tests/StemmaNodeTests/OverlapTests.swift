import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import Testing

/// Several instances of one node work at the same time, as several processes would.
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
      // Each reported all events that it had received.
      #expect(reported.withLock { $0 } == 180, "round \(round)")
      let a = try bench.open(name)
      #expect(try a.history.count == 180, "round \(round)")
      #expect(Set(try a.history).count == 180)
      #expect(try Node.verify(at: path, options: .init()).corruption.isEmpty)
    }
    try b.sync(c)
    #expect(try bench.open("a0").digestTexts == (try bench.open("b").digestTexts))
  }

  /// The report excludes events that another process adopted during the exchange.
  @Test func onlyPartitionsOfWhichEventsArrivedAreTold() throws {
    let bench = try Bench()
    let b = try bench.node("b", DirectoryTests.tenants)
    for number in 0..<10 {
      let tenant = number < 5 ? "x" : "y"
      try b.commit(#"{"op":"create","model":"Row","key":{"tenant":"\#(tenant)","n":\#(number)}}"#)
    }
    let peer = RemotePeer(name: "b", address: b.directory)
    var counts: Set<UInt64> = []
    for turn in 1...8 {
      let name = "a\(turn)"
      try { _ = try bench.node(name, DirectoryTests.tenants) }()
      let path = bench.path(name)
      let system = OvertakenFileSystem(before: turn, openingsOf: path + "/lock") {
        do {
          _ = try Node.open(at: path, Self.options()).exchange(
            with: peer, pulls: true, pushes: false, partitions: ["tenant=y"], progress: { _, _ in })
        } catch { Issue.record(error) }
      }
      let node = try bench.open(name, on: system)
      let report = try #require(
        try node.exchange(
          with: peer, pulls: true, pushes: false, partitions: [], progress: { _, _ in }
        ).pulled)
      let arrived = report.events == 5 ? ["tenant=x"] : ["tenant=x", "tenant=y"]
      #expect(report.partitions == arrived, "\(turn)")
      #expect(try bench.open(name).history.count == 10, "\(turn)")
      counts.insert(report.events)
    }
    #expect(counts == [5, 10])
  }

  /// A batch in transit must not be adopted after another process purged its partition. Otherwise
  /// the log could hold events without causes or outside of the scope.
  @Test(arguments: [true, false]) func aScopeThatChangesDuringAnExchangeHolds(pushes: Bool) throws {
    var changes = 0
    for turn in 1...10 {
      let bench = try Bench()
      let y = try bench.node("y", DirectoryTests.tenants)
      try y.commit(DirectoryTests.row("x"), DirectoryTests.row("z"))
      try bench.node("n", DirectoryTests.tenants).sync(y)
      for tenant in ["x", "z"] {
        try y.commit(
          #"{"op":"update","model":"Row","key":{"tenant":"\#(tenant)","n":1},"fields":{}}"#,
          #"{"op":"create","model":"Row","key":{"tenant":"\#(tenant)","n":2}}"#)
      }
      let path = bench.path("n")
      let hasChanged = Mutex(false)
      let system = OvertakenFileSystem(before: turn, openingsOf: path + "/lock") {
        do {
          let node = try Node.open(at: path, Self.options())
          #expect(
            try node.changeScope(adding: ["!tenant=x"], removing: [], discards: true) == ["tenant=x"])
          hasChanged.withLock { $0 = true }
        } catch { Issue.record(error) }
      }
      if pushes {
        let sender = try bench.open("y", on: system)
        _ = try sender.exchange(
          with: RemotePeer(name: "n", address: path), pulls: false, pushes: true, partitions: [],
          progress: { _, _ in })
      } else {
        _ = try bench.open("n", on: system).exchange(
          with: RemotePeer(name: "y", address: y.directory), pulls: true, pushes: false, partitions: [],
          progress: { _, _ in })
      }
      let node = try bench.open("n")
      if hasChanged.withLock({ $0 }) {
        changes += 1
        #expect(try node.history.allSatisfy { !$0.contains("tenant=x") }, "\(turn)")
      }
      #expect(try node.history.count { $0.contains("tenant=z") } >= 2, "\(turn)")
      try node.checkInvariants()
      let report = try Node.verify(at: path, options: .init())
      #expect(report.corruption.isEmpty, "\(turn)")
    }
    #expect(changes > 2)
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
    #expect(try Node.verify(at: path, options: .init()).corruption.isEmpty)
  }
}

/// Real files. A hook runs before a file is opened for the given time.
private final class OvertakenFileSystem: FileSystem {
  private let base = POSIXFileSystem()
  private let left: Mutex<Int>
  private let path: String
  private let body: @Sendable () -> Void

  init(before turn: Int, openingsOf path: String, _ body: @escaping @Sendable () -> Void) {
    left = Mutex(turn)
    self.path = path
    self.body = body
  }

  func open(_ path: String, _ access: FileAccess) throws(LogError) -> any File {
    let isNow = left.withLock { left in
      if path == self.path { left -= 1 }
      return path == self.path && left == 0
    }
    if isNow { body() }
    return try base.open(path, access)
  }
  func list(_ directory: String) throws(LogError) -> [String] { try base.list(directory) }
  func createDirectory(_ path: String) throws(LogError) { try base.createDirectory(path) }
  func rename(_ path: String, to target: String) throws(LogError) { try base.rename(path, to: target) }
  func remove(_ path: String) throws(LogError) { try base.remove(path) }
  func syncDirectory(_ path: String) throws(LogError) { try base.syncDirectory(path) }
  func isOwn(_ directory: String) throws(LogError) -> Bool { try base.isOwn(directory) }
}
