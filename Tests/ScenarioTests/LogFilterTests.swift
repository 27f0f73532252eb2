import Foundation
import Testing

/// `log` with filters on a real history, compared with a search through all lines of `log
/// --ndjson`.
@Suite("filters of the log", .enabled(if: RealData.isThere))
struct LogFilterTests {
  /// One line of `log --ndjson`.
  private struct Line {
    var position = ""
    var op = ""
    var time = Date.distantPast
    var fields: Set<String> = []
    /// The texts that `--grep` searches: author, message, source, key parts and values.
    var texts: [String] = []

    init(_ object: [String: Any]) throws {
      position = object.text("position") ?? ""
      op = object.text("op") ?? ""
      let time = object.text("time") ?? ""
      let style = Date.ISO8601FormatStyle(includingFractionalSeconds: time.contains("."))
      self.time = try Date(time, strategy: style)
      fields = object.object("fields").members
      texts = ["author", "message", "source"].compactMap { object.text($0) }
      for value in Array(object.object("key").values) + Array(object.object("fields").values) {
        if value is NSNull { continue }
        texts.append(value as? String ?? "\(value)")
      }
    }
  }

  private static let zone = "T00:00:00Z"

  @Test("grep, field, op, since and until find what a search through all lines finds")
  func filtersFindWhatASearchFinds() throws {
    let node = try FixedNodes.folder.get() + "/git"
    func log(_ words: [String]) throws -> Tool.Result {
      let result = try Tool.run(Tool.path, ["-C", node, "log", "--reverse"] + words, in: node)
      #expect(result.status == 0, "\(words): \(result.errors)")
      return result
    }
    let lines = try log(["--ndjson"]).objects().map(Line.init)
    #expect(lines.count == 31_983)
    func day(_ text: String) throws -> Date { try Date(text + Self.zone, strategy: .iso8601) }
    let (begin, end) = (try day("2016-03-15"), try day("2017-08-15"))
    // `--until` a day, month or year includes all of it. A point in time is the exact end.
    let (afterBegin, afterEnd) = (begin + 86_400, end + 86_400)
    let (month, year) = (try day("2016-04-01"), try day("2017-01-01"))

    let filters: [([String], (Line) -> Bool)] = [
      (["--grep", "DatabasePool"], { line in line.texts.contains { $0.contains("DatabasePool") } }),
      (["--grep", "é"], { line in line.texts.contains { $0.contains("é") } }),
      // In a number, a source, an author, a key; and nowhere.
      (["--grep", "4711"], { line in line.texts.contains { $0.contains("4711") } }),
      (
        ["--grep", "mutations.ndjson.gz:20"],
        { line in line.texts.contains { $0.contains(":20") && $0.contains("gz") } }
      ),
      (["--grep", "gwendal"], { line in line.texts.contains { $0.contains("gwendal") } }),
      (
        ["--grep", "README.md", "--op", "delete"],
        { line in
          line.op == "delete" && line.texts.contains { $0.contains("README.md") }
        }
      ),
      (["--grep", "no such text"], { _ in false }),
      (["--field", "renamedFrom"], { $0.fields.contains("renamedFrom") }),
      (["--field", "size", "--model", "File"], { $0.fields.contains("size") }),
      (["--op", "link", "--op", "unlink"], { $0.op == "link" || $0.op == "unlink" }),
      (["--op", "delete"], { $0.op == "delete" }),
      (["--since", "2016-03-15", "--until", "2017-08-15"], { begin <= $0.time && $0.time < afterEnd }),
      (["--since", "2016-03-15", "--until", "2016-03-15"], { begin <= $0.time && $0.time < afterBegin }),
      (["--until", "2016-03"], { $0.time < month }), (["--until", "2016"], { $0.time < year }),
      (["--until", "2016-03-15T00:00:00Z"], { $0.time <= begin }),
      (["--since", "2017-08-15", "--op", "create"], { end <= $0.time && $0.op == "create" }),
      (
        ["--until", "2016-03-15", "--grep", "Carthage"],
        { line in
          line.time < afterBegin && line.texts.contains { $0.contains("Carthage") }
        }
      ),
      (
        ["--since", "@2100", "--until", "@3500", "--field", "mode"],
        { line in
          let isBetween = Int(line.position).map { (2100...3500).contains($0) } ?? false
          return isBetween && line.fields.contains("mode")
        }
      ),
    ]
    var found = 0
    for (words, isWanted) in filters {
      let positions = try log(words + ["--format", "{position}"]).lines
      let expected = lines.filter(isWanted).map { "@\($0.position)" }
      #expect(positions == expected, "\(words)")
      found += positions.isEmpty ? 0 : 1
    }
    #expect(found == filters.count - 1, "all but one find something")
  }
}
