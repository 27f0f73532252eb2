import Foundation
import StemmaEvents
import StemmaLog
import StemmaHistory
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

/// A clock that shows a fixed time until a test sets it.
final class FixedClock: Clock {
  /// 2023-11-14T22:13:20Z.
  static let start: UInt64 = 1_700_000_000_000
  private let now = Mutex(FixedClock.start)
  func milliseconds() -> UInt64 { now.withLock { $0 } }
  func set(_ milliseconds: UInt64) { now.withLock { $0 = milliseconds } }
}

final class SeededRandom: RandomSource {
  private let generator: Mutex<SplitMix64>
  init(seed: UInt64) { generator = Mutex(SplitMix64(seed: seed)) }
  func next() -> UInt64 { generator.withLock { $0.next() } }
}

/// A folder of nodes with reproducible ids and times. It is removed when the test ends.
final class Bench {
  let folder: String
  let clock = FixedClock()
  private var options = Node.OpeningOptions(mode: .write)

  init(seed: UInt64 = 1, segmentSize: Int? = nil) throws {
    let parent = NSTemporaryDirectory()
    folder = (parent.hasSuffix("/") ? parent : parent + "/") + "stemma-node-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    options.ports = Ports(clock: clock, random: SeededRandom(seed: seed))
    options.segmentSize = segmentSize
    options.wait = 0.05
  }

  deinit {
    do { try FileManager.default.removeItem(atPath: folder) } catch { Issue.record(error) }
  }

  func path(_ name: String) -> String { folder + "/" + name }

  func node(
    _ name: String, _ schema: String, scope: [String] = ["*"],
    on fileSystem: any FileSystem = POSIXFileSystem()
  ) throws -> Node {
    var options = options
    options.ports.fileSystem = fileSystem
    return try Node.create(
      at: path(name), schema: schema, name: name, scope: try Scope(patterns: scope), options: options)
  }

  func open(
    _ name: String, _ mode: Node.Mode = .write, leavesFiles: Bool = false,
    on fileSystem: any FileSystem = POSIXFileSystem()
  ) throws -> Node {
    var options = options
    options.mode = mode
    options.leavesFiles = leavesFiles
    options.ports.fileSystem = fileSystem
    return try Node.open(at: path(name), options)
  }

  /// Seals a node's journal, whatever its size.
  func seal(_ name: String) throws {
    var options = options
    options.segmentSize = 1
    try Node.open(at: path(name), options).sealIfWanted()
  }

  /// The log of a node.
  func log(_ name: String) throws -> Log {
    try Log.open(
      in: path(name + "/log"), id: try open(name, .read, leavesFiles: true).metadata.logID,
      fileSystem: POSIXFileSystem(), options: Log.Options(mode: .readWrite))
  }

  /// Appends unmodified events to the log of a node.
  func append(_ events: [Event], to name: String) throws {
    let log = try log(name)
    try log.append(events.map { Commit([$0]) })
    try log.sync()
  }

  func copy(_ name: String, to other: String) throws {
    try FileManager.default.copyItem(atPath: path(name), toPath: path(other))
  }

  func replace(_ name: String, with other: String) throws {
    if FileManager.default.fileExists(atPath: path(name)) {
      try FileManager.default.removeItem(atPath: path(name))
    }
    try copy(other, to: name)
  }

  /// Restores the files of a node in place, like a virtual machine that is set back. No file
  /// reveals it.
  func setBack(_ name: String, to before: [String: Data]) throws {
    for file in try contents(name).keys where before[file] == nil || file.hasPrefix("tables.sqlite") {
      try FileManager.default.removeItem(atPath: path(name + "/" + file))
    }
    // The tables are a cache. Without them, only the log determines the state of the node.
    for (file, bytes) in before where !file.hasPrefix("tables.sqlite") {
      let path = path(name + "/" + file)
      guard FileManager.default.fileExists(atPath: path) else {
        try bytes.write(to: URL(fileURLWithPath: path))
        continue
      }
      let handle = try #require(FileHandle(forWritingAtPath: path))
      try handle.truncate(atOffset: 0)
      try handle.write(contentsOf: bytes)
      try handle.close()
    }
  }

  /// Names and contents of all files of a node.
  func contents(_ name: String) throws -> [String: Data] {
    var files: [String: Data] = [:]
    for file in try FileManager.default.subpathsOfDirectory(atPath: path(name)) {
      var isDirectory: ObjCBool = false
      let whole = path(name) + "/" + file
      guard FileManager.default.fileExists(atPath: whole, isDirectory: &isDirectory), !isDirectory.boolValue
      else { continue }
      files[file] = try Data(contentsOf: URL(fileURLWithPath: whole))
    }
    return files
  }
}

func mutation(_ line: String) throws -> Mutation {
  try Array(line.utf8).withUnsafeBytes { try Mutation(line: $0) }
}

extension Node {
  /// Makes one commit of these lines and returns its events.
  @discardableResult
  func commit(_ lines: String...) throws -> [String] {
    let mutations = try lines.map(mutation)
    return try write { transaction throws(NodeError) in
      for mutation in mutations { try transaction.perform(mutation) }
      return transaction.events
    }.map(text)
  }

  /// The unmodified events of one line.
  func rawEvents(_ line: String) throws -> [Event] {
    let mutation = try mutation(line)
    return try write { transaction throws(NodeError) in
      try transaction.perform(mutation)
      return transaction.events
    }
  }

  /// The name of the error that refuses a line, empty if it is accepted.
  func refusal(_ line: String, ifRevision: String? = nil) throws -> String {
    let mutation = try mutation(line)
    do throws(NodeError) {
      try write { transaction throws(NodeError) in
        _ = try transaction.perform(mutation, ifRevision: ifRevision)
      }
      return ""
    } catch {
      guard case .mutation(let error) = error else { return caseName(error) }
      return caseName(error)
    }
  }

  func text(_ event: Event) -> String {
    let fields = event.assignments.isEmpty ? "" : " " + description.fields(event).text
    return "\(event.operation.name) \(event.model) \(description.keyText(event))\(fields)"
  }

  /// All events, oldest first.
  var history: [String] {
    get throws {
      var texts: [String] = []
      try forEachEvent(LogFilter(), newestFirst: false) { stored, _ in
        texts.append(text(stored.event))
        return true
      }
      return texts
    }
  }

  /// The fields of a row, nil if there is none.
  func fields(_ modelName: String, _ json: String) throws -> String? {
    let model = try #require(schema.model(named: modelName))
    return try row(model, try key(try JSON.parse(json), of: model), including: [])?["fields"]?.text
  }

  func revision(_ modelName: String, _ json: String) throws -> String? {
    let model = try #require(schema.model(named: modelName))
    return try state(of: try key(try JSON.parse(json), of: model), in: model)?.revision
  }

  var conflictTexts: [String] {
    get throws {
      var texts: [String] = []
      try conflicts() { conflict in
        texts.append(
          "\(conflict.kind) \(conflict.model) \(conflict.keyText) \(conflict.field ?? "-"): "
            + conflict.candidates.map(\.value.text).joined(separator: ", "))
      }
      return texts
    }
  }

  @discardableResult
  func sync(_ other: Node) throws -> ExchangeReport {
    try exchange(
      with: RemotePeer(name: other.metadata.name, address: other.directory), pulls: true, pushes: true,
      partitions: [], progress: { _, _ in })
  }

  var digestTexts: [String] {
    get throws { try digests().map { "\($0.partition) \($0.events) \($0.log) \($0.tables ?? "")" } }
  }
}

/// The name of an enum's case without associated values.
func caseName(_ value: some Error) -> String { String(String(describing: value).prefix { $0 != "(" }) }
