import Foundation

/// A command that runs until it is ended, and its output.
final class Following {
  private let process = Process()
  private let output = Pipe()
  private var text = ""

  init(_ arguments: [String], in work: Workplace) throws {
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: work.path)
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.begin()
  }

  // The parent of the test process may have blocked the gentler signals, and children inherit the
  // mask.
  deinit { process.signal(SIGKILL) }

  /// Waits until the command ends by itself, and returns its exit status.
  func end() -> Int32 {
    process.waitUntilExit()
    return process.terminationStatus
  }

  /// All lines so far, once there are `count` lines or the command has ended.
  func lines(_ count: Int) -> [String] {
    while text.count(where: { $0 == "\n" }) < count {
      let data = output.fileHandleForReading.availableData
      if data.isEmpty { break }
      text += String(decoding: data, as: UTF8.self)
    }
    return text.split(separator: "\n").map(String.init)
  }
}
