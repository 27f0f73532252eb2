import Foundation
import StemmaSimulation
import Testing

/// Nodes that meet only through files.
@Suite("Bundles")
struct BundleTests {
  /// An empty node `field`, and a node `office` whose four bundles each continue the previous one.
  private static func workplace(field scope: String? = nil) throws -> Workplace {
    let work = try Workplace()
    try work.write(
      "visit.graphql",
      #"type Visit @model { site: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! note: String }"#)
    try work.stemma("init", "office", "--schema", "visit.graphql", "--name", "office")
    try work.stemma("init", "field", "--schema", "visit.graphql", "--name", "field")
    if let scope {
      try work.stemma("-C", "field", "scope", "add", scope)
      try work.stemma("-C", "field", "scope", "remove", "*")
    }
    for number in 1...4 {
      for site in ["berlin", "paris"] {
        try work.stemma("-C", "office", "create", "Visit", "site=\(site)", "n=\(number)")
      }
      let since = number > 1 ? ["--since", "bundle\(number - 1)"] : []
      let result = try Tool.run(
        Tool.path, ["-C", "office", "bundle", "create", "bundle\(number)"] + since, in: work.path)
      try #require(result.status == 0, "\(result.errors)")
    }
    return work
  }

  private static func rows(_ node: String, _ work: Workplace) throws -> [String] {
    try work.stemma("-C", node, "list", "Visit", "--ndjson").lines
  }

  private static func expectEqual(_ work: Workplace, _ count: Int) throws {
    let digests = try ["office", "field"].map {
      try work.stemma("-C", $0, "digest", "--ndjson").lines
    }
    #expect(digests[0] == digests[1])
    #expect(try Self.rows("field", work).count == count)
    try work.stemma("-C", "field", "verify")
  }

  @Test("both nodes hold the same after bundles in both directions")
  func roundTrip() throws {
    let work = try Self.workplace()
    for number in 1...4 { try work.stemma("-C", "field", "bundle", "apply", "bundle\(number)") }
    try Self.expectEqual(work, 8)
    try work.stemma("-C", "field", "create", "Visit", "site=rome", "n=1")
    let vector = try work.stemma("-C", "office", "bundle", "vector", "--json")
    try work.write("office.json", vector.output)
    let created = try work.stemma(
      "-C", "field", "bundle", "create", "back", "--since", "office.json", "--json")
    #expect(created.output.contains(#""events":1"#))
    try work.stemma("-C", "office", "bundle", "apply", "back")
    try Self.expectEqual(work, 9)
    // A directory is read for what it holds.
    let none = try work.stemma("-C", "field", "bundle", "create", "none", "--for", "office", "--json")
    #expect(none.output.contains(#""events":0"#))
  }

  @Test("shuffled, repeated and late bundles converge", arguments: [1, 2, 3] as [UInt64])
  func anyOrder(seed: UInt64) throws {
    let work = try Self.workplace()
    var random = SplitMix64(seed: seed)
    let lost = Int.random(in: 1...4, using: &random)
    func deliver(_ numbers: [Int]) throws {
      for number in numbers.shuffled(using: &random) {
        let result = try work.attempt("-C", "field", "bundle", "apply", "bundle\(number)")
        #expect(result.status == 0 || result.status == 69, "\(result.errors)")
      }
    }
    for _ in 1...4 { try deliver((1...4).filter { $0 != lost }) }
    #expect(try Self.rows("field", work).count == 2 * (lost - 1))
    // The lost one is sent again. In any order, each round adds at least one bundle.
    for _ in 1...4 { try deliver([1, 2, 3, 4]) }
    try Self.expectEqual(work, 8)
  }

  @Test("a bundle whose prerequisites are missing is refused, and names them")
  func missingPrerequisites() throws {
    let work = try Self.workplace()
    try work.stemma("-C", "field", "bundle", "apply", "bundle1")
    let result = try work.attempt("-C", "field", "bundle", "apply", "bundle4")
    #expect(result.status == 69)
    #expect(result.errors.contains("partition site=berlin, origin "))
    #expect(result.errors.contains("(office), from 2 to 3"), "\(result.errors)")
    #expect(try Self.rows("field", work).count == 2)
  }

  @Test("a node takes only the partitions of its scope")
  func scope() throws {
    let work = try Self.workplace(field: "site=paris")
    for number in 1...4 { try work.stemma("-C", "field", "bundle", "apply", "bundle\(number)") }
    let rows = try Self.rows("field", work)
    #expect(rows.count == 4 && rows.allSatisfy { $0.contains("paris") })
    try work.stemma("-C", "field", "verify")
    // A bundle of other partitions only.
    try work.stemma("-C", "office", "bundle", "create", "berlin", "--partition", "site=berlin")
    let other = try work.stemma("-C", "field", "bundle", "apply", "berlin")
    #expect(other.output == "applied nothing new from berlin\n")
  }

  @Test("a truncated bundle is refused, at whatever byte it ends")
  func truncation() throws {
    let work = try Self.workplace()
    let bytes = try work.bytes("bundle1")
    for count in Array(stride(from: 0, to: bytes.count, by: 23)) + [bytes.count - 1] {
      try Self.expectCorrupt(bytes.prefix(count), in: work)
    }
  }

  @Test("flipped bits are found, and never change what a node holds")
  func flippedBits() throws {
    let work = try Self.workplace()
    let bytes = try work.bytes("bundle1")
    var random = SplitMix64(seed: 7)
    for offset in stride(from: 0, to: bytes.count, by: 29) {
      var flipped = bytes
      flipped[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      try Self.expectCorrupt(flipped, in: work)
    }
    try Self.expectCorrupt(bytes + [0], in: work)
    // A length beyond all limits.
    try Self.expectCorrupt(bytes.prefix(8) + [255, 255, 255, 255] + bytes.dropFirst(12), in: work)
    try Self.expectCorrupt(work.bytes("visit.graphql"), in: work)
    // Whole batches before the fault may have been adopted. The intact bundle completes them.
    try work.stemma("-C", "field", "bundle", "apply", "bundle1")
    #expect(try Self.rows("field", work).count == 2)
    try work.stemma("-C", "field", "verify")
  }

  private static func expectCorrupt(_ bytes: Data, in work: Workplace) throws {
    try bytes.write(to: URL(fileURLWithPath: work.file("spoilt")))
    for command in [["bundle", "verify"], ["bundle", "show"], ["-C", "field", "bundle", "apply"]] {
      let result = try Tool.run(Tool.path, command + ["spoilt"], in: work.path)
      #expect(result.status == 74, "\(command), \(bytes.count) bytes: \(result.output)\(result.errors)")
      #expect(result.errors.contains("spoilt"))
    }
    #expect([0, 2].contains(try rows("field", work).count))
  }
}
