import ArgumentParser
import StemmaEvents
import StemmaLog
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
    for (damage, last) in DamageRuns.runs(report.damage) {
      let place = last.map { " to \($0)" } ?? damage.offset.map { " at byte \($0)" } ?? ""
      let part = damage.part.map { " (\($0))" } ?? ""
      let text = "\(damage.file)\(place)\(part): \(printable(damage.what))"
      switch damage.remedy {
      case .none: Output.line("\(text); ordinary after a crash")
      case .rename, .remove: Output.line(text)
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
    for sentence in report.pending { Output.line(printable(sentence)) }
    if report.losses.isEmpty, let record = report.beingGivenUp {
      Output.line("being given up:")
      for line in LossText.lines(record, report.mark) { Output.line("  \(printable(line))") }
    }
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
    let isDecided = report.commands.contains(Node.VerificationReport.givingUp)
    if report.damage.contains(where: { $0.remedy == .repair }), !report.losses.isEmpty || report.isVague,
      !isDecided
    {
      Output.line("if nobody has the lost events: \(Node.VerificationReport.givingUp)")
    }
  }
}

/// Damage of files whose numbers follow each other: of many that are missing, the last is not to hide what else there is.
enum DamageRuns {
  /// The first of each run, and the name of the last file if there are several. In a run nothing is said but of whole files,
  /// and of all the same.
  static func runs(
    _ damage: [Node.VerificationReport.Damage]
  ) -> [(first: Node.VerificationReport.Damage, last: String?)] {
    var runs: [(first: Node.VerificationReport.Damage, last: String?)] = []
    var previous: Node.VerificationReport.Damage?
    for next in damage {
      if let previous, isNext(next, previous) {
        runs[runs.count - 1].last = next.file.fileName
      } else {
        runs.append((next, nil))
      }
      previous = next
    }
    return runs
  }

  private static func isNext(
    _ next: Node.VerificationReport.Damage, _ previous: Node.VerificationReport.Damage
  ) -> Bool {
    guard next.part == nil, next.offset ?? 0 == 0, next.what == previous.what, next.part == previous.part,
      next.offset == previous.offset, let (number, folder, kind) = number(next.file),
      let before = self.number(previous.file)
    else { return false }
    return number == before.number + 1 && folder == before.folder && kind == before.kind
  }

  private static func number(_ path: String) -> (number: UInt64, folder: Substring, kind: Substring)? {
    let name = path.fileName
    let parts = name.split(separator: ".")
    guard parts.count == 2, let number = UInt64(parts[0]) else { return nil }
    return (number, path.dropLast(name.count), parts[1])
  }
}
