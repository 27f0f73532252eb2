import Foundation
import StemmaLog
import StemmaNode

/// `credentials.json` of a node: how it reaches its peers, by address. Only its owner can read it.
package struct Credentials: Sendable {
  package static let fileName = "credentials.json"
  private static let limit = 1 << 20

  private var known: [String: HTTPOptions] = [:]

  /// - Throws: `.badMetadata` if the file cannot be decoded.
  package init(of directory: String, _ ports: Ports) throws(NodeError) {
    let path = directory + "/" + Self.fileName
    let bytes: [UInt8]
    do throws(LogError) { bytes = try ports.contents(of: path, limit: Self.limit) } catch {
      if error.isNotFound { return }
      throw .log(error)
    }
    do { known = try JSONDecoder().decode([String: HTTPOptions].self, from: Data(bytes)) } catch {
      throw .badMetadata(path: path, what: "it is not an object of tokens and authorities by address")
    }
  }

  /// - Parameter address: in the form that `stemma.json` keeps.
  package subscript(address: String) -> HTTPOptions {
    get { known[PeerAddress.stored(address)] ?? HTTPOptions() }
    set { known[PeerAddress.stored(address)] = newValue }
  }

  package func save(in directory: String) throws(NodeError) {
    let path = directory + "/" + Self.fileName
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try Node.wrapping {
      let bytes = try encoder.encode(known)
      let aside = path + ".partial"
      // Readable for its owner before it has content.
      guard
        FileManager.default.createFile(atPath: aside, contents: nil, attributes: [.posixPermissions: 0o600])
      else { throw NodeError.cannotRead(path: aside, errno: errno) }
      try bytes.write(to: URL(fileURLWithPath: aside))
      guard rename(aside, path) == 0 else { throw NodeError.cannotRead(path: path, errno: errno) }
    }
  }
}
