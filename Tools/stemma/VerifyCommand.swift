import ArgumentParser
import StemmaEvents
import StemmaNode

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check every byte of the log, and the tables against it.",
    discussion: """
      Says what is damaged, which events that took, how many can still be read or rescued, and the command that \
      mends it; exits with 1 then. Says too what was given up (`stemma repair --give-up`). `stemma inspect FILE` shows the bytes.
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
      case .rename, .remove, .write: Output.line(text)
      default: Output.line(Output.styled(text, .red))
      }
    }
    if report.unconfirmed > 0 {
      Output.line("\(counted(Int(report.unconfirmed), "event")) written, not yet confirmed durable")
    }
    for record in report.givenUp {
      Output.line("given up on \(Timestamp(milliseconds: record.time).utcText):")
      for line in LossText.lines(record, report.mark) { Output.line("  \(printable(line))") }
    }
    if report.isUnfinished { Output.line(Explanations.unfinishedClone) }
    guard report.isDamaged else {
      if report.isUnfinished {
        return Output.line(
          "\(counted(Int(report.events), "event")) in \(counted(report.files, "file")) so far, undamaged")
      }
      Output.line("\(counted(Int(report.events), "event")) in \(counted(report.files, "file")): all good")
      return
    }
    if !report.losses.isEmpty {
      Output.line("lost:")
      for line in LossText.lines(report.losses, report.mark) { Output.line("  \(printable(line))") }
    }
    if report.isVague { Output.line("lost: what else these files held cannot be told") }
    Output.line("\(counted(Int(report.events), "event")) can still be read")
    if !report.rescuable.isEmpty {
      Output.line("can be rescued from the damaged parts:")
      for line in LossText.briefLines(report.rescuable, report.mark) { Output.line("  \(printable(line))") }
    }
    if report.unnoted > 0 {
      // Of a file that may have held more, nothing is written without a peer.
      let words = UnnotedText.words(report.unnoted)
      Output.line("what needs a peer: " + words + (report.isVague ? "" : ";"))
      if !report.isVague { Output.line("  if nobody has them: stemma repair --without-notes") }
    }
    if !report.commands.isEmpty { Output.line("to mend it:") }
    for command in report.commands { Output.line("  \(command)") }
    if report.damage.contains(where: { $0.remedy == .repair }), !report.losses.isEmpty || report.isVague {
      Output.line("if nobody has the lost events: stemma repair --give-up")
    }
  }
}
