/// The corruption that a reader met, after it returned everything readable.
package struct MissingEvents: Sendable {
  /// The requested record, if there was one.
  package var record: String?
  package var places: [RecordedCorruption.Place]
  /// The losses in the requested partitions.
  package var losses: [RecordedCorruption.Loss]
  /// Whether more may be lost than `losses` lists.
  package var isVague: Bool
  /// Whether a notice of the node has reported it on opening.
  package var isTold: Bool
}
