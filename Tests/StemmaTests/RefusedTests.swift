import Foundation
import Testing

/// What must not compile, tried with the compiler itself.
///
/// The files in Tests/Refused mark each line that has to be refused with a part of what is said there:
///
///     let kind = "a"  // refused: `kind` is the same in every row
@Suite("Declarations that are refused")
struct RefusedTests {
  private struct Complaint: Hashable {
    var file: String
    var line: Int
    var message: String
    /// Whether it is about what a macro wrote; one mistake can make several such.
    var isInExpansion = false
  }

  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Refused")

  @Test(
    "each marked line is refused with its message, and no other is",
    arguments: ["Keys", "Members", "References"])
  func refusals(_ name: String) throws {
    let file = Self.folder.appendingPathComponent("\(name).swift")
    let expected = try Self.marks(in: file)
    #expect(!expected.isEmpty)
    let found = try Self.complaints(about: file)
    for mark in expected {
      #expect(
        found.contains { $0.line == mark.line && $0.message.contains(mark.message) },
        "\(name).swift:\(mark.line) is not refused with \"\(mark.message)\"")
    }
    for complaint in found
    where !complaint.isInExpansion && !expected.contains(where: { $0.line == complaint.line }) {
      Issue.record("\(name).swift:\(complaint.line) is refused: \(complaint.message)")
    }
  }

  private static func marks(in file: URL) throws -> [Complaint] {
    let lines = try String(contentsOf: file, encoding: .utf8).split(
      separator: "\n", omittingEmptySubsequences: false)
    return lines.enumerated().compactMap { index, line in
      guard let mark = line.range(of: "// refused: ") else { return nil }
      return Complaint(file: file.path, line: index + 1, message: String(line[mark.upperBound...]))
    }
  }

  /// The errors of the compiler, those in expansions at the line of the attribute that expanded.
  private static func complaints(about file: URL) throws -> [Complaint] {
    let products = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    let root = folder.deletingLastPathComponent().deletingLastPathComponent()
    let compiler = Process()
    compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    compiler.arguments =
      [
        "swiftc", "-typecheck", "-swift-version", "6", "-diagnostic-style", "llvm", "-no-color-diagnostics",
        "-I", modules(products).path,
        "-load-plugin-executable",
        products.appendingPathComponent("StemmaMacros-tool").path + "#StemmaMacros",
      ] + moduleMaps(root, products).flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] } + [file.path]
    let output = Pipe()
    compiler.standardError = output
    try compiler.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    compiler.waitUntilExit()
    #expect(compiler.terminationStatus != 0, "everything compiles")
    return read(text, file)
  }

  /// Where the modules are that these tests were built with. A test bundle that uses macros is built for the machine that
  /// runs them, beside the products.
  private static func modules(_ products: URL) -> URL {
    let own = products.appendingPathComponent("Modules-tool")
    let hasOwn = FileManager.default.fileExists(atPath: own.appendingPathComponent("Stemma.swiftmodule").path)
    return hasOwn ? own : products.appendingPathComponent("Modules")
  }

  private static func moduleMaps(_ root: URL, _ products: URL) -> [String] {
    let checkouts = products.resolvingSymlinksInPath().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("checkouts")
    return [
      products.appendingPathComponent("CStemma-tool.build/module.modulemap"),
      root.appendingPathComponent("Sources/CZlib/module.modulemap"),
      checkouts.appendingPathComponent("GRDB.swift/Sources/GRDBSQLite/module.modulemap"),
    ].map(\.path).filter(FileManager.default.fileExists)
  }

  private static func read(_ text: String, _ file: URL) -> [Complaint] {
    var found: [Complaint] = []
    /// An error in an expansion, until the note that says where that stands.
    var inside: String?
    for line in text.split(separator: "\n") {
      guard let match = line.firstMatch(of: /^(.*?):(\d+):\d+: (error|note): (.*)$/) else { continue }
      let (path, number, kind, message) = (match.1, Int(match.2) ?? 0, match.3, String(match.4))
      if kind == "error" {
        if path.hasSuffix(file.lastPathComponent) {
          found.append(Complaint(file: file.path, line: number, message: message))
          inside = nil
        } else {
          inside = message
        }
      } else if let error = inside, path.hasSuffix(file.lastPathComponent), message.contains("expan") {
        found.append(Complaint(file: file.path, line: number, message: error, isInExpansion: true))
        inside = nil
      }
    }
    return found
  }
}
