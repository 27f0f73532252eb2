import StemmaEvents
import StemmaLog
import StemmaReplication

/// A random schedule of nodes that share a hub: writes, exchanges that crash at any call, copies of
/// nodes, nodes that never return, and the faults of `SimulatedStore`.
///
/// At the end the store is healed, and every node that is left exchanges events until nothing
/// changes. A naive model knows every event that was written, and which were acknowledged: no
/// acknowledged event is lost, no other one appears, and nodes agree where their scopes do.
package struct HubTrial {
  private static let partitions = ["t=a", "t=b", "t=c", "d=x"]
  private static let scopes = [["*"], ["t=*"], ["t=a", "t=b"], ["*", "!t=b"], ["d=x", "t=c"]]
  private static let hub = LogID(0x4b)

  package let seed: UInt64
  package let bug: PlantedHubBug?

  package init(seed: UInt64, bug: PlantedHubBug? = nil) {
    self.seed = seed
    self.bug = bug
  }

  /// Runs the trial. Returns each violation as a sentence; empty: nothing is wrong.
  package func violations() throws -> [String] {
    let run = Run(seed: seed, bug: bug)
    try run.execute()
    return run.violations
  }

  /// A journal that survives crashes.
  private final class MemoryJournal: HubJournal {
    var records: [HubRecord] = []

    init(_ records: [HubRecord] = []) { self.records = records }

    func load() -> [HubRecord] { records }
    func forget() { records = [] }
    func append(_ more: [HubRecord]) throws(ReplicationError) {
      for record in more { records.append(try HubRecord(decoding: record.encoded)) }
    }
  }

  private final class Count: Sendable {
    private let value: Mutex<UInt64>

    init(_ value: UInt64) { self.value = Mutex(value) }

    @discardableResult
    func advance(by step: UInt64) -> UInt64 {
      value.withLock { value in
        value &+= step
        return value
      }
    }
  }

  private final class Node {
    var memory: MemoryNode
    let journal: MemoryJournal
    let store: CrashingStore
    /// The events that a push has acknowledged.
    var acknowledged = VersionVector()
    var isDead = false
    /// Whether it is in an exchange, so that it does nothing else.
    var isBusy = false
    var lastTime: UInt64 = 0

    init(_ memory: MemoryNode, _ journal: MemoryJournal, _ store: CrashingStore) {
      self.memory = memory
      self.journal = journal
      self.store = store
    }
  }

  /// Fails each call after some, as if the process had ended.
  private final class CrashingStore: ObjectStore {
    static let crash = ObjectError.refused("crash")
    private let store: any ObjectStore
    private let callsLeft = Mutex(Int.max)

    init(_ store: any ObjectStore) { self.store = store }

    func crash(after calls: Int) { callsLeft.withLock { $0 = calls } }

    private func count() throws(ObjectError) {
      let left = callsLeft.withLock { left in
        if left > 0, left < Int.max { left -= 1 }
        return left
      }
      if left == 0 { throw Self.crash }
    }

    var name: String { store.name }

    func get(_ key: String, _ range: Range<UInt64>?) throws(ObjectError) -> [UInt8]? {
      try count()
      return try store.get(key, range)
    }

    func put(_ key: String, _ bytes: [UInt8], ifAbsent: Bool) throws(ObjectError) -> Bool {
      try count()
      let isWritten = try store.put(key, bytes, ifAbsent: ifAbsent)
      // The process can end before it knows.
      try count()
      return isWritten
    }

    func list(_ prefix: String, after last: String?) throws(ObjectError) -> ObjectPage {
      try count()
      return try store.list(prefix, after: last)
    }

    func delete(_ key: String) throws(ObjectError) { try store.delete(key) }
  }

  private final class Run {
    let bug: PlantedHubBug?
    var random: SplitMix64
    let shared: SimulatedStore
    var nodes: [Node] = []
    var violations: [String] = []
    private var nextID: UInt64 = 1
    private var depth = 0
    private let time = Count(1)
    private let ids: Count
    private let isCalm: Bool

    init(seed: UInt64, bug: PlantedHubBug?) {
      self.bug = bug
      random = SplitMix64(seed: seed)
      var faults = SimulatedStore.Faults()
      isCalm = random.chance(20)
      if !isCalm {
        let rates = [0, 2, 10]
        faults.lostAnswer = random.element(rates)
        faults.lostRequest = random.element(rates)
        faults.lateWrite = random.element(rates)
        faults.repeatedWrite = random.element(rates)
        faults.busy = random.element(rates)
        faults.lateList = random.element([0, 20, 60])
      }
      shared = SimulatedStore(seed: random.next(), faults)
      ids = Count(random.next())
    }

    private var options: Hub.Options {
      Hub.Options(
        pause: { _ in }, now: { [time] in time.advance(by: 0) },
        makeLogID: { [ids] in LogID(ids.advance(by: 1)) }, parallelCalls: 1, probeInterval: 100)
    }

    private func makeNode(_ memory: MemoryNode, _ journal: MemoryJournal) -> Node {
      let store: any ObjectStore = bug.map { PlantedStore(shared, $0) } ?? shared
      return Node(memory, journal, CrashingStore(store))
    }

    func execute() throws {
      let count = 2 + random.below(4)
      for index in 0..<count {
        var memory = MemoryNode("n\(index)", id: nextID)
        nextID += 1
        memory.scope = try Scope(patterns: index == 0 ? ["*"] : random.element(HubTrial.scopes))
        nodes.append(makeNode(memory, MemoryJournal()))
      }
      for _ in 0..<(20 + random.below(60)) {
        time.advance(by: 1)
        act(on: random.below(nodes.count))
        if random.chance(3) { hideManifest() }
        checkAcknowledged()
        if !violations.isEmpty { return }
      }
      heal()
    }

    /// An operator removes a manifest by mistake, and restores it at the end.
    private func hideManifest() {
      let manifests = shared.objects.keys.filter { $0.hasPrefix("logs/") }.sorted()
      if !manifests.isEmpty { shared.hide(random.element(manifests)) }
    }

    private func act(on index: Int) {
      let node = nodes[index]
      guard !node.isDead, !node.isBusy else { return }
      switch random.below(12) {
      case 0...4: write(node)
      case 5 where nodes.count < 7: copy(node)
      case 6 where random.chance(20) && nodes.count(where: { !$0.isDead }) > 2: node.isDead = true
      case 7:
        node.store.crash(after: random.below(12))
        exchange(node, mayCrash: true)
        node.store.crash(after: .max)
      default: exchange(node)
      }
    }

    private func write(_ node: Node) {
      let own = HubTrial.partitions.filter { node.memory.scope.contains(Partition($0)) }
      guard !own.isEmpty else { return }
      let keys = (0...random.below(4)).map { _ in
        (partition: random.element(own), key: Int64(random.below(3)))
      }
      node.memory.write(keys)
    }

    /// A copy of a directory: it writes under an origin of its own, and knows the same of the hub.
    private func copy(_ node: Node) {
      var memory = node.memory
      memory.name = "copy \(nextID)"
      memory.pastOrigins.append(memory.origin)
      memory.origin = Origin(nextID << 8)
      nextID += 1
      nodes.append(makeNode(memory, MemoryJournal(node.journal.records)))
    }

    // MARK: Exchanges

    private func exchange(_ node: Node, mayCrash: Bool = false) {
      node.isBusy = true
      depth += 1
      defer {
        node.isBusy = false
        depth -= 1
      }
      // Others act between the calls of this one.
      if depth == 1 {
        nonisolated(unsafe) let run = self
        shared.actBetweenCalls {
          if run.depth < 3, run.random.chance(8) { run.act(on: run.random.below(run.nodes.count)) }
        }
      }
      defer { if depth == 1 { shared.actBetweenCalls(nil) } }
      do throws(HubError) {
        let hub = try Hub(node.store, journal: node.journal, options)
        let order = random.below(3)
        if order != 1 { try pull(node, hub) }
        if order != 0 { try push(node, hub) }
      } catch {
        judge(error, of: node, mayCrash)
      }
    }

    private func judge(_ error: HubError, of node: Node, _ mayCrash: Bool) {
      switch error {
      case .store(_, CrashingStore.crash) where mayCrash: break
      case .store(_, .unknown) where shared.isHiding: break
      case .content(.incomplete(let reason)) where mayCrash && reason.contains("crash"): break
      default: violations.append("\(node.memory.name): \(error)")
      }
    }

    private func pull(_ node: Node, _ hub: Hub) throws(HubError) {
      try hub.look()
      do throws(ReplicationError) {
        let source = HubSource(hub)
        let held = node.memory.versionVector
        let scope = NarrowedScope(node.memory.scope)
        let plan = try ShipmentPlan(
          source: source, scope: scope, above: held, names: ("the hub", node.memory.name))
        var writer = ShipmentWriter(
          source: source, plan: plan, sender: HubTrial.hub, bytesReadBefore: 0, batchTarget: 2000)
        var reader = ShipmentReader(
          sender: HubTrial.hub, scope: scope, versionVector: held, schema: node.memory.schema,
          names: (node.memory.name, "the hub"))
        while let bytes = try writer.next() {
          let batch = try reader.read(bytes)
          do { try node.memory.adopt(batch) } catch { violations.append("\(node.memory.name): \(error)") }
        }
        try reader.finish(plan.versionVector)
      } catch { throw .content(error) }
    }

    private func push(_ node: Node, _ hub: Hub) throws(HubError) {
      try hub.look()
      try hub.prepareToAppend()
      let scope = NarrowedScope(node.memory.scope)
      let memory = node.memory
      var objects: [HubObject] = []
      do throws(ReplicationError) {
        let above = hub.catalog.versionVector.restricted { scope.contains($0) }
        let plan = try ShipmentPlan(
          source: memory.source, scope: scope, above: above, names: (memory.name, "the hub"))
        var writer = ShipmentWriter(
          source: memory.source, plan: plan, sender: memory.logID, bytesReadBefore: 0, batchTarget: 500)
        while let bytes = try writer.next() {
          let batch = try Batch(decoding: bytes)
          do throws(HubError) { objects.append(try hub.put(batch)) } catch { throw error.asReplicationError }
        }
      } catch { throw .content(error) }
      if !objects.isEmpty {
        try hub.append(
          objects, by: Hub.Author(nodeName: memory.name, schema: "", origins: memory.greeting.origins))
      }
      node.acknowledged.formUnion(memory.versionVector.restricted { scope.contains($0) })
    }

    // MARK: The model

    /// All events that a naive reader of the store finds, by its manifests alone.
    private func checkAcknowledged() {
      var found: [StreamID: Set<UInt64>] = [:]
      let objects = shared.objects
      for (key, bytes) in objects where key.hasPrefix("logs/") {
        do throws(ReplicationError) {
          for object in try HubManifest(decoding: bytes).objects {
            guard objects[object.key] != nil else {
              violations.append("\(object.key) of \(key) is missing")
              continue
            }
            for stream in object.streams.map(\.range) {
              found[stream.stream, default: []].formUnion(stream.from.rawValue...stream.to.rawValue)
            }
          }
        } catch { violations.append("\(key): \(error)") }
      }
      for node in nodes {
        for (partition, streams) in node.acknowledged.partitions {
          for (origin, head) in streams where head.sequence > .zero {
            let here = found[StreamID(partition: partition, origin: origin)] ?? []
            for sequence in 1...head.sequence.rawValue where !here.contains(sequence) {
              violations.append("\(node.memory.name): \(partition) \(origin) \(sequence) was acknowledged")
              return
            }
          }
        }
      }
    }

    private func heal() {
      shared.heal()
      time.advance(by: 10_000)
      let living = nodes.filter { !$0.isDead }
      for _ in 0..<3 {
        for node in living {
          do throws(HubError) {
            let hub = try Hub(node.store, journal: node.journal, options)
            try push(node, hub)
            try pull(node, hub)
          } catch { violations.append("\(node.memory.name), healed: \(error)") }
        }
        time.advance(by: 10_000)
      }
      checkAcknowledged()
      check(living)
    }

    private func check(_ living: [Node]) {
      var expected: Set<String> = []
      var written: Set<String> = []
      for node in nodes {
        for event in node.memory.events {
          let text = "\(event.partition) \(event.id) \(event.digest)"
          written.insert(text)
          let head = node.acknowledged[event.partition, event.id.origin]
          if !node.isDead || event.id.sequence <= head.sequence { expected.insert(text) }
        }
      }
      for node in living {
        let held = Set(node.memory.contents())
        let wanted = expected.filter { text in
          node.memory.scope.contains(Partition(String(text.prefix { $0 != " " })))
        }
        if let lost = wanted.subtracting(held).sorted().first {
          violations.append("\(node.memory.name) lacks \(lost)")
        }
        if let foreign = held.subtracting(written).sorted().first {
          violations.append("\(node.memory.name) has \(foreign), which no node wrote")
        }
        for other in living {
          let scope = node.memory.scope
          let theirs = Set(other.memory.contents(of: scope))
          let own = Set(node.memory.contents(of: other.memory.scope))
          if theirs != own { violations.append("\(node.memory.name) and \(other.memory.name) differ") }
        }
      }
    }
  }
}
