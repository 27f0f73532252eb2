import ArgumentParser
import Foundation
import StemmaEvents
import StemmaNode

/// The command as shells complete it, with the leading `-C` that `main` removes before parsing. The
/// command itself does not declare it, because it would then consume the `-C` of a subcommand.
private struct CompletedCommand: ParsableCommand {
  static let configuration = Stemma.configuration

  @OptionGroup var options: NodeOptions
}

enum Completions {
  private static let option = "--generate-completion-script"

  /// The script that these arguments request, nil for other arguments.
  static func script(_ arguments: [String]) throws -> String? {
    guard let first = arguments.first, first.hasPrefix(option) else { return nil }
    let named =
      first.hasPrefix(option + "=") ? String(first.dropFirst(option.count + 1)) : arguments.dropFirst().first
    guard let name = named else {
      throw Failure("for which shell? `\(option) bash`, zsh or fish", .usage)
    }
    guard let shell = CompletionShell(rawValue: name) else {
      throw Failure("there is no script for `\(name)`; there are bash, zsh and fish", .usage)
    }
    return CompletedCommand.completionScript(for: shell)
  }
}

extension CompletionKind {
  /// The models of the node named by the command line, or of the current directory.
  static var modelNames: CompletionKind { .custom { words, _, _ in nodeNames(words).models } }

  static var remoteNames: CompletionKind { .custom { words, _, _ in nodeNames(words).remotes } }

  static var originNames: CompletionKind { .custom { words, _, _ in nodeNames(words).origins } }

  /// The fields of the model named by the command line, or of all models.
  static var fieldNames: CompletionKind {
    .custom { words, _, _ in
      let names = nodeNames(words)
      let model = words.first { names.fields[$0] != nil }
      let fields = model.flatMap { names.fields[$0] } ?? names.models.flatMap { names.fields[$0] ?? [] }
      return Array(Set(fields)).sorted()
    }
  }

  static var operations: CompletionKind { .list(EventOperation.allCases.map(\.name)) }

  /// Without a node there are no suggestions: a completion never fails.
  private static func nodeNames(_ words: [String]) -> Node.Names {
    var directory: String?
    // The last word is incomplete.
    for (word, next) in zip(words, words.dropFirst()) where word == "-C" {
      directory = NodeOptions.resolve(next, from: directory)
    }
    let named = directory ?? ProcessInfo.processInfo.environment["STEMMA_NODE"] ?? ""
    do { return try Node.names(near: named.isEmpty ? "." : named) } catch { return Node.Names() }
  }
}
