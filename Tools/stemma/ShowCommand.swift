import ArgumentParser
import StemmaEvents
import StemmaMerge
import StemmaHistory
import StemmaNode
import StemmaSchema

struct Show: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show everything about one event: what it changed, on what it builds, what became of it.",
    discussion: """
      Examples:
        stemma show @5718
        stemma show berlin:2 --partition site=berlin
        stemma show 67152547 --json
      """)
  @Argument(
    help:
      "A position (@5718), a name (berlin:2), or at least the first four digits of a digest, in lower case.")
  var event: String
  @Option(help: "The partition in which the name counts.") var partition: String?
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    let noted = try node.event(named: event, in: partition)
    let text = EventText(node)
    let description = text.description
    let report = try EventReport(noted, in: node)
    if format.isJSON {
      Output.line(report.json(description))
    } else {
      Pager.begin()
      let lines = text.lines(noted.stored, noted.message, changes: report.account?.changes)
      for line in lines { Output.line(line) }
      if let account = report.account { write(account, description, description.model(of: noted.event)) }
      Output.line("    Durability: \(printable(report.places.text)).")
    }
    Output.flush()
    if let missing = report.missing { throw NodeError.missing(missing) }
  }

  private func write(_ account: EventAccount, _ description: EventDescription, _ model: Model?) {
    Output.line()
    func name(_ id: EventID) -> String { printable(description.name(id)) }
    let parents = account.parents.map(name)
    Output.line("    Builds on \(parents.isEmpty ? "nothing" : parents.joined(separator: ", ")).")
    if !account.concurrent.isEmpty {
      let concurrent = Self.byOrigin(account.concurrent).map { ids in
        ids.count < 3
          ? ids.map(name).joined(separator: ", ")
          : "\(name(ids[0])) … \(name(ids[ids.count - 1])) (\(counted(ids.count, "event")))"
      }
      Output.line("    Concurrent with \(concurrent.joined(separator: ", ")).")
    }
    for outcome in account.outcomes {
      let field = outcome.field ?? ExistenceName.name(in: model)
      let other = printable(outcome.by ?? "")
      switch outcome.fate {
      case .shown: Output.line("    \(field): is what is shown.")
      case .outdone(_, .agree):
        Output.line("    \(field): says the same as \(other), which had not seen it.")
      case .outdone(_, let rule):
        Output.line("    \(field): stands against \(other), which is shown (\(rule.name)).")
      case .superseded: Output.line("    \(field): written again by \(other), which had seen it.")
      }
      for concurrentWrite in outcome.concurrentWrites { write(concurrentWrite, of: outcome) }
    }
  }

  /// The events grouped by origin, because there may be many. Their ranges per origin are
  /// contiguous within the history of the record.
  private static func byOrigin(_ ids: [EventID]) -> [[EventID]] {
    var places: [Origin: Int] = [:]
    var groups: [[EventID]] = []
    for id in ids {
      if let place = places[id.origin] {
        groups[place].append(id)
      } else {
        places[id.origin] = groups.count
        groups.append([id])
      }
    }
    return groups
  }

  private func write(_ concurrentWrite: EventAccount.ConcurrentWrite, of outcome: EventAccount.Outcome) {
    let event = printable(concurrentWrite.event)
    if concurrentWrite.wasSeen {
      Output.line(
        "      It had seen the deletion \(event), but an ordinary update does not bury one.")
    } else if concurrentWrite.hasSeen {
      Output.line("      \(event) had seen it, but an ordinary update does not bury a deletion.")
    } else if concurrentWrite.event != outcome.by {
      Output.line("      \(event) stands against it.")
    }
  }
}

extension Node {
  /// The event that a user names, and the partition in which the name is valid. A position or a
  /// digest needs no partition; the event must be in a given one.
  func event(named text: String, in partition: String?) throws -> LoggedEvent {
    let noted = try event(named: text, partition: partition, takesPartition: true)
    if let partition, try !scope([partition]).contains(noted.event.partition) {
      throw Failure(
        "`\(text)` is an event of partition \(noted.event.partition), not of `\(partition)`; leave --partition out",
        .noInput)
    }
    return noted
  }
}
