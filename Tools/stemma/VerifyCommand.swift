import ArgumentParser
import StemmaEvents
import StemmaNode

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check every byte of the log, and the tables against it.",
    discussion: """
      Exits with 1 and names file and offset if anything is damaged.
      Examples:
        stemma verify
        stemma verify --json | jq .damage
      """)
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let bar = ProgressBar("verifying")
    let report = try Node.verify(at: try options.locate(), options: options.opening(.read, progress: bar))
    bar.finish()
    if format.isJSON {
      Output.line(
        .object([
          ("events", .int(Int64(report.events))), ("files", .int(Int64(report.files))),
          (
            "damage",
            .array(
              report.damage.map { damage in
                .object([
                  ("file", .string(damage.file)),
                  ("offset", damage.offset.map { .int(Int64($0)) } ?? .null),
                  ("what", .string(damage.what)),
                ])
              })
          ),
        ]))
    } else {
      for damage in report.damage {
        Output.line("\(damage.file)\(damage.offset.map { " at byte \($0)" } ?? ""): \(damage.what)")
      }
      if report.damage.isEmpty {
        Output.line("\(counted(Int(report.events), "event")) in \(counted(report.files, "file")): all good")
      } else {
        Output.line(
          "\(counted(report.damage.count, "place")) damaged; pull the lost events from a peer into a new clone"
        )
      }
    }
    Output.flush()
    if !report.damage.isEmpty { throw ExitCode.no }
  }
}
