import StemmaEvents
import StemmaLog

/// What a shipment is made from: a log, seen as files in the order in which the node came to hold their
/// events. The files that are listed must not change while the shipment is written, except that the last one
/// may grow: `streams` say how far it is read.
package protocol ShipmentSource {
  /// All files, oldest first, without decoding their events.
  func shipmentFiles() throws(ReplicationError) -> [SourceFile]
  /// The events of one file, in arrival order: those of `partitions` only, reading no more blocks than these
  /// need, and none beyond the file's `end`. What cannot be read is told when it is pulled. May be asked for before the
  /// events of the files before it are pulled.
  func events(of file: SourceFile, in partitions: Set<Partition>) -> EventPull
  /// A file, to be shipped as it is; nil if it is not sealed, or so small that its events travel
  /// better together with others': below `least` bytes of events (`Event.rawSize`).
  func sealed(_ file: SourceFile, atLeast least: Int) throws(ReplicationError) -> SealedFile?
  /// Bytes read from the log's files since it was opened.
  var bytesRead: UInt64 { get }
}

/// Gives the next event; nil behind the last.
package typealias EventPull = () throws(ReplicationError) -> DigestedEvent?

/// One file of a source.
package struct SourceFile: Sendable {
  package var number: UInt64
  /// Behind its last event that is shown.
  package var end: Position
  /// `Event.rawSize` of all its events.
  package var rawBytes: UInt64
  /// What the file holds of each stream. A stream once at most.
  package var streams: [StreamRange]

  package init(number: UInt64, end: Position, rawBytes: UInt64 = 0, streams: [StreamRange]) {
    self.number = number
    self.end = end
    self.rawBytes = rawBytes
    self.streams = streams
  }
}

/// Consecutive events of one stream.
package struct StreamRange: Hashable, Sendable {
  package var partition: Partition
  package var origin: Origin
  /// The first and the last, both held.
  package var from: Sequence
  package var to: Sequence
  /// Of these events alone.
  package var hash: StreamHash

  package init(partition: Partition, origin: Origin, from: Sequence, to: Sequence, hash: StreamHash) {
    self.partition = partition
    self.origin = origin
    self.from = from
    self.to = to
    self.hash = hash
  }
}
