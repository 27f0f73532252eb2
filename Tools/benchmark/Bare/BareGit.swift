import Foundation
import Measuring

extension BareChanges {
  /// The mutations of the data set git-grdb as statements, written by hand for its four tables: a link of a commit
  /// sets its parent's column, links and unlinks of FileAuthor make and remove rows.
  init(git lines: [UInt8]) throws {
    self.init()
    let tables = ["Author": "authors", "Commit": "commits", "File": "files", "FileAuthor": "fileAuthors"]
    let keys = [
      "Author": ["id"], "Commit": ["repo", "sha"], "File": ["partition", "path"],
      "FileAuthor": ["partition", "path", "authorId"],
    ]
    for line in lines.split(separator: UInt8(ascii: "\n")) {
      guard let members = try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any],
        let model = members["model"] as? String, let operation = members["op"] as? String,
        let table = tables[model], let names = keys[model], let key = members["key"] as? [String: Any]
      else { throw BenchError("a line of git-grdb is not as expected") }
      let fields = members["fields"] as? [String: Any] ?? [:]
      let keyValues = names.map { ($0, value(key[$0])) }
      switch (operation, model) {
      case ("link", "FileAuthor"): upsert(table, key: keyValues, fields: [])
      case ("delete", _), ("unlink", "FileAuthor"): delete(table, key: keyValues)
      case ("link", _):
        let parent = fields["parent"] as? [String: Any]
        upsert(table, key: keyValues, fields: [("parentSha", value(parent?["sha"]))])
      default:
        upsert(
          table, key: keyValues,
          fields: fields.sorted { $0.key < $1.key }.map { ($0.key, value($0.value)) })
      }
    }
  }

  /// Mutations of a file: creates, updates, upserts and deletes of plain fields. `table`: that of a model.
  init(lines: [UInt8], _ table: (String) -> BareSQLite.Table?) throws {
    self.init()
    for line in lines.split(separator: UInt8(ascii: "\n")) {
      guard let members = try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any],
        let model = members["model"] as? String, let layout = table(model),
        let key = members["key"] as? [String: Any]
      else {
        throw BenchError(
          "a line is no mutation of a model of the schema: \(String(decoding: line, as: UTF8.self))")
      }
      let keyValues = layout.key.map { ($0, value(key[$0])) }
      switch members["op"] as? String ?? "upsert" {
      case "create", "update", "upsert":
        let fields = members["fields"] as? [String: Any] ?? [:]
        upsert(
          layout.name, key: keyValues,
          fields: fields.sorted { $0.key < $1.key }.map { ($0.key, value($0.value)) })
      case "delete": delete(layout.name, key: keyValues)
      case let other: throw BenchError("the baseline of --data does not know the operation \(other)")
      }
    }
  }

  private mutating func value(_ json: Any?) -> BareValue {
    switch json {
    case let text as String: texts.text(text)
    case let number as NSNumber where String(cString: number.objCType) == "d": .double(number.doubleValue)
    case let number as NSNumber: .int(number.int64Value)
    default: .null
    }
  }
}
