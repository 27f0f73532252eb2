import Foundation
import Testing

/// Runs the Swift compiler on sources that import the library as built for these tests.
enum Compiler {
  struct Complaint: Hashable {
    /// From 1; 0 if the compiler gives none.
    var line: Int
    var message: String
    /// Whether it concerns generated code. One mistake can cause several such errors.
    var isInExpansion = false

    /// The source line of the error, if there is one.
    func place<Line>(in lines: [Line]) -> Line? {
      lines.indices.contains(line - 1) ? lines[line - 1] : nil
    }
  }

  /// The errors of the compiler. Errors in expansions are assigned to the line of the attribute.
  static func complaints(about file: URL) throws -> [Complaint] {
    let products = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    let root = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../..").standardizedFileURL
    let compiler = Process()
    compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    compiler.arguments =
      [
        "swiftc", "-typecheck", "-swift-version", "6", "-diagnostic-style", "llvm", "-no-color-diagnostics",
        "-I", products.appendingPathComponent("Modules\(suffix(products))").path,
        "-load-plugin-executable",
        products.appendingPathComponent("StemmaMacros-tool").path + "#StemmaMacros",
      ] + moduleMaps(root, products).flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] } + [file.path]
    let output = Pipe()
    compiler.standardError = output
    try compiler.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    compiler.waitUntilExit()
    let source = try String(contentsOf: file, encoding: .utf8)
    let complaints = read(
      text, file, source.split(separator: "\n", omittingEmptySubsequences: false))
    #expect((compiler.terminationStatus == 0) == complaints.isEmpty, "\(text)")
    return complaints
  }

  /// The suffix of the module directories of this build. A test bundle with macro tests is built
  /// for the host, together with its dependencies, in separate directories.
  private static func suffix(_ products: URL) -> String {
    let own = products.appendingPathComponent("Modules-tool/Stemma.swiftmodule")
    return FileManager.default.fileExists(atPath: own.path) ? "-tool" : ""
  }

  private static func moduleMaps(_ root: URL, _ products: URL) -> [String] {
    let checkouts = products.resolvingSymlinksInPath().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("checkouts")
    return [
      products.appendingPathComponent("CStemma\(suffix(products)).build/module.modulemap"),
      root.appendingPathComponent("Sources/CZlib/module.modulemap"),
      checkouts.appendingPathComponent("GRDB.swift/Sources/GRDBSQLite/module.modulemap"),
    ].map(\.path).filter(FileManager.default.fileExists)
  }

  private static func read(_ text: String, _ file: URL, _ source: [Substring]) -> [Complaint] {
    var found: [Complaint] = []
    /// An error in an expansion, until a note gives its source line.
    var inside: String?
    for line in text.split(separator: "\n") {
      guard let match = line.firstMatch(of: /^(.*?):(\d+)(?::\d+)?: (error|note): (.*)$/) else { continue }
      let (path, number, kind, message) = (match.1, Int(match.2) ?? 0, match.3, String(match.4))
      if kind == "error" {
        if path.hasSuffix(file.lastPathComponent) {
          found.append(Complaint(line: number, message: message))
          inside = nil
        } else if path == "<unknown>" {
          // An error without a source file.
          found.append(Complaint(line: number, message: message))
          inside = nil
        } else {
          inside = message
        }
      } else if let error = inside, path.hasSuffix(file.lastPathComponent), message.contains("expan") {
        found.append(Complaint(line: number, message: error, isInExpansion: true))
        inside = nil
      } else if let error = inside, let property = message.firstMatch(of: /on property '(.*)' here/)?.1 {
        // For an attribute inside of generated code, the note names only the property, so the line
        // is searched for.
        let declaration = "var \(property):"
        let line = source.firstIndex { $0.contains(declaration) }.map { $0 + 1 }
        found.append(Complaint(line: line ?? 0, message: error, isInExpansion: true))
        inside = nil
      }
    }
    return found
  }
}
