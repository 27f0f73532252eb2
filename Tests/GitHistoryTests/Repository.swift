import Foundation
import Testing

/// A git repository in a temporary directory, made by the git of this machine.
final class Repository {
  let path: String
  private var time = 1_600_000_000

  /// `initialized`: false for a directory that other code fills.
  init(initialized: Bool = true) throws {
    let name = "git-history-\(ProcessInfo.processInfo.processIdentifier)-\(UInt64.random(in: 0 ... .max))"
    path = FileManager.default.temporaryDirectory.appending(path: name).path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    if initialized { try git("init", "-q", "-b", "main") }
  }

  deinit {
    do { try FileManager.default.removeItem(atPath: path) } catch { Issue.record("\(error)") }
  }

  @discardableResult
  func git(_ arguments: String..., author: String = "Ann <ann@example.org>") throws -> [UInt8] {
    let parts = author.split(separator: "<")
    let name = parts[0].trimmingCharacters(in: .whitespaces)
    let email = parts[1].dropLast()
    return try run(
      ["git", "-C", path, "-c", "protocol.file.allow=always"] + arguments,
      [
        "GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": String(email), "GIT_COMMITTER_NAME": "C",
        "GIT_COMMITTER_EMAIL": "c@example.org", "GIT_AUTHOR_DATE": "\(time) +0200",
        "GIT_COMMITTER_DATE": "\(time) +0200", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
      ])
  }

  func write(_ name: String, _ text: String) throws {
    let file = path + "/" + name
    let folder = String(file[..<(file.lastIndex(of: "/") ?? file.endIndex)])
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
  }

  func commit(_ subject: String, author: String = "Ann <ann@example.org>") throws {
    time += 100
    try git("add", "-A", author: author)
    try git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", subject, author: author)
  }
}

/// Runs a program to its end and returns its output. Throws if it fails.
@discardableResult
func run(_ arguments: [String], _ environment: [String: String] = [:], status expected: Int32 = 0) throws
  -> [UInt8]
{
  let process = Process()
  let output = Pipe()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments = arguments
  process.environment = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }
  process.standardOutput = output
  process.standardError = FileHandle.nullDevice
  try process.run()
  let data = try output.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  try #require(process.terminationStatus == expected, "\(arguments)")
  return Array(data)
}

/// The tool in the directory of `STEMMA_TOOL`. The default is the one built with the tests.
var tool: String {
  get throws {
    let named = ProcessInfo.processInfo.environment["STEMMA_TOOL"].flatMap { $0.isEmpty ? nil : $0 }
    let neighbour =
      try named.map { URL(fileURLWithPath: $0) } ?? #require(Bundle.main.executableURL)
    return neighbour.deletingLastPathComponent().appending(path: "git-history").path
  }
}
