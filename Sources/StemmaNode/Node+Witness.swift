import StemmaEvents
import StemmaLog
import StemmaTables

// Tables are never believed against the log, but they are a witness: they only take in what is durable. Where they know of
// events that no file of the log holds, and no damage of a file explains it, files were taken away, or put back as they were
// some time ago, with all that told of the others. Such events are lost like those that damage takes: it is recorded,
// their partitions can only be read, a repair fetches them from peers, and giving up accepts the loss.

extension Node {
  /// The events up to where `held` remembers a stream, or a recorded loss goes, and which a log that is otherwise whole does
  /// not hold. Reads the footers of all files, and the journals.
  static func forgotten(
    by log: Log, held: Knowledge, recorded: [RecordedDamage.Loss] = []
  ) throws(LogError) -> [RecordedDamage.Loss] {
    let remembered = held.remembering(recorded)
    guard !remembered.partitions.isEmpty else { return [] }
    let there: Knowledge
    do throws(LogError) { there = try log.streamsWithUnconfirmed() } catch {
      // Damage is told by itself, and by what it took.
      guard error.damage != nil else { throw error }
      return []
    }
    var losses: [RecordedDamage.Loss] = []
    for partition in remembered.sortedPartitions {
      let streams = (remembered.partitions[partition] ?? [:]).sorted { $0.key < $1.key }
      for (origin, head) in streams where head.sequence > there[partition, origin].sequence {
        losses.append(
          RecordedDamage.Loss(
            partition: partition.description, origin: origin.description,
            from: there[partition, origin].sequence.next.rawValue, to: head.sequence.rawValue, file: nil))
      }
    }
    return losses
  }

  /// Those that the tables, or the record of damage, remember now.
  func forgottenEvents() throws(NodeError) -> [RecordedDamage.Loss] {
    let held = areTablesPartial ? Knowledge() : try reading { try $0.knowledge() }
    return try Self.wrapping { try Self.forgotten(by: log, held: held, recorded: mark.damage?.losses ?? []) }
  }

  /// Records such a loss. The writer lock must be held.
  func recordForgotten(_ losses: [RecordedDamage.Loss]) throws(NodeError) {
    let damage = RecordedDamage(losses: losses)
    mark.damage = damage
    notices += damage.sentences
    // Their numbers must not be used again, whatever becomes of the tables.
    if options.mode == .write, dueOrigin == nil,
      losses.contains(where: { $0.origin == mark.origin.description })
    {
      try beginOrigin(because: "events of this node are lost")
    } else {
      try saveMark()
    }
  }

  /// Says what of the log is missing, if the tables or the record of damage know of events that it does not hold.
  ///
  /// - Parameter tables: nil: they cannot be used. Damaged ones, of which the error is thrown, are no witness.
  /// - Returns: whether there are such.
  static func compareMemory(
    of tables: Tables?, _ log: Log, _ mark: NodeMark, _ report: inout VerificationReport
  ) throws -> Bool {
    let held =
      try tables.map { try $0.read { reader throws(TablesError) in try reader.knowledge() } } ?? Knowledge()
    let losses = try forgotten(by: log, held: held, recorded: mark.damage?.losses ?? [])
    guard !losses.isEmpty else { return false }
    let count = counted(losses.reduce(0) { $0 + $1.count }, "event")
    let what = "the tables tell of \(count) that cannot be read any more"
    if let torn = log.tornTail {
      report.damage.append(
        .init(file: torn.path, offset: torn.offset, what: "\(torn.flaw); \(what)", remedy: .repair))
    } else {
      report.damage.append(
        .init(
          file: log.directory, what: "\(what): files were taken away, or put back as they were before",
          remedy: .repair))
    }
    report.losses = losses
    return true
  }
}

extension Knowledge {
  /// With the ends of losses of no file, of which there may be no other memory.
  func remembering(_ losses: [RecordedDamage.Loss]) -> Knowledge {
    var knowledge = self
    for loss in losses where loss.file == nil {
      guard let raw = UInt64(loss.origin, radix: 16) else { continue }
      let (partition, origin) = (Partition(loss.partition), Origin(raw))
      if knowledge[partition, origin].sequence < Sequence(loss.to) {
        knowledge[partition, origin] = StreamHead(sequence: Sequence(loss.to), hash: .zero)
      }
    }
    return knowledge
  }
}
