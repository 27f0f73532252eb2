import StemmaEvents
import StemmaLog
import StemmaNode

/// The position of a change in its feed.
enum FeedPosition: Sendable {
  /// Changes of one source are ordered by their places. Places are compared part by part, as
  /// numbers or texts. Several changes can share a place.
  case place(source: String, [JSON])
  /// The sequence of CouchDB. Numbers are ordered, one for each change. A text has no reliable
  /// order, because CouchDB interleaves shards differently each time.
  case sequence(JSON)
}

/// The changes of a feed that are durable in the node.
struct FeedProgress: Sendable {
  /// The minimum number of sequence texts that are remembered.
  static let recentLimit = 16_384

  private(set) var places: [String: [JSON]] = [:]
  private(set) var since: JSON?
  /// In position order.
  private(set) var recent: [String] = []
  private var known: Set<String> = []

  init() {}

  /// Whether the change at this position was processed. A change at the last place may be a
  /// different one, so it is not covered.
  func covers(_ position: FeedPosition) -> Bool {
    switch position {
    case .place(let source, let place): places[source].flatMap { Self.isBefore(place, $0) } ?? false
    case .sequence(.int(let number)):
      if case .int(let reached)? = since { number <= reached } else { false }
    case .sequence(.string(let text)): known.contains(Self.digest(text))
    case .sequence: false
    }
  }

  mutating func note(_ position: FeedPosition) {
    switch position {
    case .place(let source, let place): places[source] = place
    case .sequence(let sequence):
      since = sequence
      if case .string(let text) = sequence { remember(Self.digest(text)) }
    }
  }

  private mutating func remember(_ digest: String) {
    guard known.insert(digest).inserted else { return }
    recent.append(digest)
    guard recent.count > 2 * Self.recentLimit else { return }
    for old in recent.prefix(Self.recentLimit) { known.remove(old) }
    recent.removeFirst(Self.recentLimit)
  }

  /// Nil for places of different forms, which have no order.
  private static func isBefore(_ a: [JSON], _ b: [JSON]) -> Bool? {
    guard a.count == b.count else { return nil }
    for pair in zip(a, b) where pair.0 != pair.1 {
      switch pair {
      case (.int(let x), .int(let y)): return x < y
      case (.string(let x), .string(let y)): return x.utf8.lexicographicallyPrecedes(y.utf8)
      default: return nil
      }
    }
    return false
  }

  /// The number of a sequence and a checksum of its text, which has hundreds of bytes.
  private static func digest(_ sequence: String) -> String {
    let bytes = Array(sequence.utf8)
    let number = sequence.prefix { $0 != "-" }
    return "\(number.prefix(20))-\(String(bytes.crc32c(0..<bytes.count), radix: 16))"
  }
}

extension FeedProgress {
  static func notice(_ covered: Int) -> String {
    "skipped \(counted(covered, "change")) before the offset"
  }

  /// The content of an offset file of a node.
  func json(of node: String) -> JSON {
    var members: [(name: String, value: JSON)] = [
      ("node", .string(node)),
      ("places", .object(places.sorted { $0.key < $1.key }.map { ($0.key, .array($0.value)) })),
    ]
    if let since { members.append(("since", since)) }
    if !recent.isEmpty { members.append(("recent", .array(recent.map { .string($0) }))) }
    return .object(members)
  }

  /// Returns nil if the value does not have the shape that `json` writes.
  init?(_ json: JSON) {
    guard case .object(let members)? = json["places"] else { return nil }
    for (source, place) in members {
      guard case .array(let parts) = place else { return nil }
      places[source] = parts
    }
    since = json["since"]
    guard let recent = json["recent"] else { return }
    guard case .array(let digests) = recent else { return nil }
    for case .string(let digest) in digests { remember(digest) }
  }
}

/// The file that records an import's progress in a feed. It is written after each commit, before
/// the next one. After a crash between the two, the changes of that commit are applied again.
package final class FeedOffset {
  private static let sizeLimit = 16 << 20

  private let path: String
  private let node: Node
  private(set) var progress = FeedProgress()

  /// Reads the file, if there is one.
  package init(_ path: String, for node: Node) throws(NodeError) {
    self.path = path
    self.node = node
    let bytes: [UInt8]
    do throws(LogError) { bytes = try node.ports.contents(of: path, limit: Self.sizeLimit) } catch {
      if error.isNotFound { return }
      throw .log(error)
    }
    let json: JSON
    do { json = try JSON.parse(bytes) } catch { json = .null }
    guard let progress = FeedProgress(json), case .string(let name)? = json["node"] else {
      throw .malformedInput(
        source: path, what: "\(path): not an offset file. Name another file, or remove this one.")
    }
    guard name == node.metadata.logID.description else {
      throw .malformedInput(
        source: path, what: "\(path): the offset file belongs to another node. Name another file.")
    }
    self.progress = progress
  }

  /// Adds positions whose changes are durable, and writes the file.
  func note(_ positions: [FeedPosition]) throws(NodeError) {
    guard !positions.isEmpty else { return }
    for position in positions { progress.note(position) }
    let text = progress.json(of: node.metadata.logID.description).text
    do throws(LogError) {
      try node.ports.replace(path, with: Array(text.utf8) + [10], in: Log.parent(of: path))
    } catch { throw .log(error) }
  }
}
