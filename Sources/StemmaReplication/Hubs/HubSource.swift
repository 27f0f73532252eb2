import StemmaEvents
import StemmaLog

/// A hub as the source of shipments: its objects, as far as the catalog knows them.
///
/// Reads only objects with a requested partition, and of these only the blocks that have it. Checks
/// every stream that it reads against the manifest.
package final class HubSource: ShipmentSource, Sendable {
  /// An object up to this size is read whole: a second request costs more than its bytes.
  private static let smallObject: UInt64 = 64 << 10

  private let catalog: HubCatalog
  private let calls: HubCalls
  private let read = Mutex<UInt64>(0)

  package init(_ hub: Hub) {
    catalog = hub.catalog
    calls = hub.calls
  }

  package var versionVector: VersionVector { catalog.versionVector }
  package var bytesRead: UInt64 { read.withLock { $0 } }

  package func shipmentFiles() throws(ReplicationError) -> [SourceFile] {
    catalog.entries.indices.map { index in
      let segment = catalog.entries[index].object.segment
      return SourceFile(
        start: Position(UInt64(index) + 1), end: Position(UInt64(index) + 2), events: segment.events,
        rawBytes: segment.rawBytes)
    }
  }

  private func index(of file: SourceFile) -> Int { Int(file.start.rawValue - 1) }

  package func streams(
    of file: SourceFile, in partitions: Set<Partition>
  ) throws(ReplicationError) -> [StreamRange] {
    let added = catalog.entries[index(of: file)].added
    let wanted = added.count < partitions.count ? added.keys.filter(partitions.contains) : Array(partitions)
    return wanted.flatMap { added[$0] ?? [] }.map { added in
      var range = added.stream.range
      if added.from > range.from { (range.from, range.hash) = (added.from, .zero) }
      return range
    }
  }

  package func streamHashes(_ ends: [QualifiedEventID]) throws(ReplicationError) -> [QualifiedEventID:
    StreamHash]
  {
    var hashes: [QualifiedEventID: StreamHash] = [:]
    for end in ends {
      guard let (index, added) = catalog.entry(with: end) else { continue }
      let range = added.stream.range
      if end.id.sequence == range.to {
        hashes[end] = added.stream.head.hash
        continue
      }
      var hash = added.stream.hashBefore
      for item in try events(of: index, in: [range.partition])
      where item.event.id.origin == range.origin && item.event.id.sequence <= end.id.sequence {
        hash += item.digest
      }
      hashes[end] = hash
    }
    return hashes
  }

  package func events(of file: SourceFile, in partitions: Set<Partition>) -> EventPull {
    let index = index(of: file)
    let made =
      calls.options.parallelCalls == 1
      ? nil
      : MadeAhead { [self] in
        Result { () throws(ReplicationError) in try events(of: index, in: partitions) }
      }
    let added = catalog.entries[index].added
    var left: [DigestedEvent].Iterator?
    return { () throws(ReplicationError) in
      if left == nil {
        let events = if let made { try made.take().get() } else { try self.events(of: index, in: partitions) }
        left = events.makeIterator()
      }
      while let item = left?.next() {
        // Events of the manifests before are shipped from there.
        let stream = added[item.event.partition]?.first { $0.stream.range.origin == item.event.id.origin }
        if let stream, stream.from <= item.event.id.sequence { return item }
      }
      return nil
    }
  }

  package func sealed(_ file: SourceFile, atLeast least: Int) throws(ReplicationError) -> SealedFile? {
    let entry = catalog.entries[index(of: file)]
    guard entry.isWhole, file.rawBytes >= UInt64(least) else { return nil }
    let key = entry.object.key
    let bytes = try bytes(of: entry.object, 0..<entry.object.segment.size)
    do throws(LogError) { return try entry.object.segment.sealedFile(bytes, name: key) } catch {
      throw Self.error(error, key)
    }
  }

  /// The events of some partitions of an object.
  private func events(
    of index: Int, in partitions: Set<Partition>
  ) throws(ReplicationError) -> [DigestedEvent] {
    let object = catalog.entries[index].object
    let isSmall = object.segment.size <= Self.smallObject
    let whole = isSmall ? try bytes(of: object, 0..<object.segment.size) : nil
    // Files throw other errors than stores.
    let failure = Mutex<ReplicationError?>(nil)
    let events: [DigestedEvent]
    do throws(LogError) {
      events = try object.segment.events(in: partitions, name: object.key) { [self] range throws(LogError) in
        if let whole {
          let end = min(Int(clamping: range.upperBound), whole.count)
          return Array(whole[min(Int(clamping: range.lowerBound), end)..<end])
        }
        do throws(ReplicationError) { return try bytes(of: object, range) } catch {
          failure.withLock { $0 = error }
          throw .corrupt(path: object.key, offset: range.lowerBound, .missing)
        }
      }
    } catch { throw failure.withLock { $0 } ?? Self.error(error, object.key) }
    try check(events, of: object, in: partitions)
    return events
  }

  /// Throws unless these are the streams of the manifest.
  private func check(
    _ events: [DigestedEvent], of object: HubObject, in partitions: Set<Partition>
  ) throws(ReplicationError) {
    var heads = VersionVector()
    for item in events {
      let (partition, id) = (item.event.partition, item.event.id)
      let head = heads.partitions[partition]?[id.origin]
      heads[partition, id.origin] = StreamHead(
        sequence: id.sequence, hash: (head?.hash ?? .zero) + item.digest)
    }
    for stream in object.streams where partitions.contains(stream.range.partition) {
      let range = stream.range
      guard heads[range.partition, range.origin] == StreamHead(sequence: range.to, hash: range.hash) else {
        throw .corrupt(object.key, "\(range.partition), \(range.origin) is not what its manifest says")
      }
    }
  }

  private func bytes(of object: HubObject, _ range: Range<UInt64>) throws(ReplicationError) -> [UInt8] {
    let isWhole = range == 0..<object.segment.size
    let found: [UInt8]?
    do throws(HubError) {
      found = try calls.calling { () throws(ObjectError) in
        try calls.store.get(object.key, isWhole ? nil : range)
      }
    } catch { throw error.asReplicationError }
    guard let found else { throw .corrupt(object.key, "it is missing") }
    read.withLock { $0 += UInt64(found.count) }
    return found
  }

  private static func error(_ error: LogError, _ key: String) -> ReplicationError {
    if case .corrupt(_, let offset, let flaw) = error {
      .corrupt(key, "at byte \(offset): \(flaw)")
    } else {
      .failed(error.description)
    }
  }
}
