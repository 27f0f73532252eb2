import Foundation
import Testing

/// What must not compile, tried with the compiler itself.
///
/// The files in Tests/Refused mark each line that has to be refused with a part of what is said there:
///
///     let kind = "a"  // refused: `kind` is the same in every row
///
/// A second message behind ` | ` is what the compiler says beside ours, where it cannot be helped.
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

  /// Behind each line; several messages stand with ` | ` between them.
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
