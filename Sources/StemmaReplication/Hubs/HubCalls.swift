import Dispatch
import StemmaEvents
import StemmaLog

/// A manifest as read.
struct FetchedManifest: Sendable {
  var manifest: HubManifest
  var bytes: [UInt8]
}

/// The calls of a hub's store, repeated while their outcome is unknown.
package struct HubCalls: Sendable {
  let store: any ObjectStore
  let options: Hub.Options

  package init(store: any ObjectStore, options: Hub.Options) {
    self.store = store
    self.options = options
  }

  package func calling<Result>(_ body: () throws(ObjectError) -> Result) throws(HubError) -> Result {
    var failures = 0
    let begin = options.now()
    while true {
      do throws(ObjectError) { return try body() } catch {
        failures += 1
        // A server that never answers has taken all of the patience at once.
        guard case .unknown = error, failures < HubLimits.attempts,
          options.now() < begin + HubLimits.patience
        else { throw .store(store.name, error) }
        options.pause(failures)
      }
    }
  }

  /// The logs with a hint, and the tags of the hints.
  func hints() throws(HubError) -> [(log: LogID, tag: String)] {
    var hints: [(log: LogID, tag: String)] = []
    var last: String?
    while true {
      let page = try calling { () throws(ObjectError) in try store.list(HubLayout.heads, after: last) }
      for entry in page.entries {
        if let log = HubLayout.log(ofKey: entry.key, below: HubLayout.heads) {
          hints.append((log, entry.tag))
        }
      }
      guard hints.count <= HubLimits.logs else {
        throw .content(.overLimit("logs of a hub", found: UInt64(hints.count), limit: UInt64(HubLimits.logs)))
      }
      guard !page.isLast, let end = page.entries.last?.key else { return hints }
      last = end
    }
  }

  /// The manifests of a log after a number. The first absent one ends them. Reads several at once,
  /// but no more than it has found, so that few absent ones are asked for.
  func manifests(after place: HubManifest.Place) throws(HubError) -> [FetchedManifest] {
    var fetched: [FetchedManifest] = []
    while true {
      let count = max(1, min(fetched.count, options.parallelCalls))
      let next = place.number + UInt64(fetched.count) + 1
      let places = (0..<count).map { HubManifest.Place(place.log, next + UInt64($0)) }
      for found in try inParallel(places, { place throws(HubError) in try manifest(place) }) {
        guard let found else { return fetched }
        fetched.append(found)
      }
    }
  }

  /// The digest of a manifest; nil: it is absent.
  func digest(of place: HubManifest.Place) throws(HubError) -> HubDigest? {
    let key = HubLayout.manifest(place.log, place.number)
    return try calling { () throws(ObjectError) in try store.get(key, nil) }.map { HubDigest(of: $0) }
  }

  /// The number of the last manifest, by the hint of a log; nil: it is absent or unreadable.
  func hint(of log: LogID) throws(HubError) -> UInt64? {
    let bytes = try calling { () throws(ObjectError) in try store.get(HubLayout.head(log), nil) }
    return bytes.flatMap { UInt64(String(decoding: $0.dropLast(), as: UTF8.self)) }
  }

  private func manifest(_ place: HubManifest.Place) throws(HubError) -> FetchedManifest? {
    let key = HubLayout.manifest(place.log, place.number)
    guard let bytes = try calling({ () throws(ObjectError) in try store.get(key, nil) }) else { return nil }
    do throws(ReplicationError) {
      let manifest = try HubManifest(decoding: bytes)
      guard manifest.place == place else { throw .malformed(key, "it is another manifest") }
      return FetchedManifest(manifest: manifest, bytes: bytes)
    } catch {
      // The error names the object.
      switch error {
      case .corrupt(_, let found): throw .content(.corrupt(key, found))
      case .malformed(_, let found): throw .content(.malformed(key, found))
      default: throw .content(error)
      }
    }
  }

  /// Maps the inputs, several at once, in their order.
  func inParallel<Input: Sendable, Output: Sendable>(
    _ inputs: [Input], _ body: @escaping @Sendable (Input) throws(HubError) -> Output
  ) throws(HubError) -> [Output] {
    var outputs: [Output] = []
    guard options.parallelCalls > 1, inputs.count > 1 else {
      for input in inputs { outputs.append(try body(input)) }
      return outputs
    }
    var waiting = inputs[...]
    while !waiting.isEmpty {
      // Another thread begins each, and this one takes those that no thread has begun.
      let begun = waiting.prefix(options.parallelCalls).map { input in
        MadeAhead { Result { () throws(HubError) in try body(input) } }
      }
      waiting = waiting.dropFirst(begun.count)
      var failure: HubError?
      for item in begun {
        switch item.take() {
        case .success(let output): outputs.append(output)
        case .failure(let error): failure = failure ?? error
        }
      }
      if let failure { throw failure }
    }
    return outputs
  }
}
