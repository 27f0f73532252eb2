import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// What stands in a journal or a watermark where it was not written, and what does not stand there any more.
extension InspectionTests {
  /// The facts of the frame behind it were told as its own, and the bytes in which nothing stands as "575–574".
  @Test func aFrameThatIsGoneIsANumberAndNothingIsToldOfIt() throws {
    let (disk, path, bytes, frames) = try journal()
    for index in frames.indices.dropLast() {
      let (start, end) = (Int(frames[index].offset), Int(frames[index].offset + frames[index].length))
      let found = try parts(Array(bytes[..<start] + bytes[end...]), at: path, disk).filter {
        $0.kind == .frame
      }
      #expect(found.map(\.number) == frames.map(\.number))
      let gone = found[index]
      #expect(gone.offset == UInt64(start) && gone.length == 0 && gone.facts.isEmpty && gone.block == nil)
      #expect(gone.flaws.map(\.flaw) == [.lacking(UInt64(end - start))] && gone.flaws[0].range == nil)
      #expect(found.filter { $0.number != index + 1 }.allSatisfy { $0.flaws.isEmpty })
    }
    // Of what is too short to be its header nothing is told either.
    let start = Int(frames[1].offset)
    let found = try parts(Array(bytes[..<(start + 8)] + bytes[Int(frames[2].offset)...]), at: path, disk)
    #expect(found.first { !$0.flaws.isEmpty }?.facts.isEmpty == true)
    // All of a header, and nothing else.
    let last = Int(frames[4].offset)
    let headless = try #require(
      try parts(Array(bytes[..<last] + bytes[(last + JournalFrame.headerSize)...]), at: path, disk).last)
    #expect(headless.flaws.map(\.flaw) == [.lacking(UInt64(JournalFrame.headerSize))])
    #expect(headless.flaws[0].range == nil && headless.flaws[0].offset == UInt64(last))
  }

  /// A frame of no bytes was told before it, and its events twice.
  @Test func aFrameThatStandsTwiceIsCalledACopy() throws {
    let (disk, path, bytes, frames) = try journal()
    let events = try frames.map { try $0.block?.events() }
    for index in frames.indices {
      let frame = bytes[Int(frames[index].offset)..<Int(frames[index].offset + frames[index].length)]
      for place in frames[index...].map({ Int($0.offset + $0.length) }) {
        let found = try parts(Array(bytes[..<place] + frame + bytes[place...]), at: path, disk)
        let copies = found.filter { !$0.flaws.isEmpty }
        #expect(copies.map(\.kind) == [.unknown] && copies[0].offset == UInt64(place), "\(index), \(place)")
        #expect(copies[0].flaws.map(\.flaw) == [.surplus(UInt64(frame.count))])
        #expect(copies[0].facts.map(\.value) == [.text("a copy of the frame at \(frames[index].offset)")])
        let whole = found.filter { $0.kind == .frame }
        #expect(
          try whole.map(\.number) == frames.map(\.number) && whole.map { try $0.block?.events() } == events)
        #expect(try parts(path, disk, block: index + 1).map(\.kind) == [.frame])
      }
    }
  }

  /// All but the first were told as frames of their own, and their events twice.
  @Test func framesThatStandTwiceAreCopiesHoweverManyTheyAre() throws {
    let (disk, path, bytes, frames) = try journal()
    for hit in [0..<5, 1..<3] {
      let last = frames[hit.upperBound - 1]
      let copies = bytes[Int(frames[hit.lowerBound].offset)..<Int(last.offset + last.length)]
      let found = try parts(Array(bytes + copies), at: path, disk)
      #expect(found.compactMap(\.number) == frames.map(\.number))
      let rest = found.filter { $0.number == nil && $0.kind != .header }
      #expect(rest.map(\.length) == frames[hit].map(\.length))
      #expect(rest.allSatisfy { $0.kind == .unknown && $0.block == nil && !$0.flaws.isEmpty })
      #expect(
        rest.map { $0.facts.first?.value }
          == frames[hit].map { .text("a copy of the frame at \($0.offset)") })
      try expectNoOverlap(found, size: bytes.count + copies.count)
    }
  }

  /// What stood behind it was no frame any more, or far from its place.
  @Test func aLongFrameThatIsGoneOrStandsTwiceHidesNothing() throws {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 23)
    maker.keysPerPartition = 60
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 64 << 20))
    for count in [2_000, 2_000, 10, 2_000] {
      _ = try log.append([Commit(maker.commit(count, textLength: 300))])
      try log.sync()
    }
    log.close()
    let path = try #require(try paths(disk).first { $0.hasSuffix(".journal") })
    let bytes = try #require(disk.contents(path))
    let frames = try parts(path, disk).filter { $0.kind == .frame }
    let (start, end) = (Int(frames[1].offset), Int(frames[1].offset + frames[1].length))
    #expect(end - start > InspectionLimits.shift)
    for place in [1, 2].map({ Int(frames[$0].offset + frames[$0].length) }) {
      let found = try parts(Array(bytes[..<place] + bytes[start..<end] + bytes[place...]), at: path, disk)
      #expect(found.map(\.number).compactMap { $0 } == [1, 2, 3, 4] && found.count == 6, "\(place)")
      #expect(found.filter { !$0.flaws.isEmpty }.map(\.kind) == [.unknown], "\(place)")
    }
    let found = try parts(Array(bytes[..<start] + bytes[end...]), at: path, disk)
    #expect(found.map(\.kind) == [.header, .frame, .frame, .frame, .frame])
    #expect(found.dropFirst().map { $0.flaws.isEmpty } == [true, false, true, true])
    #expect(found[2].flaws.map(\.flaw) == [.lacking(UInt64(end - start))])
  }

  /// Frames that were synced together, and stood further from their place than 64 KiB, were lost.
  @Test func framesThatConfirmEachOtherAreReadAtAnyDistance() throws {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 25)
    maker.keysPerPartition = 60
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 64 << 20))
    for group in [1, 4, 1] {
      let commits = (0..<group).map { _ in Commit(maker.commit(20, textLength: 9_000)) }
      _ = try log.append(commits)
      try log.sync()
    }
    log.close()
    let path = try #require(try paths(disk).first { $0.hasSuffix(".journal") })
    let bytes = try #require(disk.contents(path))
    let frames = try parts(path, disk).filter { $0.kind == .frame }
    try #require(frames.count == 6 && frames.allSatisfy { $0.length > 72_000 })
    func place(_ index: Int) -> Int { index < 6 ? Int(frames[index].offset) : bytes.count }
    func content(_ index: Int) -> ArraySlice<UInt8> { bytes[place(index)..<place(index + 1)] }
    func expectLost(_ lost: Set<Int>, _ spoilt: [UInt8]) throws {
      let found = try parts(spoilt, at: path, disk)
      try expectNoOverlap(found, size: spoilt.count)
      let read = try Set(found.filter(\.isChecked).compactMap { try $0.block?.events().first?.arrival })
      let whole = try frames.indices.filter { !lost.contains($0) }.map {
        try #require(frames[$0].block?.events().first?.arrival)
      }
      #expect(read == Set(whole), "\(lost)")
    }
    let junk = [UInt8](repeating: 7, count: 2 * InspectionLimits.shift)
    let middle = place(1) + 500
    try expectLost([1, 2], Array(bytes[..<middle] + bytes[(place(2) + 500)...]))
    // It stands between one that is gone and one that was synced before.
    try expectLost([1, 2, 3], Array(bytes[..<place(1)] + bytes[place(4)...]))
    try expectLost([1], Array(bytes[..<middle] + junk + bytes[middle...]))
    // What stands on both sides of the second is damaged.
    var two = bytes[..<middle] + bytes[(middle + 70_000)...]
    two.replaceSubrange(place(3) - 69_000..<place(3) - 67_000, with: repeatElement(9, count: 2_000))
    try expectLost([1, 3], Array(two))
    // In each other's place, and moved.
    for order in [[0, 2, 1, 3, 4, 5], [0, 4, 1, 2, 3, 5]] {
      try expectLost([], Array(bytes[..<place(0)] + order.flatMap { content($0) }))
    }
  }

  /// All that stands between its place and the other one was called other bytes, if the frame was believed at all.
  @Test(arguments: 1...4) func whateverFrameIsDisplacedNoWholeFrameIsLost(seed: UInt64) throws {
    let disk = SimulatedFileSystem()
    var random = SplitMix64(seed: seed)
    var maker = EventMaker(seed: seed)
    maker.keysPerPartition = 60
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 64 << 20))
    for group in [1, 5, 2, 6, 1, 4, 1] {
      let commits = (0..<group).map { _ in
        Commit(random.chance(40) ? maker.commit(20, textLength: 9_000) : maker.commit(1 + random.below(9)))
      }
      _ = try log.append(commits)
      try log.sync()
    }
    log.close()
    let path = try #require(try paths(disk).first { $0.hasSuffix(".journal") })
    let bytes = try #require(disk.contents(path))
    let frames = try parts(path, disk).filter { $0.kind == .frame }
    try #require(frames.count == 20 && bytes.count > 8 * InspectionLimits.shift)
    let whole = frames.map { Array(bytes[Int($0.offset)..<Int($0.offset + $0.length)]) }
    let arrivals = try frames.map { try #require($0.block?.events().first?.arrival) }
    for step in 0..<12 {
      let (first, second) = (random.below(20), random.below(20))
      var lost: Set<Int> = []
      // What stands there, in order: a frame that is whole, or bytes that are none.
      var content = whole.indices.map { (frame: Optional($0), bytes: whole[$0]) }
      if step.isMultiple(of: 2) {
        content.insert(content.remove(at: first), at: second)
      } else {
        var size = whole[first].count
        while size > 0, content.count > second {
          let over = content.remove(at: second)
          if over.bytes.count > size { content.insert((nil, Array(over.bytes[size...])), at: second) }
          if let frame = over.frame, frame != first { lost.insert(frame) }
          size -= over.bytes.count
        }
        content.insert((first, whole[first]), at: second)
      }
      let third = random.below(content.count)
      let middle = content[third].bytes.count / 2
      let change = [1, 3, 100, 5_000][random.below(4)]
      if random.chance(50) {
        content[third].bytes.insert(contentsOf: repeatElement(7, count: change), at: middle)
      } else {
        content[third].bytes.removeSubrange(middle..<min(middle + change, content[third].bytes.count))
      }
      if let frame = content[third].frame, content.filter({ $0.frame == frame }).count == 1 {
        lost.insert(frame)
      }
      let spoilt = bytes[..<Int(frames[0].offset)] + content.flatMap(\.bytes)
      let found = try parts(Array(spoilt), at: path, disk)
      try expectNoOverlap(found, size: spoilt.count)
      let read = try found.filter(\.isChecked).compactMap { try $0.block?.events().first?.arrival }
      let missing = whole.indices.filter { !lost.contains($0) && !read.contains(arrivals[$0]) }
      #expect(missing.isEmpty && Set(read).count == read.count, "\(step): \(first), \(second), \(third)")
    }
  }

  /// Frames of another file of the log, which follow each other as these do.
  @Test func framesOfAnotherJournalAreNotTakenForThoseOfThisOne() throws {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 26)
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 64 << 20))
    var contents: [[UInt8]] = []
    for _ in 0..<2 {
      for _ in 0..<300 { _ = try log.append([Commit(maker.commit(1))]) }
      try log.sync()
      let path = try #require(try paths(disk).last { $0.hasSuffix(".journal") })
      contents.append(try #require(disk.contents(path)))
      try log.seal()
    }
    log.close()
    #expect(contents.count == 2)
    let (first, second) = (contents[0], contents[1])
    let junk = [UInt8](repeating: 1, count: 100)
    let spoilt = first[..<JournalHeader.size] + junk + second[JournalHeader.size...]
    let found = try parts(Array(spoilt), at: "/log/spoilt.journal", disk)
    #expect(found.allSatisfy { $0.block == nil })
  }

  @Test func framesThatChangedPlacesAreAllRead() throws {
    let (disk, path, bytes, frames) = try journal()
    func content(_ index: Int) -> ArraySlice<UInt8> {
      bytes[Int(frames[index].offset)..<Int(frames[index].offset + frames[index].length)]
    }
    let front = bytes[..<Int(frames[1].offset)]
    let spoilt = Array(front + content(2) + content(1) + content(3) + content(4))
    let found = try parts(spoilt, at: path, disk)
    let read = found.filter { $0.block != nil }
    #expect(
      try read.map { try $0.block?.events() } == [0, 2, 1, 3, 4].map { try frames[$0].block?.events() })
    #expect(found.filter { !$0.flaws.isEmpty }.map(\.offset) == [read[1].offset, read[2].offset])
    try expectNoOverlap(found, size: spoilt.count)
  }

  /// Only the block, or the frame, was named.
  @Test func aByteThatIsMissingInAFrameIsFoundAndItIsReadAsItWas() throws {
    let (disk, path, bytes, frames) = try journal()
    for (index, count) in [(0, 1), (1, 2), (3, 1), (3, 2)] {
      for place in stride(from: JournalFrame.headerSize, to: Int(frames[index].length) - 2, by: 61) {
        var changed = bytes
        let start = Int(frames[index].offset) + place
        changed.removeSubrange(start..<start + count)
        let part = try #require(try parts(changed, at: path, disk).first { !$0.flaws.isEmpty })
        #expect(part.number == index + 1 && part.flaws.map(\.flaw) == [.lacking(UInt64(count))])
        if count > 1 {
          #expect(part.flaws[0].range == part.offset..<part.offset + part.length && part.block == nil)
          continue
        }
        #expect(
          part.flaws[0].range == nil && abs(Int(part.flaws[0].offset) - start) <= 2, "\(index), \(place)")
        #expect(try part.isChecked && part.block?.events() == frames[index].block?.events())
      }
    }
  }

  /// The one nearest to the end was taken for it.
  @Test func aByteThatMayHaveStoodAtSeveralPlacesIsNotPutIn() {
    var random = SplitMix64(seed: 9_336)
    let bytes = (0..<2_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    let rest = Array(bytes[..<1_000] + bytes[1_001...])
    #expect((rest[..<705] + [205] + rest[705...]).crc32c == bytes.crc32c)
    #expect(WrongByte.lacking(in: rest, expected: bytes.crc32c) == nil)
    let less = Array(bytes[..<999] + bytes[1_000...])
    let found = WrongByte.lacking(in: less, expected: bytes.crc32c)
    #expect(found?.index == 999 && found?.byte == bytes[999])
    // Beside equal bytes it is all the same.
    let run = [1, 2] + [UInt8](repeating: 7, count: 40) + [3]
    let one = WrongByte.lacking(in: Array(run[..<10] + run[11...]), expected: run.crc32c)
    #expect(one?.byte == 7 && (2...41).contains(one?.index ?? 0))
  }

  /// With bytes that stood elsewhere the checksum held, too, and the block could be read: other events were told, as checked.
  @Test func ofALongFrameThatLacksBytesNothingWrongIsTold() throws {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 5)
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 1 << 20))
    for length in [68_000, 10] {
      _ = try log.append([Commit(maker.commit(1, textLength: length))])
      try log.sync()
    }
    log.close()
    let path = try #require(try paths(disk).first { $0.hasSuffix(".journal") })
    let bytes = try #require(disk.contents(path))
    let frames = try parts(path, disk).filter { $0.kind == .frame }
    let events = try frames[0].block?.events()
    // Without the byte at 30445 the checksum holds with one at 39610, too, and the block can be read.
    for (place, count) in [(30_445, 1), (17_597, 1), (17_597, 2)] {
      let cut = Array(bytes[..<place] + bytes[(place + count)...])
      let found = try parts(cut, at: path, disk).filter { $0.kind == .frame }
      #expect(found.map(\.number) == [1, 2] && found[0].flaws.map(\.flaw) == [.lacking(UInt64(count))])
      #expect(try found[0].block == nil || found[0].block?.events() == events, "\(place), \(count)")
      #expect((found[0].block == nil) == (place == 30_445 || count == 2), "\(place), \(count)")
    }
  }

  /// Its numbers were told, made of bytes that are others.
  @Test func ofAFrameWhoseHeaderLacksAByteNoNumbersAreTold() throws {
    let (disk, path, bytes, frames) = try journal()
    let whole = Set(frames[1].facts.map { "\($0)" })
    for place in 0..<JournalFrame.headerSize {
      var changed = bytes
      changed.remove(at: Int(frames[1].offset) + place)
      let part = try #require(try parts(changed, at: path, disk).first { !$0.flaws.isEmpty })
      #expect(part.number == 2 && part.flaws.map(\.flaw) == [.lacking(1)], "\(place)")
      #expect(part.facts.isEmpty || Set(part.facts.map { "\($0)" }) == whole, "\(place): \(part.facts)")
    }
  }

  /// What is left of a frame was called the header's end.
  @Test func whatIsLeftOfAFrameIsNoHeader() throws {
    let (disk, path, bytes, frames) = try journal()
    for left in [1, 3, 4, 30, 60] {
      let cut = Array(bytes[(Int(frames[1].offset) - left)...])
      let found = try parts(cut, at: path, disk)
      #expect(found[0].kind == .header && found[0].length == 0, "\(left)")
      #expect(found[0].flaws.map(\.flaw.description) == ["what is left of it is among the bytes that follow"])
      #expect(found[1].kind == .frame && found[1].length == UInt64(left) && !found[1].flaws.isEmpty)
      #expect(
        try found.dropFirst(2).map { try $0.block?.events() }
          == frames.dropFirst().map { try $0.block?.events() }, "\(left)")
      try expectNoOverlap(found, size: cut.count)
    }
  }

  /// Both slots were damaged as a whole, and under another name it was no file of any kind.
  @Test func aWatermarkThatLostItsFirstBytesIsOneAndItsSlotsAreRead() throws {
    let disk = try disk()
    let whole = try parts("/log/watermark", disk)
    let bytes = try #require(disk.contents("/log/watermark"))
    let size = Watermark.slotSize
    let once = Array(bytes[..<size]) + [UInt8](repeating: 0, count: size)
    for (content, isOnce) in [(bytes, false), (once, true)] {
      for count in [1, 8, 16, 17, 300] {
        if isOnce, count > 16 { continue }
        let copy = disk.copy()
        copy.plant(Array(content[count...]), at: "/log/fragment")
        let found = try parts("/log/fragment", copy)
        try #require(found.map(\.kind) == [.slot, .slot], "\(count)")
        try expectNoOverlap(found, size: content.count - count)
        #expect(found[0].flaws.map(\.flaw) == [.lacking(UInt64(count))])
        #expect(found[0].facts.map(\.value) == (count > 16 ? [] : whole[0].facts.map(\.value)))
        #expect(found[1].flaws.isEmpty)
        if !isOnce { #expect(found[1].facts.map(\.value) == whole[1].facts.map(\.value)) }
      }
    }
    let found = try parts([1, 2, 3] + bytes, at: "/log/watermark", disk)
    #expect(found.map { $0.flaws.map(\.flaw) } == [[.surplus(3)], []])
    #expect(found[1].facts.map(\.value) == whole[1].facts.map(\.value))
  }

  /// It was the first one, and both in each other's place were undamaged.
  @Test func theSecondSlotOfAWatermarkIsKnownWhereverItStands() throws {
    let disk = try disk()
    let whole = try parts("/log/watermark", disk)
    let bytes = try #require(disk.contents("/log/watermark"))
    let (first, second) = (bytes[..<Watermark.slotSize], bytes[Watermark.slotSize...])
    for content in [Array(second), Array(second + first)] {
      let found = try parts(content, at: "/log/watermark", disk)
      #expect(found.prefix(2).map(\.length) == [0, UInt64(Watermark.slotSize)])
      #expect(found[0].number == 1 && found[0].flaws.map(\.flaw) == [.lacking(UInt64(Watermark.slotSize))])
      #expect(found[0].facts.isEmpty)
      #expect(found[1].number == 2 && found[1].flaws.isEmpty)
      #expect(found[1].facts.map(\.value) == whole[1].facts.map(\.value))
      #expect(found.dropFirst(2).allSatisfy { !$0.flaws.isEmpty })
      try expectNoOverlap(found, size: content.count)
    }
  }

  /// They were other bytes, from there to the end of the zeros behind it.
  @Test func theLastFrameIsNamedWhateverIsWrongInIt() throws {
    let (disk, path, bytes, frames) = try journal()
    let last = Int(frames[4].offset)
    for (places, rest) in [(40..<60, 0), (40..<60, 1000), (0..<20, 0), (0..<20, 1000), (200..<203, 1000)] {
      var spoilt = bytes + [UInt8](repeating: 0, count: rest)
      for place in places { spoilt[last + place] ^= UInt8(place % 251) | 1 }
      let found = try parts(spoilt, at: path, disk)
      let damaged = found.filter { !$0.flaws.isEmpty }
      #expect(damaged.map(\.kind) == [.frame] && damaged[0].number == 5, "\(places)")
      #expect(damaged[0].offset == UInt64(last) && damaged[0].length == frames[4].length, "\(places)")
      // A header that is damaged leaves the block readable.
      #expect(try damaged[0].block?.events() == (places.lowerBound == 0 ? frames[4].block?.events() : nil))
      #expect(!damaged[0].isChecked)
      #expect(found.count == frames.count + (rest > 0 ? 2 : 1), "\(places)")
    }
  }
}
