import Foundation
import StemmaNode
import Testing

@Suite struct ErrorCodeTests {
  @Test("docs/ERRORS.md has each code once")
  func page() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let page = try String(contentsOf: root.appendingPathComponent("docs/ERRORS.md"), encoding: .utf8)
    let listed = page.matches(of: /(?m)^\| `(\w+)` \| (\d+) \| .+ \| .+ \|$/).map { String($0.1) }
    #expect(listed == ErrorCode.allCases.map(\.rawValue))
    #expect(ErrorCode.allCases.count <= 60)
  }
}
