import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaSimulation
import Testing

/// The order of repairs does not decide what survives: what the files of a damaged node told before one, they tell after it,
/// whoever else was asked; and who has everything mends everything.
@Suite struct RepairOrderTests {
  private static let schema = """
    type Row @model { tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String }
    """

  /// A node `a` whose files are damaged in several places, and whose tables are as the log was some time ago, or gone; `b`,
  /// which has all that it had; `c`, which has what there was before the middle of it; `d`, which holds one partition.
  private struct Ward {
    let bench: Bench
    var random: SplitMix64
    /// All events of `a` as they were.
    let truth: Set<Event>
    private(set) var story: [String] = []

    init(seed: UInt64) throws {
      var random = SplitMix64(seed: seed)
      bench = try Bench(seed: seed, segmentSize: seed % 3 == 0 ? 1 << 20 : 6000)
      for name in ["a", "b", "c"] { _ = try bench.node(name, RepairOrderTests.schema) }
      _ = try bench.node("d", RepairOrderTests.schema, scope: ["tenant=t0"])
      let (middle, lag) = (random.next() % 24, random.next() % 24)
      var tables: [String: Data] = [:]
      var number = 0
      for step in 0..<24 as Range<UInt64> {
        do {
          let a = try bench.open("a")
          for _ in 0...(random.next() % 4) {
            let text = String(repeating: String(random.next(), radix: 36), count: Int(random.next() % 12))
            try a.commit(
              #"{"op":"create","model":"Row","key":{"tenant":"t\#(random.next() % 3)","n":\#(number)},"fields":{"text":"\#(text)"}}"#
            )
            number += 1
          }
          if step % 5 == 4 { try a.sealIfWanted() }
          if step == middle { try a.sync(try bench.open("c")) }
        }
        if step == lag { tables = try bench.contents("a").filter { $0.key.hasPrefix("tables.sqlite") } }
      }
      var events: Set<Event> = []
      do {
        let a = try bench.open("a")
        for name in ["b", "d"] { try a.sync(try bench.open(name)) }
        try a.forEachEvent(LogFilter(), newestFirst: false) { stored, _ in
          events.insert(stored.event).inserted
        }
      }
      truth = events
      self.random = random
      try setTablesBack(to: self.random.next() % 4 == 0 ? [:] : tables)
      for _ in 0...(self.random.next() % 3) { try damage() }
    }

    private func setTablesBack(to tables: [String: Data]) throws {
      for name in try bench.contents("a").keys where name.hasPrefix("tables.sqlite") {
        try FileManager.default.removeItem(atPath: bench.path("a/" + name))
      }
      for (name, bytes) in tables where !name.hasSuffix("-shm") {
        try bytes.write(to: URL(fileURLWithPath: bench.path("a/" + name)))
      }
    }

    private mutating func damage() throws {
      let files = try logFiles.filter { $0.hasSuffix(".segment") || $0.hasSuffix(".journal") }
      let file = files[Int(random.next() % UInt64(files.count))]
      let url = URL(fileURLWithPath: bench.path("a/log/" + file))
      var bytes = [UInt8](try Data(contentsOf: url))
      let kinds = ["one byte", "some bytes", "header", "end", "missing bytes", "too many bytes"]
      let kind = kinds[Int(random.next() % UInt64(kinds.count))]
      let place = Int(random.next() % UInt64(bytes.count))
      switch kind {
      case "one byte": bytes[place] ^= 4
      case "some bytes": for index in place..<min(place + 40, bytes.count) { bytes[index] ^= 0x5A }
      case "header": for index in 0..<min(64, bytes.count) { bytes[index] ^= 0x5A }
      case "end": for index in max(0, bytes.count - 80)..<bytes.count { bytes[index] ^= 0x5A }
      case "missing bytes": bytes.removeSubrange(place..<min(place + 9, bytes.count))
      default: bytes.insert(contentsOf: [1, 2, 3], at: place)
      }
      try Data(bytes).write(to: url)
      story.append("\(kind) of \(file) at \(place)")
    }

    private var logFiles: [String] {
      get throws { try FileManager.default.contentsOfDirectory(atPath: bench.path("a/log")).sorted() }
    }

    /// What of the truth can be made out of the files of the log, proven or not.
    var told: Set<Event> {
      get throws {
        var told: Set<Event> = []
        for name in try logFiles where name != "watermark" {
          let source = try InspectedFile(path: bench.path("a/log/" + name), fileSystem: POSIXFileSystem())
          guard let format = try LogFileFormat(of: source) else { continue }
          try inspect(source, as: format) { part in
            let events = Result { try part.block?.events() ?? [] }
            if case .success(let events) = events { told.formUnion(events.map(\.event)) }
          }
        }
        return told.intersection(truth)
      }
    }

    mutating func repair(from names: [String], takesUnnoted: Bool) throws -> RepairReport {
      story.append("repair from \(names)" + (takesUnnoted ? " without notes" : ""))
      let peers = names.map { RemotePeer(name: $0, address: bench.path($0)) }
      return try bench.open("a").repair(from: peers, takesUnnoted: takesUnnoted) { _, _ in }
    }

    /// The names of some of the peers that lack something.
    mutating func drawPeers() -> [String] {
      [[], [], ["c"], ["d"], ["c", "d"], ["d", "c"]][Int(random.next() % 6)]
    }

    /// Writes to one partition, if it can be written to.
    mutating func write(_ number: Int) throws {
      let tenant = "t\(random.next() % 3)"
      let line = #"{"op":"create","model":"Row","key":{"tenant":"\#(tenant)","n":\#(number)}}"#
      let refusal = try bench.open("a").refusal(line)
      story.append("write to \(tenant)" + (refusal.isEmpty ? "" : ": \(refusal)"))
      #expect(["", "damagedPartition"].contains(refusal), "\(story)")
    }
  }

  @Test(arguments: (1...36) + [64, 175, 182, 251, 1312] as [UInt64]) func whatWasToldIsToldAfterAnyRepair(
    seed: UInt64
  )
    throws
  {
    var ward = try Ward(seed: seed)
    do {
      var told = try ward.told
      for round in 0...(ward.random.next() % 3) {
        let peers = ward.drawPeers()
        _ = try ward.repair(from: peers, takesUnnoted: ward.random.next() % 3 == 0)
        let after = try ward.told
        #expect(told.isSubset(of: after), "\(told.subtracting(after).count) of \(told.count): \(ward.story)")
        told = after
        if ward.random.next() % 2 == 0 { try ward.write(1000 + Int(round)) }
      }
      let last = try ward.repair(from: ["b"], takesUnnoted: false)
      #expect(last.isWhole, "\(last): \(ward.story)")
      let a = try ward.bench.open("a")
      try a.checkInvariants()
      #expect(try Node.verify(at: a.directory, options: .init()).damage.isEmpty, "\(ward.story)")
      // What nobody here could know of comes with it. Tables that had taken in a part of what the end of a journal held do
      // not tell of the rest: then the origin went on, and what it wrote is told apart as a fork.
      let b = try ward.bench.open("b")
      do { try a.sync(b) } catch let error as NodeError {
        guard case .replication(let reason) = error, reason.fork != nil else { throw error }
        let peer = RemotePeer(name: "b", address: b.directory)
        #expect(try a.repairFork(with: peer) { _, _ in }.events > 0, "\(ward.story)")
        try a.sync(b)
      }
      #expect(try a.digestTexts == b.digestTexts, "\(ward.story)")
      let events = try a.history.count
      #expect(events >= ward.truth.count, "\(ward.story)")
    } catch { Issue.record("\(error): \(ward.story)") }
  }
}
