import StemmaEvents
import StemmaLog
import StemmaSimulation
import Testing

@testable import StemmaReplication

/// Inspection of intact and corrupt shipments.
@Suite struct ShipmentInspectionTests {
  private func shipment() throws -> [UInt8] {
    var node = MemoryNode("basel", id: 1)
    for round in 0..<4 {
      let keys = (0..<200).map { ($0 % 2 == 0 ? "t=a" : "t=b", Int64(round * 100 + $0)) }
      node.write(keys.map { (partition: $0.0, $0.1) }, message: CommitMessage(author: "Ann"))
    }
    let source = node.source
    let plan = try ShipmentPlan(
      source: source, scope: NarrowedScope(.everything), above: VersionVector(), names: ("basel", "receiver"))
    var writer = ShipmentWriter(
      source: source, plan: plan, sender: node.logID, bytesReadBefore: 0, batchTarget: 1)
    var bytes: [UInt8] = []
    while let batch = try writer.next() { bytes += batch }
    #expect(writer.batchCount > 1)
    return bytes
  }

  private func parts(_ bytes: [UInt8]) throws -> [InspectedPart] {
    let disk = SimulatedFileSystem()
    disk.plant(bytes, at: "/shipment")
    var parts: [InspectedPart] = []
    try ShipmentInspection.run(
      try InspectedFile(path: "/shipment", fileSystem: disk), InspectionRequest(isComplete: true)
    ) { parts.append($0) }
    return parts
  }

  @Test func aWholeShipmentHasNoFlaw() throws {
    let parts = try parts(try shipment())
    #expect(!parts.contains { !$0.flaws.isEmpty }, "\(parts.flatMap(\.flaws))")
    #expect(parts.reduce(0) { $0 + ($1.block?.count ?? 0) } == 800)
    #expect(parts.compactMap(\.number) == Array(1...parts.count { $0.kind == .block }))
  }

  @Test func wrongBytesAreSeenAndCutsSurvived() throws {
    let bytes = try shipment()
    // A prime step covers every place of the format in some batch.
    for index in stride(from: 0, to: bytes.count, by: 13) {
      var spoilt = bytes
      spoilt[index] ^= 1 << UInt8(index % 8)
      #expect(try parts(spoilt).contains { !$0.flaws.isEmpty }, "byte \(index)")
      let cut = try parts(Array(bytes[..<index]))
      let isWhole = !cut.contains { !$0.flaws.isEmpty }
      // A cut between two batches leaves a valid, shorter shipment.
      #expect(!isWhole || cut.last.map { $0.kind == .trailer } ?? true, "cut to \(index)")
    }
  }
}
