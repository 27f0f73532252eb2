import Foundation
import StemmaEvents
import StemmaHistory
import StemmaNode
import Testing

/// The output of `why` for real conflicts, compared with a merge by the definition that shares no
/// code with it.
@Suite("why")
struct WhyTests {
  @Test(
    "every conflicted record: the winner, the rule, and what stands against it",
    .enabled(if: RealData.isThere))
  func decisionsAreRight() throws {
    let folder = try FixedNodes.folder.get()
    let log = try Tool.run(Tool.path, ["-C", folder + "/a", "log", "--reverse", "--ndjson"], in: folder)
    let naive = try NaiveFold(try log.objects())
    let conflicts = naive.conflicts.filter { $0.kind == "value" }
    #expect(conflicts.count == 204)
    var byRecord: [String: [NaiveFold.Conflict]] = [:]
    for conflict in conflicts { byRecord[conflict.key, default: []].append(conflict) }
    #expect(byRecord.count == 108)

    let node = try Node.open(at: folder + "/a", Node.OpeningOptions(mode: .read))
    let model = try #require(node.schema.model(named: "Doc"))
    for (key, expected) in byRecord.sorted(by: { $0.key < $1.key }) {
      let words = key.split(separator: " ", maxSplits: 1).map(String.init)
      let life = try node.existingLife(of: Key(.string(words[0]), .string(words[1])), in: model)
      let decisions = try node.decisions(about: life)
      #expect(
        Set(decisions.filter { $0.isConflict && $0.field != nil }.map(\.field)) == Set(expected.map(\.field)),
        "\(key)")
      for conflict in expected {
        let decision = try #require(decisions.first { $0.field == conflict.field })
        let found = decision.candidates.map { "\($0.event) \(plain($0.value))" }
        #expect(found == conflict.candidates, "\(key) \(conflict.field)")
        #expect(plain(decision.shown) == conflict.candidates[0].split(separator: " ").dropFirst().joined())
        let rule = naive.rules["\(key) \(conflict.field)"] ?? "none"
        #expect(decision.rule.name == rule, "\(key) \(conflict.field)")
        let words = decision.words
        #expect(words.first == "\(conflict.field) is \(decision.shown.canonicalText).")
        #expect(words.contains("\(conflict.candidates.count) writes had not seen each other:"))
        let winner = conflict.candidates[0].split(separator: " ")[0]
        #expect(words.last?.hasPrefix("\(winner) is shown: ") ?? false, "\(key): \(words)")
        #expect(words.last?.contains(Self.signs[rule] ?? "?") ?? false, "\(rule): \(words)")
      }
    }

    // The command prints the same as JSON and as text.
    for (key, expected) in byRecord.sorted(by: { $0.key < $1.key }).prefix(3) {
      let words = key.split(separator: " ", maxSplits: 1).map(String.init)
      let arguments = [
        "-C", folder + "/a", "why", "Doc", "episode=\(words[0])", "path=\(words[1])", expected[0].field,
      ]
      let fields = try Tool.run(Tool.path, arguments + ["--json"], in: folder).object().array("fields")
      #expect(fields.first?.text("rule") == naive.rules["\(key) \(expected[0].field)"])
      let text = try Tool.run(Tool.path, arguments, in: folder).output
      #expect(text.contains("writes had not seen each other"))
      #expect(text.contains("stemma resolve Doc"))
    }
  }

  /// The real history has no conflict of existence.
  @Test("every kind of conflict of made histories, whatever the model's policy")
  func everyKindIsExplained() throws {
    var kinds: [String: Int] = [:]
    for seed in 1...8 { try explain(seed: seed, &kinds) }
    print("\(kinds.sorted { $0.key < $1.key })")
    for rule in ["delete wins", "update wins", "version", "timestamp", "origin", "seen"] {
      #expect(kinds[rule] != nil, "the histories have no such conflict: \(rule)")
    }
  }

  /// Compares all output about one history. Counts the rules, and changes by nodes that had seen
  /// the deletion.
  private func explain(seed: Int, _ kinds: inout [String: Int]) throws {
    let work = try Workplace()
    let models = Self.policies.keys.sorted()
    let history = try RandomHistory(
      seed: UInt64(seed), nodes: 3, steps: 70, apart: 7, models: [models[seed % 4], models[(seed + 1) % 4]],
      in: work.path)
    let node = history.nodes[0]
    let log = try Tool.run(Tool.path, ["-C", node.directory, "log", "--reverse", "--ndjson"], in: work.path)
      .objects()
    let listed = try Tool.run(Tool.path, ["-C", node.directory, "conflicts", "--ndjson"], in: work.path)
      .objects()
    for (name, policy) in Self.policies {
      let events = log.filter { $0.text("model") == name }
      let naive = try NaiveFold(events, policy)
      let expected = Dictionary(grouping: naive.conflicts, by: \.key)
      #expect(listed.count { $0.text("model") == name } == naive.conflicts.count, "seed \(seed): \(name)")
      let model = try #require(node.schema.model(named: name))
      for (key, event) in Dictionary(
        events.map { (NaiveFold.key(of: $0), $0) }, uniquingKeysWith: { a, _ in a })
      {
        let parts = event.object("key")
        let record = Key(.string(parts.text("site") ?? ""), .int(Int64(parts.number("n") ?? -1)))
        let decisions = try node.decisions(about: try node.existingLife(of: record, in: model))
        let conflicts = expected[key] ?? []
        #expect(
          Set(decisions.filter(\.isConflict).map { $0.field ?? "-" }) == Set(conflicts.map(\.field)),
          "seed \(seed): \(name) \(key)")
        for conflict in conflicts {
          let decision = try #require(decisions.first { ($0.field ?? "-") == conflict.field })
          let place: Comment = "seed \(seed): \(name) \(key) \(conflict.field)"
          #expect(decision.candidates.map { "\($0.event) \(plain($0.value))" } == conflict.candidates, place)
          #expect(decision.rule.name == naive.rules["\(key) \(conflict.field)"], place)
          kinds[decision.rule.name, default: 0] += 1
          var hadSeen = 0
          for candidate in decision.candidates {
            let saw = conflict.field == "-" ? naive.saw["\(key) \(candidate.event)"] ?? [] : []
            #expect(Set(candidate.saw) == Set(saw), place)
            hadSeen += saw.count
            for deletion in saw {
              #expect(
                decision.words.contains {
                  $0.hasPrefix("\(candidate.event) had seen the deletion ") && $0.contains(deletion)
                }, place)
            }
          }
          #expect(
            decision.words.contains("\(decision.candidates.count) writes had not seen each other:")
              == (hadSeen == 0), place)
          if hadSeen > 0 { kinds["seen", default: 0] += hadSeen }
          // `conflicts` reports the same.
          let same = listed.first {
            $0.text("model") == name && NaiveFold.key(of: $0) == key
              && ($0.text("field") ?? "-") == conflict.field
          }
          #expect(
            same?.array("candidates").map { $0.text("event") } == decision.candidates.map(\.event), place)
          let saw = same?.array("candidates").map { $0["saw"] as? [String] ?? [] }
          #expect(saw == decision.candidates.map(\.saw), place)
        }
      }
    }
  }

  /// Under OPTIMISTIC a record is one register: `conflicts` and `why` report one conflict under one
  /// name.
  @Test("a record that is written as a whole is explained as one")
  func wholeRecordsAreExplained() throws {
    var met: Set<String> = []
    for seed in 1...4 { try explainWhole(seed: seed, &met) }
    #expect(met == ["alone", "beside a deletion"])
  }

  private func explainWhole(seed: Int, _ met: inout Set<String>) throws {
    let work = try Workplace()
    let history = try RandomHistory(
      seed: UInt64(seed), nodes: 3, steps: 60, apart: 7, models: ["Whole"], in: work.path)
    let node = history.nodes[0].directory
    func run(_ words: String...) throws -> Tool.Result {
      try Tool.run(Tool.path, ["-C", node] + words, in: work.path)
    }
    let log = try run("log", "--reverse", "--ndjson").objects()
    let naive = try NaiveFold(log, NaiveFold.Policy(isWhole: true))
    let listed = try run("conflicts", "--ndjson").objects()
    #expect(Self.deletionsAsNumbers(listed) == Set(naive.conflicts), "seed \(seed)")
    // A whole-record conflict is not a conflict of existence.
    let contested = try run("stats", "--json").object().array("contestedFields")
    for (field, kind) in [(nil, "delete"), ("text", "value")] {
      let counted = contested.first { $0.text("model") == "Whole" && $0.text("field") == field }
      #expect(
        counted?.number("open") ?? 0
          == listed.count { $0.text("kind") == kind && $0.text("model") == "Whole" },
        "seed \(seed): \(kind)")
    }
    for conflict in listed where conflict.text("kind") == "value" {
      let key = conflict.object("key")
      let words = ["site=\(key.text("site") ?? "")", "n=\(key.number("n") ?? -1)"]
      let place: Comment = "seed \(seed): \(words)"
      let others = listed.count { NaiveFold.key(of: $0) == NaiveFold.key(of: conflict) }
      let command =
        "stemma resolve Whole \(words.joined(separator: " "))" + (others > 1 ? " --kind value" : "")
      met.insert(others > 1 ? "beside a deletion" : "alone")

      let record = try run("why", "Whole", words[0], words[1])
      let end = "of the whole record; decide with `\(command) --take N`."
      #expect(record.lines.count { $0.hasSuffix(end) } == 1, place)
      #expect(record.lines.count { $0.hasPrefix("The record is {") } == 1, place)
      #expect(!record.lines.contains { $0.hasPrefix("text is") || $0.hasPrefix("stars is") }, place)
      let json = try run("why", "Whole", words[0], words[1], "--json").object()
      #expect(json.array("conflicts").map { NaiveFold.Conflict($0) } == [NaiveFold.Conflict(conflict)], place)
      // For one field, too, it is the conflict of the record.
      let contested = json.array("fields").filter { $0["conflict"] as? Bool == true }.compactMap {
        $0.text("field")
      }
      #expect(!contested.isEmpty, place)
      for field in contested {
        let words = try run("why", "Whole", words[0], words[1], field)
        #expect(words.lines.first?.hasPrefix("\(field) is ") == true, place)
        #expect(words.lines.last == "  It is a part of an open conflict " + end, place)
        #expect(words.lines.count { $0.contains("decide with") } == 1, place)
      }
      let shown = try run("conflicts", "show", "Whole", words[0], words[1])
      #expect(shown.output.contains("value \(words.joined(separator: " ")) (whole record)"), place)
      #expect(shown.output.contains("\(command) --take 2"), place)
      let resolved = try ConsolePage.shell(
        command.replacing("stemma ", with: "stemma -C n0 ") + " --take 2", in: work.path)
      #expect(resolved.status == 0, "\(place): \(resolved.errors)")
      let left = try run("conflicts", "--ndjson", "--model", "Whole", "--key", words[0], "--key", words[1])
      #expect(try left.objects().count == others - 1, place)
    }
  }

  /// The naive fold represents existence as a number.
  private static func deletionsAsNumbers(_ listed: [[String: Any]]) -> Set<NaiveFold.Conflict> {
    Set(
      listed.map { object in
        var conflict = NaiveFold.Conflict(object)
        if conflict.kind == "delete" {
          conflict.candidates = object.array("candidates").map {
            "\($0.text("event") ?? "") \($0["value"] as? Bool == true ? 1 : 0)"
          }
        }
        return conflict
      })
  }

  private static let policies: [String: NaiveFold.Policy] = [
    "Note": NaiveFold.Policy(), "Late": NaiveFold.Policy(isLatest: true),
    "Gone": NaiveFold.Policy(winner: "0"), "Kept": NaiveFold.Policy(winner: "1"),
  ]

  /// Text that is unique to the reason of each rule.
  private static let signs = [
    "version": "the longer history, goes before version", "timestamp": "the versions are equal, and",
    "origin": "that is arbitrary, and the same on every node",
  ]

  private func plain(_ value: JSON) -> String {
    switch value {
    case .string(let text): text
    case .null: "<null>"
    case .bool(let exists): exists ? "1" : "0"
    default: value.text
    }
  }
}
