import StemmaEvents
import StemmaLog
import StemmaReplication

/// The scopes and version vectors of remotes after the last successful exchange.
///
/// `peers/` has a file for each remote, named by the checksum of its address. `status` compares
/// with it if the peer is on another machine.
///
/// A file is an encoded `holding` message, written atomically. A lost or corrupt file costs only
/// that comparison.
struct PeerVectors {
  private static let folderName = "peers"
  private static let limit = 1 << 30

  let directory: String
  let ports: Ports

  private var folder: String { directory + "/" + Self.folderName }

  private func path(of address: String) -> String {
    folder + "/" + String(CRC32C.of(Array(address.utf8)), radix: 16) + ".holding"
  }

  /// Nil if nothing is recorded that can be read.
  func holding(of address: String) throws(NodeError) -> TransferRequest? {
    let bytes: [UInt8]
    do throws(LogError) { bytes = try ports.contents(of: path(of: address), limit: Self.limit) } catch {
      if error.isNotFound { return nil }
      throw .log(error)
    }
    do throws(ReplicationError) {
      guard case .holding(let holding) = try SessionMessage(decoding: bytes) else { return nil }
      return holding
    } catch { return nil }
  }

  /// Records the result of an exchange. Other partitions keep their record.
  func record(_ report: ExchangeReport, of address: String) throws(NodeError) {
    var vector = report.peerVector
    if let known = try holding(of: address) {
      for (partition, streams) in known.versionVector.partitions
      where report.exchanged?.contains(partition) != true {
        for (origin, head) in streams where head.sequence > vector[partition, origin].sequence {
          vector[partition, origin] = head
        }
      }
    }
    let message = SessionMessage.holding(
      TransferRequest(scope: NarrowedScope(report.peerScope), versionVector: vector))
    do throws(LogError) {
      if try !ports.fileSystem.list(directory).contains(Self.folderName) {
        try ports.fileSystem.createDirectory(folder)
      }
      try ports.replace(path(of: address), with: message.encoded, in: folder)
    } catch { throw .log(error) }
  }
}
