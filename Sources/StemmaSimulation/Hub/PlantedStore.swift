import StemmaEvents
import StemmaLog
import StemmaReplication

/// Bugs that the protocol of a hub could have; the trials must find each of them.
package enum PlantedHubBug: String, CaseIterable, Sendable {
  /// A write with an unknown outcome is reported as failed.
  case unknownIsFailure
  /// A busy store's 409 is taken for a 412: as if an earlier attempt had succeeded.
  case busyIsPresent
  /// Manifests beyond the hint are not looked for.
  case trustsHint
  /// A manifest is accepted without its predecessor.
  case acceptsHole
  /// After a failed append, its objects are removed.
  case deletesAfterFailure
}

/// The store as a node with a planted bug sees it.
package final class PlantedStore: ObjectStore {
  private struct State {
    /// The bytes for keys that the node takes for present.
    var assumed: [String: [UInt8]] = [:]
    /// Objects since the last manifest.
    var written: [String] = []
    /// The manifests that the node was shown, by their key, and the last one of each log.
    var shown: [String: [UInt8]] = [:]
    var lastShown: [String: (number: UInt64, digest: HubDigest)] = [:]
  }

  private let store: any ObjectStore
  private let bug: PlantedHubBug
  private let state = Mutex(State())

  package init(_ store: any ObjectStore, _ bug: PlantedHubBug) {
    self.store = store
    self.bug = bug
  }

  package var name: String { store.name }

  private static func isManifest(_ key: String) -> Bool { key.hasPrefix("logs/") }

  package func get(_ key: String, _ range: Range<UInt64>?) throws(ObjectError) -> [UInt8]? {
    if let assumed = state.withLock({ $0.assumed[key] }) { return assumed }
    guard Self.isManifest(key), range == nil else { return try store.get(key, range) }
    let parts = key.split(separator: "/")
    guard parts.count == 3, let number = UInt64(parts[2]) else { return try store.get(key, range) }
    let log = String(parts[1])
    switch bug {
    case .trustsHint:
      guard let hint = try store.get(HubLayout.heads + log, nil),
        let last = UInt64(String(decoding: hint.dropLast(), as: UTF8.self)), number <= last
      else { return nil }
      return try store.get(key, range)
    case .acceptsHole: return try getOverHoles(key, log, number)
    default: return try store.get(key, range)
    }
  }

  /// Shows the next manifest in the place of an absent one, as if the chain were not checked.
  private func getOverHoles(_ key: String, _ log: String, _ number: UInt64) throws(ObjectError) -> [UInt8]? {
    if let shown = state.withLock({ $0.shown[key] }) { return shown }
    var bytes = try store.get(key, nil)
    if bytes == nil {
      let next = HubLayout.manifest(LogID(UInt64(log, radix: 16) ?? 0), number + 1)
      bytes = try store.get(next, nil)
    }
    guard let bytes else { return nil }
    do throws(ReplicationError) {
      var manifest = try HubManifest(decoding: bytes)
      manifest.place.number = number
      let last = state.withLock { $0.lastShown[log] }
      if number > 1, let last, last.number == number - 1 { manifest.previous = last.digest }
      if number == 1 { manifest.previous = .none }
      let shown = manifest.encoded
      state.withLock { state in
        state.shown[key] = shown
        state.lastShown[log] = (number, HubDigest(of: shown))
      }
      return shown
    } catch { return bytes }
  }

  package func put(_ key: String, _ bytes: [UInt8], ifAbsent: Bool) throws(ObjectError) -> Bool {
    if key.hasPrefix("objects/") { state.withLock { $0.written.append(key) } }
    do throws(ObjectError) {
      let isWritten = try store.put(key, bytes, ifAbsent: ifAbsent)
      if Self.isManifest(key) { state.withLock { $0.written = [] } }
      return isWritten
    } catch {
      guard Self.isManifest(key), case .unknown(let reason) = error else { throw error }
      switch bug {
      case .unknownIsFailure: throw .refused(reason)
      case .busyIsPresent where reason == "409":
        state.withLock { $0.assumed[key] = bytes }
        return false
      case .deletesAfterFailure:
        let written = state.withLock { state in
          defer { state.written = [] }
          return state.written
        }
        for key in written { try store.delete(key) }
        throw error
      default: throw error
      }
    }
  }

  package func list(_ prefix: String, after last: String?) throws(ObjectError) -> ObjectPage {
    try store.list(prefix, after: last)
  }

  package func delete(_ key: String) throws(ObjectError) { try store.delete(key) }
}
