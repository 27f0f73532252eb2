import ArgumentParser
import StemmaEvents
import StemmaLog
import StemmaNode

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check every byte of the log, and the tables against it.",
    discussion: """
      Says what is corrupt, which events that took, how many can still be read, and the command that repairs it; exits with \
      1 then. `stemma inspect FILE` shows the bytes.
      --against compares the digests of the partitions that both hold with those of a peer, instead; exits with 1 if some \
      differ.
      Examples:
        stemma verify
        stemma verify --against hq --partition tenant=acme
        stemma verify --json | jq -r '.repair[0]'
      """)
  @Option(
    help: ArgumentHelp(
      "Compare with a remote by name, another node's directory, HOST:PATH, or a URL.", valueName: "peer"),
    completion: .remoteNames)
  var against: String?
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("With --against: only these partitions; may be repeated.", valueName: "pattern"))
  var partition: [String] = []
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if against == nil, !partition.isEmpty { throw ValidationError("--partition needs --against") }
  }

  func run() throws {
    if let against { return try compare(with: against) }
    let bar = ProgressBar("verifying")
    let report = try Node.verify(at: try options.locate(), options: options.opening(.read, progress: bar))
    bar.finish()
    if format.isJSON {
      Output.line(report.json(\.command))
    } else {
      write(report)
    }
    Output.flush()
    if report.isCorrupt || report.isUnfinished { throw ExitCode.no }
  }

  private func compare(with peer: String) throws {
    let node = try options.open()
    guard let remote = try node.peers(peer).first else { return }
    let comparison = try PeerComparison(
      node, with: remote, partitions: partition,
      connect: connection.connections(node.options, progress: { _, _ in }).connect)
    if !partition.isEmpty, comparison.equal == 0, comparison.differences.isEmpty {
      Output.warning("neither this node nor \(peer) holds such a partition")
    }
    if format.isJSON {
      Output.line(comparison.json(peer))
    } else {
      for difference in comparison.differences { Output.line(printable(difference.text)) }
      Output.line(
        "\(counted(comparison.equal, "partition")) equal, \(comparison.differences.count) "
          + (comparison.differences.count == 1 ? "differs" : "differ"))
    }
    Output.flush()
    if !comparison.differences.isEmpty { throw ExitCode.no }
  }

  private func write(_ report: VerificationReport) {
    for corruption in report.corruption {
      let place = corruption.offset.map { " at byte \($0)" } ?? ""
      let part = corruption.part.map { " (\($0))" } ?? ""
      let text = "\(corruption.file)\(place)\(part): \(printable(corruption.what))"
      switch corruption.remedy {
      case .none: Output.line("\(text); ordinary after a crash")
      case .remove: Output.line(text)
      default: Output.line(Output.styled(text, .red))
      }
    }
    if report.unconfirmed > 0 {
      Output.line("\(counted(Int(report.unconfirmed), "event")) written, not yet confirmed durable")
    }
    for sentence in report.pending { Output.line(printable(sentence)) }
    if report.isUnfinished { Output.line(printable(Explanations.unfinishedClone)) }
    guard report.isCorrupt else {
      if report.isUnfinished {
        return Output.line(
          "\(counted(Int(report.events), "event")) in \(counted(report.files, "file")) so far, uncorrupt")
      }
      let verdict = report.pending.isEmpty ? ": all good" : ", uncorrupt"
      Output.line("\(counted(Int(report.events), "event")) in \(counted(report.files, "file"))\(verdict)")
      return
    }
    if !report.losses.isEmpty {
      Output.line("lost:")
      for line in LossText.lines(report.losses, report.metadata) { Output.line("  \(printable(line))") }
    }
    if report.isVague { Output.line("lost: what else these files held cannot be determined") }
    Output.line("\(counted(Int(report.events), "event")) can still be read")
    if !report.steps.isEmpty { Output.line("to repair it:") }
    for step in report.steps { Output.line("  \(step.command)") }
    if report.corruption.contains(where: { $0.remedy == .repair }), !report.losses.isEmpty || report.isVague {
      Output.line("if no peer has the lost events: \(NextStep.acceptLoss.command)")
    }
  }
}
