import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSchema

extension BundleReader {
  /// The number of events in each partition, in the order of their names. Partitions without events
  /// are omitted.
  package var counts: [(partition: Partition, events: UInt64)] {
    prerequisites.lag(against: holding).compactMap { $0.behind > 0 ? ($0.partition, $0.behind) : nil }
  }

  /// The number of events.
  package var events: UInt64 { counts.reduce(0) { $0 + $1.events } }

  /// Reads all batches as a receiver does that holds exactly the prerequisites: checks each digest,
  /// each event, and that none is missing.
  ///
  /// - Throws: `.corrupt` if a check fails.
  package mutating func verify() throws(NodeError) {
    let schema: Schema
    do throws(SchemaError) { schema = try SDL.read(greeting.schema).schema } catch {
      throw fault("its schema cannot be read")
    }
    let receiver = Session.Node(
      greeting: Greeting(
        logID: LogID(0), nodeName: "a receiver", origins: [], schema: greeting.schema, scope: .everything),
      schema: schema, takesCopies: true)
    var session = Session.opening(receiver).session
    try check(session.receive(.greeting(greeting)))
    var held = prerequisites
    try check(session.begin(.pull, node: receiver, scope: .everything, versionVector: held))
    try check(session.receive(.holding(TransferRequest(scope: scope, versionVector: holding))))
    while let message = try next() {
      let outcome = session.receive(message)
      try check(outcome)
      guard case .adopt(let batch) = outcome else { continue }
      for stream in batch.streams { held[stream.range.partition, stream.range.origin] = stream.head }
      try check(session.adopted(versionVector: held))
    }
  }

  private func check(_ outcome: Session.Outcome) throws(NodeError) {
    guard case .failed(let error, _) = outcome else { return }
    if case .corrupt(let subject, let found) = error { throw fault("\(subject): \(found)") }
    throw fault("\(error)")
  }
}
