import Foundation
import StemmaEvents
import StemmaNode
import StemmaSchema
import StemmaSimulation
import Testing

/// The trees of git-grdb after each of its commits, by replaying the lines of the data set naively: what
/// `git ls-tree -r` prints of that history (the data set was checked against git when it was made).
private struct NaiveTrees {
  /// For each commit the index of the last line that belongs to it.
  private(set) var ends: [Int] = []
  private var lines: [(path: String, blob: String?)?] = []

  init(_ path: String) throws {
    var reader = try LineReader(path: path)
    var current: [String: (mode: String, blob: String)] = [:]
    var hasCommit = false
    while let data = try reader.next({ Data($0) }) {
      let object = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
      let operation = object["op"] as? String
      if object["model"] as? String == "Commit", operation == "create" {
        if hasCommit { ends.append(lines.count - 1) }
        hasCommit = true
      }
      guard object["model"] as? String == "File", let key = object["key"] as? [String: String],
        let path = key["path"]
      else {
        lines.append(nil)
        continue
      }
      if operation == "delete" {
        current[path] = nil
        lines.append((path, nil))
      } else {
        let fields = object["fields"] as? [String: Any] ?? [:]
        var file = current[path] ?? ("", "")
        file.mode = fields["mode"] as? String ?? file.mode
        file.blob = fields["blob"] as? String ?? file.blob
        current[path] = file
        lines.append((path, "\(file.mode) \(file.blob)"))
      }
    }
    ends.append(lines.count - 1)
  }

  var count: Int { lines.count }
  var paths: [String] { Set(lines.compactMap { $0?.path }).sorted() }

  /// path → `mode blob`, after a line.
  func tree(after end: Int) -> [String: String] {
    var tree: [String: String] = [:]
    for line in lines[...end] { if let line { tree[line.path] = line.blob } }
    return tree
  }
}

@Suite("The past of a real history", .enabled(if: RealData.isThere))
struct PastTests {
  private let node: Node
  private let file: Model
  private let trees: NaiveTrees
  /// Of the event that each line of the data set became.
  private let positions: [Position]

  init() throws {
    node = try Node.open(at: try FixedNodes.folder.get() + "/git", Node.OpeningOptions(mode: .read))
    file = try #require(node.schema.model(named: "File"))
    trees = try NaiveTrees(RealData.path("git-grdb/mutations.ndjson.gz"))
    var positions: [Position] = []
    try node.forEachEvent(LogFilter(), newestFirst: false) { stored, _ in
      positions.append(stored.position)
      return true
    }
    self.positions = positions
    try #require(positions.count == trees.count, "each line is one event")
  }

  /// As of a commit's last event, by its position: many commits of this history share a second.
  private func moment(_ end: Int) -> Moment { .position(positions[end]) }

  /// What `diff` says of paths, modes and blobs: path → what happened to them.
  private func raw(_ difference: RecordDifference) -> (path: String, what: String)? {
    let sides = ["mode", "blob"].map { name in
      let change = difference.changes.first { $0.field == name }
      return change.map { "\(name) \($0.from.json.text) → \($0.to.json.text)" } ?? ""
    }
    if difference.kind == .changed, sides.allSatisfy(\.isEmpty) { return nil }
    return (difference.key.parts[1].text, "\(difference.kind) \(sides.joined(separator: " "))")
  }

  /// The same of two trees.
  private func raw(_ a: Int, _ b: Int) -> [String: String] {
    let (old, new) = (trees.tree(after: a), trees.tree(after: b))
    var raw: [String: String] = [:]
    for path in Set(old.keys).union(new.keys) where old[path] != new[path] {
      let (before, after) = (parts(old[path]), parts(new[path]))
      let sides = ["mode", "blob"].enumerated().map { index, name in
        before[index] == after[index] ? "" : "\(name) \(before[index]) → \(after[index])"
      }
      let kind = old[path] == nil ? "added" : new[path] == nil ? "removed" : "changed"
      raw[path] = "\(kind) \(sides.joined(separator: " "))"
    }
    return raw
  }

  /// Mode and blob of a file as JSON has them.
  private func parts(_ file: String?) -> [String] {
    file?.split(separator: " ").map { "\"\($0)\"" } ?? ["null", "null"]
  }

  @Test("diff equals git's between the two commits, for 50 random pairs")
  func differencesEqualGits() throws {
    let seed: UInt64 = 50
    print("seed \(seed)")
    var random = SplitMix64(seed: seed)
    func commit() -> Int { trees.ends[Int(random.next() % UInt64(trees.ends.count))] }
    let pairs = (0..<50).map { _ in (commit(), commit()) }
    var found = pairs.map { _ in [String: String]() }
    let moments = pairs.flatMap { [moment($0.0), moment($0.1)] }
    try node.forEachRecord(asOf: moments, of: file) { model, key, rules, states in
      for index in pairs.indices {
        let difference = RecordDifference(
          model, key, from: states[index * 2], to: states[index * 2 + 1], rules)
        if let (path, what) = difference.flatMap(raw) { found[index][path] = what }
      }
    }
    for (index, pair) in pairs.enumerated() { #expect(found[index] == raw(pair.0, pair.1), "\(pair)") }
    // The way that the command goes, of which the above is the inside.
    for pair in pairs.prefix(4) {
      var found: [String: String] = [:]
      try node.forEachDifference(from: moment(pair.0), to: moment(pair.1), of: file) { difference in
        if let (path, what) = raw(difference) { found[path] = what }
      }
      #expect(found == raw(pair.0, pair.1), "\(pair)")
    }
  }

  @Test("the command says the same, near and far")
  func commandSaysTheSame() throws {
    let ends = trees.ends
    let pairs = [(ends[100], ends[101]), (ends[3000], ends[3004]), (ends[400], ends[20])]
    for (a, b) in pairs {
      let result = try Tool.run(
        Tool.path,
        [
          "-C", node.directory, "diff", "@\(positions[a])", "@\(positions[b])", "--model", "File", "--ndjson",
        ], in: node.directory)
      #expect(result.status == 0, "\(result.errors)")
      let (old, new) = (trees.tree(after: a), trees.tree(after: b))
      var expected: Set<String> = []
      for path in Set(old.keys).union(new.keys) where old[path] != new[path] {
        expected.insert("\(old[path] == nil ? "added" : new[path] == nil ? "removed" : "changed") \(path)")
      }
      let changes = try result.objects().filter { object in
        let fields = object.object("fields")
        return fields["mode"] != nil || fields["blob"] != nil
      }
      #expect(
        Set(changes.map { "\($0.text("change") ?? "") \($0.object("key").text("path") ?? "")" }) == expected)
      for change in changes {
        let path = try #require(change.object("key").text("path"))
        guard let blob = change.object("fields")["blob"] as? [String: Any] else { continue }
        #expect(blob.text("from") == old[path]?.split(separator: " ").last.map(String.init))
        #expect(blob.text("to") == new[path]?.split(separator: " ").last.map(String.init))
      }
    }
  }

  @Test("get --as-of equals the tree of that commit, for 50 random paths")
  func filesEqualTheTree() throws {
    let seed: UInt64 = 51
    print("seed \(seed)")
    var random = SplitMix64(seed: seed)
    let paths = trees.paths
    var present = 0
    for round in 0..<50 {
      let path = paths[Int(random.next() % UInt64(paths.count))]
      let end = trees.ends[Int(random.next() % UInt64(trees.ends.count))]
      let partition = path.contains("/") ? String(path.prefix { $0 != "/" }) : "."
      let key = Key(.string(partition), .string(path))
      let row = try node.row(file, key, asOf: moment(end))
      let expected = trees.tree(after: end)[path]
      #expect(row.map { "\(plain($0, "mode")) \(plain($0, "blob"))" } == expected, "\(path) at \(end)")
      present += expected == nil ? 0 : 1
      guard round < 3 else { continue }
      let result = try Tool.run(
        Tool.path,
        [
          "-C", node.directory, "get", "File", "partition=\(partition)", "path=\(path)", "--json", "--as-of",
          "@\(positions[end])",
        ], in: node.directory)
      #expect(result.status == (expected == nil ? 66 : 0), "\(result.errors)")
      if expected != nil { #expect(result.output.contains(row?["fields"]?["blob"]?.text ?? "-")) }
    }
    #expect(present > 5 && present < 45, "both answers are tried")
  }

  private func plain(_ row: JSON, _ field: String) -> String {
    if case .string(let text)? = row["fields"]?[field] { text } else { "" }
  }
}
