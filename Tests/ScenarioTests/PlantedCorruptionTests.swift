import Foundation
import StemmaSimulation
import Testing

/// Corruption planted in files of a real data set is survived, and reported in the affected block.
@Suite("corruption that is planted in real files", .enabled(if: RealData.isThere))
struct PlantedCorruptionTests {
  /// A node that holds a data set, in several segments and a journal.
  private func node(_ name: String) throws -> (work: Workplace, files: [String]) {
    let work = try Workplace()
    try work.stemma("init", "node", "--schema", RealData.path("\(name)/schema.graphql"))
    try work.stemma(
      "-C", "node", "import", RealData.path("\(name)/mutations.ndjson.gz"), "--segment-size", "300000")
    let log = try FileManager.default.contentsOfDirectory(atPath: work.file("node/log"))
    return (work, log.sorted().map { "node/log/\($0)" })
  }

  /// The output of `inspect` for each part of a file. The status is 1 for corruption, and 65 for an
  /// empty file or another format.
  private func inspect(
    _ name: String, _ options: [String] = [], in work: Workplace, _ comment: Comment
  ) throws -> (status: Int32, parts: [[String: Any]]) {
    let result = try Tool.run(Tool.path, ["inspect", name, "--ndjson"] + options, in: work.path)
    let parts = try result.objects()
    let isCorrupt = parts.contains { !corruption($0).isEmpty }
    #expect(result.status == (parts.isEmpty ? 65 : isCorrupt ? 1 : 0), "\(comment): \(result.errors)")
    return (result.status, parts)
  }

  private func corruption(_ part: [String: Any]) -> [[String: Any]] { part.array("corruption") }

  /// Several seeds, for several threads.
  @Test(
    "whatever happens to the bytes of a file, it is read to its end, and of a sealed one it is seen",
    arguments: [UInt64(33), 34, 35])
  func anyMutation(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let (work, files) = try node("git-grdb")
    for path in files {
      let bytes = Array(try work.bytes(path))
      for round in 0..<9 {
        let mutated = FileMutation.apply(to: bytes, &random)
        let comment: Comment = "seed \(seed), round \(round) of \(path)"
        try Data(mutated).write(to: URL(fileURLWithPath: work.file("mutated")))
        let (status, parts) = try inspect("mutated", ["--verify", "--events"], in: work, comment)
        for part in parts {
          let offset = try #require(part.number("offset"), comment)
          let length = try #require(part.number("bytes"), comment)
          // A missing slot of a watermark is reported at its place.
          #expect(
            length == 0 && part.text("part") == "slot"
              || offset <= mutated.count && length <= mutated.count - offset, comment)
          guard part.keys.contains("events") else { continue }
          #expect(part.array("events").allSatisfy { $0.text("model")?.isEmpty == false }, comment)
        }
        if path.hasSuffix(".segment"), mutated != bytes { #expect(status != 0, comment) }
        #expect(try Array(work.bytes("mutated")) == mutated, comment)
      }
    }
  }

  @Test(
    "each of two hundred corruptions is shown in its block",
    arguments: [("chinook", UInt64(31)), ("git-grdb", UInt64(32))])
  func twoHundredCorruptions(name: String, seed: UInt64) throws {
    let (work, files) = try node(name)
    let places = try files.filter { $0.hasSuffix(".segment") }.map { path in
      (path, try inspect(path, in: work, "whole").parts.filter { $0.text("part") == "block" })
    }
    #expect(places.count > 1)
    #expect(places.allSatisfy { !$0.1.isEmpty && $0.1.allSatisfy { corruption($0).isEmpty } })

    var random = SplitMix64(seed: seed)
    for round in 0..<200 {
      let (path, blocks) = places[random.below(places.count)]
      let block = blocks[random.below(blocks.count)]
      let (start, size) = (try #require(block.number("offset")), try #require(block.number("bytes")))
      var bytes = try work.bytes(path)
      let offset = start + random.below(size)
      let length = min([1, 1, 4, 64, 4096][random.below(5)], start + size - offset)
      for index in offset..<offset + length { bytes[index] ^= UInt8(1 + random.below(255)) }
      try bytes.write(to: URL(fileURLWithPath: work.file("spoilt")))
      let comment: Comment = "seed \(seed), round \(round): \(length) bytes at \(offset) of \(path)"
      let corrupt = try inspect("spoilt", in: work, comment).parts.filter {
        $0.text("part") == "block" && !corruption($0).isEmpty
      }
      #expect(corrupt.map { $0.number("number") } == [block.number("number")], comment)
      #expect(corrupt.map { $0.number("offset") } == [start], comment)
      #expect(corrupt.first.map(corruption)?.map { $0.number("offset") } == [start], comment)
    }
  }
}
