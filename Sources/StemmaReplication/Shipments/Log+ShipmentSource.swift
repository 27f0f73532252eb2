import StemmaEvents
import StemmaLog

/// A log as the source of shipments: nothing above its durable end is shown.
package struct LogSource: ShipmentSource {
  private let log: Log
  private let end: Position
  private let omissions: Omissions?
  private let journals: ReadJournals

  /// The log as it is now. The caller keeps it from being refreshed, sealed or purged meanwhile; appends do
  /// not matter. Damage is thrown, or collected in `omissions` and read around: then no partition that lost events may
  /// be shipped, and one that did all the same is told by its hashes.
  /// `keeping`: `Event.rawSize` of all events of a journal up to which they are kept from planning to shipping.
  package init(
    _ log: Log, around omissions: Omissions? = nil, keeping limit: Int = ReplicationLimits.keptJournal
  ) {
    self.log = log
    self.omissions = omissions
    journals = ReadJournals(limit: limit)
    end = log.durableEnd
  }

  package var bytesRead: UInt64 { log.bytesRead }

  package func shipmentFiles() throws(ReplicationError) -> [SourceFile] {
    do throws(LogError) {
      var files: [SourceFile] = []
      for file in try log.files() where file.place <= end.file {
        let end = min(Position(file: file.place + 1, index: 0), end)
        let read = try omissions.reading { () throws(LogError) in
          file.kind == .journal ? try streams(ofJournal: file, to: end) : try streams(of: file)
        }
        guard let streams = read else { continue }
        files.append(
          SourceFile(number: file.place, end: end, rawBytes: file.rawBytes, streams: streams))
      }
      return files
    } catch {
      throw ReplicationError(error)
    }
  }

  /// By its footer; for a file that is damaged it throws.
  private func streams(of file: LogFile) throws(LogError) -> [StreamRange] {
    try log.content(of: file).partitions.flatMap { run in
      run.streams.map { stream in
        StreamRange(
          partition: run.partition, origin: stream.origin, from: stream.from, to: stream.to, hash: stream.hash
        )
      }
    }
  }

  /// A journal has no footer, and may hold events that are not durable yet: those before `end` are read.
  private func streams(ofJournal file: LogFile, to end: Position) throws(LogError) -> [StreamRange] {
    var ranges: [Partition: [Origin: StreamRange]] = [:]
    var digester = EventDigester()
    var read: [DigestedEvent] = []
    let isKept = file.rawBytes <= UInt64(journals.limit)
    var reader = log.events(from: Position(file: file.place, index: 0), to: end, around: omissions)
    while let event = try reader.next()?.event {
      let digest = digester.digest(of: event).hash
      if isKept { read.append(DigestedEvent(event: event, note: reader.note, digest: digest)) }
      let sequence = event.dot.sequence
      let fresh = StreamRange(
        partition: event.partition, origin: event.dot.origin, from: sequence, to: sequence, hash: .zero)
      var range = ranges[event.partition]?[event.dot.origin] ?? fresh
      range.to = sequence
      range.hash += digest
      ranges[event.partition, default: [:]][event.dot.origin] = range
    }
    journals.events[file.place] = isKept ? read : nil
    assert(holds(journals.checkInvariants))
    return ranges.values.flatMap(\.values).sorted { ($0.partition, $0.origin) < ($1.partition, $1.origin) }
  }

  package func sealed(_ file: SourceFile, atLeast least: Int) throws(ReplicationError) -> SealedFile? {
    do throws(LogError) {
      guard file.rawBytes >= UInt64(least) else { return nil }
      return try log.sealedFile(ofPlace: file.number)
    } catch {
      throw ReplicationError(error)
    }
  }

  package func events(of file: SourceFile, in partitions: Set<Partition>) -> EventPull {
    if let read = journals.events.removeValue(forKey: file.number) {
      var left = read.makeIterator()
      return { () throws(ReplicationError) in
        while let item = left.next() { if partitions.contains(item.event.partition) { return item } }
        return nil
      }
    }
    // Who reads around damage counts what is lost.
    let isSealed = omissions == nil && file.end.file > file.number
    let selected = isSealed ? log.selectedEvents(ofPlace: file.number, in: partitions) : nil
    var left: [DigestedEvent].Iterator?
    var reader: EventReader?
    var digester = EventDigester()
    return { () throws(ReplicationError) in
      if left == nil, reader == nil {
        left = selected?.take()?.makeIterator()
        reader = log.events(
          from: Position(file: file.number, index: 0), to: file.end, partitions: { partitions.contains($0) },
          around: omissions)
      }
      if left != nil { return left?.next() }
      do throws(LogError) {
        guard let event = try reader?.next()?.event else { return nil }
        return DigestedEvent(event: event, note: reader?.note, digest: digester.digest(of: event).hash)
      } catch {
        throw ReplicationError(error)
      }
    }
  }
}

extension ReplicationError {
  /// What kept a log from being read.
  init(_ error: LogError) {
    self = if let damage = error.damage { .damagedLog(damage) } else { .failed(error.description) }
  }
}

/// The events of small journals that were read to plan a shipment: between nodes that talk often, all that is shipped.
private final class ReadJournals {
  let limit: Int
  /// By file number, until they are asked for.
  var events: [UInt64: [DigestedEvent]] = [:]

  init(limit: Int) { self.limit = limit }

  /// Traps if more is kept of a journal than may be, or events in another order than that of their arrival, which in
  /// each stream is that of their numbers. In debug builds behind each journal.
  func checkInvariants() {
    for kept in events.values {
      precondition(kept.reduce(0) { $0 + $1.event.rawSize } <= limit, "small journals are kept")
      var last: [Partition: [Origin: Sequence]] = [:]
      for event in kept.map(\.event) {
        let before = last[event.partition, default: [:]]
          .updateValue(event.dot.sequence, forKey: event.dot.origin)
        precondition(before.map { $0 < event.dot.sequence } ?? true, "events stand as they came")
      }
    }
  }
}
