import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication

/// A node's memory of a hub: `hubs/<hub id>/journal` in its directory, and a lock, because several
/// processes may use the node.
///
/// The file is a sequence of records (`HubRecord`), each after its length in 4 bytes. An unfinished
/// record at its end is overwritten. A lost file costs requests only.
final class HubFile: HubJournal {
  private static let limit = 1 << 30
  private static let folderName = "hubs"

  private let ports: Ports
  private let path: String
  /// Nil: the node is open for reading, and nothing is written.
  private let lock: WriterLock?
  private var end: UInt64 = 0

  init(_ node: Node, _ hub: LogID) throws(NodeError) {
    ports = node.ports
    let folder = node.directory + "/" + Self.folderName
    path = "\(folder)/\(hub)/journal"
    guard node.options.mode == .write else {
      lock = nil
      return
    }
    do throws(LogError) {
      if try !ports.fileSystem.list(node.directory).contains(Self.folderName) {
        try ports.fileSystem.createDirectory(folder)
      }
      if try !ports.fileSystem.list(folder).contains(hub.description) {
        try ports.fileSystem.createDirectory("\(folder)/\(hub)")
      }
      lock = try WriterLock(
        "\(folder)/\(hub)/lock", fileSystem: ports.fileSystem, wait: UInt32(node.options.wait * 1000))
    } catch { throw .log(error) }
  }

  func release() { lock?.release() }

  func load() throws(ReplicationError) -> [HubRecord] {
    let bytes: [UInt8]
    do throws(LogError) { bytes = try ports.contents(of: path, limit: Self.limit) } catch {
      if error.isNotFound { return [] }
      throw .failed(error.description)
    }
    var records: [HubRecord] = []
    var offset = 0
    while bytes.count - offset > 4 {
      let length = bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
      guard length > 0, length <= bytes.count - offset - 4 else { break }
      do throws(ReplicationError) {
        records.append(try HubRecord(decoding: Array(bytes[(offset + 4)..<(offset + 4 + length)])))
      } catch { break }
      offset += 4 + length
    }
    end = UInt64(offset)
    return records
  }

  func append(_ records: [HubRecord]) throws(ReplicationError) {
    guard lock != nil else { return }
    var bytes: [UInt8] = []
    for record in records {
      let encoded = record.encoded
      bytes.appendFixed(UInt32(encoded.count))
      bytes += encoded
    }
    do throws(LogError) {
      let file = try ports.fileSystem.open(path, .openOrCreate)
      defer { file.close() }
      try file.truncate(to: end)
      try file.write(bytes, at: end)
      try file.sync()
      end += UInt64(bytes.count)
    } catch { throw .failed(error.description) }
  }

  func forget() throws(ReplicationError) {
    guard lock != nil else { return }
    end = 0
    try append([])
  }
}

/// Remembers nothing of a hub: for an overview, and for a clone that has no directory yet.
final class BriefJournal: HubJournal {
  func load() -> [HubRecord] { [] }
  func append(_ records: [HubRecord]) {}
  func forget() {}
}
