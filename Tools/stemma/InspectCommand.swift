import ArgumentParser
import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode

struct Inspect: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Take a file apart: what it holds, and what of it is damaged.",
    discussion: """
      Reads segments, journals, watermarks and shipments, cut or damaged ones too, and changes nothing. A shipment is \
      what one node sends another; between directories it passes in memory, and no command writes one to a file: they \
      come from programs that carry them. \
      Blocks and frames are numbered from 1. Where one byte of a block is wrong it is found, and the block is \
      read as it was. Names are those of the node around the file, or of the one that -C names; neither is needed. \
      Exits with 1 if anything is damaged, or of no known format, with 65 if there is not one byte, or the file is of \
      another kind that is known: an SQLite database, compressed with gzip, JSON, text.
      Examples:
        stemma inspect shop/log/00000001.segment
        stemma inspect shop/log/00000001.segment --block 3 --events --json
        gzip -dc backup.segment.gz | stemma -C shop inspect --verify -
      """)
  @Argument(
    help: ArgumentHelp("A file, or - for standard input.", valueName: "file"), completion: .file())
  var file: String
  @Option(help: ArgumentHelp("Only this block, frame or slot; from 1.", valueName: "number"))
  var block: Int?
  @Flag(help: "The events of each block, too.") var events = false
  @Flag(help: "Compare digests and hashes, too, which need the whole content.") var verify = false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if let block, block < 1 { throw ValidationError("--block takes a number from 1") }
  }

  func run() throws {
    let isInput = file == "-" || isPipe
    let node = options.isNamed ? try options.locate() : nil
    let input = isInput ? try spooledInput() : nil
    // A file without a name is opened by its descriptor.
    let path = input.map { "/dev/fd/\($0.fileDescriptor)" } ?? file
    let name = inputName(file)
    if kind(path).map({ $0 == S_IFCHR || $0 == S_IFBLK }) ?? false {
      throw Failure("\(name) is a device, and no file", .badData)
    }
    let inspection = try FileInspection(path: path, node: node)
    // The descriptor is open until here, though nothing names it any more.
    withExtendedLifetime(input) {}
    if inspection.source.size == 0 {
      throw Failure(
        "\(name) is empty"
          + (file == "-" ? "; is there a file before the pipe?" : ", and so no file of this software"),
        .badData)
    }
    if inspection.format == .unknown, let content = inspection.otherContent {
      throw Failure("\(name) is \(content)", .badData)
    }
    let request = InspectionRequest(block: block, isComplete: verify)
    let report = PartReport(inspection, showsEvents: events, isOne: block != nil)
    if format.isJSON {
      try writeJSON(inspection, name, request, report)
    } else {
      Pager.begin()
      let size = grouped(inspection.source.size)
      let format =
        inspection.format == .unknown
        ? "no known format; whatever looks like a block is shown" : inspection.format.name
      Output.line("\(Output.styled(printable(name), .bold)): \(format), \(size) bytes")
      try inspection.parts(request) { report.write($0) }
      if report.count > 0 { Output.line("\n" + report.summary) }
    }
    Output.flush()
    if let block, report.count == 0 { throw Failure("\(name) has no \(report.unit) \(block)", .noInput) }
    if !report.damaged.isEmpty { throw ExitCode.no }
  }

  /// One part a line, or all of them as the value's `parts`; neither is held in memory.
  private func writeJSON(
    _ inspection: FileInspection, _ name: String, _ request: InspectionRequest, _ report: PartReport
  ) throws {
    let withEvents = events
    let isOneValue = format.json
    if isOneValue {
      var front: [UInt8] = []
      JSON.object([
        ("file", .string(name)), ("format", .string(inspection.format.name)),
        ("bytes", .int(Int64(clamping: inspection.source.size))),
      ]).append(to: &front)
      Output.bytes(front.dropLast() + Array(",\"parts\":[".utf8))
    }
    try inspection.parts(request) { part in
      if isOneValue, report.count > 0 { Output.bytes([UInt8(ascii: ",")]) }
      report.count(part)
      Output.line(inspection.json(part, withEvents: withEvents))
    }
    if isOneValue { Output.line("],\"damaged\":\(!report.damaged.isEmpty)}") }
  }

  /// Whether the file's name is that of a pipe, as `/dev/stdin` or a shell's `<(…)` is.
  private var isPipe: Bool { kind(file) == S_IFIFO }

  /// Whether it is a pipe of its own in a directory, which has no writer before somebody opens it.
  private var isNamedPipe: Bool {
    var status = stat()
    return lstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
  }

  /// The bits of `st_mode` (inode(7)) that tell what stands there; nil if nothing does.
  private func kind(_ path: String) -> mode_t? {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
  }

  /// Standard input, or a pipe, as a file, because segments are read from their end. The file has no name any more:
  /// nothing is left behind, whatever happens next.
  private func spooledInput() throws -> FileHandle {
    // Opening a pipe that has a name waits for somebody who writes, and reading it for its end.
    if isNamedPipe {
      Output.error("\(printable(file)) is a pipe: it is read until nobody writes to it any more")
    }
    let input = file == "-" ? FileHandle.standardInput : try openedFile(file)
    let path = NSTemporaryDirectory() + "/stemma-inspect-\(UUID().uuidString)"
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw Failure("cannot write \(path), where the input is kept while it is read", .cannotCreate)
    }
    let target = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    unlink(path)
    while let data = try input.read(upToCount: 1 << 20), !data.isEmpty {
      try target.write(contentsOf: data)
    }
    return target
  }
}

/// Parts of a file as people read them.
private final class PartReport {
  private let inspection: FileInspection
  private let showsEvents: Bool
  /// Whether only one block, frame or slot was asked for.
  private let isOne: Bool
  private(set) var count = 0
  private(set) var damaged: [String] = []
  private var blocks = 0
  private var uncheckedBlocks = 0
  private var events = 0

  init(_ inspection: FileInspection, showsEvents: Bool, isOne: Bool) {
    self.inspection = inspection
    self.isOne = isOne
    self.showsEvents = showsEvents
  }

  func count(_ part: InspectedPart) {
    count += 1
    if !part.flaws.isEmpty { damaged.append(part.name) }
    if let block = part.block {
      blocks += 1
      if !part.isChecked { uncheckedBlocks += 1 }
      events += block.count
    }
  }

  func write(_ part: InspectedPart) {
    count(part)
    let isBlock = part.kind == .block || part.kind == .frame
    if !isBlock { Output.line() }
    let style: Output.Style = part.flaws.isEmpty ? .cyan : .red
    var line =
      "\(Output.styled(part.name, style)) at \(part.offset), \(counted(Int(clamping: part.length), "byte"))"
    if let block = part.block {
      line += ": \(counted(block.count, "event")) of \(counted(block.keyCount, "record")), \(span(block))"
      if !part.isChecked { line += "; readable, without a checksum" }
    }
    Output.line(line)
    if !isBlock || part.block == nil {
      for fact in part.facts { Output.line("  \(fact.name) \(text(fact.value))") }
    }
    for flaw in part.flaws { write(flaw, of: part) }
    if showsEvents {
      let text = EventText(inspection.description)
      inspection.forEachEvent(of: part) { stored, note in
        let author = note.by.map { " by \($0)" } ?? ""
        Output.line("    " + text.summary(stored) + printable(author))
      }
    }
  }

  private func text(_ fact: InspectedPart.Fact) -> String {
    switch fact {
    case .number(let number): grouped(number)
    case .text(let text): printable(text)
    case .position(let position): "@\(position)"
    }
  }

  /// The records from the first to the last.
  private func span(_ block: BlockReader) -> String {
    func name(_ record: BlockReader.Record) -> String {
      "\(record.model) \(record.key.parts.map(\.text).joined(separator: " ")) in \(record.partition)"
    }
    let first = printable(name(block.record(0)))
    return block.keyCount == 1 ? first : "\(first) … \(printable(name(block.record(block.keyCount - 1))))"
  }

  // MARK: Damage

  private func write(_ flaw: InspectedFlaw, of part: InspectedPart) {
    var what = flaw.flaw.description
    if let byte = flaw.byte {
      // The magic of a format is not covered by its checksum.
      let reason = flaw.flaw == .notThisFormat ? "by the format" : "by the checksum"
      let subject = part.block == nil ? "it is" : "the events are"
      what = "it is \(hex(byte.found)); \(reason) it was \(hex(byte.expected)), and \(subject) read so"
    } else if part.block != nil, part.isChecked {
      switch flaw.flaw {
      case .surplus: what += "; without them the checksum holds, and the events are read so"
      case .lacking: what += "; the checksum tells what stood there, and the events are read so"
      default: break
      }
    }
    var isGone = part.length == 0 && flaw.byte == nil
    // That says itself that bytes are missing.
    if case .lacking = flaw.flaw { isGone = false }
    if isGone {
      Output.line("  " + Output.styled(printable("missing: \(what)"), .red))
      return
    }
    let place =
      flaw.range.map { "in bytes \($0.lowerBound)–\($0.upperBound - 1)" } ?? "at byte \(flaw.offset)"
    Output.line("  " + Output.styled(printable("damaged \(place): \(what)"), .red))
    // Which of many bytes are wrong no checksum tells.
    if (flaw.range.map { $0.count <= 16 } ?? true) { writeBytes(around: flaw, at: flaw.offset) }
  }

  /// Lines of sixteen bytes: that of the damage, and the one before and behind it.
  private func writeBytes(around flaw: InspectedFlaw, at offset: UInt64) {
    let middle = offset / 16 * 16
    let start = middle >= 16 ? middle - 16 : 0
    let bytes: [UInt8]
    do { bytes = try inspection.source.bytes(at: start, count: 48) } catch { return }
    for (row, index) in stride(from: 0, to: bytes.count, by: 16).enumerated() {
      let line = bytes[index..<min(index + 16, bytes.count)]
      let offset = start + UInt64(row * 16)
      var digits = ""
      var letters = ""
      for (place, byte) in line.enumerated() {
        let position = offset + UInt64(place)
        let isWrong = flaw.byte != nil && position == flaw.offset
        digits += isWrong ? Output.styled(hex(byte), .red) + "<" : hex(byte) + " "
        letters += (0x20..<0x7F).contains(byte) ? String(UnicodeScalar(byte)) : "."
      }
      digits += String(repeating: "   ", count: 16 - line.count)
      let number = String(offset, radix: 16)
      Output.line(
        "    \(String(repeating: "0", count: max(0, 8 - number.count)))\(number)  \(digits) |\(letters)|")
    }
  }

  private func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }

  /// What can be read, in the words of the format; nothing of a watermark, which holds no events.
  private var content: String {
    if inspection.format == .log(.watermark) { return "" }
    let content = "\(counted(events, "event")) in \(counted(blocks, unit)) can be read"
    switch uncheckedBlocks {
    case 0: return content + "; "
    case blocks: return content + ", without a checksum; "
    default: return content + ", \(grouped(uncheckedBlocks)) of them without a checksum; "
    }
  }

  /// What `--block` counts.
  var unit: String {
    switch inspection.format {
    case .log(.journal): "frame"
    case .log(.watermark): "slot"
    default: "block"
    }
  }

  var summary: String {
    guard !damaged.isEmpty else {
      return content + (isOne ? "nothing of this \(unit) is damaged" : "nothing is damaged")
    }
    let names = damaged.prefix(8).joined(separator: ", ") + (damaged.count > 8 ? " …" : "")
    return Output.styled("\(content)\(counted(damaged.count, "part")) damaged: \(names)", .red)
  }
}
