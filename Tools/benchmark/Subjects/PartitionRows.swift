import Foundation
import Measuring
import StemmaLog
import StemmaImport
import StemmaNode

/// The share of the log that the index of many small partitions takes, and the share that a clone
/// of one of them reads.
func measurePartitions(_ bench: Bench) throws {
  let (lists, items) = (20_000, 12)
  let lines = try bench.fresh("lists.ndjson")
  let texts = (0..<lists * items).map { index in
    #"{"op":"create","model":"Item","key":{"list":"list-\#(index / items)","number":\#(index % items)},"#
      + #""fields":{"title":"item \#(index * 104_729 % 1_000_003)"}}"# + "\n"
  }
  try Data(texts.joined().utf8).write(to: URL(fileURLWithPath: lines))
  let directory = try bench.fresh("lists")
  let schema = """
    type Item @model { list: ID! @primaryKey(sortKeyFields: ["number"]) number: Int! title: String }
    """
  let node = try Node.create(at: directory, schema: schema, name: "lists")
  _ = try Import(into: node, options: .init()).run(path: lines)
  try bench.seal(directory)
  var footers: UInt64 = 0
  for name in try FileManager.default.contentsOfDirectory(atPath: directory + "/log")
  where name.hasSuffix(".segment") {
    let source = try InspectedFile(path: directory + "/log/" + name, fileSystem: POSIXFileSystem())
    try inspect(source, as: .segment) { part in
      if part.kind == .footer || part.kind == .page { footers += part.length }
    }
  }
  let log = Double(try bench.logBytes(directory))
  bench.add(
    "footers of 20,000 partitions of 12 events", ours: Double(footers), baseline: log, "bytes", .atMost(0.15))
  let clone = try Node.clone(
    from: directory, to: try bench.fresh("list"), partitions: ["list=list-11234"], name: "list"
  ) { _, _ in }
  guard clone.events == UInt64(items) else { throw BenchError("\(clone.events) events came") }
  bench.add(
    "bytes read to clone one of them", ours: Double(clone.bytesRead), baseline: log, "bytes", .atMost(0.03))
  for name in ["lists", "list", "lists.ndjson"] { _ = try bench.fresh(name) }
}
