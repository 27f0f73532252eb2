import StemmaEvents
import StemmaLog

extension FaultSuite {
  /// A block of a sealed file: where its bytes stand, and the positions of its events.
  struct Block: Sendable {
    let bytes: Range<Int>
    let positions: Set<Position>
  }

  /// How many bytes are missing or too many, and how far apart the places are. Odd, so that every kind of byte has its turn.
  private static let shift = 3
  private static let shiftStep = 17

  /// Bytes are missing in every sealed file, or too many, at each 17th place: all is read but the blocks that are hurt.
  package static func shifts(_ shape: LogWorkload.Shape, seed: UInt64) throws(LogError) -> [FaultSuite] {
    let specimen = try Specimen(shape, seed: seed)
    var suites: [FaultSuite] = []
    for file in specimen.files where file.path.hasSuffix(".segment") {
      let blocks = try blocks(of: file, specimen)
      let places = (file.bytes.count - shift) / shiftStep
      suites.append(
        FaultSuite("bytes are missing or too many in \(file.path)", cases: 2 * places) {
          (index) throws(LogError) in
          let offset = index / 2 * shiftStep
          var bytes = file.bytes
          var hurt = offset..<offset + shift
          if index % 2 == 0 {
            bytes.removeSubrange(hurt)
          } else {
            bytes.insert(contentsOf: [UInt8](repeating: 0x5A, count: shift), at: offset)
            hurt = offset..<offset
          }
          return try violations(specimen, file, bytes, hurt, blocks)
        })
    }
    return suites
  }

  static func blocks(of file: Specimen.File, _ specimen: Specimen) throws(LogError) -> [Block] {
    var blocks: [Block] = []
    try inspect(try InspectedFile(path: file.path, fileSystem: specimen.disk), as: .segment) { part in
      guard let block = part.block, let place = file.place else { return }
      let positions = (0..<block.count).map { Position(file: place, index: block.arrival($0)) }
      blocks.append(
        Block(bytes: Int(part.offset)..<Int(part.offset + part.length), positions: Set(positions)))
    }
    return blocks
  }

  /// `hurt`: the bytes that are missing, or where others were put in.
  private static func violations(
    _ specimen: Specimen, _ file: Specimen.File, _ bytes: [UInt8], _ hurt: Range<Int>, _ blocks: [Block]
  ) throws(LogError) -> [String] {
    let disk = specimen.with(bytes, at: file.path)
    guard let log = try specimen.workload.reopen(disk, .readOnly) else { return ["the log is gone"] }
    var violations: [String] = []
    let found = try log.verify()
    // What stands at the end is looked for as far from it as it was.
    if !found.contains(where: { $0.path == file.path && Int($0.offset) <= hurt.lowerBound + shift }) {
      violations.append("verify finds \(found)")
    }
    let all = specimen.events(in: specimen.range(of: file))
    let isAmongBlocks =
      (blocks.first?.bytes.lowerBound ?? 0) <= hurt.lowerBound
      && hurt.upperBound <= (blocks.last?.bytes.upperBound ?? 0)
    let lost = blocks.filter { block in
      hurt.isEmpty
        ? block.bytes.lowerBound < hurt.lowerBound && hurt.lowerBound < block.bytes.upperBound
        : block.bytes.overlaps(hurt)
    }
    var reader = log.events(around: Omissions())
    let read = try reader.rest().filter { $0.position.file == file.place }
    let whole = all.filter { event in !lost.contains { $0.positions.contains(event.position) } }
    if !Set(read).isSubset(of: Set(all)) { violations.append("a wrong event") }
    if isAmongBlocks, read != whole { violations.append("\(read.count) events are read, not \(whole.count)") }
    let spoilt = Spoilt(file: file, bytes: bytes, offset: hurt.lowerBound + shift, mode: .readOnly)
    violations += violationsByRecord(in: log, specimen.events, spoilt)
    log.checkInvariants()
    log.close()
    return violations
  }
}
