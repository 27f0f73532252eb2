import ArgumentParser
import Foundation
import StemmaEvents
import StemmaHistory
import StemmaNode

struct Segments: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "segments",
    abstract: "List the files of the log.",
    discussion: """
      Positions are those of `log`; raw and stored are bytes before and after compression. `stemma inspect` shows \
      what is inside of one. Blocks are not read here: corruption is said, and ends it with 1, if it is in a footer or \
      was noted by a command that has met it where it reads events, such as `stemma verify` or `log`. This one messages nothing.

      Examples:
        stemma segments
        stemma segments --partitions --json
      """)
  @Flag(help: "Also what each file holds of each partition.") var partitions = false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let files = try options.open().logFiles()
    let withPartitions = partitions
    if format.json {
      Output.line(.array(files.map { $0.json(withPartitions: withPartitions) }))
    } else if format.ndjson {
      for file in files { Output.line(file.json(withPartitions: withPartitions)) }
    } else if partitions {
      for (index, file) in files.enumerated() {
        if index > 0 { Output.line() }
        table([file]).write()
        if let corruption = file.corruption { Output.line("  " + Output.styled(corruption, .red)) }
        Output.line()
        shares(of: file).write(indent: "  ")
      }
    } else {
      table(files).write()
      for file in files {
        if let corruption = file.corruption {
          Output.line(Output.styled("\(file.file): \(corruption)", .red))
        }
      }
    }
    if !format.isJSON { Output.line("\nBlocks were not read; `stemma verify` looks for corruption in them.") }
    Output.flush()
    if files.contains(where: { $0.corruption != nil }) { throw ExitCode.no }
  }

  private func table(_ files: [LogFileDescription]) -> TextTable {
    var table = TextTable(
      [
        "number", "kind", "positions", "from", "to", "events", "raw", "stored", "ratio", "partitions",
        "blocks",
        "digest",
      ], numeric: [0, 5, 6, 7, 8, 9, 10])
    for file in files {
      // Only the length of a corrupt file is known, if the file exists.
      let isUnread = file.kind == "corrupt"
      let ratio = file.storedBytes == 0 ? 0 : Double(file.rawBytes) / Double(file.storedBytes)
      table.append([
        String(file.number), file.kind, file.positions.map { "@\($0.first) … @\($0.last)" } ?? "-",
        day(file.times?.first), day(file.times?.last), isUnread ? "-" : grouped(file.events),
        isUnread ? "-" : size(file.rawBytes), file.storedBytes == 0 ? "-" : size(file.storedBytes),
        isUnread ? "-" : String(format: "%.1f", ratio),
        file.partitions.map { grouped(UInt64($0.count)) } ?? "-",
        file.blocks.map { grouped(UInt64($0)) } ?? "-", String((file.digest ?? "-").prefix(12)),
      ])
    }
    return table
  }

  private func day(_ time: String?) -> String { time.map { String($0.prefix(10)) } ?? "-" }

  private func shares(of file: LogFileDescription) -> TextTable {
    var table = TextTable(["partition", "events", "blocks", "streams"], numeric: [1])
    for share in file.partitions ?? [] {
      let streams = share.streams.map { "\($0.origin):\($0.from)…\($0.to)" }
      table.append([
        printable(share.partition), grouped(share.events),
        share.blocks.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)…\($0.upperBound)" } ?? "-",
        printable(streams.joined(separator: " ")),
      ])
    }
    return table
  }
}
