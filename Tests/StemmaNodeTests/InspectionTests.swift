import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaSimulation
import Testing

private let data = ProcessInfo.processInfo.environment["STEMMA_DATA"].flatMap { $0.isEmpty ? nil : $0 }

/// Damage in files of a real data set is survived, and shown in the block where it is.
@Suite struct PlantedDamageTests {
  private struct Place {
    var path: String
    var blocks: [InspectedPart]
  }

  private func blocks(_ path: String) throws -> [InspectedPart] {
    var parts: [InspectedPart] = []
    let inspection = try FileInspection(path: path)
    #expect(inspection.format == .log(.segment))
    try inspection.parts(InspectionRequest()) { parts.append($0) }
    return parts
  }

  /// The log's files of a node that holds a data set.
  private func files(of name: String, in bench: Bench) throws -> [String] {
    let folder = try #require(data) + "/" + name
    let node = try bench.node("node", try String(contentsOfFile: folder + "/schema.graphql", encoding: .utf8))
    _ = try Import(into: node, options: Import.Options()).run(path: folder + "/mutations.ndjson.gz")
    let log = bench.path("node/log")
    return try FileManager.default.contentsOfDirectory(atPath: log).sorted().map { "\(log)/\($0)" }
  }

  @Test(.enabled(if: data != nil, "STEMMA_DATA names no folder of data sets"))
  func anyMutationOfARealFileIsSurvivedAndSeen() throws {
    let seed: UInt64 = 33
    var random = SplitMix64(seed: seed)
    let bench = try Bench(segmentSize: 300_000)
    let target = bench.path("mutated")
    for path in try files(of: "git-grdb", in: bench) {
      let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
      for round in 0..<25 {
        let mutated = FileMutation.apply(to: bytes, &random)
        try Data(mutated).write(to: URL(fileURLWithPath: target))
        let comment: Comment = "seed \(seed), round \(round) of \(path)"
        var flaws = 0
        let inspection = try FileInspection(path: target)
        try inspection.parts(InspectionRequest(isComplete: true)) { part in
          flaws += part.flaws.count
          let size = UInt64(mutated.count)
          // A slot of a watermark that is gone stands where it would.
          #expect(
            part.length == 0 && part.kind == .slot
              || part.offset <= size && part.length <= size - part.offset, comment)
          // What can be read is read to the end, as --events and --json do.
          inspection.forEachEvent(of: part) { stored, _ in #expect(!stored.event.model.isEmpty, comment) }
          #expect(throws: Never.self, comment) {
            try JSON.parse(inspection.json(part, withEvents: true).text)
          }
        }
        if path.hasSuffix(".segment"), mutated != bytes { #expect(flaws > 0, comment) }
        #expect(Array(try Data(contentsOf: URL(fileURLWithPath: target))) == mutated, comment)
      }
    }
  }

  @Test(
    .enabled(if: data != nil, "STEMMA_DATA names no folder of data sets"),
    arguments: [("chinook", UInt64(31)), ("git-grdb", UInt64(32))])
  func eachOfTwoHundredDamagesIsShownInItsBlock(name: String, seed: UInt64) throws {
    let bench = try Bench(segmentSize: 300_000)
    let places = try files(of: name, in: bench).filter { $0.hasSuffix(".segment") }.map {
      Place(path: $0, blocks: try blocks($0).filter { $0.kind == .block })
    }
    #expect(places.count > 1)
    #expect(places.allSatisfy { !$0.blocks.isEmpty && $0.blocks.allSatisfy(\.flaws.isEmpty) })

    var random = SplitMix64(seed: seed)
    let target = bench.path("spoilt.segment")
    for round in 0..<200 {
      let place = places[random.below(places.count)]
      let block = place.blocks[random.below(place.blocks.count)]
      var bytes = try Data(contentsOf: URL(fileURLWithPath: place.path))
      let offset = Int(block.offset) + random.below(Int(block.length))
      let length = min([1, 1, 4, 64, 4096][random.below(5)], Int(block.offset + block.length) - offset)
      for index in offset..<offset + length { bytes[index] ^= UInt8(1 + random.below(255)) }
      try bytes.write(to: URL(fileURLWithPath: target))
      let damaged = try blocks(target).filter { !$0.flaws.isEmpty }
      let comment: Comment = "seed \(seed), round \(round): \(length) bytes at \(offset) of \(place.path)"
      #expect(damaged.map(\.number) == [block.number], comment)
      #expect(damaged.map(\.offset) == [block.offset], comment)
      if length == 1 { #expect(damaged.first?.flaws.first?.byte?.offset == UInt64(offset), comment) }
    }
  }
}
