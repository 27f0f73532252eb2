import StemmaEvents
import StemmaLog

/// A node's side of a hub: reads manifests into a catalog, and appends its own.
///
/// Reading: one list of the hints shows which logs have grown. Their manifests are read upwards
/// until one is absent. A hint is written after its manifest and can be lost, so every log is
/// probed at an interval in any case. It grows with the number of logs (`probeInterval`).
///
/// Appending: objects, then the manifest if there is none of its number, then the hint. An unknown
/// outcome is read back, and the call is repeated: it is never taken for a failure. Nothing is
/// deleted. After a crash between two steps, the next append reads its own log first, and so finds
/// a manifest that was written.
///
/// One thread of one process uses a hub's journal at a time.
package final class Hub {
  /// How the hub is used.
  package struct Options: Sendable {
    /// Waits before the next attempt at a call, which has failed so often.
    package var pause: @Sendable (_ failures: Int) -> Void
    /// Milliseconds since 1970.
    package var now: @Sendable () -> UInt64
    package var makeLogID: @Sendable () -> LogID
    /// Calls at once.
    package var parallelCalls: Int
    /// Every log is probed, whatever its hint says, after so many milliseconds for each of them.
    package var probeInterval: UInt64

    package init(
      pause: @escaping @Sendable (Int) -> Void, now: @escaping @Sendable () -> UInt64,
      makeLogID: @escaping @Sendable () -> LogID, parallelCalls: Int = HubLimits.parallelCalls,
      probeInterval: UInt64 = 60_000
    ) {
      self.pause = pause
      self.now = now
      self.makeLogID = makeLogID
      self.parallelCalls = parallelCalls
      self.probeInterval = probeInterval
    }
  }

  package private(set) var catalog = HubCatalog()
  let calls: HubCalls
  private let journal: any HubJournal
  private let options: Options
  /// The log that this node writes; nil before its first append.
  package private(set) var writer: LogID?
  private var tags: [LogID: String] = [:]
  private var probed: UInt64 = 0
  /// Whether the hub was restored from an older state, and read again since this node opened it.
  package private(set) var wasSetBack = false
  /// Records that the journal lacks.
  private var unsaved: [HubRecord] = []

  /// Remembers the hub. If the journal contradicts itself, the hub is read from the beginning.
  package init(_ store: any ObjectStore, journal: any HubJournal, _ options: Options) throws(HubError) {
    calls = HubCalls(store: store, options: options)
    self.journal = journal
    self.options = options
    let records = try Self.content { () throws(ReplicationError) in try journal.load() }
    do throws(ReplicationError) {
      for record in records {
        switch record {
        case .writer(let log): writer = log
        case .tag(let log, let tag): tags[log] = tag
        case .probed(let time): probed = time
        case .manifest(let bytes):
          let manifest = try HubManifest(decoding: bytes)
          guard catalog.missing(for: manifest) == nil else { throw .corrupt("manifest", "it comes early") }
          try catalog.add(manifest, HubDigest(of: bytes))
        }
      }
    } catch {
      (catalog, tags, probed) = (HubCatalog(), [:], 0)
      unsaved = writer.map { [.writer($0)] } ?? []
      try Self.content { () throws(ReplicationError) in try journal.forget() }
    }
  }

  private static func content<Result>(
    _ body: () throws(ReplicationError) -> Result
  ) throws(HubError) -> Result {
    do throws(ReplicationError) { return try body() } catch { throw .content(error) }
  }

  package var store: any ObjectStore { calls.store }

  /// A value in the journal after `save`.
  private func remember(_ record: HubRecord) { unsaved.append(record) }

  private func save() throws(HubError) {
    guard !unsaved.isEmpty else { return }
    try Self.content { () throws(ReplicationError) in try journal.append(unsaved) }
    unsaved = []
  }

  // MARK: Reading

  /// Reads the manifests since the last look. A hub that was set back is read from the beginning,
  /// and this node begins another log there.
  ///
  /// - Parameter everything: whether each log is probed, whatever its hint says.
  package func look(everything: Bool = false) throws(HubError) {
    do throws(HubError) { try lookOnce(everything) } catch .setBack {
      (catalog, tags, probed, writer, unsaved) = (HubCatalog(), [:], 0, nil, [])
      try Self.content { () throws(ReplicationError) in try journal.forget() }
      wasSetBack = true
      try lookOnce(true)
    }
  }

  private func lookOnce(_ everything: Bool) throws(HubError) {
    let now = options.now()
    let hints = try calls.hints()
    let interval = options.probeInterval * UInt64(max(hints.count, 1))
    let probes = everything || now < probed || now - probed >= interval
    var logs = hints.filter { probes || tags[$0.log] != $0.tag }.map(\.log)
    let hinted = Set(hints.map(\.log))
    // A hint of a known log does not vanish, unless the hub was set back.
    let others = catalog.logs.keys.filter { !logs.contains($0) && (probes || !hinted.contains($0)) }
    logs += others.sorted { $0.rawValue < $1.rawValue }
    let before = catalog.logs
    do throws(HubError) {
      // Only this node and its copies write its log, and both read it before they append.
      try read(logs.filter { probes || $0 != writer || before[$0] == nil })
      try check(logs, before, hinted)
    } catch {
      // Manifests that were read are kept.
      try save()
      throw error
    }
    for hint in hints where logs.contains(hint.log) && tags[hint.log] != hint.tag {
      tags[hint.log] = hint.tag
      remember(.tag(hint.log, hint.tag))
    }
    if probes {
      probed = now
      remember(.probed(now))
    }
    try save()
    assert(holds(catalog.checkInvariants))
  }

  /// Checks logs without new manifests: the last known one is still there, and of a new log the
  /// one that its hint names.
  private func check(
    _ logs: [LogID], _ before: [LogID: HubCatalog.Known], _ hinted: Set<LogID>
  ) throws(HubError) {
    for log in logs {
      let known = catalog[log]
      if let old = before[log], old.number == known.number, old.number > 0 {
        guard try calls.digest(of: .init(log, old.number)) == old.digest else { throw .setBack }
      } else if before[log] == nil, hinted.contains(log), let hint = try calls.hint(of: log) {
        // A manifest is written before its hint, so one that came in between is found now.
        if hint > known.number { try read([log]) }
        guard hint <= catalog[log].number else {
          let name = HubLayout.manifest(log, catalog[log].number + 1)
          throw .store(store.name, .unknown("\(name) is missing, and its hint says that there are \(hint)"))
        }
      }
    }
  }

  /// Reads the manifests of logs upwards until one is absent, and first those that they follow.
  private func read(_ logs: [LogID]) throws(HubError) {
    // Fetched manifests that wait for their causes, per log in order.
    var waiting: [LogID: [FetchedManifest]] = [:]
    var remaining = logs
    while !remaining.isEmpty {
      let places = remaining.map { HubManifest.Place($0, catalog[$0].number) }
      let fetched = try calls.inParallel(places) { [calls] place throws(HubError) in
        try calls.manifests(after: place)
      }
      for (log, manifests) in zip(remaining, fetched) {
        // It was read before, and others have read more of it since. That is there, unless it was
        // removed.
        if manifests.isEmpty, waiting[log] != nil {
          let name = HubLayout.manifest(log, catalog[log].number + 1)
          throw .store(store.name, .unknown("\(name) is missing, which others have read"))
        }
        waiting[log] = manifests
      }
      remaining = try addAll(&waiting).filter { waiting[$0]?.isEmpty ?? true }
    }
    guard waiting.values.allSatisfy(\.isEmpty) else {
      throw .content(.malformed("manifests of the hub", "they follow each other"))
    }
  }

  /// Adds all manifests whose causes are known. Returns the logs of other causes.
  private func addAll(_ waiting: inout [LogID: [FetchedManifest]]) throws(HubError) -> [LogID] {
    var needed: Set<LogID> = []
    var hasAdded = true
    while hasAdded {
      hasAdded = false
      needed = []
      for log in waiting.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
        while let next = waiting[log]?.first {
          if let place = catalog.missing(for: next.manifest) {
            needed.insert(place.log)
            break
          }
          let known = catalog[log]
          if known.number > 0, next.manifest.previous != known.digest { throw .setBack }
          try Self.content { () throws(ReplicationError) in
            try catalog.add(next.manifest, HubDigest(of: next.bytes))
          }
          remember(.manifest(next.bytes))
          waiting[log]?.removeFirst()
          hasAdded = true
        }
      }
    }
    return needed.sorted { $0.rawValue < $1.rawValue }
  }

  // MARK: Appending

  /// The facts that a node publishes beside its events.
  package struct Author: Sendable {
    package var nodeName: String
    package var schema: String
    package var origins: [NamedOrigin]

    package init(nodeName: String, schema: String, origins: [NamedOrigin]) {
      self.nodeName = nodeName
      self.schema = schema
      self.origins = origins
    }
  }

  /// Prepares for appending: reads the own log, in which an earlier attempt may have succeeded.
  package func prepareToAppend() throws(HubError) {
    if let writer {
      let before = catalog[writer].number
      try read([writer])
      // Its hint may be missing.
      if catalog[writer].number > before { try putHint(writer) }
      try save()
    } else {
      try beginLog()
    }
  }

  /// Begins another log, because a copy of this node writes the current one.
  private func beginLog() throws(HubError) {
    let log = options.makeLogID()
    // The hint is there before the first manifest, so that the log is found if the next hint is
    // not written.
    try put(HubLayout.head(log), Array("0\n".utf8))
    writer = log
    remember(.writer(log))
    try save()
  }

  /// Writes the events of a batch as an object, before the manifest that lists it.
  package func put(_ batch: Batch) throws(HubError) -> HubObject {
    guard let log = writer else { preconditionFailure("prepareToAppend comes first") }
    let (bytes, object) = try Self.content { () throws(ReplicationError) in
      let (bytes, segment) = try batch.segment(of: log)
      return (bytes, HubObject(segment: segment, streams: batch.streams))
    }
    try put(object.key, bytes)
    return object
  }

  /// How often a node begins another log in one append.
  private static let logsOfAppend = 3

  /// Appends a manifest with written objects. Durable, and in the catalog, on return.
  ///
  /// If a copy of this node writes the same log, it begins another one.
  package func append(_ objects: [HubObject], by author: Author) throws(HubError) {
    for _ in 1..<Self.logsOfAppend {
      do throws(HubError) { return try appendOnce(objects, by: author) } catch {
        guard case .logInUse = error else { throw error }
        try beginLog()
      }
    }
    try appendOnce(objects, by: author)
  }

  private func appendOnce(_ objects: [HubObject], by author: Author) throws(HubError) {
    guard let log = writer else { preconditionFailure("prepareToAppend comes first") }
    let known = catalog[log]
    let others = catalog.logs.filter { $0.key != log && $0.value.number > known.seen[$0.key] ?? 0 }
    let manifest = HubManifest(
      place: .init(log, known.number + 1), previous: known.digest, nodeName: author.nodeName,
      schema: author.schema == known.schema ? "" : author.schema,
      origins: author.origins.filter { catalog.names[$0.origin] == nil },
      seen: others.map { .init($0.key, $0.value.number) }, objects: objects)
    let bytes = manifest.encoded
    try put(manifest, bytes)
    try Self.content { () throws(ReplicationError) in try catalog.add(manifest, HubDigest(of: bytes)) }
    remember(.manifest(bytes))
    try save()
    try putHint(log)
    assert(holds(catalog.checkInvariants))
  }

  /// Writes a key that only this node writes.
  package func put(_ key: String, _ bytes: [UInt8]) throws(HubError) {
    _ = try calls.calling { () throws(ObjectError) in try store.put(key, bytes, ifAbsent: false) }
  }

  /// Writes a manifest unless there is one of its number.
  private func put(_ manifest: HubManifest, _ bytes: [UInt8]) throws(HubError) {
    let key = HubLayout.manifest(manifest.place.log, manifest.place.number)
    var failures = 0
    while true {
      var error = ObjectError.unknown("\(key) is there, and cannot be read")
      do throws(ObjectError) {
        if try store.put(key, bytes, ifAbsent: true) { return }
      } catch let failure {
        guard case .unknown = failure else { throw .store(store.name, failure) }
        error = failure
      }
      // An earlier attempt may have succeeded.
      if let found = try calls.calling({ () throws(ObjectError) in try store.get(key, nil) }) {
        guard found == bytes else { throw .logInUse(manifest.place.log) }
        return
      }
      failures += 1
      guard failures < HubLimits.attempts else { throw .store(store.name, error) }
      options.pause(failures)
    }
  }

  private func putHint(_ log: LogID) throws(HubError) {
    try put(HubLayout.head(log), Array("\(catalog[log].number)\n".utf8))
  }
}
