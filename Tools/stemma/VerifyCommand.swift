import ArgumentParser
import StemmaEvents
import StemmaLog
import StemmaNode

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check every byte of the log, and the tables against it.",
    discussion: """
      Says what is damaged, which events that took, how many can still be read, and the command that repairs it; exits with \
      1 then. `stemma inspect FILE` shows the bytes.
      Examples:
        stemma verify
        stemma verify --json | jq -r '.mend[0]'
      """)
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let bar = ProgressBar("verifying")
    let report = try Node.verify(at: try options.locate(), options: options.opening(.read, progress: bar))
    bar.finish()
    if format.isJSON {
      Output.line(report.json)
    } else {
      write(report)
    }
    Output.flush()
    if report.isDamaged || report.isUnfinished { throw ExitCode.no }
  }

  private func write(_ report: Node.VerificationReport) {
    for damage in report.damage {
      let place = damage.offset.map { " at byte \($0)" } ?? ""
      let part = damage.part.map { " (\($0))" } ?? ""
      let text = "\(damage.file)\(place)\(part): \(printable(damage.what))"
      switch damage.remedy {
      case .none: Output.line("\(text); ordinary after a crash")
      case .remove: Output.line(text)
      default: Output.line(Output.styled(text, .red))
      }
    }
    if report.unconfirmed > 0 {
      Output.line("\(counted(Int(report.unconfirmed), "event")) written, not yet confirmed durable")
    }
    for sentence in report.pending { Output.line(printable(sentence)) }
    if report.isUnfinished { Output.line(Explanations.unfinishedClone) }
    guard report.isDamaged else {
      if report.isUnfinished {
        return Output.line(
          "\(counted(Int(report.events), "event")) in \(counted(report.files, "file")) so far, undamaged")
      }
      let verdict = report.pending.isEmpty ? ": all good" : ", undamaged"
      Output.line("\(counted(Int(report.events), "event")) in \(counted(report.files, "file"))\(verdict)")
      return
    }
    if !report.losses.isEmpty {
      Output.line("lost:")
      for line in LossText.lines(report.losses, report.mark) { Output.line("  \(printable(line))") }
    }
    if report.isVague { Output.line("lost: what else these files held cannot be determined") }
    Output.line("\(counted(Int(report.events), "event")) can still be read")
    if !report.commands.isEmpty { Output.line("to repair it:") }
    for command in report.commands { Output.line("  \(command)") }
    if report.damage.contains(where: { $0.remedy == .repair }), !report.losses.isEmpty || report.isVague {
      Output.line("if no peer has the lost events: \(Node.VerificationReport.acceptingLoss)")
    }
  }
}
