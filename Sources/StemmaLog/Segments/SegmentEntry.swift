import StemmaEvents

/// A sealed file, as the manifest lists it.
package struct SegmentEntry: Hashable, Sendable {
  package var number: UInt64
  /// Bytes of the file.
  package var size: UInt64
  /// The position of its position 0.
  package var base: Position
  /// Behind its last position, and not above the base of the next file.
  package var past: Position
  package var digest: SegmentDigest

  static let encodedSize = 64
}
