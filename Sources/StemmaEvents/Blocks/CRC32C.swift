import CStemma

/// CRC32C (Castagnoli, as in iSCSI and ext4), in hardware where the processor has it.
package enum CRC32C {
  /// The checksum of `bytes`, continuing from that of the bytes before them (0 to begin).
  package static func of(_ bytes: UnsafeRawBufferPointer, continuing crc: UInt32 = 0) -> UInt32 {
    stemma_crc32c(crc, bytes.baseAddress, bytes.count)
  }

  package static func of(_ bytes: [UInt8], continuing crc: UInt32 = 0) -> UInt32 {
    bytes.withUnsafeBytes { of($0, continuing: crc) }
  }

  package static func of(_ bytes: ArraySlice<UInt8>, continuing crc: UInt32 = 0) -> UInt32 {
    bytes.withUnsafeBytes { of($0, continuing: crc) }
  }
}
