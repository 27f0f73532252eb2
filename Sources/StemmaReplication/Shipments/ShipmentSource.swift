import StemmaEvents
import StemmaLog

/// The source of a shipment: a log as files in position order. The listed files must not change
/// while the shipment is written, except that the last one may grow. Events beyond `versionVector`
/// are not shipped.
package protocol ShipmentSource {
  /// The events that the files hold, at least.
  var versionVector: VersionVector { get }
  /// All files, oldest first. Reads no events.
  func shipmentFiles() throws(ReplicationError) -> [SourceFile]
  /// The ranges of the streams of some partitions in a file, possibly without hashes.
  func streams(
    of file: SourceFile, in partitions: Set<Partition>
  ) throws(ReplicationError) -> [StreamRange]
  /// The hashes of streams of `versionVector` up to the sequences in `ends`. Reads the files with
  /// the later events. Omits a stream that cannot be read that far back.
  func streamHashes(_ ends: [QualifiedEventID]) throws(ReplicationError) -> [QualifiedEventID: StreamHash]
  /// The events of some partitions in a file, in position order, before the file's `end`. Reads
  /// only the blocks that they need, and reports errors when the event is pulled. The caller may
  /// request a file before it has pulled the earlier files' events.
  func events(of file: SourceFile, in partitions: Set<Partition>) -> EventPull
  /// A file to ship unchanged. Nil if it is not a segment, or has less than `least` bytes of events
  /// (`Event.rawSize`), which are better shipped together with others.
  func sealed(_ file: SourceFile, atLeast least: Int) throws(ReplicationError) -> SealedFile?
  /// Bytes read from the log's files since the opening.
  var bytesRead: UInt64 { get }
}

/// Returns the next event; nil after the last.
package typealias EventPull = () throws(ReplicationError) -> DigestedEvent?

/// One file of a source.
package struct SourceFile: Sendable {
  /// The position of its first event.
  package var start: Position
  /// The end of its visible events.
  package var end: Position
  package var events: UInt64
  /// `Event.rawSize` of all its events.
  package var rawBytes: UInt64

  package init(start: Position, end: Position, events: UInt64, rawBytes: UInt64 = 0) {
    self.start = start
    self.end = end
    self.events = events
    self.rawBytes = rawBytes
  }
}

/// Consecutive events of one stream.
package struct StreamRange: Hashable, Sendable {
  package var partition: Partition
  package var origin: Origin
  /// The first and the last event, both inclusive.
  package var from: SequenceNumber
  package var to: SequenceNumber
  /// The hash of these events alone.
  package var hash: StreamHash

  package var stream: StreamID { StreamID(partition: partition, origin: origin) }

  package init(
    partition: Partition, origin: Origin, from: SequenceNumber, to: SequenceNumber, hash: StreamHash
  ) {
    self.partition = partition
    self.origin = origin
    self.from = from
    self.to = to
    self.hash = hash
  }
}
