import StemmaEvents

extension ReplicationError: ByteReaderError {}

typealias WireReader = ByteReader<ReplicationError>

extension [UInt8] {
  mutating func append(_ origin: Origin) { appendFixed(origin.rawValue) }

  mutating func append(_ hash: StreamHash) {
    appendFixed(hash.high)
    appendFixed(hash.low)
  }
}

extension WireReader {
  mutating func origin() throws(ReplicationError) -> Origin { Origin(try fixed("origin")) }

  mutating func sequence() throws(ReplicationError) -> SequenceNumber {
    SequenceNumber(try number("sequence", limit: Limits.highestNumber))
  }

  mutating func hash() throws(ReplicationError) -> StreamHash {
    let high = try fixed("hash")
    return StreamHash(high: high, low: try fixed("hash"))
  }

  mutating func partition() throws(ReplicationError) -> Partition {
    let name = Array(try counted("partition", limit: Limits.partition))
    do { return try Partition(validating: name) } catch { throw .malformed("partition", "\(error)") }
  }
}
