import StemmaEvents
import StemmaLog
import StemmaSchema

/// The content of a hub, by its manifests, in an order in which each one follows all that its
/// writer had read. Pure.
///
/// Several nodes may publish the same events. The first manifest counts; what a later one repeats
/// is not in the catalog. Memory: about a hundred bytes for each stream of each object.
package struct HubCatalog: Sendable {
  /// The manifests of one log.
  package struct Known: Hashable, Sendable {
    package var number: UInt64 = 0
    package var digest = HubDigest.none
    /// The last manifests of other logs that its manifests name.
    package var seen: [LogID: UInt64] = [:]
    package var nodeName = ""
    package var schema = ""
  }

  /// The part of a stream that an object adds.
  package struct Added: Hashable, Sendable {
    package var stream: ShippedStream
    /// The first event that no manifest before has.
    package var from: SequenceNumber
  }

  package struct Entry: Sendable {
    package var object: HubObject
    /// Without streams that add nothing.
    package var added: [Partition: [Added]]
    /// Whether all of its events are new.
    package var isWhole: Bool
  }

  package private(set) var logs: [LogID: Known] = [:]
  package private(set) var entries: [Entry] = []
  package private(set) var versionVector = VersionVector()
  package private(set) var names: [Origin: String] = [:]
  /// The schema for clones: the last one that has all models and fields of those before; empty:
  /// there is none. A node with an older schema does not take away what others have added.
  package private(set) var schema = ""
  /// The entries with events of a stream, the first one first.
  private var places: [StreamID: [Int]] = [:]

  package init() {}

  package subscript(log: LogID) -> Known { logs[log] ?? Known() }

  /// The first of a manifest's causes that is not in the catalog.
  package func missing(for manifest: HubManifest) -> HubManifest.Place? {
    manifest.seen.first { self[$0.log].number < $0.number }
  }

  /// Adds the next manifest of a log. Its causes are in the catalog.
  ///
  /// - Throws: `.corrupt` if it is not the next one; `.fork` if it has other events of a stream
  ///   than the manifests before; `.gap` if it leaves events out. The catalog is unchanged then.
  package mutating func add(_ manifest: HubManifest, _ digest: HubDigest) throws(ReplicationError) {
    let known = self[manifest.place.log]
    let name = HubLayout.manifest(manifest.place.log, manifest.place.number)
    guard manifest.place.number == known.number + 1, manifest.previous == known.digest else {
      throw .corrupt(name, "it does not follow the manifest before")
    }
    precondition(missing(for: manifest) == nil, "causes come first")
    var heads = VersionVector()
    var entries: [Entry] = []
    for object in manifest.objects {
      var entry = Entry(object: object, added: [:], isWhole: true)
      for stream in object.streams {
        let (partition, origin) = (stream.range.partition, stream.range.origin)
        let head = heads.partitions[partition]?[origin] ?? versionVector[partition, origin]
        try Self.compare(stream, head, manifest.nodeName)
        if stream.range.from <= head.sequence { entry.isWhole = false }
        guard stream.range.to > head.sequence else { continue }
        entry.added[partition, default: []].append(Added(stream: stream, from: head.sequence.next))
        heads[partition, origin] = stream.head
      }
      if !entry.added.isEmpty { entries.append(entry) }
    }
    for entry in entries {
      for added in entry.added.values.joined() {
        places[added.stream.range.stream, default: []].append(self.entries.count)
      }
      self.entries.append(entry)
    }
    versionVector.formUnion(heads)
    var next = known
    next.number = manifest.place.number
    next.digest = digest
    next.nodeName = manifest.nodeName
    for place in manifest.seen { next.seen[place.log] = place.number }
    if !manifest.schema.isEmpty {
      next.schema = manifest.schema
      if try Self.includes(manifest.schema, schema) { schema = manifest.schema }
    }
    logs[manifest.place.log] = next
    for named in manifest.origins where names[named.origin] == nil { names[named.origin] = named.nodeName }
  }

  /// Whether a schema has all models and fields of another, as SDL.
  private static func includes(_ text: String, _ other: String) throws(ReplicationError) -> Bool {
    func fields(_ text: String) throws(ReplicationError) -> Set<String> {
      do throws(SchemaError) {
        let models = try SDL.read(text).schema.models
        return Set(models.flatMap { model in model.fields.map { "\(model.name).\($0.name)" } })
      } catch {
        throw .schemaUnreadable(error.diagnostics.first?.message ?? "no reason given")
      }
    }
    return other.isEmpty ? !(try fields(text)).isEmpty : try fields(text).isSuperset(of: fields(other))
  }

  /// Compares a stream with the catalog where both state a hash.
  private static func compare(
    _ stream: ShippedStream, _ head: StreamHead, _ nodeName: String
  ) throws(ReplicationError) {
    let range = stream.range
    guard range.from <= head.sequence.next else {
      throw .gap(range.partition, range.origin, expected: head.sequence.next, found: range.from)
    }
    let stated: StreamHash
    if range.from == head.sequence.next {
      stated = stream.hashBefore
    } else if range.to == head.sequence {
      stated = stream.head.hash
    } else {
      return
    }
    guard stated == head.hash else {
      throw .fork(
        Fork(
          partition: range.partition, origin: range.origin, sequence: head.sequence,
          finder: Fork.Side(node: "the hub", hash: head.hash), peer: Fork.Side(node: nodeName, hash: stated)))
    }
  }

  /// The entry that adds an event.
  package func entry(with event: QualifiedEventID) -> (index: Int, added: Added)? {
    let stream = StreamID(event)
    for index in places[stream] ?? [] {
      for added in entries[index].added[stream.partition] ?? []
      where added.stream.range.origin == stream.origin && added.from <= event.id.sequence
        && event.id.sequence <= added.stream.range.to
      {
        return (index, added)
      }
    }
    return nil
  }

  /// Traps if the entries are not the streams of the version vector. Debug builds call it after
  /// each look at the hub.
  package func checkInvariants() {
    var heads = VersionVector()
    for entry in entries {
      for added in entry.added.values.joined() {
        let range = added.stream.range
        precondition(added.from == heads[range.partition, range.origin].sequence.next, "no gap, no overlap")
        heads[range.partition, range.origin] = added.stream.head
      }
    }
    precondition(heads == versionVector, "the version vector is that of the entries")
  }
}
