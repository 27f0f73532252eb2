import StemmaEvents
import StemmaLog
import StemmaReplication

/// The version vectors of remotes after the last successful exchange.
///
/// `peers/` has a file for each remote, named by the checksum of its address. `status` compares
/// with it if the peer is on another machine.
///
/// A file is a version vector in its canonical encoding, written atomically. A lost or corrupt file
/// costs only that comparison.
struct PeerVectors {
  private static let folderName = "peers"
  private static let limit = 1 << 30

  let directory: String
  let ports: Ports

  private var folder: String { directory + "/" + Self.folderName }

  private func path(of address: String) -> String {
    folder + "/" + String(CRC32C.of(Array(address.utf8)), radix: 16) + ".vector"
  }

  /// Nil if there is none that can be read.
  func vector(of address: String) throws(NodeError) -> VersionVector? {
    let bytes: [UInt8]
    do throws(LogError) { bytes = try ports.contents(of: path(of: address), limit: Self.limit) } catch {
      if error.isNotFound { return nil }
      throw .log(error)
    }
    do throws(ReplicationError) { return try VersionVector(decoding: bytes) } catch { return nil }
  }

  func save(_ vector: VersionVector, of address: String) throws(NodeError) {
    do throws(LogError) {
      if try !ports.fileSystem.list(directory).contains(Self.folderName) {
        try ports.fileSystem.createDirectory(folder)
      }
      try ports.replace(path(of: address), with: vector.encoded, in: folder)
    } catch { throw .log(error) }
  }
}
