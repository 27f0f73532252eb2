import Crypto
import Foundation
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSync

/// `hub.json`: what the objects below a prefix are.
package struct HubDescription: Codable, Hashable, Sendable {
  package static let currentFormat = 1
  private static let limit = 64 << 10

  package var format = Self.currentFormat
  /// Sixteen hexadecimal digits.
  package var hub: String
  /// Whether objects are sealed with a key.
  package var isSealed: Bool
  /// Identifies the key of a sealed hub without revealing it.
  package var keyCheck: String?

  package var id: LogID? { UInt64(hub, radix: 16).map(LogID.init) }

  enum CodingKeys: String, CodingKey {
    case format
    case hub
    case isSealed = "sealed"
    case keyCheck
  }

  package init(id: LogID, key: SymmetricKey?) {
    hub = id.description
    isSealed = key != nil
    keyCheck = key.map { Self.check(of: $0, hub) }
  }

  private static func check(of key: SymmetricKey, _ hub: String) -> String {
    let derived = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: key, info: Array("stemma.hub.check".utf8), outputByteCount: 32)
    return Array(HMAC<SHA256>.authenticationCode(for: Array(hub.utf8), using: derived)).hexadecimal
  }

  /// Nil: there is no hub.
  package init?(of store: any ObjectStore, _ options: Hub.Options, key: SymmetricKey?) throws(NodeError) {
    let calls = HubCalls(store: store, options: options)
    let bytes: [UInt8]?
    do throws(HubError) {
      bytes = try calls.calling { () throws(ObjectError) in
        try store.get(HubLayout.description, 0..<UInt64(Self.limit))
      }
    } catch { throw NodeError(error) }
    guard let bytes else { return nil }
    do { self = try JSONDecoder().decode(Self.self, from: Data(bytes)) } catch {
      throw .notAPeer(path: store.name, reason: "its hub.json cannot be read")
    }
    guard format == Self.currentFormat else {
      throw .newerFormat(path: store.name + "/hub.json", found: format, supported: Self.currentFormat)
    }
    guard id != nil else { throw .notAPeer(path: store.name, reason: "its hub.json names no hub") }
    guard isSealed == (key != nil) else {
      throw .notAPeer(
        path: store.name,
        reason: isSealed
          ? "it is sealed; name the file of its key with --key-file"
          : "it is not sealed; leave --key-file out")
    }
    if let key, keyCheck != Self.check(of: key, hub) {
      throw .notAPeer(path: store.name, reason: "it is sealed with another key")
    }
  }

  /// Whether there is a hub, sealed or not.
  package static func isThere(at address: HubAddress) throws(NodeError) -> Bool {
    var address = address
    address.keyFile = nil
    let store = try address.open().store
    let calls = HubCalls(store: store, options: .ordinary())
    do throws(HubError) {
      return try calls.calling { () throws(ObjectError) in try store.get(HubLayout.description, 0..<1) }
        != nil
    } catch { throw NodeError(error) }
  }

  /// Makes a hub unless there is one.
  ///
  /// - Returns: whether it was made.
  package static func make(
    in store: any ObjectStore, _ options: Hub.Options, key: SymmetricKey?
  ) throws(NodeError) -> (HubDescription, isNew: Bool) {
    let calls = HubCalls(store: store, options: options)
    let description = HubDescription(id: options.makeLogID(), key: key)
    do {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys]
      let bytes = Array(try encoder.encode(description)) + [0x0a]
      _ = try calls.calling { () throws(ObjectError) in
        try store.put(HubLayout.description, bytes, ifAbsent: true)
      }
    } catch let error as HubError { throw NodeError(error) } catch { throw .unforeseen("\(error)") }
    // Another one may have made it at the same time.
    guard let found = try HubDescription(of: store, options, key: key) else {
      throw .notAPeer(path: store.name, reason: "it does not keep what is written")
    }
    return (found, found == description)
  }
}

/// `peers/…`: the record of a node in a hub.
package struct HubPeer: Codable, Hashable, Sendable {
  package var node: String
  /// Patterns.
  package var scope: [String]
  /// The last manifests that it has read, by log. It holds their events in its scope.
  package var read: [String: UInt64]
  /// Milliseconds since 1970.
  package var time: UInt64
}

extension NodeError {
  package init(_ error: HubError) {
    self =
      switch error {
      case .store(let name, .refused(let reason)):
        // Most reasons begin with the address of an object in the store.
        if reason.hasPrefix(name), let end = reason.dropFirst(name.count).firstRange(of: ": ") {
          .notAPeer(
            path: String(reason[..<end.lowerBound]), reason: Notice(String(reason[end.upperBound...])))
        } else {
          .notAPeer(path: name, reason: "\(reason)")
        }
      case .store(let name, .unknown(let reason)):
        .notAPeer(path: name, reason: "\(reason.withoutName(name))")
      case .content(let error): .replication(error)
      case .logInUse, .setBack: .replication(error.asReplicationError)
      }
  }
}

extension String {
  /// A reason of a store that begins with its name, which is shown in any case.
  func withoutName(_ name: String) -> String {
    hasPrefix(name + ": ") ? String(dropFirst(name.count + 2)) : self
  }
}
