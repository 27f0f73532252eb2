import ArgumentParser
import Foundation

/// Refuses a repeated option that takes one value. The parser would ignore all but the last.
enum DuplicateOptions {
  static func refuse(_ arguments: [String], of command: any ParsableCommand.Type) throws {
    var seen: Set<String> = []
    // A value begins with a hyphen only after `=` or as a negative number, and no option is named
    // like a number.
    let duplicate = arguments.prefix { $0 != "--" }.compactMap(name).filter { !seen.insert($0).inserted }
    // Reading the command's declaration takes longer than starting the tool.
    if duplicate.isEmpty { return }
    let options = try JSONDecoder().decode(Declared.self, from: Data(command._dumpHelp().utf8))
      .command.arguments.filter { $0.kind == "option" && !$0.isRepeating }
    for option in options {
      for name in option.names ?? [] where duplicate.contains(name.text) {
        throw Failure("`\(name.text)` is given twice, and takes one value", .usage)
      }
    }
  }

  /// `--since` of `--since=2h`, `-n` of `-n5`.
  private static func name(_ word: String) -> String? {
    if word.hasPrefix("--") { return String(word.prefix { $0 != "=" }) }
    return word.hasPrefix("-") && word.count > 1 ? String(word.prefix(2)) : nil
  }

  /// The required part of the parser's description of a command.
  private struct Declared: Decodable {
    struct Command: Decodable {
      var arguments: [Argument]
    }

    struct Argument: Decodable {
      var kind: String
      var isRepeating: Bool
      /// Nil for a positional argument.
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
