import Foundation
import Testing

/// The output of `--help`.
@Suite("help")
struct HelpTests {
  /// Every command, with subcommands such as `schema show`.
  func commands(_ path: [String] = [], in work: Workplace) throws -> [[String]] {
    let help = try Tool.run(Tool.path, path + ["--help"], in: work.path).output
    guard path.count < 2, let list = help.range(of: "SUBCOMMANDS") else { return [path] }
    let names = help[list.upperBound...].split(separator: "\n").compactMap { line -> String? in
      // Explanations are indented further, and a hint follows the list.
      let name = line.dropFirst(2).prefix { $0 != " " }
      return line.hasPrefix("  ") && !name.isEmpty && name != "help" && name != "See" ? String(name) : nil
    }
    return try names.flatMap { try commands(path + [$0], in: work) } + (path.isEmpty ? [] : [path])
  }

  @Test(
    "help says where standard input is read",
    arguments: [
      ["create"], ["update"], ["upsert"], ["import"], ["inspect"], ["init"], ["schema", "check"],
      ["schema", "apply"],
    ])
  func standardInput(command: [String]) throws {
    let help = try Tool.run(Tool.path, command + ["--help"], in: NSTemporaryDirectory()).output
    let words = help.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    let isField = ["create", "update", "upsert"].contains(command[0])
    #expect(words.contains(isField ? "field=@-: standard input" : "standard input"), "\(help)")
  }

  @Test("every command has two examples, and the tool takes them")
  func examples() throws {
    let work = try Workplace()
    let commands = try commands(in: work)
    #expect(commands.contains(["log"]) && commands.contains(["schema", "infer"]) && commands.count > 40)
    var ran = 0
    for command in commands {
      let help = try Tool.run(Tool.path, command + ["--help"], in: work.path).output
      let shown = help.components(separatedBy: "Examples:\n").dropFirst().first ?? ""
      let examples = shown.components(separatedBy: "\n\n")[0].split(separator: "\n").map {
        $0.trimmingCharacters(in: .whitespaces)
      }
      // A command that only groups subcommands shows those.
      #expect(examples.count >= 2 || help.contains("SUBCOMMANDS"), "\(command): \(examples)")
      for example in examples {
        #expect(example.contains("stemma ") && example.contains(command[0]), "\(example)")
        if example.hasPrefix("ssh ") { continue }
        // There is no node here: the test only checks that the example parses.
        let work = try Workplace()
        let result = try ConsolePage.shell(
          example
            + " < /dev/null; for status in ${PIPESTATUS[@]}; do [ $status = 64 ] && exit 64; done; exit 0",
          in: work.path)
        #expect(result.status != 64, "\(example): \(result.errors)")
        ran += 1
      }
    }
    #expect(ran > 80)
  }
}
