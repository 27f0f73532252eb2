import Foundation
import StemmaNode
import StemmaSimulation
import Testing

/// Tables are a cache that anything may have happened to: whatever stands in their file, nothing traps, and a
/// rebuild makes them what they were.
@Suite struct ChangedTablesTests {
  static let schema = """
    type Row @model { tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String parent: Part @belongsTo }
    type Part @model { id: ID! weight: Float rows: [Row] @hasMany }
    """

  @Test func bytesThatChangedInTheTablesAreToldOrRebuilt() throws {
    let bench = try Bench(seed: 11)
    let node = try bench.node("a", Self.schema)
    for number in 0..<40 {
      try node.commit(
        #"{"op":"create","model":"Part","key":{"id":"p\#(number)"},"fields":{"weight":\#(number)}}"#)
    }
    for number in 0..<300 {
      try node.commit(
        #"{"op":"create","model":"Row","key":{"tenant":"t\#(number % 3)","n":\#(number)},"fields":{"text":"\#(String(repeating: "x", count: number % 90))"}}"#
      )
    }
    for number in stride(from: 0, to: 300, by: 7) {
      try node.commit(#"{"op":"delete","model":"Row","key":{"tenant":"t\#(number % 3)","n":\#(number)}}"#)
    }
    let digests = try node.digestTexts
    _ = try node.rebuild { _, _ in }
    try bench.copy("a", to: "kept")
    var random = SplitMix64(seed: 11)
    var told = 0
    for round in 0..<120 {
      try bench.replace("a", with: "kept")
      let url = URL(fileURLWithPath: bench.path("a/tables.sqlite"))
      var bytes = try Data(contentsOf: url)
      let count = [16, 64, 512, 4096][Int(random.next() % 4)]
      let offset = Int(random.next() % UInt64(bytes.count - count))
      let isZero = random.next() % 2 == 0
      for place in offset..<offset + count { bytes[place] = isZero ? 0 : UInt8(random.next() & 0xFF) }
      try bytes.write(to: url)
      let context: Comment = "round \(round): \(count) bytes at \(offset)"
      do {
        let changed = try bench.open("a")
        _ = try changed.digestTexts
        _ = try changed.conflictTexts
        for model in changed.schema.models {
          try changed.query("SELECT * FROM \(model.tableName)") { _, _ in }
        }
      } catch is NodeError { told += 1 }
      let report = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
      #expect(report.damage.allSatisfy { $0.file.contains("tables") }, context)
      _ = try bench.open("a").rebuild { _, _ in }
      #expect(try bench.open("a").digestTexts == digests, context)
    }
    #expect(told > 20)
  }
}
