import StemmaLog

/// The keys of a hub, under its prefix:
///
///     hub.json                       format version, hub id
///     objects/<digest>               a segment, named by its digest (SHA-256)
///     logs/<log id>/<16 digits>      manifest n of a log: what one append added (`HubManifest`)
///     heads/<log id>                 hint: the number of the last manifest; may be old or missing
///     peers/<log id>                 the record of the node that writes the log (`HubPeer`)
///
/// A log of a hub is written by one node. No two correct writers write the same key: objects are
/// named by their content, and a manifest is written only if there is none of its number.
///
/// Hints have a prefix of their own, so that one list shows which of a thousand logs have grown.
package enum HubLayout {
  package static let description = "hub.json"
  package static let heads = "heads/"
  package static let peers = "peers/"
  private static let manifestDigits = 16

  package static func object(_ digest: SegmentDigest) -> String { "objects/\(digest)" }

  package static func manifest(_ log: LogID, _ number: UInt64) -> String {
    let digits = String(number)
    return "logs/\(log)/" + String(repeating: "0", count: max(0, manifestDigits - digits.count)) + digits
  }

  package static func head(_ log: LogID) -> String { heads + log.description }
  package static func peer(_ log: LogID) -> String { peers + log.description }

  /// The log that a key of a hint or of a record names.
  package static func log(ofKey key: String, below prefix: String) -> LogID? {
    let name = key.dropFirst(prefix.count)
    guard key.hasPrefix(prefix), name.utf8.count == 16, let number = UInt64(name, radix: 16) else {
      return nil
    }
    let log = LogID(number)
    return log.description == name ? log : nil
  }
}

/// Every limit on data from a hub. Sizes in bytes.
package enum HubLimits {
  /// Longest manifest.
  package static let manifest = 256 << 20
  /// Objects of one manifest.
  package static let objects = 1 << 16
  /// Logs of a hub.
  package static let logs = 1 << 20
  /// Attempts at a call whose outcome is unknown.
  package static let attempts = 6
  /// Milliseconds after which no other attempt is made.
  package static let patience: UInt64 = 20_000
  /// Calls at once.
  package static let parallelCalls = 8
}

package enum HubError: Error, Hashable, Sendable {
  /// The store at this address failed.
  case store(String, ObjectError)
  /// The content of the hub cannot be used.
  case content(ReplicationError)
  /// Another writer has written to the log of this node: a copy of its directory. Nothing is lost.
  case logInUse(LogID)
  /// The hub lacks manifests that this node has read: it was restored from an older state.
  case setBack
}

extension HubError {
  package var asReplicationError: ReplicationError {
    switch self {
    case .store(let name, let error): .incomplete("\(name): \(error.reason)")
    case .content(let error): error
    case .logInUse(let log): .sameLog(log)
    case .setBack: .corrupt("the hub", "manifests do not follow each other")
    }
  }
}
