import Foundation
import StemmaEvents
import StemmaLog
import StemmaSchema
import Testing

@testable import StemmaReplication
import StemmaSimulation

/// Shipments between logs on a real file system.
@Suite struct LogShipmentTests {
  private let folder = FileManager.default.temporaryDirectory.appending(
    path: "stemma-\(ProcessInfo.processInfo.processIdentifier)-\(UInt64.random(in: 0 ... .max))")

  private func log(_ name: String, id: UInt64) throws -> Log {
    let path = folder.appending(path: name)
    try FileManager.default.createDirectory(at: path, withIntermediateDirectories: true)
    return try Log.create(
      in: path.path, id: LogID(id), fileSystem: POSIXFileSystem(),
      options: Log.Options(segmentSize: 1 << 20))
  }

  private func write(_ log: Log, _ node: inout MemoryNode, _ keys: [(partition: String, key: Int64)]) throws {
    let before = node.files[0].count
    node.write(keys, message: CommitMessage(author: "Ann"))
    _ = try log.append([Commit(node.files[0][before...].map(\.event), message: CommitMessage(author: "Ann"))])
    try log.sync()
  }

  /// Pulls into `receiver`. Returns the amounts that the sender reports.
  private func pull(
    _ sender: Log, into receiver: Log, _ scope: Scope, batchTarget: Int = ReplicationLimits.batchTarget,
    keeping limit: Int = ReplicationLimits.keptJournal, versionVector: VersionVector? = nil
  ) throws -> (end: TransferEnd, shipped: UInt64) {
    let held = try receiver.streams().restricted { scope.contains($0) }
    let source = LogSource(sender, versionVector: try versionVector ?? sender.streams(), keeping: limit)
    let before = sender.bytesRead
    let plan = try ShipmentPlan(
      source: source, scope: NarrowedScope(scope), above: held, names: ("sender", "receiver"))
    var writer = ShipmentWriter(
      source: source, plan: plan, sender: sender.id, bytesReadBefore: before, batchTarget: batchTarget)
    var reader = ShipmentReader(
      sender: sender.id, scope: NarrowedScope(scope), versionVector: held, schema: Schema(),
      names: ("receiver", "sender"))
    while let batch = try writer.next() {
      let verified = try reader.read(batch)
      _ = try verified.adopt(into: receiver, above: receiver.streams())
    }
    try reader.finish(plan.versionVector)
    return (writer.end, writer.bytesShipped)
  }

  private func contents(_ log: Log, _ scope: Scope = .everything) throws -> [String] {
    var reader = log.events(partitions: PartitionFilter { scope.contains($0) })
    var found: [String] = []
    while let stored = try reader.next() {
      found.append("\(stored.event.name) \(reader.message?.author ?? "-")")
    }
    return found.sorted()
  }

  @Test func logsOfAnyShapeAgreeAfterAPull() throws {
    defer { remove() }
    let sender = try log("sender", id: 1)
    var node = MemoryNode("sender", id: 1)
    var random = SplitMix64(seed: 19)
    for round in 0..<200 {
      node.padding = String((0..<1000).map { _ in random.element(Array("0123456789abcdefghijklmnopqrstuv")) })
      try write(sender, &node, (0..<20).map { (partition: "t=\($0)", key: Int64($0 * round % 40)) })
      if sender.wantsSealing { try sender.seal() }
    }
    #expect(try sender.files().count > 3)
    #expect(try sender.streams() == node.versionVector)

    let whole = try log("whole", id: 2)
    _ = try pull(sender, into: whole, .everything, batchTarget: 64 << 10)
    #expect(try contents(whole) == contents(sender))
    #expect(try whole.streams() == node.versionVector)

    let part = try log("part", id: 3)
    let scope = try Scope(patterns: ["t=3"])
    let first = try pull(sender, into: part, scope)
    #expect(try contents(part) == contents(sender, scope))
    #expect(first.end.bytesRead < (try sender.files().reduce(0) { $0 + $1.storedBytes }) / 4)

    // A relay sends the same events, and later events arrive separately.
    let relayed = try log("relayed", id: 4)
    _ = try pull(part, into: relayed, .everything)
    #expect(try contents(relayed) == contents(part))
    try write(sender, &node, [("t=3", 1), ("t=4", 1)])
    #expect(try pull(sender, into: part, scope).end.events == 1)
    #expect(try pull(sender, into: part, scope).end.events == 0)
    #expect(try part.streams() == node.versionVector.restricted { scope.contains($0) })
  }

  /// A pull of one partition of many reads only the relevant part of the footers.
  @Test func aPullReadsWhatItsPartitionsNeed() throws {
    defer { remove() }
    let sender = try log("sender", id: 1)
    var node = MemoryNode("sender", id: 1)
    var random = SplitMix64(seed: 29)
    for round in 0..<4 {
      for start in stride(from: 0, to: 1200, by: 100) {
        node.padding = String(
          (0..<1000).map { _ in random.element(Array("0123456789abcdefghijklmnopqrstuv")) })
        try write(sender, &node, (start..<start + 100).map { ("t=\($0)", Int64(round)) })
      }
      if round % 2 == 1 { try sender.seal() }
    }
    let versionVector = try sender.streams()
    #expect(versionVector == node.versionVector)
    let stored = try sender.files().reduce(0) { $0 + $1.storedBytes }
    let scope = try Scope(patterns: ["t=700"])
    let part = try log("part", id: 2)
    let end = try pull(sender, into: part, scope, versionVector: versionVector).end
    #expect(end.events == 4 && end.bytesRead < stored / 10)
    // After an earlier pull, only the newest file is read, and nothing of it if the receiver has
    // everything.
    let held = try part.streams()
    try write(sender, &node, [("t=700", 9), ("t=701", 9)])
    let before = sender.bytesRead
    #expect(try pull(sender, into: part, scope, versionVector: node.versionVector).end.events == 1)
    let journal = try sender.files().last?.storedBytes ?? 0
    // The rest is headers and trailers.
    #expect(sender.bytesRead - before <= 2 * journal + 512)
    #expect(try part.streams()[Partition("t=700"), node.origin].sequence == SequenceNumber(5))
    #expect(try pull(sender, into: part, scope, versionVector: node.versionVector).end.events == 0)
    // A forked receiver is detected before anything is read for it.
    var forked = held
    forked[Partition("t=700"), node.origin].hash += StreamHash(high: 0, low: 1)
    #expect {
      _ = try ShipmentPlan(
        source: LogSource(sender, versionVector: node.versionVector), scope: NarrowedScope(scope),
        above: forked,
        names: ("sender", "receiver"))
    } throws: { error in (error as? ReplicationError)?.fork?.sequence == SequenceNumber(4) }
    // Tables that are ahead of the log are detected, too.
    var ahead = node.versionVector
    ahead[Partition("t=700"), node.origin].sequence = SequenceNumber(6)
    #expect {
      _ = try pull(sender, into: log("other", id: 3), scope, versionVector: ahead)
    } throws: { error in if case .inconsistentLog = error as? ReplicationError { true } else { false } }
  }

  @Test func nothingAboveTheDurableEndIsShown() throws {
    defer { remove() }
    let sender = try log("sender", id: 1)
    var node = MemoryNode("sender", id: 1)
    try write(sender, &node, [("t=a", 1)])
    let durable = node.versionVector
    node.write("t=a")
    _ = try sender.append([Commit(Array(node.events[1...]))])
    let receiver = try log("receiver", id: 2)
    #expect(try pull(sender, into: receiver, .everything, versionVector: durable).end.events == 1)
    try sender.sync()
    #expect(try pull(sender, into: receiver, .everything).end.events == 1)
    #expect(try receiver.streams() == node.versionVector)
  }

  /// Planning and shipping share one read of a small journal.
  @Test func aSmallJournalIsReadOnce() throws {
    defer { remove() }
    let sender = try log("sender", id: 1)
    var node = MemoryNode("sender", id: 1)
    for round in 0..<5 { try write(sender, &node, (0..<20).map { ("t=\($0 % 4)", Int64($0 * round)) }) }
    let size = Int(try sender.files()[0].rawBytes)
    let scope = try Scope(patterns: ["t=1", "t=2"])
    var read: [UInt64] = []
    for (index, limit) in [size + 1, size, size - 1].enumerated() {
      let receiver = try log("receiver \(index)", id: UInt64(2 + index))
      read.append(try pull(sender, into: receiver, scope, keeping: limit).end.bytesRead)
      #expect(try contents(receiver) == contents(sender, scope))
      #expect(try receiver.streams() == node.versionVector.restricted { scope.contains($0) })
    }
    let stored = try sender.files()[0].storedBytes
    #expect(read[0] > 0 && read[0] < stored)
    #expect(read[1] == read[0] && read[2] == 2 * read[0])
  }

  private func remove() {
    do { try FileManager.default.removeItem(at: folder) } catch { Issue.record("\(error)") }
  }
}
