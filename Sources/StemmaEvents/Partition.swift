import StemmaSchema

/// The unit of filtering, sequencing and authorization: `field=value` of the leading part of a
/// composite key (several: `a=1,b=2`), or the model's name. Compared as bytes.
package struct Partition: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let bytes: [UInt8]

  /// The partition of a record. Its key fixes it permanently.
  package init(model: Model, key: Key) {
    if let only = Partition(of: model) {
      self = only
      return
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(key.bytes.count + 32)
    var index = 0
    for depth in 0..<model.partitionDepth {
      if depth > 0 { bytes.append(UInt8(ascii: ",")) }
      bytes.append(contentsOf: model.fields[model.keyFields[depth]].storedName.utf8)
      bytes.append(UInt8(ascii: "="))
      // The bytes of a key were verified when it was written or received.
      if let text = Key.plainText(key.bytes, at: index) {
        Self.escape(key.bytes[text], into: &bytes)
        index = text.upperBound + 1
        continue
      }
      do { Self.escape(try Key.decodePart(key.bytes, &index).text.utf8, into: &bytes) } catch {
        preconditionFailure("a key has as many parts as its model: \(error)")
      }
    }
    self.bytes = bytes
  }

  /// The partition that all records of a model share; nil if their keys determine it.
  package init?(of model: Model) {
    guard model.partitionDepth == 0 else { return nil }
    bytes = Array(model.storedName.utf8)
  }

  /// Accepts an untrusted name. Throws unless it is UTF-8 of 1 to `Limits.partition` bytes.
  package init(validating bytes: [UInt8]) throws(EventsError) {
    guard (1...Limits.partition).contains(bytes.count) else {
      throw .malformed("partition", "\(bytes.count) bytes")
    }
    guard String(validating: bytes, as: UTF8.self) != nil else { throw .malformed("partition", "not UTF-8") }
    self.bytes = bytes
  }

  /// A partition name as a person writes it, without further escaping.
  package init(_ text: String) { bytes = Array(text.utf8) }

  /// Hashes all bytes at once: one by one costs ten times as much.
  package func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }

  /// Compares all bytes at once.
  package static func == (a: Partition, b: Partition) -> Bool { a.bytes.isSame(as: b.bytes) }

  package static func < (a: Partition, b: Partition) -> Bool { a.bytes.lexicographicallyPrecedes(b.bytes) }

  package var description: String { String(decoding: bytes, as: UTF8.self) }

  /// Whether a byte is special in partition names and patterns, and percent-escaped in values.
  package static func isSpecial(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "%"), UInt8(ascii: ","), UInt8(ascii: "="), UInt8(ascii: "*"), UInt8(ascii: "?"),
      UInt8(ascii: "["), UInt8(ascii: "!"):
      true
    default: false
    }
  }

  static func escape(_ text: some Sequence<UInt8>, into bytes: inout [UInt8]) {
    for byte in text {
      if isSpecial(byte) {
        let digits = Array("0123456789ABCDEF".utf8)
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      } else {
        bytes.append(byte)
      }
    }
  }
}
