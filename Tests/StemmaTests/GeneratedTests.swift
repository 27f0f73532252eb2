import Foundation
import Generated
import StemmaImport
import StemmaNode
import StemmaSchema
import Testing

@testable import Stemma

/// The structs in `Tests/Generated`, with nodes made by the tool.
///
///     stemma init node --schema Odd.graphql; stemma -C node schema generate --swift
@Suite("Generated structs, over the nodes whose schemas they were made of")
struct GeneratedTests {
  private static let data = ProcessInfo.processInfo.environment["STEMMA_DATA"]

  private static func declarations(_ name: String) -> URL {
    URL(fileURLWithPath: #filePath).appendingPathComponent("../../Generated/\(name)").standardizedFileURL
  }

  @Test(
    "every row of every model is read", .enabled(if: data != nil, "STEMMA_DATA is not set"),
    arguments: [
      ("Git", "git-grdb", "mutations", Models.git), ("Nodes", "nodes-grdb", "base", Models.nodes),
      ("Chinook", "chinook", "mutations", Models.chinook),
    ])
  func realRows(_ file: String, _ folder: String, _ lines: String, _ models: [any Table.Type]) async throws {
    let folder = try #require(Self.data) + "/\(folder)"
    let schema = try String(contentsOfFile: "\(folder)/schema.graphql", encoding: .utf8)
    try await withNode(schema, importing: "\(folder)/\(lines).ndjson.gz") { directory in
      try expectText(file, directory)
      let store = try await opened(directory, models)
      for model in models { try await expectRows(model, store, emptiness: false) }
    }
  }

  /// Covers ids that are not UUIDs, names with a meaning in Swift, a required `createdAt`, and
  /// embedded types.
  @Test(
    "names and types that Swift knows otherwise: the schema stays, and saving what was read records nothing")
  func oddRows() async throws {
    let schema = try String(contentsOf: Self.declarations("Odd.graphql"), encoding: .utf8)
    let lines = FileManager.default.temporaryDirectory.appendingPathComponent("odd-\(UUID()).ndjson")
    defer { do { try FileManager.default.removeItem(at: lines) } catch {} }
    try #"""
    {"op":"create","model":"UUID","key":{"id":"ada"},"fields":{"url":{"Date":"2024-02-29T01:02:03+01:00","self":"no","list":["a@b.org"],"nested":{"street":"S","mood":"IN_PROGRESS"},"when":"2024-01-01T00:00:00Z","at":17,"url":"https://example.org/","colors":["RED",null],"dates":[null,"2024-01-01T00:00:00Z"],"ids":["x"]},"urls":[{"when":"2024-01-01T00:00:00Z"}],"kind":"A","kinds":["a","inProgress"],"truth":true,"yes":"yes","me":"you"}}
    {"op":"create","model":"Related","key":{"id":"r"},"fields":{"date":"2024-01-01T01:02:03.004+02:00","self":"s","await":1,"init":2,"Type":"t","UUIDs":"u"}}
    {"op":"create","model":"Sendable","key":{"id":"s"},"fields":{"parentId":"r"}}
    {"op":"create","model":"Texts","key":{"text":"t","self":"s","Int":1,"Bool":"no"},"fields":{"in":true}}
    {"op":"create","model":"Stemma","key":{"ts":1435662990},"fields":{"at":-3}}
    {"op":"create","model":"Stamps","key":{"name":"n","ts":1,"dt":"2024-01-01T00:00:00+01:00","day":"2024-02-29","ok":false,"f":0.5,"u":"https://example.org/a?b","e":"RED"},"fields":{"refTs":1435662990}}
    {"op":"create","model":"Codable","key":{"id":"c"},"fields":{}}
    {"op":"create","model":"Hashable","key":{"id":"h"},"fields":{}}
    {"op":"create","model":"Draft","key":{"name":"d","id":"e"},"fields":{}}
    {"op":"create","model":"Words","key":{"id":"w"},"fields":{"as":1,"throws":2,"inout":3}}
    """#.write(to: lines, atomically: true, encoding: .utf8)
    try await withNode(schema, importing: lines.path) { directory in
      try expectText("Odd", directory)
      let witness = Witness(try await opened(directory, Models.odd))
      try await witness.expect {
        for model in Models.odd { try await expectRows(model, witness.store, emptiness: true) }
      } appends: {
        ""
      }
      try await witness.expect {
        for draft in Models.minted { try await insert(draft, witness.store) }
      } appends: {
        """
        create Any #1
        create Draft name=d id=#2
        """
      }
    }
  }

  // MARK: Nodes

  private func withNode(
    _ schema: String, importing lines: String, _ body: (URL) async throws -> Void
  ) async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("generated-\(UUID())")
    defer { do { try FileManager.default.removeItem(at: directory) } catch {} }
    do {
      let node = try Node.create(at: directory.path, schema: schema)
      _ = try Import(into: node, options: Import.Options()).run(path: lines)
    }
    try await body(directory)
  }

  /// The committed declarations equal the output of the tool.
  private func expectText(_ file: String, _ directory: URL) throws {
    let text = try String(contentsOf: Self.declarations("\(file).swift"), encoding: .utf8)
    #expect("// swift-format-ignore-file\n" + SwiftSource.text(of: try schema(directory)) == text)
  }

  private func schema(_ directory: URL) throws -> Schema {
    try Node.open(at: directory.path, Node.OpeningOptions(mode: .read)).schema
  }

  /// Opens a store without changing the schema.
  private func opened(_ directory: URL, _ models: [any Table.Type]) async throws -> Store {
    let before = SDL.print(try schema(directory))
    let store = try await Store(at: directory, models: models)
    #expect(SDL.print(try schema(directory)) == before)
    return store
  }

  private func expectRows<Row: Table>(_ type: Row.Type, _ store: Store, emptiness mayBeEmpty: Bool)
    async throws
  {
    let rows = try await Row.all.fetchAll(store)
    let count = try await Row.all.fetchCount(store)
    #expect(rows.count == count)
    #expect(mayBeEmpty || !rows.isEmpty, "\(Row.modelName)")
    if mayBeEmpty {
      for row in rows { try await store.update(row) }
    }
  }

  private func insert<Draft: TableDraft>(_ draft: Draft, _ store: Store) async throws {
    try await store.insert(draft)
  }
}
