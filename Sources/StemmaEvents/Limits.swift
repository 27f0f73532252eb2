/// Every limit on the data of this module. Sizes in bytes.
package enum Limits {
  /// The highest accepted sequence, version and commit number: 2^53 - 1. It leaves room for
  /// arithmetic without overflow, and JSON readers keep such numbers exact.
  package static let highestNumber: UInt64 = (1 << 53) - 1
  /// Longest encoded key.
  package static let key = 4096
  /// Longest partition name.
  package static let partition = 1024
  /// Longest model, field and relationship name.
  package static let name = 255
  /// Longest text or JSON value.
  package static let value = 16 << 20
  /// Longest `by`, `note` and `source` of a commit.
  package static let message = 4096
  /// Entries in one context.
  package static let contextEntries = 1 << 16
  /// Raw bytes of one block's stream (keys, metadata or values), before compression.
  package static let blockStream = 256 << 20
  /// Events of one block.
  package static let blockEvents = 1 << 24
  /// The maximum ratio of raw to stored bytes of a deflated stream. Deflate itself cannot exceed
  /// 1032 (RFC 1951: matches of 258 bytes in two bits).
  package static let inflationRatio = 1032
}
