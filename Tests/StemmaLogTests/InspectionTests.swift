import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Taking files apart that are not as they were written.
@Suite struct InspectionTests {
  /// Two segments, of which the second replaces another, and a journal.
  private func disk() throws -> SimulatedFileSystem {
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

  private func parts(
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

  private func paths(_ disk: SimulatedFileSystem) throws -> [String] {
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
            part.offset <= size && part.length <= size - part.offset,
            "seed \(seed), round \(round), \(path): \(part.kind) of \(part.length) bytes at \(part.offset)")
        }
        if path.hasSuffix(".segment"), spoilt != bytes {
          #expect(parts.contains { !$0.flaws.isEmpty }, "seed \(seed), round \(round), \(path)")
        }
      }
    }
  }
}
