import Foundation
import Testing

/// Drives the `stemma` command like a user or a script.
struct Tool {
  struct Result {
    var status: Int32
    var output: String
    var errors: String

    var lines: [String] { output.split(separator: "\n").map(String.init) }

    /// The single JSON value of `--json`.
    func json<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
      try JSONDecoder().decode(type, from: Data(output.utf8))
    }

    /// The objects of `--ndjson`.
    func objects() throws -> [[String: Any]] {
      try lines.map { line in
        try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
      }
    }
  }

  /// `STEMMA_TOOL` names a build to test. The default is the one built with the tests.
  static let path: String = {
    if let named = ProcessInfo.processInfo.environment["STEMMA_TOOL"], !named.isEmpty { return named }
    return productsDirectory + "/stemma"
  }()

  static let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path

  /// The directory of this build's executables, if they were built: the test runner's own
  /// directory.
  static let productsDirectory: String = {
    var directory = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    while directory.path != "/" {
      if FileManager.default.isExecutableFile(atPath: directory.appendingPathComponent("stemma").path) {
        return directory.path
      }
      directory.deleteLastPathComponent()
    }
    return "."
  }()

  /// Runs any program to its end.
  static func run(
    _ program: String, _ arguments: [String], in directory: String, input: Data? = nil,
    environment: [String: String] = [:]
  ) throws -> Result {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    var variables = ProcessInfo.processInfo.environment
    variables["STEMMA_NODE"] = nil
    // The output must not depend on the login name.
    variables["STEMMA_AUTHOR"] = ""
    process.environment = variables.merging(environment) { $1 }
    // Files instead of pipes: they never fill up, and no thread has to read them.
    let scratch = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent(
      "stemma-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: scratch) }
    func file(_ name: String, _ data: Data) throws -> URL {
      let url = scratch.appendingPathComponent(name)
      try data.write(to: url)
      return url
    }
    let output = try file("output", Data())
    let errors = try file("errors", Data())
    process.standardInput = try FileHandle(forReadingFrom: try file("input", input ?? Data()))
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = try FileHandle(forWritingTo: errors)
    try process.begin()
    process.waitUntilExit()
    return Result(
      status: process.terminationStatus,
      output: String(decoding: try Data(contentsOf: output), as: UTF8.self),
      errors: String(decoding: try Data(contentsOf: errors), as: UTF8.self))
  }
}

extension Process {
  /// In seconds, far more than any program takes here.
  private static let limit = 600.0

  /// Starts the process and kills it after the limit, because a hanging process would block all
  /// tests.
  func begin() throws {
    try run()
    DispatchQueue.global().asyncAfter(deadline: .now() + Self.limit) { [weak self] in
      guard let self, isRunning else { return }
      print("killed after \(Self.limit) s: \(executableURL?.path ?? "") \(arguments ?? [])")
      signal(SIGKILL)
    }
  }

  /// Sends a signal, unless the process has ended: another process may have its number by then.
  func signal(_ signal: Int32) {
    if isRunning { kill(processIdentifier, signal) }
  }
}

/// A separate directory for one test, with the tool. It is removed when the test ends.
final class Workplace {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "/stemma-scenario-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Runs the tool in this directory. The caller checks the exit code.
  func attempt(
    _ arguments: String..., input: String? = nil, environment: [String: String] = [:]
  ) throws -> Tool.Result {
    try Tool.run(
      Tool.path, arguments, in: path, input: input.map { Data($0.utf8) }, environment: environment)
  }

  /// Runs the tool in this directory. Any status except 0 fails the test.
  @discardableResult
  func stemma(
    _ arguments: String..., input: String? = nil, environment: [String: String] = [:],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Tool.Result {
    let result = try Tool.run(
      Tool.path, arguments, in: path, input: input.map { Data($0.utf8) }, environment: environment)
    #expect(
      result.status == 0, "stemma \(arguments.joined(separator: " ")): \(result.errors)",
      sourceLocation: sourceLocation)
    return result
  }

  func write(_ name: String, _ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path + "/" + name))
  }

  func file(_ name: String) -> String { path + "/" + name }

  func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: file(name))) }
}

/// The folder of real data sets, and the scripts that compare with their oracles.
enum RealData {
  static let folder: String? = {
    guard let named = ProcessInfo.processInfo.environment["STEMMA_DATA"], !named.isEmpty else { return nil }
    return named
  }()

  static var isThere: Bool {
    if folder == nil { print("skipped: STEMMA_DATA does not name the folder of real data sets") }
    return folder != nil
  }

  static func path(_ name: String) -> String { (folder ?? "") + "/" + name }

  static let python: String? = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(
    separator: ":"
  )
  .map { $0 + "/python3" }.first { FileManager.default.isExecutableFile(atPath: $0) }

  static var hasPython: Bool {
    if python == nil { print("skipped: python3 is not in the path") }
    return python != nil
  }

  /// Compares a projection with a data set's oracle, using the data set's own script.
  static func check(
    _ name: String, _ arguments: [String], in workplace: Workplace,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let python = try #require(
      python, "python3 is needed to run the check scripts", sourceLocation: sourceLocation)
    let result = try Tool.run(
      python, [path("check/check.py"), path("\(name)/oracle.sqlite.gz")] + arguments, in: workplace.path)
    #expect(result.status == 0, "\(result.output)\(result.errors)", sourceLocation: sourceLocation)
  }

  /// The `--map` arguments of the check script: model → table.
  static func tables(_ name: String) -> [String] {
    let names: [String: String] =
      name == "chinook"
      ? [
        "Genre": "genres", "MediaType": "mediaTypes", "Artist": "artists", "Album": "albums",
        "Track": "tracks",
        "Playlist": "playlists", "PlaylistTrack": "playlistTracks", "Employee": "employees",
        "Customer": "customers", "Invoice": "invoices", "InvoiceLine": "invoiceLines",
      ] : ["Author": "authors", "Commit": "commits", "File": "files", "FileAuthor": "fileAuthors"]
    return names.sorted { $0.key < $1.key }.flatMap { ["--map", "\($0.key)=\($0.value)"] }
  }
}
