import Foundation
import StemmaEvents
import Testing

private let data = ProcessInfo.processInfo.environment["STEMMA_DATA"].flatMap { $0.isEmpty ? nil : $0 }

/// The size of real histories with all merge metadata, compared with the bare mutations under gzip
/// -9.
@Suite struct BlockSizeTests {
  @Test(
    .enabled(if: data != nil, "STEMMA_DATA names no folder of data sets"),
    arguments: [("chinook", 0.47), ("git-grdb", 0.96)])
  func realHistoriesStaySmall(name: String, bound: Double) throws {
    let folder = try #require(data)
    let real = try RealEvents(URL(fileURLWithPath: folder).appendingPathComponent(name))
    let blocks = real.blocks(rawBytes: 64 << 10)
    let stored = blocks.reduce(0) { $0 + $1.count }
    let count = Double(real.events.count)
    print(
      "\(name): \(real.events.count) events in \(blocks.count) blocks,",
      String(format: "%.2f", Double(stored) / count), "bytes an event,",
      String(format: "%.3f", Double(stored) / Double(real.gzipBytes)), "of gzip -9")
    #expect(Double(stored) <= bound * Double(real.gzipBytes))

    var read: [BlockEvent] = []
    for block in blocks { read += try BlockReader(block).eventsByKey() }
    #expect(read == real.events.sorted(by: order))
  }
}
