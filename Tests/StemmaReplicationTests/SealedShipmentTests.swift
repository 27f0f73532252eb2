import StemmaEvents
import StemmaLog
import StemmaSchema
import StemmaSimulation
import Testing

@testable import StemmaLog
@testable import StemmaReplication

/// Segments that are transferred unchanged, and the cases in which they are not.
@Suite struct SealedShipmentTests {
  /// A log on a separate disk.
  private struct Site {
    let disk: SimulatedFileSystem
    let log: Log
    static let options = Log.Options(segmentSize: 40_000, level: 6)

    init(id: UInt64) throws {
      disk = SimulatedFileSystem(seed: id)
      log = try Log.create(in: "/log", id: LogID(id), fileSystem: disk, options: Self.options)
    }

    func write(_ maker: inout EventMaker, commits: Int, origin: Origin = Origin(7)) throws {
      for _ in 0..<commits {
        let events = maker.commit(20, origin: origin, textLength: 60)
        _ = try log.append([
          Commit(events, message: CommitMessage(author: "Ann", text: "\(events[0].commit)"))
        ])
      }
      try log.sync()
    }

    /// Without header and trailer, which bind a file to its log.
    func contents() throws -> [[UInt8]] {
      try log.files().filter { $0.kind == .segment }.map { file in
        let opened = try disk.open(file.path, .read)
        let bytes = try opened.read(at: 0, count: Int(try opened.size()))
        return Array(bytes[80..<bytes.count - 108])
      }
    }

    func events(_ scope: Scope = .everything) throws -> [String] {
      var reader = log.events(partitions: PartitionFilter { scope.contains($0) })
      var found: [String] = []
      while let stored = try reader.next() {
        found.append("\(stored.event.name) \(stored.event.digest) \(reader.message?.text ?? "-")")
      }
      return found
    }
  }

  /// Three segments and a journal.
  private func sender() throws -> Site {
    let site = try Site(id: 1)
    var maker = EventMaker(seed: 3)
    maker.keysPerPartition = 300
    for _ in 0..<3 {
      try site.write(&maker, commits: 30)
      try site.log.seal()
    }
    try site.write(&maker, commits: 2)
    return site
  }

  private func batches(
    of site: Site, above held: VersionVector = VersionVector(), _ scope: Scope = .everything,
    isDigesting: Bool = true
  ) throws -> (batches: [[UInt8]], announced: VersionVector) {
    let source = LogSource(site.log, versionVector: try site.log.streams())
    let read = site.log.bytesRead
    let plan = try ShipmentPlan(
      source: source, scope: NarrowedScope(scope), above: held, names: ("basel", "chur"))
    var writer = ShipmentWriter(
      source: source, plan: plan, sender: site.log.id, bytesReadBefore: read, batchTarget: 40_000,
      isDigesting: isDigesting)
    var batches: [[UInt8]] = []
    while let batch = try writer.next() { batches.append(batch) }
    #expect(writer.eventCount == plan.eventCount && writer.batchCount == UInt64(batches.count))
    return (batches, plan.versionVector)
  }

  private func reader(
    _ held: VersionVector, _ scope: Scope = .everything, trustsIndexes: Bool = false, isDigested: Bool = true
  ) -> ShipmentReader {
    ShipmentReader(
      sender: LogID(1), scope: NarrowedScope(scope), versionVector: held, schema: Schema(),
      names: ("chur", "basel"), trustsIndexes: trustsIndexes, isDigested: isDigested)
  }

  private func isSealed(_ batch: [UInt8]) -> Bool { batch[9] == 1 }

  /// Within one process, a batch cannot change in transit. A batch from another process without
  /// digests is refused.
  @Test func aPieceThatStaysInTheProcessHasNoDigests() throws {
    let sender = try sender()
    let (digested, announced) = try batches(of: sender)
    let (plain, plainAnnounced) = try batches(of: sender, isDigesting: false)
    #expect(announced == plainAnnounced && plain.count == digested.count)
    #expect(plain.contains(where: isSealed) && !plain.allSatisfy(isSealed))
    var (outer, inner) = (reader(VersionVector()), reader(VersionVector(), isDigested: false))
    for (batch, other) in zip(plain, digested) {
      let digests = BatchLayout.trailerSize - 4
      #expect(batch.dropLast(digests) == other.dropLast(digests))
      #expect(batch.suffix(digests).allSatisfy { $0 == 0 })
      #expect(throws: ReplicationError.corrupt("batch", "its checksum does not hold")) {
        try outer.read(batch)
      }
      _ = try outer.read(other)
      _ = try inner.read(batch)
      #expect(inner.versionVector == outer.versionVector)
    }
    try inner.finish(plainAnnounced)
  }

  /// Another thread compares a file's bytes with its digest. If they differ, neither these bytes
  /// nor later ones are sent.
  @Test func aCorruptFileEndsAShipment() throws {
    let sender = try sender()
    let versionVector = try sender.log.streams()
    let path = try #require(try sender.log.files().filter { $0.kind == .segment }.dropFirst().first?.path)
    let file = try sender.disk.open(path, .write)
    let place = try file.size() / 2
    let byte = try file.read(at: place, count: 1)[0]
    try file.write([byte ^ 4], at: place)
    let source = LogSource(sender.log, versionVector: versionVector)
    let plan = try ShipmentPlan(
      source: source, scope: NarrowedScope(.everything), above: VersionVector(), names: ("basel", "chur"))
    var writer = ShipmentWriter(
      source: source, plan: plan, sender: sender.log.id, bytesReadBefore: 0, batchTarget: 40_000)
    #expect(try writer.next() != nil)
    for _ in 0..<2 {
      let error = #expect(throws: ReplicationError.self) { try writer.next() }
      guard case .corruptLog(let corruption) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(corruption.path == path)
    }
    #expect(writer.batchCount == 1)
  }

  @Test func sealedFilesAreAdoptedByteForByte() throws {
    let (sender, receiver) = (try sender(), try Site(id: 2))
    let (batches, announced) = try batches(of: sender)
    #expect(batches.map(isSealed) == [true, true, true, false])
    var reader = reader(VersionVector())
    for batch in batches {
      _ = try reader.read(batch).adopt(into: receiver.log, above: receiver.log.streams())
    }
    try reader.finish(announced)
    #expect(try receiver.contents() == sender.contents())
    #expect(try receiver.events() == sender.events())
    #expect(try receiver.log.streams() == sender.log.streams())
    #expect(try receiver.log.verify() == [])
    receiver.log.checkInvariants()
    // After reopening, writing and shipping, it is a log like any other.
    let again = try Log.open(
      in: "/log", id: LogID(2), fileSystem: receiver.disk, options: Site.options)
    var maker = EventMaker(seed: 9)
    _ = try again.append([Commit(maker.commit(3, origin: Origin(77)))])
    try again.sync()
    try again.seal()
    #expect(try again.verify() == [])
  }

  /// A batch gathered for a shipment is checked in place and adopted byte by byte, like an existing
  /// segment.
  @Test func aPartOfTheScopeIsLaidOutAsAFileOfItsOwn() throws {
    let (sender, receiver) = (try sender(), try Site(id: 2))
    let scope = try Scope(patterns: ["tenant=b"])
    let (batches, announced) = try batches(of: sender, scope)
    #expect(batches.map(isSealed) == [true, true])
    var reader = reader(VersionVector(), scope)
    for batch in batches {
      _ = try reader.read(batch).adopt(into: receiver.log, above: receiver.log.streams())
    }
    try reader.finish(announced)
    #expect(try receiver.events().sorted() == sender.events(scope).sorted())
    #expect(try receiver.log.verify() == [])
  }

  private func batches(of site: Site, _ scope: Scope) throws -> (batches: [[UInt8]], announced: VersionVector)
  {
    try batches(of: site, above: VersionVector(), scope)
  }

  /// A receiver that pulled before the sender sealed its journal holds a part of the next file. The
  /// rest is encoded again.
  @Test func whatIsHeldInPartIsLaidOutAnew() throws {
    let (sender, receiver) = (try Site(id: 1), try Site(id: 2))
    var maker = EventMaker(seed: 4)
    try sender.write(&maker, commits: 20)
    for round in 0..<2 {
      let held = try receiver.log.streams()
      let (batches, announced) = try batches(of: sender, above: held)
      #expect(batches.contains(where: isSealed))
      var reader = reader(held)
      for batch in batches {
        _ = try reader.read(batch).adopt(into: receiver.log, above: receiver.log.streams())
      }
      try reader.finish(announced)
      #expect(try receiver.events() == sender.events(), "round \(round)")
      try sender.write(&maker, commits: 20)
      try sender.log.seal()
    }
    #expect(try receiver.log.verify() == [])
  }

  /// Another process adopts some of the same events from another peer between reading and adopting
  /// a batch.
  @Test func overlappingShipmentsOfTwoPeersAreTakenOnce() throws {
    let first = try sender()
    let second = try Site(id: 1)
    var maker = EventMaker(seed: 3)
    maker.keysPerPartition = 300
    // The same history, in other files.
    try second.write(&maker, commits: 47)
    try second.log.seal()
    try second.write(&maker, commits: 45)
    try second.log.seal()
    let receiver = try Site(id: 2)
    var (one, two) = (reader(VersionVector()), reader(VersionVector()))
    let (ones, twos) = (try batches(of: first).batches, try batches(of: second).batches)
    #expect(ones.count == 4 && twos.count == 2)
    var (left, right) = (ones[...], twos[...])
    for turn in 0..<6 {
      let verified =
        if turn % 2 == 0 || right.isEmpty { try left.popFirst().map { try one.read($0) } } else {
          try right.popFirst().map { try two.read($0) }
        }
      _ = try verified?.adopt(into: receiver.log, above: receiver.log.streams())
    }
    #expect(try receiver.log.streams() == first.log.streams())
    #expect(try receiver.events() == first.events())
    #expect(try receiver.log.verify() == [])
    #expect(try receiver.contents()[0] == first.contents()[0])
  }

  @Test func aForkIsFoundBeforeAnythingIsTaken() throws {
    let sender = try sender()
    var held = VersionVector()
    let batches = try batches(of: sender).batches
    var first = reader(held)
    _ = try first.read(batches[0])
    held = first.versionVector
    let partition = Partition("tenant=a")
    held[partition, Origin(7)].hash += StreamHash(high: 1, low: 0)
    var second = reader(held)
    #expect {
      _ = try second.read(batches[1])
    } throws: { error in (error as? ReplicationError)?.fork?.partition == partition }
    #expect(throws: ReplicationError.self) { _ = try self.batches(of: sender, above: held) }
  }

  @Test func aGapIsRefused() throws {
    let batches = try batches(of: try sender()).batches
    var reader = reader(VersionVector())
    #expect {
      _ = try reader.read(batches[1])
    } throws: { error in
      if case .gap = error as? ReplicationError { true } else { false }
    }
  }

  /// Power fails at every operation of an adoption. Afterwards the file is complete or absent.
  @Test func aCrashDuringAdoptionLeavesAllOfTheFileOrNothing() throws {
    let batches = try batches(of: try sender()).batches
    var reader = reader(VersionVector())
    let first = try reader.read(batches[0])
    let before = reader.versionVector
    let second = try reader.read(batches[1])
    let base = try Site(id: 2)
    _ = try first.adopt(into: base.log, above: VersionVector())
    let outcomes = [before, reader.versionVector]
    var seen: Set<Int> = []
    for operation in 1... {
      let disk = base.disk.copy(seed: UInt64(operation))
      let log = try Log.open(in: "/log", id: LogID(2), fileSystem: disk, options: Site.options)
      disk.inject([
        .init(operation: disk.operations.count + operation, errno: System.inputOutput, isLasting: true)
      ])
      let isDone: Bool
      do {
        _ = try second.adopt(into: log, above: before)
        isDone = true
      } catch is LogError { isDone = false }
      disk.crash()
      let after = try Log.open(in: "/log", id: LogID(2), fileSystem: disk, options: Site.options)
      #expect(after.recovery.corruption == [], "operation \(operation)")
      #expect(try after.verify() == [], "operation \(operation)")
      let found = outcomes.firstIndex(of: try after.streams())
      #expect(found != nil && (!isDone || found == 1), "operation \(operation)")
      if let found { seen.insert(found) }
      after.checkInvariants()
      if isDone { break }
    }
    #expect(seen == [0, 1])
  }

  // MARK: Hostile senders

  @Test func everyFlippedByteOfASealedPieceIsFound() throws {
    let batch = try batches(of: try sender()).batches[0]
    for index in stride(from: 0, to: batch.count, by: 7) {
      var spoilt = batch
      spoilt[index] ^= 1 << UInt8(index % 8)
      var reader = reader(VersionVector())
      #expect(throws: ReplicationError.self, "byte \(index)") { _ = try reader.read(spoilt) }
      #expect(reader.versionVector.isEmpty)
    }
  }

  /// A peer with correct checksums and false contents. Seed 23.
  @Test func anIndexThatLiesIsRefused() throws {
    let batch = try batches(of: try sender()).batches[0]
    let sealed = try #require(try Batch(decoding: batch).sealed)
    let end = BatchLayout.headerSize + sealed.bytes.count
    let index = end - sealed.sizes.footer - sealed.sizes.filter
    var random = SplitMix64(seed: 23)
    var taken: [Int] = []
    for place in index..<batch.count - BatchLayout.trailerSize {
      var changed = Array(batch.dropLast(36))
      changed[place] = random.element([0, 1, changed[place] ^ 1, changed[place] &+ 1, 0x7F, 0xFF])
      if changed[place] == batch[place] { continue }
      var reader = reader(VersionVector())
      Batch.seal(&changed)
      do throws(ReplicationError) {
        _ = try reader.read(changed)
        taken.append(place)
      } catch {}
    }
    #expect(taken.filter { place in !harmless(batch, sealed).contains { $0.contains(place) } } == [])
  }

  /// Some changes of the key filter hide nothing. Arrivals may end later than the last event,
  /// because later ones may have been purged. Everything else is compared.
  private func harmless(_ batch: [UInt8], _ sealed: SealedContents) -> [Range<Int>] {
    let end = BatchLayout.headerSize + sealed.bytes.count
    let endIndex = varints(of: [sealed.sizes.end, sealed.sizes.rawBytes])
    let last = varints(of: [sealed.sizes.rawBytes])
    let behind = batch.count - BatchLayout.trailerSize
    return [end - sealed.sizes.filter..<end, behind - endIndex..<behind - last]
  }

  private func varints(of numbers: [UInt64]) -> Int {
    numbers.reduce(0) { $0 + $1.varintCount }
  }

  /// Blocks that differ from the index, with matching checksums.
  @Test func blocksOfOtherEventsAreRefused() throws {
    let batches = try batches(of: try sender()).batches
    let sealed = try #require(try Batch(decoding: batches[0]).sealed)
    let other = try #require(try Batch(decoding: batches[1]).sealed)
    var streams = try Batch(decoding: batches[0]).streams
    var reader = reader(VersionVector())
    // The streams of one file with the blocks of another.
    #expect(throws: ReplicationError.self) {
      _ = try reader.read(Batch.encode(sender: LogID(1), streams: streams, sealed: other))
    }
    // A stream hash that is not the sum of its events.
    streams[0].range.hash += StreamHash(high: 0, low: 1)
    #expect(throws: ReplicationError.self) {
      _ = try reader.read(Batch.encode(sender: LogID(1), streams: streams, sealed: sealed))
    }
    #expect(reader.versionVector.isEmpty)
  }

  /// If the sender's log belongs to the user, indexes are not compared with blocks, so a false
  /// index is adopted. Adopted files never trap, and `verify` finds relevant differences. Seed 23.
  @Test func whatABelievedIndexLiesIsFoundLater() throws {
    let batch = try batches(of: try sender()).batches[0]
    let sealed = try #require(try Batch(decoding: batch).sealed)
    let end = BatchLayout.headerSize + sealed.bytes.count
    let index = end - sealed.sizes.footer - sealed.sizes.filter
    var random = SplitMix64(seed: 23)
    var (taken, unseen): ([Int], [Int]) = ([], [])
    for place in stride(from: index, to: batch.count - BatchLayout.trailerSize, by: 3) {
      var changed = Array(batch.dropLast(36))
      changed[place] = random.element([0, 1, changed[place] ^ 1, changed[place] &+ 1, 0x7F, 0xFF])
      if changed[place] == batch[place] { continue }
      Batch.seal(&changed)
      var reader = reader(VersionVector(), trustsIndexes: true)
      let receiver = try Site(id: 2)
      do {
        _ = try reader.read(changed).adopt(into: receiver.log, above: VersionVector())
        taken.append(place)
      } catch { continue }
      do {
        _ = try receiver.events()
        _ = try receiver.log.streams()
      } catch is LogError {}
      if try receiver.log.verify() == [] { unseen.append(place) }
    }
    // As with comparison: see above.
    #expect(!taken.isEmpty)
    #expect(
      unseen.filter { place in !harmless(batch, sealed).contains { $0.contains(place) } } == [],
      "the index: \(index)..<\(end), \(sealed.sizes)")
  }

  /// Everything except the index of the blocks is compared, for every sender.
  @Test func aBelievedSenderIsBelievedNothingElse() throws {
    let sender = try sender()
    let (batches, _) = try batches(of: sender)
    for index in stride(from: 0, to: batches[0].count, by: 61) {
      var spoilt = batches[0]
      spoilt[index] ^= 1 << UInt8(index % 8)
      var reader = reader(VersionVector(), trustsIndexes: true)
      #expect(throws: ReplicationError.self, "byte \(index)") { _ = try reader.read(spoilt) }
    }
    var skipping = reader(VersionVector(), trustsIndexes: true)
    #expect(throws: ReplicationError.self, "a gap") { _ = try skipping.read(batches[1]) }
    var narrow = reader(VersionVector(), try Scope(patterns: ["tenant=b"]), trustsIndexes: true)
    #expect(throws: ReplicationError.self, "a foreign partition") { _ = try narrow.read(batches[0]) }
    var held = VersionVector()
    for stream in try Batch(decoding: batches[0]).streams {
      held[stream.range.partition, stream.range.origin] = StreamHead(
        sequence: stream.range.to, hash: stream.range.hash + StreamHash(high: 1, low: 0))
    }
    var forked = reader(held, trustsIndexes: true)
    #expect {
      _ = try forked.read(batches[1])
    } throws: { error in (error as? ReplicationError)?.fork != nil }
    var honest = reader(VersionVector(), trustsIndexes: true)
    for batch in batches { _ = try honest.read(batch) }
    #expect(honest.versionVector == (try sender.log.streams()))
  }

  /// A deflate stream with a distance code that the format reserves. libdeflate reads it, zlib does
  /// not. A node that adopted it could not send it to every other node.
  @Test(arguments: [29, 30])
  func streamsThatNotEverybodyReadsAreRefused(distanceCode: UInt32) throws {
    var maker = EventMaker(seed: 5)
    var events = maker.commit(1)
    events[0].assignments[1].value = .string(String(repeating: "x", count: 40_000))
    let numbered = events.enumerated().map {
      BlockEvent(relativePosition: UInt64($0.offset), event: $0.element)
    }
    let (bytes, sizes) = try SealedContents.encoded(
      numbered, messages: [:], digests: events.map(\.digest.hash))
    let sealed = try SealedContents(bytes[...], sizes)
    let block = try craftedBlock(of: events, distanceCode)
    var footer = sealed.footer
    footer.blocks[0].length = block.count
    footer.blocks[0].crc = CRC32C.of(block)
    var changed = sizes
    changed.footer = footer.encoded().bytes.count
    let crafted = try SealedContents(
      (block + footer.encoded().bytes + bytes.suffix(sizes.filter))[...], changed)
    let streams = footer.partitions.flatMap { partition in
      partition.streams.map { stream in
        ShippedStream(
          range: StreamRange(
            partition: partition.partition, origin: stream.origin, from: stream.from, to: stream.to,
            hash: events[0].digest.hash), hashBefore: .zero)
      }
    }
    let batch = Batch.encode(sender: LogID(1), streams: streams, sealed: crafted)
    var reader = reader(VersionVector())
    if distanceCode < 30 {
      #expect(try reader.read(batch).eventCount == 1)
    } else {
      #expect(throws: ReplicationError.self) { _ = try reader.read(batch) }
    }
  }

  /// A block of these events with manually deflated values: byte by byte, except for ten bytes that
  /// equal those 24,577 bytes before.
  private func craftedBlock(of events: [Event], _ distanceCode: UInt32) throws -> [UInt8] {
    var writer = BlockWriter(level: 0)
    for (index, event) in events.enumerated() { writer.append(event, relativePosition: UInt64(index)) }
    let plain = writer.finish()
    var place = 2
    var numbers: [Int] = []
    // The number of events, and the size of each stream twice: level 0 deflates nothing.
    while numbers.count < 4 {
      var number = 0
      var shift = 0
      repeat {
        number |= Int(plain[place] & 0x7F) << shift
        shift += 7
        place += 1
      } while plain[place - 1] >= 0x80
      numbers.append(number)
    }
    let values = Array(plain.suffix(numbers[3] / 2))
    let copied = try #require(
      (24_577..<values.count - 10).first { values[$0..<$0 + 10] == values[$0 - 24_577..<$0 - 24_567] })
    var stream = FixedCodes()
    for byte in values[..<copied] { stream.append(literal: byte) }
    stream.appendCopyOfTen(distanceCode)
    for byte in values[(copied + 10)...] { stream.append(literal: byte) }
    stream.end()
    var block = Array(plain[..<2])
    for number in numbers[..<3] { block.appendVarint(number) }
    block.appendVarint(numbers[3] | 1)
    block.appendVarint(stream.bytes.count)
    return block + plain[place..<plain.count - values.count] + stream.bytes
  }

  /// One deflate block with the fixed codes (RFC 1951, 3.2.6).
  private struct FixedCodes {
    private(set) var bytes: [UInt8] = []
    private var bits = 0

    /// The last block, with fixed codes.
    init() { append(3, 3) }

    mutating func append(literal byte: UInt8) {
      if byte < 144 { appendCode(0x30 + UInt32(byte), 8) } else { appendCode(0x190 + UInt32(byte) - 144, 9) }
    }

    /// Ten bytes again, from the distance of the code. Its extra bits are zeros.
    mutating func appendCopyOfTen(_ distanceCode: UInt32) {
      appendCode(8, 7)
      appendCode(distanceCode, 5)
      append(0, 13)
    }

    mutating func end() { appendCode(0, 7) }

    /// Codes begin with their highest bit.
    private mutating func appendCode(_ code: UInt32, _ length: Int) {
      for bit in (0..<length).reversed() { append(code >> UInt32(bit) & 1, 1) }
    }

    private mutating func append(_ number: UInt32, _ length: Int) {
      for bit in 0..<length {
        if bits % 8 == 0 { bytes.append(0) }
        bytes[bytes.count - 1] |= UInt8(number >> UInt32(bit) & 1) << UInt8(bits % 8)
        bits += 1
      }
    }
  }

  @Test func keysOfAnotherPartitionAreRefused() throws {
    let batch = try batches(of: try sender()).batches[0]
    let schema = try SDL.read(
      """
      type Book @model { shop: ID! @primaryKey(sortKeyFields: ["title"]) title: String! count: Int }
      """
    ).schema
    var reader = ShipmentReader(
      sender: LogID(1), scope: NarrowedScope(.everything), versionVector: VersionVector(), schema: schema,
      names: ("chur", "basel"))
    #expect(throws: ReplicationError.self) { _ = try reader.read(batch) }
  }

  @Test func sealedPiecesCanBeInspected() throws {
    let sender = try sender()
    let batches = try batches(of: sender).batches
    let disk = SimulatedFileSystem()
    disk.plant(Array(batches.joined()), at: "/shipment")
    var parts: [InspectedPart] = []
    try ShipmentInspection.run(
      try InspectedFile(path: "/shipment", fileSystem: disk), InspectionRequest(isComplete: true)
    ) { parts.append($0) }
    #expect(!parts.contains { !$0.flaws.isEmpty }, "\(parts.flatMap(\.flaws))")
    #expect(parts.reduce(0) { $0 + ($1.block?.count ?? 0) } == (try sender.events().count))
    #expect(parts.count { $0.kind == .filter } == 3)
    // The parts cover the file.
    var offset: UInt64 = 0
    for part in parts {
      #expect(part.offset == offset || part.kind == .footer || part.kind == .block)
      offset = part.offset + part.length
    }
  }
}
