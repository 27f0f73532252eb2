import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Taking files apart that are not as they were written.
@Suite struct InspectionTests {
  /// Two segments, of which the second replaces another, and a journal.
  func disk() throws -> SimulatedFileSystem {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 21)
    maker.keysPerPartition = 60
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 1 << 20))
    _ = try log.append([Commit(maker.commit(400, textLength: 300), note: CommitNote(by: "tim"))])
    try log.seal()
    _ = try log.append([Commit(maker.commit(300, textLength: 200))])
    try log.seal()
    try log.purge { $0 == Partition("tenant=b") }
    for _ in 0..<5 {
      _ = try log.append([Commit(maker.commit(30))])
      try log.sync()
    }
    log.close()
    return disk
  }

  func parts(
    _ path: String, _ disk: SimulatedFileSystem, block: Int? = nil, isComplete: Bool = true
  ) throws -> [InspectedPart] {
    let source = try InspectedFile(path: path, fileSystem: disk)
    guard let format = try LogFileFormat(of: source) else { return [] }
    var parts: [InspectedPart] = []
    try inspect(source, as: format, InspectionRequest(block: block, isComplete: isComplete)) {
      parts.append($0)
    }
    return parts
  }

  func paths(_ disk: SimulatedFileSystem) throws -> [String] {
    try disk.list("/log").map { "/log/" + $0 }
  }

  @Test func partsOfWholeFilesCoverEveryByteOnceAndHaveNoFlaw() throws {
    let disk = try disk()
    var events = 0
    for path in try paths(disk) {
      let parts = try parts(path, disk)
      var end: UInt64 = 0
      for part in parts {
        #expect(part.offset == end, "\(path): \(part.kind)")
        #expect(part.flaws.isEmpty, "\(path): \(part.kind) \(part.flaws)")
        end = part.offset + part.length
        events += part.block?.count ?? 0
      }
      #expect(end == disk.contents(path).map { UInt64($0.count) })
    }
    let log = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: .readOnly))
    #expect(try events == log.allEvents().count)
  }

  @Test func oneWrongByteOfABlockIsFoundAndTheBlockReadAsItWas() throws {
    let disk = try disk()
    let path = try #require(
      try paths(disk).first { path in
        try path.hasSuffix(".segment") && parts(path, disk).count { $0.kind == .block } > 1
      })
    let bytes = try #require(disk.contents(path))
    let whole = try parts(path, disk).filter { $0.kind == .block }
    var random = SplitMix64(seed: 5)
    for _ in 0..<300 {
      let chosen = whole[random.below(whole.count)]
      let place = Int(chosen.offset) + random.below(Int(chosen.length))
      let mask = UInt8(1 + random.below(255))
      var spoilt = bytes
      spoilt[place] ^= mask
      let copy = disk.copy()
      copy.plant(spoilt, at: path)
      let damaged = try parts(path, copy, isComplete: false).filter { !$0.flaws.isEmpty }
      #expect(damaged.map(\.number) == [chosen.number], "seed 5, byte \(place)")
      let part = try #require(damaged.first)
      #expect(
        part.flaws.map(\.byte)
          == [WrongByte(offset: UInt64(place), found: spoilt[place], expected: bytes[place])])
      #expect(try part.block?.events() == chosen.block?.events())
    }
  }

  @Test func aBlockIsShownAloneAndThoseThatAreNotThereAreNone() throws {
    let disk = try disk()
    for path in try paths(disk) {
      let blocks = try parts(path, disk).filter { $0.number != nil }
      for block in blocks {
        #expect(try parts(path, disk, block: block.number).map(\.offset) == [block.offset])
      }
      #expect(try parts(path, disk, block: blocks.count + 1).isEmpty)
    }
  }

  @Test func aSegmentIsReadFromBothEndsWhateverIsCutOff() throws {
    let disk = try disk()
    let path = try #require(try paths(disk).first { $0.hasSuffix(".segment") })
    let bytes = try #require(disk.contents(path))
    let blocks = try parts(path, disk).filter { $0.kind == .block }
    for count in stride(from: 1, to: bytes.count, by: 97) {
      let copy = disk.copy()
      copy.plant(Array(bytes[..<count]), at: path)
      let ahead = try parts(path, copy)
      let whole = blocks.filter { $0.offset + $0.length <= UInt64(count) }
      #expect(
        try ahead.compactMap(\.block).flatMap { try $0.events() }
          == whole.flatMap { try $0.block?.events() ?? [] })
      #expect(ahead.contains { !$0.flaws.isEmpty }, "cut to \(count)")

      copy.plant(Array(bytes[count...]), at: path)
      let behind = try parts(path, copy)
      let left = blocks.filter { $0.offset >= UInt64(count) }
      // With the trailer gone there is nothing that says where the blocks are, but they are found.
      #expect(
        try behind.compactMap(\.block).flatMap { try $0.events() }
          == left.flatMap { try $0.block?.events() ?? [] })
      #expect(behind.contains { !$0.flaws.isEmpty }, "first \(count) bytes gone")
    }
  }

  /// A disk with a segment of several blocks, its bytes and its parts.
  func segment() throws -> (
    disk: SimulatedFileSystem, path: String, bytes: [UInt8], parts: [InspectedPart]
  ) {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 22)
    maker.keysPerPartition = 60
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 4 << 20))
    _ = try log.append([Commit(maker.commit(1500, textLength: 300))])
    try log.seal()
    log.close()
    let path = try #require(try paths(disk).first { $0.hasSuffix(".segment") })
    let parts = try parts(path, disk)
    #expect(parts.count { $0.kind == .block } > 3)
    return (disk, path, try #require(disk.contents(path)), parts)
  }

  func parts(_ bytes: [UInt8], at path: String, _ disk: SimulatedFileSystem) throws -> [InspectedPart] {
    let copy = disk.copy()
    copy.plant(bytes, at: path)
    return try parts(path, copy, isComplete: false)
  }

  /// Nothing was said to be damaged, since every byte that is there is as it was written.
  @Test func aSegmentThatEndsWithABlockHasLostItsEnd() throws {
    let (disk, path, bytes, whole) = try segment()
    for block in whole where block.kind == .block {
      let end = block.offset + block.length
      let found = try parts(Array(bytes[..<Int(end)]), at: path, disk)
      #expect(found.filter { !$0.flaws.isEmpty }.map(\.kind) == [.trailer])
      #expect(found.last?.offset == end && found.last?.length == 0)
      #expect(found.compactMap(\.number).last == block.number)
      #expect(!found.contains { $0.isChecked }, "the checksums are gone with the footer")
    }
    #expect(!whole.contains { $0.kind == .block && !$0.isChecked })
  }

  /// The second one was read, and the first one not told of.
  @Test func bytesBehindTheTrailerAreDamageAndThoseBeforeItAreReadAsTheyStand() throws {
    let (disk, path, bytes, whole) = try segment()
    for more in [bytes, [1], Array(bytes[..<100]), Array(bytes.suffix(100))] {
      let found = try parts(bytes + more, at: path, disk)
      #expect(found.dropLast().map(\.offset) == whole.map(\.offset))
      #expect(found.dropLast().allSatisfy { $0.flaws.isEmpty })
      let last = try #require(found.last)
      #expect(last.kind == .unknown && last.offset == UInt64(bytes.count) && !last.flaws.isEmpty)
    }
  }

  @Test func oneWrongByteOfEveryPartIsFoundAndThePartReadAsItWas() throws {
    let disk = try disk()
    for path in try paths(disk) {
      let bytes = try #require(disk.contents(path))
      let whole = try parts(path, disk)
      for part in whole where [.header, .footer, .filter, .trailer, .slot].contains(part.kind) {
        for place in stride(from: Int(part.offset), to: Int(part.offset + part.length), by: 3) {
          if path.hasSuffix("watermark"), bytes[place] == 0 { continue }
          var spoilt = bytes
          spoilt[place] ^= 0x41
          let found = try parts(spoilt, at: path, disk)
          #expect(found.map(\.offset) == whole.map(\.offset), "\(path), byte \(place)")
          let damaged = found.filter { !$0.flaws.isEmpty }
          #expect(damaged.map(\.offset) == [part.offset], "\(path), byte \(place)")
          #expect(
            damaged.first?.flaws.map(\.byte)
              == [WrongByte(offset: UInt64(place), found: spoilt[place], expected: bytes[place])],
            "\(path), byte \(place)")
          // A wrong byte in the filter may be the one that says how many hashes there are.
          if part.kind == .filter { continue }
          #expect(damaged.first?.facts.map(\.value) == part.facts.map(\.value), "\(path), byte \(place)")
        }
      }
    }
  }

  @Test func ofPartsWithSeveralWrongBytesItIsSaidAmongWhichTheyAre() throws {
    let (disk, path, bytes, whole) = try segment()
    for part in whole where part.kind != .block {
      var spoilt = bytes
      for place in [1, 7, 11, 13] { spoilt[Int(part.offset) + place] ^= 0x55 }
      let damaged = try parts(spoilt, at: path, disk).filter { !$0.flaws.isEmpty }
      #expect(damaged.map(\.kind) == [part.kind])
      #expect(damaged.first?.flaws.first?.range == part.offset..<part.offset + part.length, "\(part.kind)")
    }
  }

  @Test func aTrailerOfZerosIsCalledSo() throws {
    let (disk, path, bytes, whole) = try segment()
    let trailer = try #require(whole.last)
    let found = try parts(
      bytes.dropLast(Int(trailer.length)) + [UInt8](repeating: 0, count: Int(trailer.length)), at: path, disk)
    #expect(found.map(\.offset) == whole.map(\.offset))
    #expect(found.filter { !$0.flaws.isEmpty }.map(\.kind) == [.trailer])
    #expect(found.last?.flaws.first?.flaw.description.contains("zeros") == true)
    #expect(found.allSatisfy { $0.kind != .block || $0.isChecked }, "their checksums are in the footer")
  }

  /// The blocks before the place were called damaged: they were looked for where they would stand before the footer.
  @Test func blocksAroundBytesThatWereTakenOutOrPutInAreFoundWhereTheyStand() throws {
    let (disk, path, bytes, whole) = try segment()
    let blocks = whole.filter { $0.kind == .block }
    var random = SplitMix64(seed: 9)
    for round in 0..<120 {
      let hit = blocks[random.below(blocks.count)]
      let place = Int(hit.offset) + 1 + random.below(Int(hit.length) - 40)
      let count = 1 + random.below(30)
      var changed = bytes
      if round % 2 == 0 {
        changed.removeSubrange(place..<place + count)
      } else {
        changed.insert(contentsOf: (0..<count).map { _ in UInt8(random.below(256)) }, at: place)
      }
      let shift = changed.count - bytes.count
      let found = try parts(changed, at: path, disk)
      #expect(found.map(\.kind) == whole.map(\.kind))
      for (part, before) in zip(found, whole) {
        let isBehind = before.offset > hit.offset
        #expect(part.offset == UInt64(Int(before.offset) + (isBehind ? shift : 0)))
        guard before.number == hit.number, before.kind == .block else {
          #expect(part.flaws.isEmpty, "seed 9, round \(round): \(part.kind) \(part.flaws)")
          continue
        }
        let what = try #require(part.flaws.first)
        #expect(
          part.flaws.count == 1 && what.flaw.description.hasPrefix(count == 1 ? "1 byte " : "\(count) bytes ")
        )
        #expect(what.flaw.description.contains(shift < 0 ? "missing" : "too many"))
        if shift == -1 {
          // Of bytes that stand beside equal ones it cannot be told which.
          #expect(what.range == nil && abs(Int(what.offset) - place) <= 2, "round \(round)")
          #expect(part.isChecked)
          #expect(try part.block?.events() == before.block?.events())
          continue
        }
        let range = try #require(what.range)
        if shift < 0 {
          #expect(range == part.offset..<part.offset + part.length)
          #expect(part.block == nil)
        } else {
          // Where they end like the bytes before them it cannot be told by how much they are to be moved.
          #expect(range.count == count && abs(Int(range.lowerBound) - place) <= count)
          #expect(try part.block?.events() == before.block?.events())
        }
      }
    }
  }

  @Test func bytesTakenOutOrPutInElsewhereLeaveTheBlocksWhole() throws {
    let (disk, path, bytes, whole) = try segment()
    let blocks = try whole.compactMap(\.block).map { try $0.events() }
    for part in whole where part.kind != .block {
      for count in [-3, 3] {
        var changed = bytes
        let place = Int(part.offset) + 20
        if count < 0 {
          changed.removeSubrange(place..<place - count)
        } else {
          changed.insert(contentsOf: [1, 2, 3], at: place)
        }
        let found = try parts(changed, at: path, disk)
        #expect(try found.compactMap(\.block).map { try $0.events() } == blocks, "\(part.kind), \(count)")
        let damaged = Set(found.filter { !$0.flaws.isEmpty }.map(\.kind))
        #expect(damaged.contains(part.kind) && !damaged.contains(.block), "\(part.kind), \(count)")
      }
    }
    // Two blocks are gone, and half of each of their neighbours.
    let gone = whole.filter { $0.kind == .block }
    let start = Int(gone[0].offset + gone[0].length / 2)
    let end = Int(gone[3].offset + gone[3].length / 2)
    let found = try parts(Array(bytes[..<start] + bytes[end...]), at: path, disk)
    #expect(found.filter { $0.kind == .block && !$0.flaws.isEmpty }.compactMap(\.number) == [1, 2, 3, 4])
    let rest = try #require(found.first { $0.kind == .unknown })
    #expect(rest.flaws.first?.flaw.description == "\(end - start) bytes missing here")
  }

  /// A first block that stands whole at 0 was said to be damaged at 80, and the numbers in what is left of a header
  /// were printed as they stand there.
  @Test func bytesThatAreMissingAtTheBeginningAreThoseOfTheHeaderAndThenOfTheFirstBlock() throws {
    let (disk, path, bytes, whole) = try segment()
    let start = Int(whole[0].length)
    for count in [1, 3, start - 1, start, start + 1, start + 20] {
      let found = try parts(Array(bytes[count...]), at: path, disk)
      #expect(found.map(\.kind) == whole.map(\.kind), "\(count)")
      #expect(found[0].facts.isEmpty && found[0].flaws.count == 1, "\(count)")
      #expect(found[0].offset == 0 && found[0].length == UInt64(max(0, start - count)), "\(count)")
      let what =
        switch count {
        case 1: "1 byte missing here"
        case ..<start: "\(count) bytes missing here"
        case start: "no byte of it is left"
        default: "what is left of it is among the bytes that follow"
        }
      #expect(found[0].flaws[0].flaw.description == what)
      #expect(found[1].offset == found[0].length)
      #expect(found[1].flaws.isEmpty == (count <= start), "\(count): \(found[1].flaws)")
      if count == start + 1 { #expect(found[1].flaws[0].flaw.description == "1 byte missing here") }
      #expect(found.dropFirst(2).allSatisfy { $0.flaws.isEmpty })
      try expectNoOverlap(found, size: bytes.count - count)
    }
  }

  /// They were said to stand behind the header.
  @Test func bytesBeforeTheHeaderAreNamedAndTheRestIsReadBehindThem() throws {
    let (disk, path, bytes, whole) = try segment()
    for count in [1, 16, 1000] {
      let found = try parts([UInt8](repeating: 0, count: count) + bytes, at: path, disk)
      #expect(found[0].kind == .unknown && found[0].flaws.map(\.range) == [0..<UInt64(count)])
      #expect(found[0].flaws[0].flaw.description.contains("too many"))
      #expect(found.dropFirst().map(\.kind) == whole.map(\.kind))
      #expect(found.dropFirst().map(\.offset) == whole.map { $0.offset + UInt64(count) })
      #expect(found.dropFirst().allSatisfy { $0.flaws.isEmpty }, "\(count)")
      #expect(found[1].facts.map(\.value) == whole[0].facts.map(\.value))
    }
  }

  @Test func partsOfAFragmentDoNotOverlap() throws {
    let (disk, path, bytes, whole) = try segment()
    let trailer = try #require(whole.last)
    for fragment in [
      Array(bytes[..<40]), Array(bytes[20..<60]), Array(bytes.suffix(Int(trailer.length))),
      Array(bytes.suffix(Int(trailer.length) + 30)), Array(bytes[1..<Int(whole[2].offset)]),
    ] {
      let found = try parts(fragment, at: path, disk)
      #expect(found.contains { !$0.flaws.isEmpty })
      try expectNoOverlap(found, size: fragment.count)
    }
  }

  func expectNoOverlap(_ parts: [InspectedPart], size: Int) throws {
    var end: UInt64 = 0
    for part in parts {
      #expect(part.offset == end, "\(part.kind)")
      end = part.offset + part.length
      for flaw in part.flaws {
        guard let range = flaw.range, part.length > 0 else { continue }
        #expect(range.lowerBound >= part.offset && range.upperBound <= end, "\(part.kind): \(range)")
      }
    }
    #expect(end == UInt64(size))
  }

  @Test func framesBehindADamagedOneAreFound() throws {
    let disk = try disk()
    let path = try #require(try paths(disk).first { $0.hasSuffix(".journal") })
    let bytes = try #require(disk.contents(path))
    let frames = try parts(path, disk).filter { $0.kind == .frame }
    #expect(frames.count == 5)
    for frame in frames.dropLast() {
      for place in stride(from: 0, to: Int(frame.length), by: 7) {
        var spoilt = bytes
        spoilt[Int(frame.offset) + place] ^= 0x10
        let copy = disk.copy()
        copy.plant(spoilt, at: path)
        let found = try parts(path, copy)
        #expect(found.filter { !$0.flaws.isEmpty }.map(\.number) == [frame.number], "byte \(place)")
        #expect(found.count { $0.flaws.isEmpty && $0.kind == .frame } == 4)
      }
    }
  }

  func journal() throws -> (
    disk: SimulatedFileSystem, path: String, bytes: [UInt8], frames: [InspectedPart]
  ) {
    let disk = try disk()
    let path = try #require(try paths(disk).first { $0.hasSuffix(".journal") })
    let frames = try parts(path, disk).filter { $0.kind == .frame }
    #expect(frames.count == 5)
    return (disk, path, try #require(disk.contents(path)), frames)
  }

  /// Of the header only a range was told, which did not contain the byte.
  @Test func oneWrongByteOfAFrameIsFoundAndTheFrameReadAsItWas() throws {
    let (disk, path, bytes, frames) = try journal()
    for frame in [frames[1], frames[4]] {
      let header = Array(0..<JournalFrame.headerSize)
      for place in header + stride(from: header.count, to: Int(frame.length), by: 101) {
        for rest in [0, 1000] {
          var spoilt = bytes + [UInt8](repeating: 0, count: rest)
          let offset = Int(frame.offset) + place
          spoilt[offset] ^= 0x41
          let found = try parts(spoilt, at: path, disk).filter { $0.kind == .frame }
          #expect(found.map(\.offset) == frames.map(\.offset), "byte \(place)")
          let damaged = try #require(found.first { !$0.flaws.isEmpty }, "byte \(place)")
          #expect(damaged.number == frame.number && damaged.isChecked, "byte \(place)")
          #expect(
            damaged.flaws.map(\.byte)
              == [WrongByte(offset: UInt64(offset), found: spoilt[offset], expected: bytes[offset])],
            "byte \(place)")
          #expect(try found.map { try $0.block?.events() } == frames.map { try $0.block?.events() })
        }
      }
    }
  }

  /// None of them was: the checksum of a frame covers where it stands.
  @Test func framesBehindBytesThatAreMissingOrTooManyAreFound() throws {
    let (disk, path, bytes, frames) = try journal()
    for count in [-60_000, -300, -30, -1, 1, 30, 60_000] {
      for place in [0, 2, 13, 30, 40] {
        var changed = bytes
        let hit = Int(frames[1].offset) + place
        if count > 0 {
          changed.insert(contentsOf: [UInt8](repeating: 0xA5, count: count), at: hit)
        } else {
          if hit - count >= frames[4].offset { continue }
          changed.removeSubrange(hit..<hit - count)
        }
        let found = try parts(changed, at: path, disk)
        let whole = found.filter { $0.flaws.isEmpty && $0.kind == .frame }
        let behind = frames.filter { $0.offset >= UInt64(max(hit, hit - count)) }
        #expect(
          try whole.dropFirst().map { try $0.block?.events() } == behind.map { try $0.block?.events() },
          "\(count) at \(place)")
        #expect(whole.dropFirst().map { Int($0.offset) - count } == behind.map { Int($0.offset) })
        let damaged = found.filter { !$0.flaws.isEmpty }
        let bytes = abs(count) == 1 ? "1 byte" : "\(abs(count)) bytes"
        #expect(
          damaged.map { $0.flaws.map(\.flaw.description) }
            == [[bytes + (count < 0 ? " missing here" : " too many here")]], "\(count) at \(place)")
        #expect(damaged.first?.offset == frames[1].offset)
      }
    }
    let found = try parts([0] + bytes, at: path, disk)
    #expect(found.map(\.kind) == [.unknown, .header] + frames.map(\.kind))
    #expect(found.dropFirst().allSatisfy { $0.flaws.isEmpty } && found[0].flaws.map(\.range) == [0..<1])
  }

  /// Bytes missing or too many in the last one were told as bytes that are no part of any file.
  @Test func bytesThatAreMissingOrTooManyInAnyFrameAreCounted() throws {
    let (disk, path, bytes, frames) = try journal()
    for (hit, rest) in frames.indices.flatMap({ index in [0, 1000].map { (index, $0) } }) {
      let isLast = hit == frames.count - 1
      for count in [-30, -1, 1, 30, 60_000] {
        for place in [0, 2, 13, 30, 31, 32, 40, 300] {
          // Which bytes of its payload are missing nothing behind the last one tells.
          if isLast, count < 0, place - count > JournalFrame.headerSize { continue }
          var changed = bytes + [UInt8](repeating: 0, count: rest)
          let start = Int(frames[hit].offset) + place
          if count > 0 {
            changed.insert(contentsOf: [UInt8](repeating: 0xA5, count: count), at: start)
          } else {
            changed.removeSubrange(start..<start - count)
          }
          let found = try parts(changed, at: path, disk)
          let what = "\(count) bytes at \(place) of frame \(hit + 1), \(rest) zeros behind"
          let number = abs(count) == 1 ? "1 byte" : "\(abs(count)) bytes"
          let damaged = found.filter { !$0.flaws.isEmpty }
          #expect(
            damaged.map { $0.flaws.map(\.flaw.description) }
              == [[number + (count < 0 ? " missing here" : " too many here")]], "\(what)")
          #expect(damaged.first?.offset == frames[hit].offset, "\(what)")
          // Before a frame they are of none.
          let isBetween = place == 0 && count > 0
          #expect(damaged.first?.number == (isBetween ? nil : hit + 1), "\(what)")
          #expect(
            found.filter { $0.kind == .frame }.map(\.number) == frames.map(\.number), "\(what)")
          guard isLast, !isBetween, let last = damaged.first else { continue }
          #expect(try last.block?.events() == frames[hit].block?.events(), "\(what)")
          #expect(last.isChecked == (count > 0), "\(what)")
          #expect(Int(last.length) == Int(frames[hit].length) + count, "\(what)")
        }
      }
    }
  }

  /// It was of no known format, and what is left of its header no part of any file.
  @Test func aJournalWithoutItsFirstBytesIsOneAndItsFramesAreRead() throws {
    let (disk, path, bytes, frames) = try journal()
    let header = try #require(try parts(path, disk).first)
    let size = JournalHeader.size
    for count in [1, 8, 16, 17, 40, size - 1, size, size + 20, size + Int(frames[0].length)] {
      let copy = disk.copy()
      copy.plant(Array(bytes[count...]), at: "/log/fragment")
      let source = try InspectedFile(path: "/log/fragment", fileSystem: copy)
      #expect(try LogFileFormat(of: source) == .journal, "\(count)")
      let found = try parts("/log/fragment", copy)
      try expectNoOverlap(found, size: bytes.count - count)
      #expect(found[0].kind == .header && found[0].length == UInt64(max(0, size - count)), "\(count)")
      let what =
        switch count {
        case 1: "1 byte missing here"
        case ..<size: "\(count) bytes missing here"
        case size + 20: "what is left of it is among the bytes that follow"
        default: "no byte of it is left"
        }
      #expect(found[0].flaws.map(\.flaw.description) == [what], "\(count)")
      // The first bytes of every journal are the same.
      let isKnown = count <= 16
      #expect(found[0].facts.map(\.value) == (isKnown ? header.facts.map(\.value) : []), "\(count)")
      let whole = found.dropFirst().filter(\.flaws.isEmpty)
      let isCut = count > size
      #expect(
        try whole.map { try $0.block?.events() }
          == frames.dropFirst(isCut ? 1 : 0).map { try $0.block?.events() }, "\(count)")
      #expect(whole.allSatisfy { $0.isChecked == isKnown && $0.kind == .frame }, "\(count)")
      #expect(found.count == whole.count + (count == size + 20 ? 2 : 1), "\(count)")
    }
  }

  /// The numbers in it were told as they stand there.
  @Test func ofAHeaderThatIsDamagedOnlyWhatTheFramesProveIsTold() throws {
    let (disk, path, bytes, frames) = try journal()
    let header = try #require(try parts(path, disk).first)
    for place in [36, 18] {
      var spoilt = bytes
      for index in 0..<3 { spoilt[place + index] ^= 0x55 }
      let found = try parts(spoilt, at: path, disk)
      let facts = place == 36 ? Array(header.facts[..<2]) : []
      #expect(found[0].facts.map(\.value) == facts.map(\.value))
      #expect(found[0].flaws.map(\.range) == [0..<UInt64(JournalHeader.size)])
      let rest = found.dropFirst()
      #expect(try rest.map { try $0.block?.events() } == frames.map { try $0.block?.events() })
      #expect(rest.allSatisfy { $0.flaws.isEmpty && $0.isChecked == (place == 36) })
    }
  }

  /// The facts of a damaged slot were told as they stand there, and of one that was cut what is left was called damaged.
  @Test func aSlotOfAWatermarkWithoutItsChecksumTellsNothing() throws {
    let disk = try disk()
    let path = "/log/watermark"
    let bytes = try #require(disk.contents(path))
    let size = Watermark.slotSize
    let whole = try parts(path, disk)
    for spoiltBytes in [[20], [20, 30], [3, 20]] {
      for length in [2 * size, size + 188] {
        var spoilt = bytes
        for place in spoiltBytes { spoilt[size + place] ^= 0x55 }
        let slot = try parts(Array(spoilt[..<length]), at: path, disk)[1]
        let isMended = spoiltBytes.count == 1 && length == bytes.count
        #expect(slot.facts.map(\.value) == (isMended ? whole[1].facts.map(\.value) : []))
        #expect(slot.flaws.count == 1)
        guard length < bytes.count else { continue }
        #expect(slot.flaws[0].flaw == .cutShort(expected: UInt64(size), found: 188))
        #expect(slot.flaws[0].range == nil && slot.flaws[0].offset == UInt64(length))
      }
    }
  }

  /// Of each the checksum was stepped back over the whole length that it says, for minutes.
  @Test func manyFalseFramesDoNotMakeTheWorkGrowWithTheirLength() throws {
    let (disk, path, bytes, frames) = try journal()
    let start = Int(frames[1].offset)
    var head = Array(bytes[start..<start + JournalFrame.headerSize])
    head.replaceSubrange(4..<8, with: [0, 0, 0x1F, 0])
    let withoutBlock = Array(repeating: head, count: 700).joined()
    let block = start + JournalFrame.headerSize + BlockReader.headSize
    let withBlock = Array(repeating: bytes[start..<block], count: 700).joined()
    for hostile in [Array(withoutBlock), Array(withBlock)] {
      let spoilt = Array(bytes[..<start] + hostile) + [UInt8](repeating: 0, count: 8_000) + bytes[start...]
      let copy = disk.copy()
      copy.plant(spoilt, at: path)
      let found = try parts(path, copy)
      #expect(copy.bytesRead < 24 * spoilt.count)
      #expect(found.contains { !$0.flaws.isEmpty })
      if hostile.count == head.count * 700 {
        let events = try frames.map { try $0.block?.events() }
        let whole = found.filter { $0.kind == .frame && $0.flaws.isEmpty }
        #expect(try whole.map { try $0.block?.events() } == events)
      }
    }
  }

  /// It was called no part of a file.
  @Test func aFrameThatWasCutIsCalledSo() throws {
    let (disk, path, bytes, frames) = try journal()
    let last = try #require(frames.last)
    for left in [1, 4, 31, 32, 40, Int(last.length) - 1] {
      let found = try parts(Array(bytes[..<(Int(last.offset) + left)]), at: path, disk)
      let part = try #require(found.last)
      #expect(part.kind == .frame && part.offset == last.offset && part.length == UInt64(left))
      #expect(
        part.flaws.map(\.flaw) == [.cutShort(expected: left < 32 ? 32 : last.length, found: UInt64(left))])
    }
  }

  /// All of it was, from its beginning.
  @Test func aWrongByteInSpaceThatWasNotWrittenYetIsFound() throws {
    let (disk, path, bytes, frames) = try journal()
    for place in [0, 1, 400_000, 499_999] {
      var spoilt = bytes + [UInt8](repeating: 0, count: 500_000)
      spoilt[bytes.count + place] = 7
      let found = try parts(spoilt, at: path, disk)
      #expect(found.dropLast().allSatisfy { $0.flaws.isEmpty } && found.count == frames.count + 2)
      #expect(
        found.last?.flaws.map(\.byte)
          == [WrongByte(offset: UInt64(bytes.count + place), found: 7, expected: 0)])
    }
  }

  /// The second one was said to stand where the file ends, and the file to be empty.
  @Test func theSlotsOfAWatermarkThatWasCutAreWhereTheyWere() throws {
    let disk = try disk()
    let bytes = try #require(disk.contents("/log/watermark"))
    for count in [186, Watermark.slotSize] {
      let found = try parts(Array(bytes[..<count]), at: "/log/watermark", disk)
      #expect(found.map(\.offset) == [0, UInt64(Watermark.slotSize)] && found[1].length == 0)
      #expect(
        found[1].flaws.map(\.flaw) == [.cutShort(expected: UInt64(Watermark.slotSize), found: 0)])
    }
  }

  @Test func anyMutationIsSurvivedAndOneOfASegmentIsSeen() throws {
    let seed: UInt64 = 77
    var random = SplitMix64(seed: seed)
    let disk = try disk()
    for path in try paths(disk) {
      let bytes = try #require(disk.contents(path))
      for round in 0..<400 {
        let spoilt = FileMutation.apply(to: bytes, &random)
        let copy = disk.copy()
        copy.plant(spoilt, at: path)
        let parts = try parts(path, copy)
        let size = UInt64(spoilt.count)
        for part in parts {
          #expect(
            part.length == 0 && part.kind == .slot
              || part.offset <= size && part.length <= size - part.offset,
            "seed \(seed), round \(round), \(path): \(part.kind) of \(part.length) bytes at \(part.offset)")
        }
        if path.hasSuffix(".segment"), spoilt != bytes {
          #expect(parts.contains { !$0.flaws.isEmpty }, "seed \(seed), round \(round), \(path)")
        }
      }
    }
  }
}
