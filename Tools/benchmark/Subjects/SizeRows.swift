import Foundation
import Measuring
import StemmaImport
import StemmaNode

/// The size of a log with all merge data, sealed and as an import leaves it. Compared with `gzip
/// -9` of the imported lines, which lack that data.
func measureSizes(_ bench: Bench) throws {
  guard let data = bench.data else { return bench.say("STEMMA_DATA is not set: size is left out") }
  for (name, limit) in [("chinook", 0.55), ("git-grdb", 1.0)] {
    let lines = data + "/\(name)/mutations.ndjson.gz"
    let schema = try BareFiles.contents(data + "/\(name)/schema.graphql")
    var options = Node.OpeningOptions(mode: .write)
    options.segmentSize = 1 << 30
    let directory = try bench.fresh("sized")
    let node = try Node.create(
      at: directory, schema: String(decoding: schema, as: UTF8.self), name: "sized", options: options)
    let summary = try Import(into: node, options: .init()).run(path: lines)
    let journal = try bench.logBytes(directory)
    try bench.seal(directory)
    let events = Double(summary.events)
    let gzip = Double(BareFiles.gzipSize(try BareFiles.gunzip(lines)))
    bench.add(
      "size of the log of \(name)", ours: Double(try bench.logBytes(directory)) / events,
      baseline: gzip / events, "bytes/event", .atMost(limit))
    bench.add(
      "the same before it is sealed", ours: Double(journal) / events, baseline: gzip / events, "bytes/event",
      .atMost(limit))
  }
  _ = try bench.fresh("sized")
}
