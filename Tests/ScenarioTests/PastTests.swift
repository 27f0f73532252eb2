import Foundation
import StemmaEvents
import StemmaHistory
import StemmaImport
import StemmaNode
import StemmaSimulation
import Testing

/// The effect of each line of git-grdb on the tree.
private struct TreeLines {
  /// For each commit the index of its last line.
  private(set) var ends: [Int] = []
  private var lines: [(path: String, file: String?)?] = []

  init(_ path: String) throws {
    var reader = try LineReader(path: path)
    var current: [String: (mode: String, blob: String)] = [:]
    var hasCommit = false
    while let data = try reader.next({ Data($0) }) {
      let object = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
      let operation = object.text("op")
      if object.text("model") == "Commit", operation == "create" {
        if hasCommit { ends.append(lines.count - 1) }
        hasCommit = true
      }
      guard object.text("model") == "File", let path = object.object("key").text("path") else {
        lines.append(nil)
        continue
      }
      if operation == "delete" {
        current[path] = nil
        lines.append((path, nil))
      } else {
        let fields = object.object("fields")
        var file = current[path] ?? ("", "")
        file.mode = fields.text("mode") ?? file.mode
        file.blob = fields.text("blob") ?? file.blob
        current[path] = file
        lines.append((path, "\(file.mode) \(file.blob)"))
      }
    }
    ends.append(lines.count - 1)
  }

  var count: Int { lines.count }
  var paths: [String] { Set(lines.compactMap { $0?.path }).sorted() }

  /// Input of `git update-index -z --index-info` that turns the tree after one line into the tree
  /// after another.
  func index(after first: Int, through last: Int) -> Data {
    var changes: [String: String?] = [:]
    for case (let path, let file)? in lines[(first + 1)...last] { changes[path] = .some(file) }
    let gone = "0 " + String(repeating: "0", count: 40)
    // Removals come before additions, because a folder may replace a file.
    let entries = changes.sorted { ($0.value == nil ? 0 : 1, $0.key) < ($1.value == nil ? 0 : 1, $1.key) }
    return Data(entries.map { "\($0.value ?? gone)\t\($0.key)\0" }.joined().utf8)
  }
}

/// `diff` and `get --as-of` of git-grdb, compared with git's own `diff --raw` and `ls-tree`.
///
/// The repository itself is not available: the data set holds the paths, modes and blob ids of each
/// commit, but no contents. So the test rebuilds git's trees from the data's lines, without the
/// blobs, which neither command reads. The data set was verified against the real commits, and
/// `OracleTests` compares the last tree with a recorded `git ls-tree`. `RealRepositoryTests` covers
/// complete repositories.
@Suite("The past of a real history", .enabled(if: RealData.isThere))
struct PastTests {
  private static let seed: UInt64 = 50
  private static let count = 50

  /// The number of sampled commits, including the first and the last.
  private static let points = 120

  /// The directory of git's trees.
  private let work: Workplace
  private let paths: [String]
  private let twin: TwinHistory

  init() throws {
    let directory = try FixedNodes.folder.get() + "/git"
    let node = try Node.open(at: directory, Node.OpeningOptions(mode: .read))
    let lines = try TreeLines(RealData.path("git-grdb/mutations.ndjson.gz"))
    var positions: [Position] = []
    try node.forEachEvent(LogFilter(), newestFirst: false) { stored, _ in
      positions.append(stored.position)
      return true
    }
    try #require(positions.count == lines.count, "each line is one event")

    var random = SplitMix64(seed: Self.seed)
    var ends = Set([lines.ends[0], lines.ends[lines.ends.count - 1]])
    while ends.count < Self.points { ends.insert(lines.ends[Int(random.next() % UInt64(lines.ends.count))]) }
    work = try Workplace()
    _ = try TwinHistory.git(["init", "-q", "--bare", "."], in: work.path)
    var twins: [TwinHistory.Point] = []
    var before = -1
    let index = work.file("tree.index")
    for end in ends.sorted() {
      _ = try TwinHistory.git(
        ["update-index", "-z", "--index-info"], in: work.path,
        input: lines.index(after: before, through: end),
        index: index)
      let tree = try TwinHistory.git(["write-tree", "--missing-ok"], in: work.path, index: index)
      twins.append(
        TwinHistory.Point(
          name: tree.trimmingCharacters(in: .newlines), position: positions[end].description))
      before = end
    }
    paths = lines.paths
    twin = TwinHistory(repository: work.path, node: directory, points: twins)
  }

  @Test("diff equals git diff --raw between the two commits, for 50 random pairs")
  func differencesEqualGits() throws {
    #expect(try twin.compareDifferences(of: Self.count, seed: Self.seed) > 5000)
    // Two adjacent sampled commits, both directions from end to end, and one commit with itself.
    let (first, last) = (twin.points[0], twin.points[twin.points.count - 1])
    for (a, b) in [(first, twin.points[1]), (first, last), (last, first), (last, last)] {
      #expect(try twin.differences(a, b) == twin.gitsDifferences(a, b), "\(a) \(b)")
    }
  }

  @Test("get --as-of equals git ls-tree at that commit, for 50 random paths")
  func filesEqualTheTree() throws {
    let present = try twin.compareFiles(paths, count: Self.count, seed: Self.seed + 1)
    #expect(present > 5 && present < Self.count - 5, "both answers are tried")
  }
}
