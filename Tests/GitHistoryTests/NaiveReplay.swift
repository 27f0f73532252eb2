import Foundation
import Testing

/// Applies mutations to dictionaries as strictly as an import. A create must not find a row; all
/// other operations must.
struct NaiveReplay {
  typealias Row = [String: String]
  /// Model → key as JSON text → fields.
  private(set) var tables: [String: [String: Row]] = [:]
  private(set) var operations: [String] = []

  init(_ lines: [UInt8]) throws {
    for line in lines.split(separator: 10) {
      let value = try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
      try apply(value)
    }
  }

  func rows(_ model: String) -> [Row] { tables[model, default: [:]].values.map { $0 } }

  private mutating func apply(_ value: [String: Any]) throws {
    let operation = try #require(value["op"] as? String)
    let model = try #require(value["model"] as? String)
    let key = try #require(value["key"] as? [String: Any])
    let fields = value["fields"] as? [String: Any] ?? [:]
    let name = try text(key)
    let isPresent = tables[model]?[name] != nil
    operations.append("\(operation) \(model)")
    switch (operation, model) {
    case ("create", _), ("link", "FileAuthor"):
      #expect(!isPresent, "\(operation) \(model) \(name) is there")
      let given = operation == "create" ? row(fields) : [:]
      tables[model, default: [:]][name] = row(key).merging(given) { $1 }
      if model == "FileAuthor" {
        let file = try #require(fields["file"] as? [String: Any])
        #expect(tables["File"]?[try text(file)] != nil, "the file of \(name)")
      }
    case ("delete", _), ("unlink", "FileAuthor"):
      #expect(isPresent, "\(operation) \(model) \(name) is missing")
      tables[model]?[name] = nil
      if model == "File" {
        let path = row(key)["path"]
        #expect(!rows("FileAuthor").contains { $0["path"] == path }, "authors of \(name)")
      }
    case ("update", _):
      #expect(isPresent, "update \(model) \(name) is missing")
      for (field, value) in fields { tables[model]?[name]?[field] = value is NSNull ? nil : "\(value)" }
    case ("link", "Commit"):
      let parent = try #require(fields["parent"] as? [String: Any])
      #expect(tables["Commit"]?[try text(parent)] != nil, "the parent of \(name)")
      tables[model]?[name]?["parentSha"] = "\(parent["sha"] ?? "")"
    default: Issue.record("\(operation) \(model)")
    }
  }

  private func row(_ fields: [String: Any]) -> Row { fields.mapValues { "\($0)" } }

  private func text(_ key: [String: Any]) throws -> String {
    String(decoding: try JSONSerialization.data(withJSONObject: key, options: .sortedKeys), as: UTF8.self)
  }
}
