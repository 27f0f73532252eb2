import StemmaEvents
import StemmaLog
import StemmaNode

/// Writes bundles.
package enum BundleWriter {
  /// Creates or replaces a file. The bundle is written beside it, synced and read again. Only then
  /// it gets its name. After an error no file has been changed.
  ///
  /// - Returns: the report, and the size of the file in bytes.
  package static func write(
    _ node: Node, to path: String, partitions: [String], for receiver: BundleReceiver
  ) throws(NodeError) -> (report: BundleReport, size: UInt64) {
    let files = node.ports.fileSystem
    let partial = path + ".partial"
    var isWritten = false
    defer {
      // An error of the removal would hide the reason.
      if !isWritten { do throws(LogError) { try files.remove(partial) } catch _ {} }
    }
    var size = UInt64(0)
    let report = try logged { () throws(LogError) in try files.open(partial, .openOrCreate) }
      .writing { (file) throws(NodeError) in
        try logged { () throws(LogError) in try file.truncate(to: 0) }
        let report = try messages(of: node, partitions, receiver) { (bytes) throws(NodeError) in
          try logged { () throws(LogError) in try file.write(bytes, at: size) }
          size += UInt64(bytes.count)
        }
        try logged { () throws(LogError) in try file.sync() }
        return report
      }
    var reader = try BundleReader(path: partial, node.ports)
    while try reader.next() != nil {}
    try logged { () throws(LogError) in
      try files.rename(partial, to: path)
      isWritten = true
      try files.syncDirectory(Log.parent(of: path))
    }
    return (report, size)
  }

  /// Writes to standard output or another descriptor.
  package static func write(
    _ node: Node, toDescriptor descriptor: Int32, partitions: [String], for receiver: BundleReceiver
  ) throws(NodeError) -> (report: BundleReport, size: UInt64) {
    let stream = ByteStream(input: descriptor, output: descriptor)
    var size = UInt64(0)
    let report = try messages(of: node, partitions, receiver) { (bytes) throws(NodeError) in
      do throws(ByteStream.Failure) { try stream.write(bytes) } catch {
        throw .log(.system(path: "standard output", operation: "write", errno: error.errno))
      }
      size += UInt64(bytes.count)
    }
    return (report, size)
  }

  private static func messages(
    of node: Node, _ partitions: [String], _ receiver: BundleReceiver,
    _ write: ([UInt8]) throws(NodeError) -> Void
  ) throws(NodeError) -> BundleReport {
    try write(Bundle.magic)
    return try BundleSource(node).write(partitions: partitions, for: receiver) {
      (message) throws(NodeError) in
      try write(MessageFraming.frame(message))
    }
  }

  private static func logged<Result>(_ body: () throws(LogError) -> Result) throws(NodeError) -> Result {
    do throws(LogError) { return try body() } catch { throw .log(error) }
  }
}

extension File {
  /// Closes the file after `body`.
  fileprivate func writing<Result>(
    _ body: (any File) throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    defer { close() }
    return try body(self)
  }
}
