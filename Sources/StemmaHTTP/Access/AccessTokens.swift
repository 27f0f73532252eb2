import Crypto
import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication

/// `tokens.json` of a node: who may read and write which partitions through the server. It holds
/// the SHA-256 of each token, so that a copy of the file grants nothing.
package struct AccessTokens: Sendable, Equatable {
  package static let fileName = "tokens.json"
  private static let limit = 16 << 20

  package struct Entry: Codable, Sendable, Equatable {
    package var name: String
    /// 64 hexadecimal digits.
    package var sha256: String
    package var read: [String]
    package var write: [String]
    /// Milliseconds since 1970.
    package var created: UInt64
    package var expires: UInt64?
  }

  package private(set) var entries: [Entry] = []
  /// Whether the file exists. Without it, every caller may read and write everything. It stays when
  /// the last token is revoked.
  package private(set) var areRequired = false

  private static func path(in directory: String) -> String { directory + "/" + fileName }

  /// The tokens of a node; none without the file.
  package init(of directory: String, _ ports: Ports) throws(NodeError) {
    let path = Self.path(in: directory)
    let bytes: [UInt8]
    do throws(LogError) { bytes = try ports.contents(of: path, limit: Self.limit) } catch {
      if error.isNotFound { return }
      throw .log(error)
    }
    areRequired = true
    do { entries = try JSONDecoder().decode([Entry].self, from: Data(bytes)) } catch {
      throw .badMetadata(path: path, what: "it is not a list of tokens")
    }
  }

  package func save(in directory: String, _ ports: Ports) throws(NodeError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let bytes = try Node.wrapping { Array(try encoder.encode(entries)) + [UInt8(ascii: "\n")] }
    do throws(LogError) {
      try ports.replace(Self.path(in: directory), with: bytes, in: directory)
    } catch { throw .log(error) }
  }

  /// Adds a token and returns its secret, which is not stored.
  ///
  /// - Throws: `.malformedInput` if the name is taken, or a pattern is invalid.
  package mutating func create(
    _ name: String, read: [String], write: [String], expires: UInt64?, _ ports: Ports
  ) throws(NodeError) -> String {
    guard !entries.contains(where: { $0.name == name }) else {
      throw .malformedInput(source: Self.fileName, what: "there is a token named \(name); revoke it first")
    }
    for patterns in [read, write] { _ = try Node.scope(patterns) }
    let secret = Self.newSecret()
    entries.append(
      Entry(
        name: name, sha256: Self.digest(of: secret), read: read, write: write,
        created: ports.clock.milliseconds(), expires: expires))
    return secret
  }

  /// Returns false if there is no token of that name.
  package mutating func revoke(_ name: String) -> Bool {
    let before = entries.count
    entries.removeAll { $0.name == name }
    return entries.count < before
  }

  /// The grant of a secret; nil if it is unknown or expired. Compares with all entries, in constant
  /// time each.
  func grant(for secret: String, at time: UInt64) throws(NodeError) -> Grant? {
    let digest = Self.digest(of: secret)
    var found: Entry?
    for entry in entries where Self.isEqual(entry.sha256, digest) { found = entry }
    guard let found, found.expires.map({ time < $0 }) ?? true else { return nil }
    return Grant(
      name: found.name,
      rights: Rights(readable: try Node.scope(found.read), writable: try Node.scope(found.write)))
  }

  /// Compares texts of one length in constant time.
  static func isEqual(_ a: String, _ b: String) -> Bool {
    guard a.utf8.count == b.utf8.count else { return false }
    return zip(a.utf8, b.utf8).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }

  private static func digest(of secret: String) -> String {
    SHA256.hash(data: Array(secret.utf8)).hexadecimal
  }

  /// 256 random bits in the URL-safe form of base 64.
  package static func newSecret() -> String { "stm_" + random() }

  private static func random() -> String {
    let key = SymmetricKey(size: .bits256)
    let text = key.withUnsafeBytes { Data($0) }.base64EncodedString()
    return text.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}
