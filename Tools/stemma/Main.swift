import ArgumentParser
import CStemma
import Foundation
import StemmaEvents
import StemmaNode

/// The `stemma` command.
///
/// Every command declares its name, although the parser could derive it from the type. Asking the
/// runtime for the names of all types takes three milliseconds per start.
@main
struct Stemma: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stemma",
    abstract: "An event-sourced, replicated store that one can read like a history.",
    discussion: """
      The node is the current directory, or the nearest parent that holds one; -C DIR or STEMMA_NODE names \
      another. All other paths are relative to the working directory. Reading commands take --json or --ndjson.

      Completions: `source <(stemma --generate-completion-script bash)` in ~/.bashrc; the same with zsh into \
      a file _stemma of a folder in $fpath, with fish into ~/.config/fish/completions/stemma.fish.

      Exit codes: 0 done; 1 the answer is no; 64 usage; 65 bad data; 66 no such node, record or file; 69 peer \
      unreachable; 73 cannot create; 74 I/O or corruption; 75 node in use; 77 not permitted.
      """,
    version: "stemma 0.1.0",
    groupedSubcommands: [
      CommandGroup(
        name: "Nodes", subcommands: [Initialize.self, Clone.self, Status.self, SchemaCommand.self]),
      CommandGroup(
        name: "Changing records",
        subcommands: [
          Import.self, Create.self, Update.self, Upsert.self, Delete.self, Link.self, Unlink.self,
          Restore.self, Undo.self,
        ]),
      CommandGroup(
        name: "Reading records", subcommands: [Get.self, List.self, Query.self, Export.self]),
      CommandGroup(
        name: "Reading the log",
        subcommands: [
          LogCommand.self, Show.self, History.self, Blame.self, Why.self, Diff.self, Segments.self,
          Stats.self, Inspect.self, UI.self,
        ]),
      CommandGroup(name: "Conflicts", subcommands: [Conflicts.self, Resolve.self]),
      CommandGroup(
        name: "Replication",
        subcommands: [
          Remote.self, Pull.self, Push.self, Sync.self, BundleCommand.self, ScopeCommand.self, Digest.self,
          Serve.self, TokenCommand.self, HubCommand.self, Publish.self,
        ]),
      CommandGroup(name: "Upkeep", subcommands: [Rebuild.self, Verify.self, Repair.self]),
    ])

  static func main() {
    var arguments = Array(CommandLine.arguments.dropFirst())
    // `-C DIR` before the command, as in git. An option on both levels would lose this value.
    while arguments.count >= 2, arguments[0] == "-C" {
      NodeOptions.leadingDirectory = NodeOptions.resolve(arguments[1], from: NodeOptions.leadingDirectory)
      arguments.removeFirst(2)
    }
    // For tests that compare bytes.
    if ProcessInfo.processInfo.environment["STEMMA_DEFLATE"] == "zlib" { PortableDeflate.isOn = true }
    signal(SIGPIPE, SIG_DFL)
    // A file size limit becomes an ordinary error, like a full disk, instead of a fatal signal.
    signal(SIGXFSZ, SIG_IGN)
    // Blocks are inflated on one thread and freed on another, and batches are as long as files.
    stemma_keep_heap_small()
    do {
      if let script = try Completions.script(arguments) {
        Output.line(script)
        return Output.flush()
      }
      var command: any ParsableCommand
      (command, arguments) = try parseNumbers(arguments)
      try DuplicateOptions.refuse(arguments, of: type(of: command))
      if command is NodelessCommand, NodeOptions.leadingDirectory != nil {
        let name = type(of: command)._commandName
        throw Failure(
          "`\(name)` works on no node; leave -C out, and name what it makes or reads by its path", .usage)
      }
      try command.run()
      Pager.end()
    } catch let error as NodeError {
      Output.failure(Explanation(error))
    } catch let error as MutationError {
      Output.failure(Explanation(.mutation(error)))
    } catch let error as Failure {
      Output.failure(Explanation(message: error.message, exitCode: error.exitCode))
    } catch {
      Pager.end()
      let code = exitCode(for: error)
      let text = fullMessage(for: error)
      if code == .success || code.rawValue == ExitCode.success.rawValue {
        if !text.isEmpty { print(text) }
        Foundation.exit(0)
      }
      if !text.isEmpty { Output.error(printable(text, as: .lines)) }
      Foundation.exit(code == .validationFailure ? ExitCode.usage.rawValue : code.rawValue)
    }
  }
}

extension Stemma {
  /// Parses the arguments, including negative numbers. Also returns the arguments as they were
  /// parsed.
  private static func parseNumbers(_ arguments: [String]) throws -> (any ParsableCommand, [String]) {
    let joined = joiningNegativeNumbers(arguments)
    do { return (try parse(joined), joined) } catch {
      let options = arguments.prefix { $0 != "--" }
      guard let number = options.first(where: isNegative), exitCode(for: error) != .success else {
        throw error
      }
      if arguments.first == "log" {
        let mistake = fullMessage(for: error)
        guard options.contains(where: { isNegative($0) && mistake.contains($0) }) else { throw error }
        let spelled = joiningNegativeNumbers(spellingCounts(arguments))
        return (try parse(spelled), spelled)
      }
      let behind = arguments[options.endIndex...].dropFirst()
      let moved = options.filter { !isNegative($0) } + ["--"] + options.filter(isNegative) + behind
      // If that fails too, the mistake is a different one.
      do { _ = try parse(moved) } catch _ { throw error }
      throw Failure(
        "`\(number)` is read as an option; write it behind `--` and all options, as in `\(arguments[0]) … -- \(number)`, "
          + "or with the name of its part of the key, as in `id=\(number)`", .usage)
    }
  }

  private static func isNegative(_ word: String) -> Bool {
    word.hasPrefix("-") && Double(word.dropFirst()) != nil
  }

  /// `-5` as `-n 5`.
  private static func spellingCounts(_ arguments: [String]) -> [String] {
    let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
    return arguments[..<end].flatMap { word in
      UInt(word.dropFirst()) != nil && word.hasPrefix("-") ? ["-n", String(word.dropFirst())] : [word]
    } + arguments[end...]
  }

  /// `-n -1` as `-n=-1`. The parser would treat the number as an option and report a missing value.
  /// With `=`, the command reports its valid values.
  private static func joiningNegativeNumbers(_ arguments: [String]) -> [String] {
    let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
    var joined: [String] = []
    for argument in arguments[..<end] {
      if isNegative(argument), let option = joined.last, option.hasPrefix("-"), !option.contains("=") {
        joined[joined.count - 1] = "\(option)=\(argument)"
      } else {
        joined.append(argument)
      }
    }
    return joined + arguments[end...]
  }

  /// Parses the arguments of the subcommand that the first argument names.
  ///
  /// The parser gets that subcommand alone first, because descending from the root takes a
  /// millisecond per start. A mistake or a request for help is parsed again from the root, so that
  /// messages show the whole command line.
  private static func parse(_ arguments: [String]) throws -> any ParsableCommand {
    guard let name = arguments.first, !name.hasPrefix("-"), name != "help" else {
      return try parseAsRoot(arguments)
    }
    let known = configuration.subcommands
    guard let command = known.first(where: { $0._commandName == name }) else {
      throw unknownCommand(name, known.map { $0._commandName })
    }
    if command.configuration.subcommands.isEmpty, let parsed = parseAlone(command, arguments) {
      return parsed
    }
    return try parseAsRoot(arguments)
  }

  /// Nil if parsing fails or the arguments request help.
  private static func parseAlone(
    _ command: any ParsableCommand.Type, _ arguments: [String]
  ) -> (any ParsableCommand)? {
    do {
      let parsed = try command.parseAsRoot(Array(arguments.dropFirst()))
      return type(of: parsed) == command ? parsed : nil
    } catch { return nil }
  }

  private static func unknownCommand(_ name: String, _ known: [String]) -> Failure {
    // A prefix of a command is a better suggestion than a similar name.
    let longer = name.count > 2 ? known.filter { $0.hasPrefix(name) } : []
    let suggestion =
      !longer.isEmpty
      ? "; did you mean \(longer.map { "`\($0)`" }.joined(separator: " or "))?"
      : Explanations.suggestion(name, known, else: "`stemma --help` lists all").description
    return Failure("there is no command `\(name)`\(suggestion)", .usage)
  }
}

extension ExitCode {
  /// The numbers of sysexits(3).
  static let no = ExitCode(1)
  static let usage = ExitCode(64)
  static let badData = ExitCode(65)
  static let noInput = ExitCode(66)
  static let unavailable = ExitCode(69)
  static let cannotCreate = ExitCode(73)
  static let inputOutput = ExitCode(74)
  static let inUse = ExitCode(75)
  static let noPermission = ExitCode(77)
}

/// A mistake found by the command itself.
struct Failure: Error {
  var message: String
  var exitCode: ExitCode

  init(_ message: String, _ exitCode: ExitCode) {
    self.message = message
    self.exitCode = exitCode
  }
}
