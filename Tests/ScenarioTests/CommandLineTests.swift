import Foundation
import Testing

/// Selection of the node, and the answers of the tool.
@Suite("command line")
struct CommandLineTests {
  /// Each of two options counts, not only the last.
  @Test(
    "an option that takes one value is refused where it is given twice",
    arguments: [
      ["list", "Team", "--as-of", "@2", "--as-of", "@3"],
      ["log", "--since", "1h", "--until=1h", "--since=2h"],
      ["log", "--until", "1h", "--until", "2h"], ["stats", "--model", "Team", "--model", "Post"],
      ["log", "-n1", "-n", "2"], ["log", "-n", "-1", "-n", "2"],
      ["conflicts", "--model", "Team", "--model=Post"], ["status", "--wait", "1", "--wait=2"],
      ["update", "Team", "red", "name=A", "-m", "a", "-m", "b"], ["schema", "show", "--wait=1", "--wait=1"],
      ["rebuild", "--as-of", "@2", "--as-of", "@3", "--into", "x"],
    ])
  func duplicateOption(words: [String]) throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    let refused = try Tool.run(Tool.path, ["-C", "shop"] + words, in: work.path)
    #expect(refused.status == 64, "\(refused.output)")
    #expect(refused.errors.contains("` is given twice, and takes one value"), "\(refused.errors)")
    #expect(refused.output.isEmpty)
  }

  @Test(
    "lists, flags and arguments after -- may be given twice",
    arguments: [
      ["log", "--op", "create", "--op", "update", "--json", "--json"], ["-C", ".", "status", "-C", "."],
      ["log", "-C", ".", "-C", ".", "--partition", "Team", "--partition=Post"],
      ["list", "Team", "--where", "name=Red", "--where", "id=red"],
      ["create", "Team", "id=x", "name=X", "--author", "ann"], ["get", "Team", "--", "red"],
    ])
  func repeatedOption(words: [String]) throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    let result = try Tool.run(Tool.path, ["-C", "shop"] + words, in: work.path)
    #expect(result.status == 0, "\(result.errors)")
  }

  @Test("the node: -C before, after and on both sides, STEMMA_NODE, the nearest parent")
  func nodeIsFound() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    func isFound(_ result: Tool.Result, sourceLocation: SourceLocation = #_sourceLocation) throws {
      #expect(result.status == 0, "\(result.errors)", sourceLocation: sourceLocation)
      #expect(try result.object().object("key").text("id") == "red", sourceLocation: sourceLocation)
    }
    try isFound(work.attempt("-C", "shop", "get", "Team", "red", "--json"))
    try isFound(work.attempt("get", "Team", "red", "--json", "-C", "shop"))
    try isFound(work.attempt("get", "-C", "shop", "Team", "red", "--json"))
    // With both, the second path is relative to the first, as in git.
    try isFound(work.attempt("-C", "shop", "get", "Team", "red", "--json", "-C", "../shop"))
    try isFound(work.attempt("-C", "shop", "get", "Team", "red", "--json", "-C", work.file("shop")))
    try isFound(work.attempt("-C", ".", "-C", "shop", "get", "Team", "red", "--json"))
    try isFound(work.attempt("get", "Team", "red", "--json", environment: ["STEMMA_NODE": "shop"]))
    try isFound(
      work.attempt("-C", "shop", "get", "Team", "red", "--json", environment: ["STEMMA_NODE": "nowhere"]))

    let inner = work.file("shop/a/b")
    try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: true)
    try isFound(Tool.run(Tool.path, ["get", "Team", "red", "--json"], in: inner))

    let outside = try work.attempt("status")
    #expect(outside.status == 66)
    #expect(outside.errors.contains("stemma init"))
    #expect(try work.attempt("-C", "nowhere", "status").status == 66)
    #expect(try work.attempt("status", environment: ["STEMMA_NODE": "nowhere"]).status == 66)
  }

  @Test("keys: a bare value, a JSON object, part=value words, and values that begin with -")
  func keysAreRead() throws {
    let work = try Shop.open()
    let node = ["STEMMA_NODE": "shop"]
    try work.stemma("create", "Team", "id=red", "name=Red", environment: node)
    for key in ["red", #"{"id":"red"}"#, "id=red"] {
      #expect(
        try work.stemma("get", "Team", key, "--json", environment: node).object().object("key").text("id")
          == "red")
    }
    let printed = try work.stemma("create", "Visit", "site=berlin", "number=1", "room=12", environment: node)
    #expect(printed.lines == ["site=berlin number=1"])
    for words in [["site=berlin", "number=1"], ["number=1", "site=berlin"]] {
      let row = try work.stemma("get", "Visit", words[0], words[1], "--json", environment: node).object()
      #expect(row.object("key").number("number") == 1)
    }
    #expect(try work.attempt("get", "Visit", #"{"site":"berlin","number":1}"#, environment: node).status == 0)
    #expect(try work.attempt("get", "Visit", "berlin", environment: node).status == 64)
    #expect(try work.attempt("get", "Visit", "site=berlin", environment: node).status == 65)
    #expect(try work.attempt("get", "Team", #"{"id":"red","x":1}"#, environment: node).status == 65)
    #expect(try work.attempt("get", "Team", #"{"id":"#, environment: node).status == 65)
    #expect(try work.attempt("get", "Team", "red", "blue", environment: node).status == 64)

    try work.stemma("upsert", "Team", "--", "-x", "name=-dash", environment: node)
    let row = try work.stemma("get", "Team", "--json", "--", "-x", environment: node).object()
    #expect(row.object("fields").text("name") == "-dash")
    // A bare value may contain `=`, and the key in an error message can be typed.
    try work.stemma("upsert", "Team", "a=b", "name=Equal", environment: node)
    let known = try work.stemma("get", "Team", "a=b", "--json", environment: node).object()
    #expect(known.object("key").text("id") == "a=b")
    let missing = try work.attempt("get", "Visit", "number=1", "site=New York", environment: node)
    #expect(missing.errors.contains("there is no Visit 'site=New York' number=1"), "\(missing.errors)")
  }

  @Test("fields: by type, as JSON, from a file, and a relationship's name")
  func fieldsAreRead() throws {
    let work = try Shop.open()
    let node = ["STEMMA_NODE": "shop"]
    try work.write("extra.json", "{\"from\": \"a = file\"}")
    try work.stemma("create", "Team", "id=red", "name=Red", environment: node)
    try work.stemma(
      "create", "Member", "id=m", "name=1", "age=-30", "height=1.5", "active=true", "size=SMALL",
      "born=2000-01-02",
      #"tags:=["a","b"]"#, "extra=@extra.json", "team=red", environment: node)
    var fields = try work.stemma("get", "Member", "m", "--json", environment: node).object().object("fields")
    #expect(fields.text("name") == "1")
    #expect(fields.number("age") == -30)
    #expect(fields["height"] as? Double == 1.5)
    #expect(fields["active"] as? Bool == true)
    #expect(fields.text("size") == "SMALL")
    #expect(fields.text("born") == "2000-01-02")
    #expect(fields["tags"] as? [String] == ["a", "b"])
    #expect(fields.text("extra") == #"{"from":"a = file"}"#)
    #expect(fields.text("teamId") == "red")

    try work.stemma("update", "Member", "m", "age:=null", "name=x=y", "team:=null", environment: node)
    fields = try work.stemma("get", "Member", "m", "--json", environment: node).object().object("fields")
    #expect(fields["age"] is NSNull)
    #expect(fields.text("name") == "x=y")
    #expect(fields["teamId"] is NSNull)

    for (word, status, part) in [
      ("age=abc", 65, "Member.age"), ("age=1.5", 65, "Member.age"), ("active=maybe", 65, "Member.active"),
      ("born=2000-02-30", 65, "Member.born"), ("size=HUGE", 65, "Member.size"), ("colour=red", 65, "colour"),
      ("tags:=[", 65, "tags"), ("name:=null", 65, "name"), ("extra=@nofile", 66, "nofile"),
      ("name", 64, "name"),
    ] as [(String, Int32, String)] {
      let result = try work.attempt("update", "Member", "m", word, environment: node)
      #expect(result.status == status, "\(word): \(result.errors)")
      #expect(result.errors.contains(part), "\(word): \(result.errors)")
      #expect(result.errors.split(separator: "\n").count == 1, "\(word): \(result.errors)")
    }
  }

  @Test("author and message: --author, STEMMA_AUTHOR and -m are stored in the log")
  func notesAreKept() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=a", "name=A", "--author", "ann", "-m", "at the desk")
    try work.stemma("-C", "shop", "update", "Team", "a", "name=B", environment: ["STEMMA_AUTHOR": "bob"])
    try work.stemma(
      "-C", "shop", "update", "Team", "a", "name=C", "--author", "ann", environment: ["STEMMA_AUTHOR": "bob"])
    try work.stemma("-C", "shop", "update", "Team", "a", "name=D")
    let events = try work.stemma("-C", "shop", "log", "--reverse", "--json").array()
    #expect(events.map { $0.text("author") } == ["ann", "bob", "ann", nil])
    #expect(events.map { $0.text("message") } == ["at the desk", nil, nil, nil])
  }

  @Test("exit codes are those of the table")
  func exitCodes() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=a", "name=A")
    try work.write("bad.graphql", "type Book @model { isbn: Foo! @primaryKey }\n")
    let mistyped = try work.attempt("lnk", "Team")
    #expect(mistyped.status == 64)
    #expect(mistyped.errors == "stemma: there is no command `lnk`; did you mean `link`?\n")
    // Two letters away from `list`.
    let short = try work.attempt("hist")
    #expect(short.errors == "stemma: there is no command `hist`; did you mean `history`?\n")
    let several = try work.attempt("sta")
    #expect(several.errors == "stemma: there is no command `sta`; did you mean `status` or `stats`?\n")
    let directory = try work.attempt("-C", "shop", "import", ".")
    #expect(directory.status == 66 && directory.errors == "stemma: cannot read .: Is a directory\n")
    let model = try work.attempt("-C", "shop", "create", "team", "name=x")
    #expect(model.errors == "stemma: unknown model `team`; did you mean `Team`?\n")
    func status(_ wanted: Int32, _ result: Tool.Result, sourceLocation: SourceLocation = #_sourceLocation) {
      #expect(result.status == wanted, "\(result.errors)", sourceLocation: sourceLocation)
      #expect(wanted == 0 || wanted == 1 || !result.errors.isEmpty, sourceLocation: sourceLocation)
      #expect(result.output.isEmpty || result.status <= 1, "\(result.output)", sourceLocation: sourceLocation)
    }
    status(0, try work.attempt("--version"))
    status(0, try work.attempt("-C", "shop", "verify"))
    status(1, try work.attempt("-C", "shop", "update", "Team", "a", "name=B", "--if-revision", "9-abcdef"))
    status(64, try work.attempt("frob"))
    status(64, try work.attempt("-C", "shop", "create"))
    status(64, try work.attempt("-C", "shop", "log", "--json", "--ndjson"))
    status(64, try work.attempt("-C", "shop", "log", "--op", "nope"))
    status(64, try work.attempt("-C", "shop", "rebuild", "--as-of", "2h"))
    status(64, try work.attempt("-C", "shop", "resolve", "Team", "a", "name"))
    status(64, try work.attempt("-C", "shop", "export", "--format", "csv"))
    status(65, try work.attempt("-C", "shop", "create", "Team", "id=a", "name=A"))
    status(65, try work.attempt("-C", "shop", "create", "Nope", "id=a"))
    status(65, try work.attempt("init", "other", "--schema", "bad.graphql"))
    #expect(!FileManager.default.fileExists(atPath: work.file("other")))
    status(66, try work.attempt("init", "other", "--schema", "nofile.graphql"))
    status(66, try work.attempt("-C", "shop", "get", "Team", "zzz"))
    status(66, try work.attempt("-C", "shop", "update", "Team", "zzz", "name=x"))
    status(66, try work.attempt("-C", "shop", "delete", "Team", "zzz"))
    status(66, try work.attempt("-C", "shop", "pull"))
    status(66, try work.attempt("-C", "shop", "import", "nofile.ndjson"))
    status(73, try work.attempt("init", "shop"))
  }

  /// A part of the output of `--experimental-dump-help`.
  private struct Help: Decodable {
    struct Command: Decodable {
      var commandName: String
      var abstract: String?
      var discussion: String?
      var subcommands: [Command]?
      var arguments: [Argument]?
    }
    struct Argument: Decodable {
      struct Name: Decodable { var kind: String; var name: String }
      var names: [Name]?
    }
    var command: Command
  }

  /// The words of an example up to a pipe or a redirection, without quoted ones.
  private static func words(of example: Substring) -> [Substring] {
    var isQuoted = false
    let bare = example.filter { character in
      if character == "'" || character == "\"" { isQuoted.toggle() }
      return !isQuoted
    }
    return bare.split(separator: " ").prefix { !["|", "||", "&&", ">", "#"].contains($0) }.map { $0 }
  }

  @Test("every command says what it does and has two examples, which name only options that there are")
  func helpHasExamples() throws {
    let dump = try Tool.run(Tool.path, ["--experimental-dump-help"], in: NSTemporaryDirectory())
    var checked = 0
    func check(_ command: Help.Command, _ path: [String]) {
      let isGroup = command.subcommands?.contains { $0.commandName != "help" } ?? false
      let name = path.joined(separator: " ")
      if !path.isEmpty, command.commandName != "help" {
        checked += 1
        #expect(command.abstract?.isEmpty == false, "\(name)")
        let parts = (command.discussion ?? "").components(separatedBy: "Examples:\n")
        let lines = (parts.count == 2 ? parts[1] : "").split(separator: "\n")
        let examples = lines.filter { $0.contains("stemma ") }
        #expect(examples.count >= 2, "\(name): \(lines)")
        #expect(examples.allSatisfy { $0.contains(command.commandName) }, "\(name): \(lines)")
        let options = Set((command.arguments ?? []).flatMap { $0.names ?? [] }.map(\.name))
        for example in examples where !isGroup {
          let words = Self.words(of: example)
          guard words.contains(where: { $0 == command.commandName }) else { continue }
          for word in words where word.hasPrefix("--") && word.count > 2 {
            #expect(options.contains(String(word.dropFirst(2))), "\(name): \(word) in \(example)")
          }
        }
      }
      for inner in command.subcommands ?? [] where inner.commandName != "help" {
        check(inner, path + [inner.commandName])
      }
    }
    check(try dump.json(Help.self).command, [])
    #expect(checked > 30)
  }

  @Test("what can be typed next comes from the node: its models and its remotes")
  func completions() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    try work.stemma("clone", "shop", "field", "--name", "field")
    try work.stemma("-C", "field", "remote", "add", "office", "shop")
    try work.write("completion.bash", try work.stemma("--generate-completion-script", "bash").output)
    /// The completions that bash shows for the last word.
    func offered(_ words: String...) throws -> [String] {
      let line = (["stemma"] + words).joined(separator: " ")
      let script = """
        source completion.bash
        COMP_WORDS=(\(line.hasSuffix(" ") ? line + "''" : line)); COMP_CWORD=\(words.count)
        COMP_LINE='\(line)'; COMP_POINT=${#COMP_LINE}
        _stemma stemma '\(words.last ?? "")' '\(words.dropLast().last ?? "stemma")'
        printf '%s\\n' "${COMPREPLY[@]}"
        """
      let path = Tool.directory + ":" + (ProcessInfo.processInfo.environment["PATH"] ?? "")
      let result = try Tool.run(
        "/bin/bash", ["-c", script], in: work.path,
        environment: words.first == "-C" ? ["PATH": path] : ["PATH": path, "STEMMA_NODE": work.file("field")])
      return result.lines.map { $0.trimmingCharacters(in: .whitespaces) }
    }
    #expect(try offered("get", "T") == ["Team"])
    #expect(try offered("log", "--model", "Me").sorted() == ["Member", "MemberPost"])
    #expect(try offered("conflicts", "--kind", "d").sorted() == ["dangling", "delete"])
    #expect(try offered("pull", "of") == ["office"])
    #expect(try offered("log", "--op", "de") == ["delete"])
    #expect(try offered("log", "--model", "Visit", "--field", "ro") == ["room"])
    #expect(try offered("log", "--origin", "fi") == ["field"])
    #expect(try offered("log", "--origin", "sh") == ["shop"])
    // With the node named before the command.
    #expect(try offered("-C", "field", "conf") == ["conflicts"])
    #expect(try offered("-C", "field", "get", "T") == ["Team"])
    #expect(try offered("-C", "field", "history", "Vi") == ["Visit"])
    #expect(try offered("get", "-C", "field", "T") == ["Team"])
  }

  @Test("a completion script for bash")
  func completionScript() throws {
    let work = try Workplace()
    let script = try work.stemma("--generate-completion-script", "bash")
    try work.write("completion.bash", script.output)
    let check = try Tool.run("/bin/bash", ["-n", "completion.bash"], in: work.path)
    #expect(check.status == 0, "\(check.errors)")
    for command in ["conflicts", "digest", "rebuild"] { #expect(script.output.contains(command)) }
    #expect(try work.stemma("--help").output.contains("--generate-completion-script bash"))
    for shell in ["zsh", "fish"] {
      #expect(try work.stemma("--generate-completion-script", shell).output.contains("conflicts"))
    }
    #expect(try work.attempt("--generate-completion-script", "tcsh").status == 64)
    #expect(try work.attempt("--generate-completion-script").status == 64)
  }

  @Test("no escape codes when piped")
  func noEscapeCodes() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=a", "name=A")
    for environment in [[:], ["NO_COLOR": "1"], ["TERM": "xterm-256color", "CLICOLOR_FORCE": ""]] {
      for command in ["log", "status", "list Team", "segments", "conflicts", "get Team zzz"] {
        let result = try Tool.run(
          Tool.path, ["-C", "shop"] + command.split(separator: " ").map(String.init), in: work.path,
          environment: environment)
        #expect(!(result.output + result.errors).contains("\u{1B}"), "\(command)")
      }
    }
  }
}
