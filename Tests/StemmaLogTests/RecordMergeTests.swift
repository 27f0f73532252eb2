import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

@Suite struct RecordMergeTests {
  /// More files than prefetch blocks, each of several blocks, compared with the reader that creates
  /// events.
  @Test(arguments: [3, 40]) func recordsComeInOrderFromManyFiles(segments: Int) throws {
    let disk = SimulatedFileSystem()
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    var maker = EventMaker(seed: 27)
    for _ in 0..<segments {
      _ = try log.append([Commit(maker.commit(150, textLength: 1000))])
      try log.seal()
    }
    let footer = try log.segment(#require(log.manifest.segments.first)).footer()
    #expect(footer.blocks.count > 2)
    _ = try log.append([Commit(maker.commit(50))])
    try log.sync()

    let before = disk.openFiles
    var expected: [RecordKey: Int] = [:]
    var order: [RecordKey] = []
    do {
      var reader = try log.eventsByKey()
      while let stored = try reader.next() {
        let key = RecordKey(stored.event)
        if expected.updateValue(expected[key, default: 0] + 1, forKey: key) == nil { order.append(key) }
      }
    }
    var found: [RecordKey] = []
    do {
      let merge = try log.recordFiles.open()
      while try merge.nextRecord() {
        merge.checkInvariants()
        var key: RecordKey?
        var count = 0
        while let source = merge.nextSource() {
          key = RecordKey(
            partition: merge.partition(ofRun: merge.run), model: merge.model(ofRun: merge.run),
            key: try Key(encoded: Array(source.cursor.keyBytes)))
          if count == 0 { #expect(key.map { $0.key.bytes.elementsEqual(merge.key) } == true) }
          var cursor = source.cursor
          repeat { count += 1 } while try source.nextOfRecord(&cursor)
        }
        let record = try #require(key)
        #expect(expected[record] == count)
        found.append(record)
      }
    }
    #expect(found == order)
    // A reader that stops early also closes its files.
    do { #expect(try log.recordFiles.open().nextRecord()) }
    #expect(disk.openFiles == before)
  }
}
