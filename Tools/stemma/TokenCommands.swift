import ArgumentParser
import Foundation
import StemmaEvents
import StemmaHTTP
import StemmaNode

struct TokenCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token",
    abstract: "Manage the rights of callers of `serve`, by partition.",
    discussion: """
      Examples:
        stemma token create field --read tenant=acme --expires 90d
        stemma token list --json
      """,
    subcommands: [TokenCreate.self, TokenList.self, TokenRevoke.self], defaultSubcommand: TokenList.self)
}

struct TokenCreate: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create a token and print it, once.",
    discussion: """
      Examples:
        stemma token create field --read tenant=acme --expires 90d
        stemma token create mirror --read '*' > mirror.token
      """)
  @Argument(help: "The name, which the access log shows.") var name: String
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("Partitions that it may read; may be repeated.", valueName: "pattern"))
  var read: [String] = []
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("Partitions that it may write; may be repeated.", valueName: "pattern"))
  var write: [String] = []
  @Option(
    help: ArgumentHelp("How long it is valid: 30m, 12h, 90d (default: without end).", valueName: "time"))
  var expires: TimeSpan?
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if name.allSatisfy(\.isWhitespace) { throw ValidationError("a token needs a name") }
    if read.isEmpty, write.isEmpty { throw ValidationError("a token needs --read or --write") }
  }

  func run() throws {
    let node = try options.openForWriting()
    var tokens = try AccessTokens(of: node.directory, node.ports)
    let end = expires.map { node.ports.clock.milliseconds() + $0.milliseconds }
    let secret = try tokens.create(name, read: read, write: write, expires: end, node.ports)
    try tokens.save(in: node.directory, node.ports)
    Output.line(secret)
    Output.flush()
  }
}

struct TokenList: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the tokens.",
    discussion: """
      Examples:
        stemma token list
        stemma token list --json
      """)
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    let entries = try AccessTokens(of: node.directory, node.ports).entries
    let rows = entries.map { entry in
      JSON.object([
        ("name", .string(entry.name)), ("read", .array(entry.read.map { .string($0) })),
        ("write", .array(entry.write.map { .string($0) })),
        ("created", .string(Timestamp(milliseconds: entry.created).utcText)),
        ("expires", entry.expires.map { .string(Timestamp(milliseconds: $0).utcText) } ?? .null),
      ])
    }
    if format.json {
      Output.line(.array(rows))
    } else if format.ndjson {
      for row in rows { Output.line(row) }
    } else {
      var table = TextTable(["name", "read", "write", "expires"])
      for entry in entries {
        table.append(
          [entry.name, entry.read.joined(separator: " "), entry.write.joined(separator: " ")].map {
            printable($0)
          }
            + [entry.expires.map { Timestamp(milliseconds: $0).utcText } ?? "never"])
      }
      table.write()
    }
    Output.flush()
  }
}

struct TokenRevoke: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke", abstract: "Refuse a token from now on.",
    discussion: """
      Examples:
        stemma token revoke field
        stemma -C /srv/shop token revoke mirror
      """)
  @Argument(help: "The name.") var name: String
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.openForWriting()
    var tokens = try AccessTokens(of: node.directory, node.ports)
    guard tokens.revoke(name) else {
      throw Failure("there is no token `\(name)`; `stemma token list` lists them", .noInput)
    }
    try tokens.save(in: node.directory, node.ports)
  }
}
