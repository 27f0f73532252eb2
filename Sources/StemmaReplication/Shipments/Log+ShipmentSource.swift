import StemmaEvents
import StemmaLog

/// A log as the source of shipments, up to its durable end.
package struct LogSource: ShipmentSource {
  package let versionVector: VersionVector
  private let log: Log
  private let end: Position
  private let omissions: Omissions?
  private let journals: ReadJournals

  /// The current log. The caller prevents refreshing, sealing and purging, but not appending. The
  /// `versionVector` has the durable events, by the tables. Corruption is thrown, or collected in
  /// `omissions` and skipped. Planning then fails for a partition with lost events. The limit
  /// `keeping` is the total `Event.rawSize` up to which a journal's events are kept for shipping.
  package init(
    _ log: Log, versionVector: VersionVector, around omissions: Omissions? = nil,
    keeping limit: Int = ReplicationLimits.keptJournal
  ) {
    self.log = log
    self.versionVector = versionVector
    self.omissions = omissions
    journals = ReadJournals(limit: limit)
    end = log.durableEnd
  }

  package var bytesRead: UInt64 { log.bytesRead }

  package func shipmentFiles() throws(ReplicationError) -> [SourceFile] {
    try Self.reading { () throws(LogError) in
      let files = try log.files().filter { $0.positions.lowerBound < end }
      return files.map { file in
        SourceFile(
          start: file.positions.lowerBound, end: min(file.positions.upperBound, end), events: file.events,
          rawBytes: file.rawBytes)
      }
    }
  }

  private static func reading<Result>(
    _ body: () throws(LogError) -> Result
  ) throws(ReplicationError) -> Result {
    do throws(LogError) { return try body() } catch { throw ReplicationError(error) }
  }

  package func streams(
    of file: SourceFile, in partitions: Set<Partition>
  ) throws(ReplicationError) -> [StreamRange] {
    try Self.reading { () throws(LogError) in
      let read = try omissions.reading { () throws(LogError) in
        guard let runs = try log.partitions(ofFileAt: file.start, in: partitions) else {
          return try streams(ofJournal: file, in: partitions)
        }
        return runs.flatMap { run in
          run.streams.map {
            StreamRange(partition: run.partition, origin: $0.origin, from: $0.from, to: $0.to, hash: $0.hash)
          }
        }
      }
      return read ?? []
    }
  }

  package func streamHashes(_ ends: [QualifiedEventID]) throws(ReplicationError) -> [QualifiedEventID:
    StreamHash]
  {
    try Self.reading { () throws(LogError) in
      try log.streamHashes(ends, of: versionVector, around: omissions)
    }
  }

  /// A journal has no footer and may hold events that are not durable: those before `end` are read.
  private func streams(
    ofJournal file: SourceFile, in partitions: Set<Partition>
  ) throws(LogError) -> [StreamRange] {
    var ranges: [StreamID: StreamRange] = [:]
    var digester = EventDigester()
    var read: [DigestedEvent] = []
    let isKept = file.rawBytes <= UInt64(journals.limit)
    var reader = log.events(from: file.start, to: file.end, around: omissions)
    while let event = try reader.next()?.event {
      if isKept {
        let digest = digester.digest(of: event).hash
        read.append(DigestedEvent(event: event, message: reader.message, digest: digest))
      }
      guard partitions.contains(event.partition) else { continue }
      let sequence = event.id.sequence
      let fresh = StreamRange(
        partition: event.partition, origin: event.id.origin, from: sequence, to: sequence, hash: .zero)
      ranges[StreamID(event), default: fresh].to = sequence
    }
    journals.events[file.start] = isKept ? read : nil
    assert(holds(journals.checkInvariants))
    return Array(ranges.values)
  }

  package func sealed(_ file: SourceFile, atLeast least: Int) throws(ReplicationError) -> SealedFile? {
    do throws(LogError) {
      guard file.rawBytes >= UInt64(least) else { return nil }
      return try log.sealedFile(at: file.start)
    } catch {
      throw ReplicationError(error)
    }
  }

  package func events(of file: SourceFile, in partitions: Set<Partition>) -> EventPull {
    if let read = journals.events.removeValue(forKey: file.start) {
      var left = read.makeIterator()
      return { () throws(ReplicationError) in
        while let item = left.next() { if partitions.contains(item.event.partition) { return item } }
        return nil
      }
    }
    // A reader that skips corruption counts the lost events.
    let selected = omissions == nil ? log.selectedEvents(ofFileAt: file.start, in: partitions) : nil
    var left: [DigestedEvent].Iterator?
    var reader: EventReader?
    var digester = EventDigester()
    return { () throws(ReplicationError) in
      if left == nil, reader == nil {
        left = selected?.take()?.makeIterator()
        reader = log.events(
          from: file.start, to: file.end, partitions: PartitionFilter(named: partitions),
          around: omissions)
      }
      if left != nil { return left?.next() }
      do throws(LogError) {
        guard let event = try reader?.next()?.event else { return nil }
        return DigestedEvent(event: event, message: reader?.message, digest: digester.digest(of: event).hash)
      } catch {
        throw ReplicationError(error)
      }
    }
  }
}

extension ReplicationError {
  /// Converts an error of reading the log.
  init(_ error: LogError) {
    self =
      if let corruption = error.corruption { .corruptLog(corruption) } else { .failed(error.description) }
  }
}

/// The events of small journals, read for a plan: for nodes that sync often, the whole shipment.
private final class ReadJournals {
  let limit: Int
  /// By the file's start, until they are used.
  var events: [Position: [DigestedEvent]] = [:]

  init(limit: Int) { self.limit = limit }

  /// Traps if too much of a journal is kept, or a stream's events are not in sequence order. Debug
  /// builds call it after each journal.
  func checkInvariants() {
    for kept in events.values {
      precondition(kept.reduce(0) { $0 + $1.event.rawSize } <= limit, "small journals are kept")
      var last: [Partition: [Origin: SequenceNumber]] = [:]
      for event in kept.map(\.event) {
        let before = last[event.partition, default: [:]]
          .updateValue(event.id.sequence, forKey: event.id.origin)
        precondition(before.map { $0 < event.id.sequence } ?? true, "events stand as they came")
      }
    }
  }
}
