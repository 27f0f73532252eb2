import StemmaEvents
import StemmaNode

extension NextStep {
  /// The command that takes this step.
  var command: String {
    switch self {
    case .initialize: "stemma init DIR"
    case .clone(let peer): "stemma clone \(peer.map(Self.word) ?? NextStep.peer) DIR"
    case .pull(let peer, let directory):
      "stemma \(Self.option(directory))pull\(peer.map { " " + Self.word($0) } ?? "")"
    case .addRemote: "stemma remote add"
    case .addToScope(let partition): "stemma scope add \(Self.quoted(partition))"
    case .verify: "stemma verify"
    case .rebuild(let directory): "stemma \(Self.option(directory))rebuild"
    case .repair(let peers): "stemma repair" + peers.map { " --from \(Self.word($0))" }.joined()
    case .repairManifest: "stemma repair --manifest"
    case .acceptLoss: "stemma repair --accept-loss"
    case .repairFork(let directory, let hasPeer):
      "stemma \(Self.option(directory))repair --fork\(hasPeer ? " --from \(NextStep.peer)" : "")"
    case .repairMetadata(let directory): "stemma \(Self.option(directory))repair --name NAME"
    case .copyMetadata(let copy, let path): "cp \(Self.word(copy)) \(Self.word(path))"
    case .listEvents: "stemma log"
    case .listFirstEvents: "stemma log --reverse"
    case .listCommits: "stemma log --stat"
    case .listModels: "stemma schema show"
    case .listTables: "stemma query 'SELECT name FROM sqlite_schema'"
    case .listConflicts(let kind): "stemma conflicts\(kind.map { " --kind \($0)" } ?? "")"
    case .decideExistence(let record): "stemma resolve \(record) --keep"
    case .inferSchema: "stemma schema infer"
    case .restoreSchema(let path): "stemma -C OTHER schema show > \(Self.word(path))"
    case .query: "stemma query"
    case .inspect(let program): "\(program) | stemma inspect -"
    }
  }

  private static func option(_ directory: String?) -> String {
    guard let directory, directory != "." else { return "" }
    return "-C \(word(directory)) "
  }

  /// Quotes a text as one word for a shell.
  private static func word(_ text: String) -> String {
    let plain = text.utf8.allSatisfy { $0 >= 0x80 || "/.-_+=:@,%".utf8.contains($0) || isLetterOrDigit($0) }
    return plain && !text.isEmpty ? text : quoted(text)
  }

  private static func quoted(_ text: String) -> String { "'\(text.replacing("'", with: "'\\''"))'" }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}

extension Notice {
  /// The text with commands for the steps.
  var withCommands: String { text { "`\($0.command)`" } }
}

func printable(_ notice: Notice, as spelling: ControlSpelling = .plain) -> String {
  printable(notice.withCommands, as: spelling)
}
