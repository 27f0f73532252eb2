import Foundation
import StemmaLog
import StemmaNode
import StemmaSimulation
import Testing

private let data = ProcessInfo.processInfo.environment["STEMMA_DATA"].flatMap { $0.isEmpty ? nil : $0 }

/// Damage in segments of a real data set is shown in the block where it is.
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

  @Test(
    .enabled(if: data != nil, "STEMMA_DATA names no folder of data sets"),
    arguments: [("chinook", UInt64(31)), ("git-grdb", UInt64(32))])
  func eachOfTwoHundredDamagesIsShownInItsBlock(name: String, seed: UInt64) throws {
    let folder = try #require(data) + "/" + name
    let bench = try Bench(segmentSize: 300_000)
    let node = try bench.node("node", try String(contentsOfFile: folder + "/schema.graphql", encoding: .utf8))
    _ = try Import(into: node, options: Import.Options()).run(path: folder + "/mutations.ndjson.gz")
    let log = bench.path("node/log")
    let places = try FileManager.default.contentsOfDirectory(atPath: log).filter { $0.hasSuffix(".segment") }
      .sorted().map {
        Place(path: "\(log)/\($0)", blocks: try blocks("\(log)/\($0)").filter { $0.kind == .block })
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
