import ArgumentParser
import Foundation
import StemmaEvents
import StemmaImport
import StemmaNode

struct Import: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Bring mutations or rows into the node.",
    discussion: """
      Reads NDJSON, one mutation a line ({"op","model","key","fields","ts"}), or a JSON array of mutations. A line
      without `op` is an upsert, so it reads what `export` writes. With --model, flat rows ({"id":1,"name":"x"})
      are upserts. Rows of CSV and TSV (the first line names the fields; an empty cell is null, "" the empty text)
      and of SQLite files (tables go by the models' names) are upserts too. Change feeds of Debezium and CouchDB are
      read with --format, and with --offset a change that comes again writes nothing. Files that are gzip are
      inflated. Each commit of --batch lines is all or nothing; `durable through line N` follows on standard error,
      at most once a second.
      Examples:
        stemma import mutations.ndjson.gz
        stemma import --batch 100 --from-line 5001 mutations.ndjson
        stemma import books.csv --model Book --reject refused.csv
        stemma import list.csv --model Book --delimiter ';' --map Titel=title
        stemma import changes.ndjson --format debezium --offset changes.offset
        stemma -C a export | stemma -C b import -
      """)
  @Argument(help: "Files; `-` is standard input.", completion: .file()) var files: [String]
  @Option(
    name: .customLong("format"), help: "The format of the files (default: by their names, else ndjson).")
  var form: StemmaImport.Import.Format?
  @Option(help: ArgumentHelp("The model of lines that name none, and of rows.", valueName: "model"))
  var model: String?
  @Option(help: ArgumentHelp("Lines in one commit.", valueName: "lines")) var batch: Int = 1000
  @Option(help: ArgumentHelp("Begin with this line; the first is 1.", valueName: "line")) var fromLine: Int =
    1
  @Flag(help: "Let `create` change a record that exists.") var upsert = false
  @Flag(
    name: [.customShort("n"), .long], help: "Check everything, write nothing but the file of --reject.")
  var dryRun = false
  @Option(
    help: ArgumentHelp(
      "Follow a source that is imported again and again: write what it changed since the last import of this name, "
        + "delete what vanished from it.", valueName: "name"))
  var snapshot: String?
  @Flag(help: "With --snapshot: keep what vanished from the source.") var keepMissing = false
  @Flag(help: "With --snapshot: delete all rows of a model of which the source has none.")
  var allowEmpty = false
  @Option(
    help: ArgumentHelp(
      "Write refused lines here and go on; rows of SQLite files as NDJSON.", valueName: "file"),
    completion: .file())
  var reject: String?
  @Option(help: ArgumentHelp("The separator of cells: an ASCII character, or `tab`.", valueName: "character"))
  var delimiter: String?
  @Flag(help: "The first row is data: its cells are the fields in the order of the schema.") var noHeader =
    false
  @Option(
    name: .customLong("null"), parsing: .unconditionalSingleValue,
    help: ArgumentHelp(
      "A cell with this text, without quotes, is null (repeatable; default: the empty cell).",
      valueName: "text"))
  var nulls: [String] = []
  @Option(help: "The encoding of CSV and TSV files.") var encoding: CSV.Encoding = .utf8
  @Option(
    name: .customLong("map"),
    help: ArgumentHelp(
      "The field of a column (repeatable); with --no-header the columns are 1, 2, 3.",
      valueName: "column=field"))
  var maps: [String] = []
  @Flag(help: "Leave out columns that are no fields.") var ignoreUnknown = false
  @Option(
    help: ArgumentHelp(
      "Keep here how far a change feed is durable, and skip the changes before that.", valueName: "file"),
    completion: .file())
  var offset: String?
  @Flag(help: "Refuse references to records that are not there once all files are read.") var strict = false
  @Flag(help: "Let a line that states the shown value close the conflict of its field.") var resolve = false
  @Flag(help: "Sync commits together, about once a second: a crash of the machine loses the newest of them.")
  var relaxed = false
  @Option(help: ArgumentHelp("Seal a segment after so many raw bytes of events.", valueName: "bytes"))
  var segmentSize: Int?
  @Option(
    help: ArgumentHelp("Memory for records that the tables wait for, at most.", valueName: "megabytes"))
  var memory: Int = 256
  @OptionGroup var commit: CommitOptions
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if !(0...(1 << 20)).contains(memory) { throw ValidationError("--memory takes 0 to 1048576 megabytes") }
    if batch < 1 { throw ValidationError("--batch takes 1 or more lines") }
    if fromLine < 1 { throw ValidationError("--from-line takes a line's number, 1 or more") }
    if files.count > 1 && fromLine > 1 { throw ValidationError("--from-line goes with one file") }
    _ = try columns()
    if delimiter != nil || noHeader || !nulls.isEmpty || encoding != .utf8 {
      let dialect = try dialect()
      for file in files where ![.csv, .tsv].contains(format(of: file)) {
        throw ValidationError("\(file): --no-header, --null and --encoding are for CSV. Add --format csv.")
      }
      if format(of: files.first ?? "") == .tsv, dialect.delimiter != UInt8(ascii: ",") {
        throw ValidationError("--delimiter is for CSV. Add --format csv.")
      }
    }
    if !maps.isEmpty || ignoreUnknown, let file = files.first(where: { format(of: $0) == .sqlite }) {
      throw ValidationError("\(file): --map and --ignore-unknown are for text files")
    }
    if offset != nil, form != .debezium, form != .couchdb {
      throw ValidationError("--offset goes with --format debezium or couchdb")
    }
    if form == .couchdb, model == nil { throw ValidationError("--format couchdb goes with --model") }
    if snapshot == nil, keepMissing || allowEmpty {
      throw ValidationError("--keep-missing and --allow-empty go with --snapshot")
    }
    if let snapshot, snapshot.isEmpty { throw ValidationError("--snapshot takes a name") }
    if let segmentSize, segmentSize < 1 { throw ValidationError("--segment-size takes 1 or more bytes") }
  }

  /// A delimiter selects CSV for a file whose name does not reveal the format.
  private func format(of file: String) -> StemmaImport.Import.Format {
    let named = form ?? StemmaImport.Import.Format(path: file)
    return form == nil && delimiter != nil && named == .ndjson ? .csv : named
  }

  private func dialect() throws -> CSV.Dialect {
    var dialect = CSV.Dialect()
    if let delimiter {
      let text = ["tab", "\\t"].contains(delimiter) ? "\t" : delimiter
      guard let byte = text.utf8.first, text.utf8.count == 1, byte < 128, ![0x22, 0x0A, 0x0D].contains(byte)
      else {
        throw ValidationError(
          "--delimiter takes one ASCII character, no quote and no end of a line, or `tab`")
      }
      dialect.delimiter = byte
    }
    dialect.hasHeader = !noHeader
    if !nulls.isEmpty { dialect.nulls = nulls.map { Array($0.utf8) } }
    dialect.encoding = encoding
    return dialect
  }

  private func columns() throws -> ColumnNames {
    var columns = ColumnNames()
    columns.ignoresUnknown = ignoreUnknown
    for map in maps {
      guard let end = map.lastIndex(of: "="), end != map.startIndex, map.index(after: end) != map.endIndex
      else {
        throw ValidationError("--map takes column=field, and not `\(map)`")
      }
      guard
        columns.fields.updateValue(String(map[map.index(after: end)...]), forKey: String(map[..<end])) == nil
      else { throw ValidationError("--map names the column `\(map[..<end])` twice") }
    }
    return columns
  }

  func run() throws {
    try refuseRejectingIntoInput()
    let node = try dryRun ? options.openForRehearsal() : options.openForAppending(segmentSize: segmentSize)
    var chosen = StemmaImport.Import.Options()
    chosen.batch = batch
    chosen.memory = memory << 20
    chosen.isRelaxed = relaxed
    chosen.firstLine = fromLine
    chosen.isUpsert = upsert
    chosen.isDryRun = dryRun
    chosen.model = model
    chosen.format = form ?? (delimiter == nil ? nil : files.first.map(format(of:)))
    chosen.dialect = try dialect()
    chosen.columns = try columns()
    chosen.offset = try offset.map { try FeedOffset($0, for: node) }
    chosen.closesConflicts = resolve
    chosen.author = commit.message.author
    chosen.message = commit.message.text
    let followed = try snapshot.map {
      try StemmaImport.Import.Snapshot(
        $0, of: node, keepsMissing: keepMissing, allowsEmpty: allowEmpty, isDryRun: dryRun)
    }
    var totals = StemmaImport.Import.Summary()
    let rejects = try reject.map(RejectFile.init)
    let dangling = try strict ? danglingLines(node, chosen, followed) : nil
    for file in files {
      var work = StemmaImport.Import(into: node, options: chosen)
      work.dangling = dangling
      work.snapshot = followed
      work.notice = { Output.warning("\(inputName(file)): \($0)") }
      let isQuiet = dryRun
      var lastShown = Date.distantPast
      var isUntold = false
      var untold: StemmaImport.Import.Summary?
      let began = Date()
      let size = FilePlace(input: file).flatMap { $0.isFile ? $0.size : nil }
      let tell = { (summary: StemmaImport.Import.Summary) in
        if format.isJSON {
          Output.line(
            .object([
              ("file", .string(file)), ("durableThroughLine", .int(Int64(summary.durableThroughLine))),
              ("events", .int(Int64(summary.events))),
            ]))
          Output.flush()
        } else if Output.isErrorTerminal {
          // A terminal shows one line that is overwritten, at most ten times a second.
          guard Date().timeIntervalSince(lastShown) > 0.1 else { return }
          lastShown = Date()
          FileHandle.standardError.write(
            Data(
              ("\rdurable through line \(summary.durableThroughLine)"
                + Self.progress(summary, of: size, after: Date().timeIntervalSince(began)) + "\u{1B}[K").utf8)
          )
        } else {
          Output.error("durable through line \(summary.durableThroughLine)")
        }
      }
      work.progress = { summary in
        if isQuiet { return }
        // Waiting here blocks other writers. A paused reader gets the next report instead, or the
        // last.
        isUntold = !Output.takesALine(format.isJSON ? 1 : 2)
        if !format.isJSON, !Output.isErrorTerminal {
          // The first report comes immediately, then one per second.
          if Date().timeIntervalSince(lastShown) < 1 {
            isUntold = true
          } else if !isUntold {
            lastShown = Date()
          }
        }
        if isUntold { untold = summary } else { tell(summary) }
      }
      // Writes a delayed report if no other one follows.
      work.silence = {
        guard isUntold, let summary = untold, Output.takesALine(format.isJSON ? 1 : 2) else { return }
        isUntold = false
        lastShown = Date()
        tell(summary)
      }
      if let rejects {
        work.reject = { line, text, error in
          Output.error("\(inputName(file)):\(line): \(Explanation(error).message)")
          try rejects.append(text)
        }
      }
      let summary: StemmaImport.Import.Summary
      do {
        summary = try work.run(path: file)
      } catch {
        if Output.isErrorTerminal, !format.isJSON { FileHandle.standardError.write(Data("\r\u{1B}[K".utf8)) }
        if isUntold, let untold { tell(untold) }
        throw error
      }
      if isUntold { tell(summary) }
      if Output.isErrorTerminal, !format.isJSON, !isQuiet {
        Output.error("\rdurable through line \(summary.durableThroughLine)\u{1B}[K")
      }
      totals.lines += summary.lines
      totals.events += summary.events
      totals.commits += summary.commits
      totals.rejected += summary.rejected
      totals.counts = totals.counts + summary.counts
    }
    warn(of: totals.counts)
    if let followed { try deleteVanished(from: followed, node, chosen, &totals) }
    if !dryRun {
      // All changes are durable, even if this fails.
      let told = node.notices.count
      node.sealOrNote()
      for notice in node.notices.dropFirst(told) { Output.warning(notice) }
    }
    if format.isJSON {
      Output.line(
        .object(
          [
            ("lines", .int(Int64(totals.lines))), ("events", .int(Int64(totals.events))),
            ("commits", .int(Int64(totals.commits))), ("rejected", .int(Int64(totals.rejected))),
            ("earlyTimes", .int(Int64(totals.counts.early))),
            ("futureTimes", .int(Int64(totals.counts.future))),
            ("movedRecords", .int(Int64(totals.counts.moved))), ("dryRun", .bool(dryRun)),
          ] + (followed.map { [("snapshot", json(of: $0.counts))] } ?? [])))
    } else {
      let verb = dryRun ? "would import" : "imported"
      let lines = counted(totals.lines, "line")
      let events = counted(totals.events, "event")
      let rejected = totals.rejected > 0 ? ", rejected \(grouped(UInt64(totals.rejected)))" : ""
      Output.line("\(verb) \(lines) as \(events) in \(counted(totals.commits, "commit"))\(rejected)")
      if let counts = followed?.counts {
        Output.line(
          "created \(grouped(UInt64(counts.created))), changed \(grouped(UInt64(counts.changed))), "
            + "deleted \(grouped(UInt64(counts.deleted))), kept \(grouped(UInt64(counts.kept)))")
      }
    }
    Output.flush()
    if totals.rejected > 0 { throw ExitCode.no }
  }

  private func warn(of counts: WriteCounts) {
    if counts.early > 0 {
      Output.warning(
        "\(counted(counts.early, "event")) had a time before the record's last event, and got the time of that one"
      )
    }
    if counts.future > 0 {
      Output.warning(
        "\(counted(counts.future, "event")) had a time in the future, and got that of the import")
    }
    if counts.moved > 0 {
      Output.warning("\(counted(counts.moved, "record")) got another key: deleted and created")
    }
  }

  /// Share, rate and remaining time, as far as they are known.
  static func progress(_ summary: StemmaImport.Import.Summary, of size: Int64?, after seconds: Double)
    -> String
  {
    guard seconds > 0 else { return "" }
    let rate = ", \(grouped(UInt64(Double(summary.lines) / seconds))) lines/s"
    guard let size, size > 0, summary.bytesRead > 0 else { return rate }
    let share = min(1, Double(summary.bytesRead) / Double(size))
    let left = UInt64((seconds / share - seconds).rounded(.up))
    return " (\(Int(share * 100)) %)\(rate), \(left / 60) min \(left % 60) s left"
  }

  private func danglingLines(
    _ node: Node, _ chosen: StemmaImport.Import.Options, _ snapshot: StemmaImport.Import.Snapshot?
  ) throws -> StemmaImport.Import.DanglingLines {
    var work = StemmaImport.Import(into: node, options: chosen)
    work.snapshot = snapshot
    if reject != nil { work.reject = { _, _, _ in } }
    return try work.danglingLines(of: files)
  }

  private func deleteVanished(
    from snapshot: StemmaImport.Import.Snapshot, _ node: Node, _ chosen: StemmaImport.Import.Options,
    _ totals: inout StemmaImport.Import.Summary
  ) throws {
    var work = StemmaImport.Import(into: node, options: chosen)
    work.snapshot = snapshot
    let deletions = try work.deleteVanished(isComplete: totals.rejected == 0 && fromLine == 1)
    totals.events += deletions.events
    totals.commits += deletions.commits
    guard totals.rejected > 0 || fromLine > 1, !keepMissing, snapshot.counts.kept > 0 else { return }
    Output.warning("snapshot \(snapshot.name): nothing is deleted, because not every row was taken")
  }

  private func json(of counts: StemmaImport.Import.Snapshot.Counts) -> JSON {
    .object([
      ("created", .int(Int64(counts.created))), ("changed", .int(Int64(counts.changed))),
      ("deleted", .int(Int64(counts.deleted))), ("kept", .int(Int64(counts.kept))),
    ])
  }

  /// The file of --reject is truncated before any input is read.
  private func refuseRejectingIntoInput() throws {
    guard let reject, let target = FilePlace(reject), target.isFile else { return }
    for file in files where FilePlace(input: file) == target {
      throw Failure(
        "--reject would write over \(inputName(file)), which is to be read; name another file for refused lines",
        .usage)
    }
  }
}

extension StemmaImport.Import.Format: ExpressibleByArgument {}
extension CSV.Encoding: ExpressibleByArgument {}

/// The file of refused lines.
private final class RejectFile {
  private let handle: FileHandle
  private let path: String

  init(_ path: String) throws {
    self.path = path
    // The file is not replaced, because it may be a pipe (a shell's `>(…)`).
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else {
      throw Failure("cannot create \(path): \(String(cString: strerror(errno)))", .cannotCreate)
    }
    handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  func append(_ line: UnsafeRawBufferPointer) throws {
    do { try handle.write(contentsOf: Data(line) + [10]) } catch {
      throw Failure("cannot write \(path)", .inputOutput)
    }
  }
}
