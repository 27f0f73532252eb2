import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSimulation
import Testing

@Suite("Hubs") struct HubTests {
  private static let hub = LogID(0x4b)

  /// A hub of one node in a store without faults, and the node.
  private struct Place {
    let store: any ObjectStore
    let journal = Journal()

    init(_ store: any ObjectStore = SimulatedStore(seed: 1, .init())) { self.store = store }

    func open() throws -> Hub { try Hub(store, journal: journal, Self.options) }

    static var options: Hub.Options {
      Hub.Options(pause: { _ in }, now: { 1_000_000 }, makeLogID: { LogID(77) }, parallelCalls: 1)
    }

    /// Publishes all events of a node that the hub lacks.
    func push(_ node: MemoryNode, batchTarget: Int = 2000) throws {
      let hub = try open()
      try hub.look()
      try hub.prepareToAppend()
      let plan = try ShipmentPlan(
        source: node.source, scope: NarrowedScope(.everything), above: hub.catalog.versionVector,
        names: (node.name, "the hub"))
      var writer = ShipmentWriter(
        source: node.source, plan: plan, sender: node.logID, bytesReadBefore: 0, batchTarget: batchTarget)
      var objects: [HubObject] = []
      while let bytes = try writer.next() { objects.append(try hub.put(Batch(decoding: bytes))) }
      if !objects.isEmpty {
        try hub.append(
          objects, by: Hub.Author(nodeName: node.name, schema: "", origins: node.greeting.origins))
      }
    }

    func pull(_ node: inout MemoryNode) throws {
      let hub = try open()
      try hub.look()
      let source = HubSource(hub)
      let scope = NarrowedScope(node.scope)
      let plan = try ShipmentPlan(
        source: source, scope: scope, above: node.versionVector, names: ("the hub", node.name))
      var writer = ShipmentWriter(source: source, plan: plan, sender: HubTests.hub, bytesReadBefore: 0)
      var reader = ShipmentReader(
        sender: HubTests.hub, scope: scope, versionVector: node.versionVector, schema: node.schema,
        names: (node.name, "the hub"))
      while let bytes = try writer.next() { try node.adopt(try reader.read(bytes)) }
      try reader.finish(plan.versionVector)
    }
  }

  private final class Journal: HubJournal {
    var records: [HubRecord] = []

    func load() -> [HubRecord] { records }
    func append(_ more: [HubRecord]) { records += more }
    func forget() { records = [] }
  }

  private static func node(_ name: String = "a", id: UInt64 = 1, commits: Int = 40) -> MemoryNode {
    var node = MemoryNode(name, id: id)
    for number in 0..<commits { node.write([("t=a", Int64(number % 7)), ("t=b", Int64(number % 5))]) }
    return node
  }

  private static func manifests(of store: SimulatedStore) -> [(key: String, bytes: [UInt8])] {
    store.objects.filter { $0.key.hasPrefix("logs/") }.sorted { $0.key < $1.key }
      .map { (key: $0.key, bytes: $0.value) }
  }

  @Test("random schedules lose nothing that was acknowledged", arguments: 1...Trials.count(40))
  func schedules(seed: Int) throws {
    #expect(try HubTrial(seed: UInt64(seed)).violations() == [])
  }

  @Test("each planted bug is found", arguments: PlantedHubBug.allCases)
  func plantedBugs(bug: PlantedHubBug) throws {
    #expect(
      try (1...200).contains { try !HubTrial(seed: UInt64($0), bug: bug).violations().isEmpty })
  }

  @Test("a manifest is read back, and refused with any bit changed or byte missing")
  func manifestCodec() throws {
    let store = SimulatedStore(seed: 1, .init())
    try Place(store).push(Self.node(), batchTarget: 500)
    let (_, bytes) = try #require(Self.manifests(of: store).first)
    let manifest = try HubManifest(decoding: bytes)
    #expect(manifest.encoded == bytes)
    #expect(manifest.objects.count > 1)
    var refused = 0
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= UInt8(1 << (index % 8))
      #expect(throws: ReplicationError.self) { try HubManifest(decoding: changed) }
      #expect(throws: ReplicationError.self) { try HubManifest(decoding: Array(bytes[..<index])) }
      // The same with a correct checksum decodes to another manifest, or not at all.
      changed.removeLast(4)
      changed.appendFixed(CRC32C.of(changed))
      do throws(ReplicationError) {
        let other = try HubManifest(decoding: changed)
        #expect(other.encoded == changed)
      } catch { refused += 1 }
    }
    #expect(refused > 0)
  }

  @Test("a record of the journal is read back, and refused with any bit changed")
  func journalCodec() throws {
    for record in [HubRecord.writer(LogID(5)), .manifest([1, 2]), .tag(LogID(6), "\"x\""), .probed(7)] {
      #expect(try HubRecord(decoding: record.encoded) == record)
      for index in record.encoded.indices {
        var changed = record.encoded
        changed[index] ^= 1
        #expect(throws: ReplicationError.self) { try HubRecord(decoding: changed) }
      }
    }
  }

  @Test("a changed bit of an object is an error that names it, and nothing of it is adopted")
  func changedObjects() throws {
    let store = SimulatedStore(seed: 1, .init())
    let place = Place(store)
    try place.push(Self.node())
    let (key, bytes) = try #require(store.objects.first { $0.key.hasPrefix("objects/") })
    var refused = 0
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= UInt8(1 << (index % 8))
      _ = try store.put(key, changed, ifAbsent: false)
      var reader = MemoryNode("b", id: 2)
      do throws(any Error) {
        try place.pull(&reader)
        // Only what readers do not use may differ.
        #expect(reader.contents() == Self.node().contents())
      } catch ReplicationError.corrupt(let subject, _) {
        #expect(subject == key)
        #expect(reader.events.isEmpty)
        refused += 1
      }
    }
    print("\(refused) of \(bytes.count) bytes are checked")
    #expect(refused > bytes.count / 2)
  }

  @Test("two histories of one origin are a fork")
  func forks() throws {
    let place = Place()
    try place.push(Self.node(commits: 3))
    var other = Self.node(commits: 2)
    other.padding = "other"
    other.write("t=a", 99)
    other.write("t=a", 98)
    #expect {
      try place.push(other)
    } throws: {
      ($0 as? ReplicationError)?.fork != nil
    }
  }

  @Test("a broken journal is forgotten, and the hub is read again")
  func forgottenJournals() throws {
    let place = Place()
    try place.push(Self.node())
    let writer = try place.open().writer
    place.journal.records.append(
      contentsOf: place.journal.records.filter { if case .manifest = $0 { true } else { false } })
    let hub = try place.open()
    #expect(hub.catalog.entries.isEmpty)
    #expect(hub.writer == writer)
    try hub.look()
    #expect(hub.catalog.versionVector == Self.node().versionVector)
  }

  @Test("a hub that was set back gets again what it lost")
  func setBack() throws {
    let store = SimulatedStore(seed: 1, .init())
    let place = Place(store)
    var node = Self.node(commits: 3)
    try place.push(node)
    let backup = store.objects
    node.write("t=a", 50)
    try place.push(node)
    for key in store.objects.keys { try store.delete(key) }
    for (key, bytes) in backup { _ = try store.put(key, bytes, ifAbsent: false) }
    node.write("t=a", 51)
    try place.push(node)
    var reader = MemoryNode("b", id: 2)
    try Place(store).pull(&reader)
    #expect(reader.contents() == node.contents())
  }

  @Test("a sync with nothing new asks once for the list of hints")
  func nothingNew() throws {
    let counting = CountingStore(SimulatedStore(seed: 1, .init()))
    let place = Place(counting)
    try place.push(Self.node())
    try place.open().look(everything: true)
    counting.reset()
    let hub = try place.open()
    try hub.look()
    #expect(counting.calls == ["list heads/"])
  }

  /// Records the calls.
  private final class CountingStore: ObjectStore {
    private let store: any ObjectStore
    private let made = Mutex<[String]>([])

    init(_ store: any ObjectStore) { self.store = store }

    var calls: [String] { made.withLock { $0 } }
    func reset() { made.withLock { $0 = [] } }
    private func note(_ call: String) { made.withLock { $0.append(call) } }

    var name: String { store.name }

    func get(_ key: String, _ range: Range<UInt64>?) throws(ObjectError) -> [UInt8]? {
      note("get \(key)")
      return try store.get(key, range)
    }

    func put(_ key: String, _ bytes: [UInt8], ifAbsent: Bool) throws(ObjectError) -> Bool {
      note("put \(key)")
      return try store.put(key, bytes, ifAbsent: ifAbsent)
    }

    func list(_ prefix: String, after last: String?) throws(ObjectError) -> ObjectPage {
      note("list \(prefix)")
      return try store.list(prefix, after: last)
    }

    func delete(_ key: String) throws(ObjectError) { try store.delete(key) }
  }
}
