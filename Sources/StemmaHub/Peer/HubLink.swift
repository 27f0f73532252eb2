import Crypto
import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSchema
import StemmaSync

/// A hub as a peer. It holds no node: this link answers in its place, from manifests and objects.
///
/// A pull reads what the node lacks. A push writes each batch as an object, and one manifest at the
/// end, before it acknowledges anything. Both sides are in one process.
package final class HubLink: PeerLink {
  private enum State {
    case idle
    case shipping(ShipmentWriter<HubSource>)
    case receiving(NarrowedScope)
  }

  private let hub: Hub
  private let file: HubFile?
  private let node: Node?
  private let ownName: String
  private let id: LogID
  private let writes: Bool
  private let options: Hub.Options
  package let greeting: Greeting
  package var sharesMemory: Bool { true }
  /// Others can write to the store, and so their own indexes.
  package var isOwn: Bool { false }

  /// The messages that the node has not received, the next one last.
  private var pending: [SessionMessage] = []
  private var state = State.idle
  private var batch: [UInt8] = []
  private var objects: [HubObject] = []
  private var batchCount: UInt64 = 0
  private var greetingOfNode: Greeting?
  /// Whether the exchange has moved events, so that the node's record changes.
  private var hasMoved = false

  /// Reads which events the hub has.
  ///
  /// - Parameters:
  ///   - name: of the hub, in errors.
  ///   - node: the connecting node; nil for a clone.
  ///   - writes: whether the exchange may push.
  /// - Throws: `.notAPeer` if there is no hub, or nothing to clone.
  package init(
    _ name: String, _ store: any ObjectStore, key: SymmetricKey?, _ node: Node?, writes: Bool,
    _ options: Hub.Options
  ) throws(NodeError) {
    guard let description = try HubDescription(of: store, options, key: key),
      let id = description.id
    else { throw .notAPeer(path: store.name, reason: .noHub) }
    self.id = id
    self.node = node
    self.writes = writes
    self.options = options
    let file = try node.map { (node) throws(NodeError) in try HubFile(node, id) }
    self.file = file
    do throws(HubError) {
      hub = try Hub(store, journal: file ?? BriefJournal(), options)
      try hub.look()
    } catch {
      file?.release()
      throw NodeError(error)
    }
    let catalog = hub.catalog
    guard node != nil || !catalog.schema.isEmpty else {
      throw .notAPeer(path: store.name, reason: "nothing has been pushed there yet")
    }
    ownName = node?.metadata.name ?? "the clone"
    greeting = Greeting(
      logID: id, nodeName: name,
      origins: catalog.names.map { NamedOrigin($0.key, nodeName: $0.value, isOwn: false) },
      schema: catalog.schema.isEmpty ? node.map { SDL.print($0.schema) } ?? "" : catalog.schema,
      scope: .everything)
  }

  package func send(_ message: SessionMessage) throws(NodeError) {
    switch message {
    case .greeting(let greeting):
      greetingOfNode = greeting
      pending.append(.greeting(self.greeting))
    case .request(let request): try ship(request)
    case .offer(let scope):
      state = .receiving(scope)
      let held = hub.catalog.versionVector.restricted { scope.contains($0) }
      pending.append(.request(TransferRequest(scope: scope, versionVector: held)))
    case .chunk(let chunk):
      batch += chunk.bytes
      if chunk.isLast { try store() }
    case .end: try append()
    case .hello, .holding, .acknowledgement, .refusal: break
    }
  }

  package func receive() throws(NodeError) -> SessionMessage {
    if let message = pending.popLast() { return message }
    guard case .shipping(var writer) = state else {
      throw .replication(.incomplete("\(greeting.nodeName) has no answer"))
    }
    do throws(ReplicationError) {
      guard let bytes = try writer.next() else {
        state = .idle
        return .end(writer.end)
      }
      state = .shipping(writer)
      defer { batchCount += 1 }
      hasMoved = true
      return .chunk(Chunk(batch: batchCount, isLast: true, bytes: bytes[...]))
    } catch { throw .replication(error) }
  }

  private func ship(_ request: TransferRequest) throws(NodeError) {
    do throws(ReplicationError) {
      let source = HubSource(hub)
      let plan = try ShipmentPlan(
        source: source, scope: request.scope, above: request.versionVector,
        names: (greeting.nodeName, ownName))
      batchCount = 0
      state = .shipping(
        ShipmentWriter(source: source, plan: plan, sender: id, bytesReadBefore: 0, isDigesting: false))
      pending.append(.holding(TransferRequest(scope: request.scope, versionVector: plan.versionVector)))
    } catch { throw .replication(error) }
  }

  /// Writes a complete batch as an object.
  private func store() throws(NodeError) {
    defer { batch = [] }
    do {
      let decoded = try Batch(decoding: batch, isDigested: false)
      if objects.isEmpty { try hub.prepareToAppend() }
      objects.append(try hub.put(decoded))
    } catch let error as HubError { throw NodeError(error) } catch let error as ReplicationError {
      throw .replication(error)
    } catch { throw .unforeseen("\(error)") }
  }

  private func append() throws(NodeError) {
    guard case .receiving(let scope) = state else { return }
    state = .idle
    let schema = greetingOfNode?.schema ?? greeting.schema
    do throws(HubError) {
      // The first node to push also brings the schema, for clones.
      if !objects.isEmpty || hub.catalog.schema.isEmpty {
        if objects.isEmpty { try hub.prepareToAppend() }
        try hub.append(
          objects,
          by: Hub.Author(nodeName: ownName, schema: schema, origins: greetingOfNode?.origins ?? []))
        hasMoved = true
        objects = []
      }
    } catch { throw NodeError(error) }
    let held = hub.catalog.versionVector.restricted { scope.contains($0) }
    pending.append(.acknowledgement(held))
  }

  package func digests(of patterns: [String]) throws(NodeError) -> [Node.PartitionDigest] {
    let scope = try Node.scope(patterns)
    do throws(HubError) { try hub.look(everything: true) } catch { throw NodeError(error) }
    let held = hub.catalog.versionVector
    return held.sortedPartitions.filter(scope.contains).map { partition in
      let streams = held.streams(of: partition)
      return Node.PartitionDigest(
        partition: partition.description, events: streams.reduce(0) { $0 + $1.head.sequence.rawValue },
        log: streams.reduce(StreamHash.zero) { $0 + $1.head.hash }.description, tables: nil)
    }
  }

  package func close(after error: NodeError?) throws(NodeError) -> [Notice] {
    defer { file?.release() }
    var notices: [Notice] = []
    if hub.wasSetBack {
      notices.append("it had been set back to an older state, so all of it was read again")
    }
    guard error == nil, writes, hasMoved, let node, let log = hub.writer else { return notices }
    let record = HubPeer(
      node: node.metadata.name, scope: node.metadata.scope.patterns,
      read: Dictionary(uniqueKeysWithValues: hub.catalog.logs.map { ($0.key.description, $0.value.number) }),
      time: options.now())
    do {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys]
      let bytes = Array(try encoder.encode(record)) + [0x0a]
      try hub.put(HubLayout.peer(log), bytes)
    } catch let error as HubError {
      notices.append("its record of this node was not written: \("\(NodeError(error))")")
    } catch { throw .unforeseen("\(error)") }
    return notices
  }
}
