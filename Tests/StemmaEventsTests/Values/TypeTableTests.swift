import Foundation
import StemmaEvents
import StemmaSchema
import Testing

/// Reads the table of types in docs/SCHEMA.md. Its rows are the arguments of the test.
struct TypeRow: CustomTestStringConvertible, Sendable {
  var type: String
  var column: String
  var read: String
  var written: String

  var testDescription: String { type }

  static let all: [TypeRow] = {
    let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../../docs/SCHEMA.md").path
    let text = FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let table = lines.drop { !$0.hasPrefix("| SDL") }.prefix { $0.hasPrefix("|") }
    return table.dropFirst(2).map { line in
      let cells = line.split(separator: "|").map {
        $0.trimmingCharacters(in: .whitespaces).trimmingCharacters(in: ["`"])
      }
      return TypeRow(type: cells[0], column: cells[2], read: cells[3], written: cells[4])
    }
  }()
}

@Suite struct TypeTableTests {
  @Test func everyTypeHasARow() {
    let others = ["an enum", "an embedded type", "[T]", "[T!]", "[T]!", "[T!]!"]
    #expect(TypeRow.all.map(\.type) == Scalar.allCases.map(\.rawValue) + others)
  }

  @Test(arguments: TypeRow.all)
  func theExampleRoundTrips(row: TypeRow) throws {
    let sdl =
      ["an enum": "Colour", "an embedded type": "Place"][row.type]
      ?? row.type.replacing("T", with: row.type.hasPrefix("[") ? "Int" : "T")
    let (schema, field) = try fixture(sdl)
    #expect(SDL.typeText(field.type) + (field.isRequired ? "!" : "") == sdl)
    let value = try schema.value(JSON.parse(row.read), for: field, of: "A")
    #expect(value.json.text == row.written)
    var bytes: [UInt8] = []
    value.appendJSON(to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == row.written)
    #expect(try schema.value(JSON.parse(row.written), for: field, of: "A") == value)
    switch value {
    case .string, .json: #expect(row.column == "TEXT")
    case .int: #expect(row.column == "INTEGER")
    case .double: #expect(row.column == "REAL")
    case .bool: #expect(row.column == "INTEGER 0, 1")
    case .null: Issue.record("the example is null")
    }
    // Lists and embedded values are JSON text; all other values are not.
    if case .json = value { #expect(field.type.scalar == nil) } else { #expect(!field.type.isList) }
  }

  @Test func nullRoundTrips() throws {
    for row in TypeRow.all where !row.type.hasSuffix("!") && !row.type.hasPrefix("an ") {
      let (schema, field) = try fixture(row.type.hasPrefix("[") ? "[Int]" : row.type)
      #expect(try schema.value(.null, for: field, of: "A") == .null)
    }
    #expect(Value.null.json == .null)
  }
}
