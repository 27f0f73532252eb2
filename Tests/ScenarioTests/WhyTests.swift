import Foundation
import StemmaEvents
import StemmaNode
import Testing

/// What `why` says of real conflicts, against a merge by the definition that shares no code with it.
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

    // The command prints the same, and in words.
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

  /// The real history above has no conflict about whether a record exists.
  @Test("every kind of conflict of made histories, whatever the model's policy")
  func everyKindIsExplained() throws {
    var kinds: [String: Int] = [:]
    for seed in 1...8 { try explain(seed: seed, &kinds) }
    print("\(kinds.sorted { $0.key < $1.key })")
    for rule in ["delete wins", "update wins", "version", "timestamp", "origin", "seen"] {
      #expect(kinds[rule] != nil, "the histories have no such conflict: \(rule)")
    }
  }

  /// Compares all that is said of one history; counts the rules, and changes by one who had seen the deletion.
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
          // The command that lists it says the same.
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

  private static let policies: [String: NaiveFold.Policy] = [
    "Note": NaiveFold.Policy(), "Late": NaiveFold.Policy(isLatest: true),
    "Gone": NaiveFold.Policy(winner: "0"), "Kept": NaiveFold.Policy(winner: "1"),
  ]

  /// What only the reason of that rule says.
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
