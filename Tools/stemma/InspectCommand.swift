import ArgumentParser
import Foundation
import StemmaEvents
import StemmaLog
import StemmaHistory
import StemmaNode

struct Inspect: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Take a file apart: what it holds, and what of it is corrupt.",
    discussion: """
      Reads segments, journals, watermarks and shipments, cut or corrupt ones too, and changes nothing. A shipment is \
      what one node sends another. Between directories it passes in memory, so shipment files come from other programs. \
      Blocks and frames are numbered from 1. A part whose checksum fails is named, and the parts around it are shown. \
      Where the end of a segment is corrupt, the blocks that decode are shown without a checksum. \
      Names are those of the node around the file, or of the node that -C names; neither is needed. \
      Exits with 1 if anything is corrupt, or of no known format. Exits with 65 if the file is empty, or of another \
      known kind: an SQLite database, compressed with gzip, JSON, text.
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
  @Flag(help: "Compare digests, too, which cover whole files.") var verify = false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if let block, block < 1 { throw ValidationError("--block takes a number from 1") }
  }

  func run() throws {
    let isInput = file == "-" || isPipe
    let node = options.isNamed ? try options.locate() : nil
    let input = isInput ? try spooledInput() : nil
    // An unnamed file is opened by its descriptor.
    let path = input.map { "/dev/fd/\($0.fileDescriptor)" } ?? file
    let name = inputName(file)
    if kind(path).map({ $0 == S_IFCHR || $0 == S_IFBLK }) ?? false {
      throw Failure("\(name) is a device, and no file", .badData)
    }
    let inspection = try FileInspection(path: path, node: node)
    // Keeps the descriptor open until here.
    withExtendedLifetime(input) {}
    if inspection.source.size == 0 {
      throw Failure(
        "\(name) is empty"
          + (file == "-" ? "; is there a file before the pipe?" : ", and so no file of this software"),
        .badData)
    }
    if inspection.format == .unknown, let content = inspection.otherContent {
      throw Failure("\(name) is \(content.withCommands)", .badData)
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
    if !report.corrupt.isEmpty { throw ExitCode.no }
  }

  /// Streams one part per line, or all as the value's `parts`.
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
    if isOneValue { Output.line("],\"corrupt\":\(!report.corrupt.isEmpty)}") }
  }

  /// Whether the path leads to a pipe, such as `/dev/stdin` or a shell's `<(…)`.
  private var isPipe: Bool { kind(file) == S_IFIFO }

  /// Whether it is a named pipe in a directory. It may have no writer yet.
  private var isNamedPipe: Bool {
    var status = stat()
    return lstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
  }

  /// The file type in `st_mode` (inode(7)), nil if nothing exists at the path.
  private func kind(_ path: String) -> mode_t? {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
  }

  /// Copies standard input or a pipe to a file, because segments are read from their end. The file
  /// is unlinked immediately, so nothing is left behind.
  private func spooledInput() throws -> FileHandle {
    // Opening a named pipe waits for a writer, and reading it waits for its end.
    if isNamedPipe {
      Output.error("\(printable(file)) is a pipe: it is read until its last writer closes it")
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

/// Parts of a file as text.
private final class PartReport {
  private let inspection: FileInspection
  private let showsEvents: Bool
  /// Whether only one block, frame or slot was selected.
  private let isOne: Bool
  private(set) var count = 0
  private(set) var corrupt: [String] = []
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
    if !part.flaws.isEmpty { corrupt.append(part.name) }
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
      inspection.forEachEvent(of: part) { stored, message in
        let author = message.author.map { " by \($0)" } ?? ""
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

  // MARK: Corruption

  private func write(_ flaw: InspectedFlaw, of part: InspectedPart) {
    let place = part.length == 0 ? "missing" : "corrupt at byte \(flaw.offset)"
    Output.line("  " + Output.styled(printable("\(place): \(flaw.flaw)"), .red))
    // The content of other parts is known, or compressed.
    if part.kind == .unknown { writeBytes(from: flaw.offset) }
  }

  /// A hex dump of three lines with sixteen bytes each.
  private func writeBytes(from start: UInt64) {
    let bytes: [UInt8]
    do { bytes = try inspection.source.bytes(at: start, count: 48) } catch { return }
    for index in stride(from: 0, to: bytes.count, by: 16) {
      let line = bytes[index..<min(index + 16, bytes.count)]
      let digits = line.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
      let letters = line.map { (0x20..<0x7F).contains($0) ? String(UnicodeScalar($0)) : "." }.joined()
      let number = String(start + UInt64(index), radix: 16)
      let zeros = String(repeating: "0", count: max(0, 8 - number.count))
      let padding = String(repeating: " ", count: 47 - digits.count)
      Output.line("    \(zeros)\(number)  \(digits)\(padding)  |\(letters)|")
    }
  }

  /// The readable content, in terms of the format. Empty for a watermark, which holds no events.
  private var content: String {
    if inspection.format == .log(.watermark) { return "" }
    let content = "\(counted(events, "event")) in \(counted(blocks, unit)) can be read"
    switch uncheckedBlocks {
    case 0: return content + "; "
    case blocks: return content + ", without a checksum; "
    default: return content + ", \(grouped(uncheckedBlocks)) of them without a checksum; "
    }
  }

  /// The unit that `--block` counts.
  var unit: String {
    switch inspection.format {
    case .log(.journal): "frame"
    case .log(.watermark): "slot"
    default: "block"
    }
  }

  var summary: String {
    guard !corrupt.isEmpty else {
      return content + (isOne ? "nothing of this \(unit) is corrupt" : "nothing is corrupt")
    }
    let names = corrupt.prefix(8).joined(separator: ", ") + (corrupt.count > 8 ? " …" : "")
    return Output.styled("\(content)\(counted(corrupt.count, "part")) corrupt: \(names)", .red)
  }
}
