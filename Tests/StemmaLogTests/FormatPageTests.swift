import Foundation
import StemmaEvents
import Testing

@testable import StemmaLog

/// The tables of docs/FORMAT.md against the constants that readers and writers of logs use.
@Suite("docs/FORMAT.md")
struct FormatPageTests {
  private let page: String

  init() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    page = try String(contentsOf: root.appendingPathComponent("docs/FORMAT.md"), encoding: .utf8)
  }

  /// The rows of each table of bytes, those that begin with an offset and a number of bytes, under the heading of
  /// its third column.
  private var byteTables: [(title: String, rows: [(offset: Int, bytes: Int)])] {
    var tables: [(title: String, rows: [(offset: Int, bytes: Int)])] = []
    for line in page.split(separator: "\n") where line.hasPrefix("| ") {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 3 else { continue }
      if cells[0] == "offset" {
        tables.append((cells[2], []))
      } else if let offset = Int(cells[0]), let bytes = Int(cells[1]), !tables.isEmpty {
        tables[tables.count - 1].rows.append((offset, bytes))
      }
    }
    return tables
  }

  @Test("every field begins where the one before it ends, and the sizes are those of the code")
  func sizes() {
    var ends: [String: Int] = [:]
    for (title, rows) in byteTables {
      var end = 0
      for row in rows {
        #expect(row.offset == end, "\(title): the field at \(row.offset)")
        end = row.offset + row.bytes
      }
      ends[title] = end
    }
    // A piece of a shipment has fields without a fixed size.
    ends["meaning"] = nil
    #expect(
      ends == [
        "preamble": FilePreamble.size, "header, 64 bytes": JournalHeader.size,
        "frame": JournalFrame.headerSize,
        "slot": Watermark.slotSize, "header": SegmentHeader.fixedSize,
        "trailer, the last 108 bytes": SegmentTrailer.size,
      ])
    #expect(JournalHeader.size == 64 && SegmentTrailer.size == 108)
    #expect(page.contains("| 76 | 40 r |") && SegmentHeader.size(replaced: 3) == 76 + 3 * 40 + 4)
  }

  @Test("magic numbers, versions and limits")
  func constants() {
    func text(_ magic: [UInt8]) -> String { String(decoding: magic, as: UTF8.self) }
    let mebibyte = 1 << 20
    for sentence in [
      "magic: `\(text(FilePreamble.journal))` journal, `\(text(FilePreamble.segment))` segment, "
        + "`\(text(FilePreamble.watermark))` a slot of the watermark",
      "format version: \(FilePreamble.version) |", "magic `\(text(JournalFrame.magic))`",
      "magic `\(text(SegmentTrailer.magic))`",
      "length of the payload, at most \(LogLimits.framePayload / mebibyte) MiB",
      "length of the footer, at most \(LogLimits.footer / mebibyte) MiB",
      "how many files it replaces, at most \(LogLimits.replaced);",
      "about \(LogLimits.blockTarget >> 10) KiB raw",
      "| events of a block | 2^\(Limits.blockEvents.trailingZeroBitCount) |",
      "| raw bytes of a deflated byte | \(Limits.inflationRatio) |",
      "| key, partition, name | \(Limits.key), \(Limits.partition), \(Limits.name) bytes |",
      "| text | \(Limits.value / mebibyte) MiB |",
      "unpacked | \(Limits.blockStream / mebibyte) MiB |",
      "| by, note, source | \(Limits.note) bytes each |",
    ] {
      #expect(page.contains(sentence), "\(sentence)")
    }
  }
}
