import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Blocks of a segment that do not stand where they were written.
extension InspectionTests {
  /// A log with one segment of many blocks.
  private func longSegment() throws -> (
    disk: SimulatedFileSystem, path: String, bytes: [UInt8], blocks: [InspectedPart]
  ) {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 27)
    maker.keysPerPartition = 60
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 8 << 20))
    _ = try log.append([Commit(maker.commit(400, textLength: 1_500))])
    try log.seal()
    log.close()
    let path = try #require(try paths(disk).first { $0.hasSuffix(".segment") })
    let blocks = try parts(path, disk).filter { $0.kind == .block }
    try #require(blocks.count > 5)
    return (disk, path, try #require(disk.contents(path)), blocks)
  }

  /// They were read only at the footer's places where the file was as long as it should, and never before one that had
  /// been found; what is read of the log, and what is made out in the file, were not the same blocks.
  @Test func blocksAreFoundWhereverTheyStandAndTheLogReadsTheSame() throws {
    let (disk, path, bytes, blocks) = try longSegment()
    let whole = try blocks.map { try #require(try $0.block?.events().map(\.event)) }
    let end = try #require(blocks.last.map { $0.offset + $0.length })
    let borders: [Int] = blocks.map { Int($0.offset) } + [Int(end)]
    func content(_ index: Int) -> ArraySlice<UInt8> { bytes[borders[index]..<borders[index + 1]] }
    func expectLost(_ lost: Set<Int>, _ spoilt: [UInt8], _ comment: Comment) throws {
      let found = try parts(spoilt, at: path, disk)
      try expectNoOverlap(found, size: spoilt.count)
      // A block that lacks a byte is made out in the file, but not read.
      let told = found.filter { part in
        let isMended = part.flaws.contains { if case .disagreement = $0.flaw { false } else { true } }
        return part.kind == .block && part.isChecked && !isMended
      }
      for part in told {
        let number = try #require(part.number)
        #expect(try part.block?.events().map(\.event) == whole[number - 1], comment)
      }
      let numbers = told.compactMap(\.number).map { $0 - 1 }
      #expect(Set(numbers) == Set(blocks.indices).subtracting(lost), comment)
      #expect(found.contains { !$0.flaws.isEmpty }, comment)
      let copy = disk.copy()
      copy.plant(spoilt, at: path)
      let log = try Log.open(in: "/log", id: testLog, fileSystem: copy, options: .init(mode: .readOnly))
      defer { log.close() }
      var reader = log.events(around: Omissions())
      let read: [Event] = try reader.rest().map(\.event)
      let expected: [Event] = whole.indices.filter { !lost.contains($0) }.flatMap { whole[$0] }
      #expect(Set(read) == Set(expected), comment)
      let damage = try log.verify()
      #expect(damage.count == max(1, lost.count), comment)
      #expect(lost.isEmpty == (damage.map(\.flaw) == [.digest]), comment)
    }
    let (second, fourth) = (borders[1] + 300, borders[3] + 300)
    var moved = bytes
    moved.insert(7, at: fourth)
    moved.remove(at: second)
    try expectLost([1, 3], moved, "one byte out, and one in")
    moved = bytes
    moved.removeSubrange(fourth..<fourth + 9)
    moved.remove(at: second)
    try expectLost([1, 3], moved, "bytes out at two places")
    for order in [[0, 2, 1], [2, 1, 0], [1, 2, 0]] {
      moved = bytes
      moved.replaceSubrange(borders[0]..<borders[3], with: order.flatMap { content($0) })
      try expectLost([], moved, "\(order)")
    }
    moved = bytes
    moved.insert(contentsOf: content(4), at: borders[1])
    try expectLost([], moved, "a copy of a later one")
    moved = bytes
    moved.replaceSubrange(borders[1]..<borders[2], with: content(4))
    try expectLost([1], moved, "written over with a later one")
  }

  /// Of each the checksum would be compared over the whole length that it says.
  @Test func whatLooksLikeBlocksEverywhereDoesNotMakeTheWorkGrowWithTheirLength() throws {
    let (disk, path, bytes, blocks) = try longSegment()
    let (start, end) = (Int(blocks[1].offset), Int(blocks[1].offset + blocks[1].length))
    let head = bytes[start..<start + BlockReader.headSize]
    let copy = disk.copy()
    var spoilt = bytes
    for place in stride(from: start, to: end - head.count, by: head.count) {
      spoilt.replaceSubrange(place..<place + head.count, with: head)
    }
    copy.plant(spoilt, at: path)
    let found = try parts(path, copy)
    #expect(copy.bytesRead < 24 * spoilt.count)
    let read: [Int] = found.filter { $0.block != nil }.compactMap(\.number)
    #expect(read == Array(1...blocks.count).filter { $0 != 2 })
  }
}
