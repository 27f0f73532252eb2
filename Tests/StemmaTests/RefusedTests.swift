import Foundation
import Testing

/// Code that must not compile, checked with the compiler itself.
///
/// The files in Tests/Refused mark each line that must be refused with a part of the error message:
///
///     let kind = "a"  // refused: `kind` is the same in every row
///
/// A second message after ` | ` is an unavoidable error of the compiler itself.
@Suite("Declarations that are refused")
struct RefusedTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Refused")

  @Test(
    "each marked line is refused with its message, and nothing else is said anywhere",
    arguments: ["Attributes", "Keys", "Members", "Public", "References", "Statements", "Types"])
  func refusals(_ name: String) throws {
    let file = Self.folder.appendingPathComponent("\(name).swift")
    let expected = try Self.marks(in: file)
    #expect(!expected.isEmpty)
    let found = try Compiler.complaints(about: file)
    for mark in expected {
      #expect(
        found.contains { $0.line == mark.line && $0.message.contains(mark.message) },
        "\(name).swift:\(mark.line) is not refused with \"\(mark.message)\"")
    }
    for complaint in found
    where !expected.contains(where: { $0.line == complaint.line && complaint.message.contains($0.message) }) {
      Issue.record("\(name).swift:\(complaint.line) is refused: \(complaint.message)")
    }
  }

  /// The marks at the ends of lines. ` | ` separates several messages.
  private static func marks(in file: URL) throws -> [Compiler.Complaint] {
    let lines = try String(contentsOf: file, encoding: .utf8).split(
      separator: "\n", omittingEmptySubsequences: false)
    return lines.enumerated().flatMap { index, line -> [Compiler.Complaint] in
      guard let mark = line.range(of: "// refused: ") else { return [] }
      return line[mark.upperBound...].split(separator: " | ").map {
        Compiler.Complaint(line: index + 1, message: String($0))
      }
    }
  }
}
