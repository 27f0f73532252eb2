import Foundation
import Measuring
import StemmaEvents
import StemmaLog
import StemmaImport
import StemmaNode

/// Nodes that the subjects share.
extension Bench {
  /// A file with lines of the workload for one node to import.
  func lines(_ count: Int) throws -> String {
    try shared("lines-\(count)") {
      let path = path("lines-\(count).ndjson")
      var workload = Workload(total: count)
      try workload.write(to: path)
      return path
    }
  }

  /// A new, empty node.
  func emptyNode(_ name: String, schema: String = Workload.schema) throws -> Node {
    try Node.create(at: try fresh(name), schema: schema, name: name)
  }

  /// A node with `count` events of the workload. Another node wrote 5 % of them concurrently; they
  /// were pulled. The log is sealed.
  func node(_ count: Int) throws -> String {
    try shared("node-\(count)") {
      say("making a node of \(count) events")
      let concurrent = count / 20
      let lines = try lines(count - concurrent)
      let half = (count - concurrent) / 2
      let first = try fresh("half.ndjson")
      let second = try fresh("rest.ndjson")
      let records = try split(lines, at: half, first, second)
      let directory = try fresh("node-\(count)")
      let node = try Node.create(at: directory, schema: Workload.schema, name: "node")
      try add(first, to: node)
      _ = try Node.clone(from: directory, to: try fresh("other"), partitions: [], name: "other") { _, _ in }
      var workload = Workload(changing: records, total: concurrent, seed: 2)
      let theirs = try fresh("other.ndjson")
      try workload.write(to: theirs)
      let other = try Node.open(at: path("other"), .init(mode: .write))
      try add(theirs, to: other)
      try add(second, to: node)
      _ = try node.exchange(
        with: RemotePeer(name: "other", address: path("other")), pulls: true, pushes: false, partitions: []
      ) { _, _ in }
      try seal(directory)
      for name in ["half.ndjson", "rest.ndjson", "other.ndjson", "other"] { _ = try fresh(name) }
      return directory
    }
  }

  /// Seals the journal into segments.
  func seal(_ directory: String) throws {
    var options = Node.OpeningOptions(mode: .write)
    options.segmentSize = 1
    try Node.open(at: directory, options).sealIfWanted()
  }

  private func add(_ lines: String, to node: Node) throws {
    _ = try Import(into: node, options: .init()).run(path: lines)
  }

  /// Writes the first `count` lines to one file and the others to another. Returns the number of
  /// creates in the first.
  private func split(_ lines: String, at count: Int, _ first: String, _ second: String) throws -> Int {
    let bytes = try BareFiles.contents(lines)
    var seen = 0
    var creates = 0
    var place = 0
    while seen < count, let end = bytes[place...].firstIndex(of: UInt8(ascii: "\n")) {
      if bytes[place + 7] == UInt8(ascii: "c") { creates += 1 }
      seen += 1
      place = end + 1
    }
    try Data(bytes[..<place]).write(to: URL(fileURLWithPath: first))
    try Data(bytes[place...]).write(to: URL(fileURLWithPath: second))
    return creates
  }

  /// The log of a node, for reading.
  func log(of directory: String) throws -> Log {
    let node = try Node.open(at: directory, .init(mode: .read))
    return try Log.open(
      in: directory + "/log", id: node.metadata.logID, fileSystem: POSIXFileSystem(),
      options: Log.Options(mode: .readOnly))
  }

  /// Bytes of all files of a log.
  func logBytes(_ directory: String) throws -> Int {
    try BareFiles.list(directory + "/log").filter { $0.hasSuffix(".segment") || $0.hasSuffix(".journal") }
      .reduce(0) { try $0 + BareFiles.size($1) }
  }
}
