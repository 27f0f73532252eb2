import Foundation
import StemmaSimulation
import Testing

/// A git repository and a node of the same history, queried by their commands.
struct TwinHistory {
  struct Point {
    /// Git's name: a commit, or a tree.
    var name: String
    /// The position of the commit's last event. Times are ambiguous, because many commits share a
    /// second.
    var position: String
  }

  let repository: String
  let node: String
  /// The oldest first.
  let points: [Point]

  /// Runs git in the repository. Any status except 0 fails the test.
  static func git(
    _ arguments: [String], in repository: String, input: Data? = nil, index: String? = nil
  ) throws -> String {
    var environment = ["GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"]
    if let index { environment["GIT_INDEX_FILE"] = index }
    let words = ["git", "-c", "safe.directory=*", "-C", repository] + arguments
    let result = try Tool.run(
      "/usr/bin/env", words, in: repository, input: input, environment: environment)
    try #require(result.status == 0, "\(words): \(result.errors)")
    return result.output
  }

  /// Compares the differences of random pairs of points.
  ///
  /// - Returns: the number of files that differed.
  func compareDifferences(of count: Int, seed: UInt64) throws -> Int {
    print("seed \(seed)")
    var random = SplitMix64(seed: seed)
    var files = 0
    for _ in 0..<count {
      let (a, b) = (point(&random), point(&random))
      let expected = try gitsDifferences(a, b)
      #expect(try differences(a, b) == expected, "\(a) \(b)")
      files += expected.count
    }
    return files
  }

  /// Compares random files at random points, and counts those that exist.
  func compareFiles(_ paths: [String], count: Int, seed: UInt64) throws -> Int {
    print("seed \(seed)")
    var random = SplitMix64(seed: seed)
    var present = 0
    for _ in 0..<count {
      let path = paths[Int(random.next() % UInt64(paths.count))]
      let point = point(&random)
      let expected = try gitsFile(path, at: point)
      #expect(try file(path, at: point) == expected, "\(path) at \(point)")
      present += expected == nil ? 0 : 1
    }
    return present
  }

  private func point(_ random: inout SplitMix64) -> Point {
    points[Int(random.next() % UInt64(points.count))]
  }

  // MARK: Differences

  /// The output of `git diff --raw`: kind, path, and both sides of mode and blob if they differ.
  func gitsDifferences(_ a: Point, _ b: Point) throws -> Set<String> {
    let raw = try Self.git(
      ["diff", "--raw", "--no-renames", "--abbrev=40", "-z", a.name, b.name], in: repository)
    let words = raw.split(separator: "\0").map(String.init)
    var lines: Set<String> = []
    for place in stride(from: 0, to: words.count - 1, by: 2) {
      let sides = words[place].dropFirst().split(separator: " ").map {
        $0.allSatisfy { $0 == "0" } ? "-" : $0
      }
      let kind = sides[4] == "A" ? "added" : sides[4] == "D" ? "removed" : "changed"
      lines.insert(Self.line(kind, words[place + 1], mode: (sides[0], sides[1]), blob: (sides[2], sides[3])))
    }
    return lines
  }

  /// The same differences from `diff`.
  func differences(_ a: Point, _ b: Point) throws -> Set<String> {
    let result = try Tool.run(
      Tool.path, ["-C", node, "diff", "@" + a.position, "@" + b.position, "--model", "File", "--ndjson"],
      in: node)
    #expect(result.status == 0, "\(result.errors)")
    var lines: Set<String> = []
    for object in try result.objects() {
      let fields = object.object("fields")
      func sides(_ name: String) -> (Substring, Substring) {
        guard let change = fields[name] as? [String: Any] else { return ("", "") }
        return (Substring(change.text("from") ?? "-"), Substring(change.text("to") ?? "-"))
      }
      let kind = object.text("change") ?? ""
      // A record holds more fields than git's tree.
      if kind == "changed", fields["mode"] == nil, fields["blob"] == nil { continue }
      lines.insert(
        Self.line(
          kind, object.object("key").text("path") ?? "", mode: sides("mode"), blob: sides("blob")))
    }
    return lines
  }

  private static func line(
    _ kind: String, _ path: String, mode: (Substring, Substring), blob: (Substring, Substring)
  ) -> String {
    let sides = [mode, blob].map { $0 == $1 ? "" : "\($0) → \($1)" }
    return "\(kind) \(path): \(sides.joined(separator: ", "))"
  }

  // MARK: Files

  /// Mode and blob from `git ls-tree`; nil if the file does not exist.
  func gitsFile(_ path: String, at point: Point) throws -> String? {
    let line = try Self.git(["ls-tree", "-z", point.name, "--", path], in: repository)
    let words = line.split(separator: "\t").first?.split(separator: " ")
    return words.map { "\($0[0]) \($0[2])" }
  }

  /// The same from `get --as-of`.
  func file(_ path: String, at point: Point) throws -> String? {
    let partition = path.contains("/") ? String(path.prefix { $0 != "/" }) : "."
    let result = try Tool.run(
      Tool.path,
      [
        "-C", node, "get", "File", "partition=\(partition)", "path=\(path)", "--json", "--as-of",
        "@" + point.position,
      ], in: node)
    if result.status == 66 { return nil }
    #expect(result.status == 0, "\(result.errors)")
    let fields = try result.object().object("fields")
    return "\(fields.text("mode") ?? "-") \(fields.text("blob") ?? "-")"
  }
}
