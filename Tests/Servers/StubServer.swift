import Foundation

/// The server of `stub_server.py`.
package final class StubServer: Sendable {
  package let endpoint: String
  private let scratch: Scratch
  private let process: ServerProcess

  package static var isPossible: Bool {
    if Programs.installed("python3") == nil { print("skipped: python3 is not in the path") }
    return Programs.installed("python3") != nil
  }

  package init() throws {
    scratch = try Scratch()
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("stub_server.py").path
    guard let python = Programs.installed("python3") else {
      throw ServerError(description: "python3 is not in the path")
    }
    process = try ServerProcess(python, [script], in: scratch, readsLine: true)
    endpoint = "http://127.0.0.1:\(process.firstLine)"
    guard Int(process.firstLine) != nil else { throw ServerError(description: process.logText) }
  }
}
