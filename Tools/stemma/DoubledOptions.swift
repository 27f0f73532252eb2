import ArgumentParser
import Foundation

/// Refuses an option that is given twice and takes one value: the parser would pass over all but the last.
enum DoubledOptions {
  static func refuse(_ arguments: [String], of command: any ParsableCommand.Type) throws {
    var seen: Set<String> = []
    // A value begins with a hyphen only behind `=`, or if it is a negative number, which no option is called like.
    let doubled = arguments.prefix { $0 != "--" }.compactMap(name).filter { !seen.insert($0).inserted }
    // Reading what the command declares costs more than to start.
    if doubled.isEmpty { return }
    let options = try JSONDecoder().decode(Declared.self, from: Data(command._dumpHelp().utf8))
      .command.arguments.filter { $0.kind == "option" && !$0.isRepeating }
    for option in options {
      for name in option.names ?? [] where doubled.contains(name.text) {
        throw Failure("`\(name.text)` is given twice, and takes one value", .usage)
      }
    }
  }

  /// `--since` of `--since=2h`, `-n` of `-n5`.
  private static func name(_ word: String) -> String? {
    if word.hasPrefix("--") { return String(word.prefix { $0 != "=" }) }
    return word.hasPrefix("-") && word.count > 1 ? String(word.prefix(2)) : nil
  }

  /// What of the parser's description of a command is needed here.
  private struct Declared: Decodable {
    struct Command: Decodable {
      var arguments: [Argument]
    }

    struct Argument: Decodable {
      var kind: String
      var isRepeating: Bool
      /// None of a positional argument.
      var names: [Name]?
    }

    struct Name: Decodable {
      var kind: String
      var name: String

      var text: String { (kind == "long" ? "--" : "-") + name }
    }

    var command: Command
  }
}
