import Foundation
import StemmaEvents
import StemmaNode
import Testing

/// What `why` says of real conflicts, against a merge by the definition that shares no code with it.
@Suite("why", .enabled(if: RealData.isThere))
struct WhyTests {
  @Test("every conflicted record: the winner, the rule, and what stands against it")
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

  /// What only the reason of that rule says.
  private static let signs = [
    "version": "the longer history, goes before version", "timestamp": "the versions are equal, and",
    "origin": "that is arbitrary, and the same on every node",
  ]

  private func plain(_ value: JSON) -> String {
    switch value {
    case .string(let text): text
    case .null: "<null>"
    default: value.text
    }
  }
}
