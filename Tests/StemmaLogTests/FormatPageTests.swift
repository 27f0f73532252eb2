import Foundation
import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Compares the tables of docs/FORMAT.md with the constants of the code.
@Suite("docs/FORMAT.md")
struct FormatPageTests {
  private let page: String

  init() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    page = try String(contentsOf: root.appendingPathComponent("docs/FORMAT.md"), encoding: .utf8)
  }

  /// The rows of each byte table, which begin with an offset and a size, under the heading of its
  /// third column.
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
    #expect(
      ends == [
        "preamble": FilePreamble.size, "manifest": Manifest.fixedSize,
        "header, 48 bytes": JournalHeader.size, "frame": JournalFrame.headerSize,
        "slot": Watermark.slotSize, "header": SegmentHeader.size,
        "trailer, the last 108 bytes": SegmentTrailer.size,
      ])
    #expect(JournalHeader.size == 48 && SegmentTrailer.size == 108)
    #expect(page.contains("| 72 | \(SegmentEntry.encodedSize) s |"))
    #expect(page.contains("| … | \(ObsoleteFile.encodedSize) f |"))
    #expect(page.utf8.count <= 20 << 10)
  }

  @Test("magic numbers, versions and limits")
  func constants() {
    func text(_ magic: [UInt8]) -> String { String(decoding: magic, as: UTF8.self) }
    let mebibyte = 1 << 20
    for sentence in [
      "magic: `\(text(FilePreamble.manifest))` manifest, `\(text(FilePreamble.journal))` journal, "
        + "`\(text(FilePreamble.segment))` segment, `\(text(FilePreamble.watermark))` a slot of the watermark",
      "format version: \(FilePreamble.version) |", "magic `\(text(JournalFrame.magic))`",
      "magic `\(text(SegmentTrailer.magic))`",
      "length of the payload, at most \(LogLimits.framePayload / mebibyte) MiB",
      "length of the footer, at most \(LogLimits.footer / mebibyte) MiB",
      "about \(LogLimits.blockTarget >> 10) KiB raw",
      "| events of a block | 2^\(Limits.blockEvents.trailingZeroBitCount) |",
      "| raw bytes of a deflated byte | \(Limits.inflationRatio) |",
      "| key, partition, name | \(Limits.key), \(Limits.partition), \(Limits.name) bytes |",
      "| text | \(Limits.value / mebibyte) MiB |",
      "unpacked | \(Limits.blockStream / mebibyte) MiB |",
      "| author, message, source | \(Limits.message) bytes each |",
    ] {
      #expect(page.contains(sentence), "\(sentence)")
    }
    #expect(LogLimits.gap == 1_000_000 && page.contains("leaves 1,000,000 positions free"))
  }

  // MARK: The example

  /// The bytes of the files in the page's example, by name.
  private var exampleFiles: [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    var name = ""
    for line in page.components(separatedBy: "```")[1].split(separator: "\n") {
      let bytes = line.components(separatedBy: "  ")[0].split(separator: " ").map { UInt8($0, radix: 16) }
      if bytes.contains(nil) {
        name = String(line)
      } else {
        files[name, default: []] += bytes.compactMap { $0 }
      }
    }
    return files
  }

  /// The events of the example, and the message of their commit.
  private var exampleCommit: Commit {
    func event(
      _ sequence: UInt64, _ operation: EventOperation, _ number: Int64,
      _ assignments: [Assignment], after context: Context = .empty, version: UInt64 = 1
    ) -> Event {
      Event(
        partition: Partition("shelf=a"), model: "Book", key: Key(.string("a"), .int(number)),
        operation: operation, assignments: assignments, id: EventID(Origin(0xaa), SequenceNumber(sequence)),
        context: context, version: Version(version),
        timestamp: Timestamp(milliseconds: 1_700_000_000_000, counter: UInt16(sequence - 1)),
        commit: CommitID(Origin(0xaa), 1))
    }
    return Commit(
      [
        event(1, .create, 1, [Assignment("pages", .int(300)), Assignment("title", .string("Emma"))]),
        event(2, .create, 2, [Assignment("pages", .int(7)), Assignment("title", .string("Ada"))]),
        event(
          3, .update, 1, [Assignment("title", .null)],
          after: Context(EventID(Origin(0xaa), SequenceNumber(1))),
          version: 2),
      ], message: CommitMessage(author: "ann", text: "new books"))
  }

  /// An event as a row of the example's table.
  private func row(_ stored: StoredEvent) -> String {
    func text(_ value: Value) -> String {
      switch value {
      case .null: "null"
      case .int(let number): String(number)
      case .string(let text): text
      case .bool, .double, .json: "?"
      }
    }
    let event = stored.event
    let parts = event.key.parts.map { text($0.value) }.joined(separator: " ")
    let context = event.context.entries.map { "`\(EventID($0.origin, $0.sequence))` " }.joined()
    let cells = [
      stored.position.description, "`\(event.id)`", event.operation.name, "\(event.model) \(parts)",
      event.assignments.map { "\($0.field) \(text($0.value))" }.joined(separator: ", "),
      event.version.description,
    ]
    return "| " + cells.joined(separator: " | ") + " | \(context)| `\(event.digest)` |"
  }

  @Test("the example's bytes are read as the events that the page lists")
  func exampleIsRead() throws {
    let disk = SimulatedFileSystem()
    try disk.createDirectory("/log")
    for (name, bytes) in exampleFiles { disk.plant(bytes, at: "/log/\(name)") }
    let log = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    #expect(try log.verify().isEmpty)
    var events: [Event] = []
    var reader = log.events()
    while let stored = try reader.next() {
      #expect(page.contains(row(stored)), "\(row(stored))")
      #expect(reader.message == exampleCommit.message)
      events.append(stored.event)
    }
    #expect(events == exampleCommit.events)
  }

  @Test("a log with the example's events has the example's bytes")
  func exampleIsWritten() throws {
    let disk = SimulatedFileSystem()
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    try log.append([exampleCommit])
    try log.sync()
    #expect(exampleFiles.keys.sorted() == ["00000001.journal", "manifest"])
    for (name, bytes) in exampleFiles {
      #expect(hex(disk.contents("/log/\(name)") ?? []) == hex(bytes), "\(name)")
    }
  }
}
