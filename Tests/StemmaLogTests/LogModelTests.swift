import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Any sequence of operations on a log equals the same sequence on a list in memory.
@Suite struct LogModelTests {
  @Test(arguments: 1...UInt64(Trials.count(16)))
  func anySequenceEqualsAListInMemory(seed: UInt64) throws {
    let disk = SimulatedFileSystem(seed: seed)
    var random = SplitMix64(seed: seed &* 7919)
    var maker = EventMaker(seed: seed)
    let options = Log.Options(segmentSize: 1500 + random.below(6000), level: 1)
    var log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: options)
    var model: [StoredEvent] = []
    var messages: [CommitID: CommitMessage] = [:]
    var purged: Set<Partition> = []
    for step in 0..<25 {
      switch random.below(10) {
      case 0...4:
        let commits = (0..<1 + random.below(3)).map { _ in
          let events = maker.commit(random.below(12)).filter { !purged.contains($0.partition) }
          return Commit(
            events, message: random.below(2) == 0 ? CommitMessage(author: "tim \(step)") : CommitMessage())
        }
        let positions = try log.append(commits, sharingFrames: step % 2 == 0)
        for (commit, first) in zip(commits, positions) {
          for (index, event) in commit.events.enumerated() {
            model.append(
              StoredEvent(event, at: first.advanced(by: UInt64(index))))
            if !commit.message.isEmpty { messages[event.commit] = commit.message }
          }
        }
        try log.sync()
      case 5:
        let events = maker.commit(1 + random.below(40), origin: Origin(99))
          .filter { !purged.contains($0.partition) }
        if events.isEmpty { break }
        let message = CommitMessage(author: "peer", text: "step \(step)")
        let first = try log.adopt(AdoptedEvents(events, messages: [events[0].commit: message]))
        for (index, event) in events.enumerated() {
          model.append(StoredEvent(event, at: first.advanced(by: UInt64(index))))
          messages[event.commit] = message
        }
      case 6: try log.seal()
      case 7:
        if random.below(3) == 0 {
          let partition = Partition("tenant=" + maker.partitions[random.below(3)])
          purged.insert(partition)
          try log.purge { $0 == partition }
          model.removeAll { $0.event.partition == partition }
        }
      case 8: log = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: options)
      default: _ = try log.refresh()
      }
      log.checkInvariants()
      try expect(log, equals: model, messages)
      let readOnly = try Log.open(
        in: "/log", id: testLog, fileSystem: disk, options: Log.Options(mode: .readOnly))
      try expect(readOnly, equals: model, messages)
      let filter = PartitionFilter { $0 == Partition("tenant=b") }
      var reader = log.events(partitions: filter)
      #expect(try reader.rest() == model.filter { filter($0.event.partition) })
      reader = try log.eventsByKey(partitions: filter)
      #expect(try reader.rest() == sortedByKey(model.filter { filter($0.event.partition) }))
      if let picked = model.isEmpty ? nil : model[random.below(model.count)] {
        reader = log.events(of: RecordKey(picked.event))
        #expect(try reader.rest() == model.filter { RecordKey($0.event) == RecordKey(picked.event) })
        let records = Set(model.indices.filter { $0 % 3 == 1 }.map { RecordKey(model[$0].event) })
        reader = log.events(of: Array(records), to: picked.position)
        let earlier = model.filter { $0.position < picked.position && records.contains(RecordKey($0.event)) }
        #expect(try byRecord(reader.rest()) == byRecord(earlier))
        reader = log.events(from: picked.position)
        #expect(try reader.rest() == model.filter { $0.position >= picked.position })
        reader = log.eventsNewestFirst(to: picked.position)
        #expect(try reader.rest() == model.filter { $0.position < picked.position }.reversed())
        reader = try log.eventsByKey(to: picked.position)
        #expect(try reader.rest() == sortedByKey(model.filter { $0.position < picked.position }))
      }
      if purged.isEmpty { #expect(try log.streams() == versionVector(of: model)) }
    }
    #expect(try log.verify() == [])
    log.close()
    #expect(disk.openFiles == 0)
  }

  private func expect(_ log: Log, equals model: [StoredEvent], _ messages: [CommitID: CommitMessage]) throws {
    var reader = log.events()
    var found: [StoredEvent] = []
    while let event = try reader.next() {
      found.append(event)
      #expect(reader.message == messages[event.event.commit])
    }
    #expect(found == model)
    reader = log.eventsNewestFirst()
    #expect(try reader.rest() == model.reversed())
    reader = try log.eventsByKey()
    #expect(try reader.rest() == sortedByKey(model))
    #expect(try log.files().reduce(0) { $0 + $1.events } == UInt64(model.count))
  }

  /// The events of each record in order.
  private func byRecord(_ events: [StoredEvent]) -> [RecordKey: [StoredEvent]] {
    Dictionary(grouping: events) { RecordKey($0.event) }
  }

  private func versionVector(of events: [StoredEvent]) -> VersionVector {
    var versionVector = VersionVector()
    for stored in events {
      let event = stored.event
      let head = versionVector[event.partition, event.id.origin]
      versionVector[event.partition, event.id.origin] = StreamHead(
        sequence: event.id.sequence, hash: head.hash + event.digest.hash)
    }
    return versionVector
  }
}
