import StemmaEvents

/// Knowledge as bytes. Canonical: equal knowledge gives equal bytes, and nothing else is read.
///
///     number of partitions
///     per partition, in the order of their names' bytes, each once:
///       name (length, bytes)
///       number of its streams, at least 1
///       per stream, in the order of origins, each once:
///         origin     8 bytes, big-endian
///         sequence   at least 1
///         hash       16 bytes, big-endian
///
/// Numbers are LEB128 varints in their shortest form. Streams of which nothing is held are left out.
extension Knowledge {
  func encode(into writer: inout WireWriter) {
    let held = sortedPartitions.compactMap { name in
      let streams = streams(of: name)
      return streams.isEmpty ? nil : (name, streams)
    }
    writer.append(held.count)
    for (partition, streams) in held {
      writer.append(partition.bytes)
      writer.append(streams.count)
      for (origin, head) in streams {
        writer.append(origin)
        writer.append(head)
      }
    }
  }

  init(from reader: inout WireReader) throws(ReplicationError) {
    self.init()
    let smallestStream = 8 + 1 + 16
    let count = try reader.count(
      "partitions", limit: ReplicationLimits.partitions, itemSize: 3 + smallestStream)
    partitions.reserveCapacity(count)
    var previous: Partition?
    for _ in 0..<count {
      let partition = try reader.partition()
      if let previous, previous >= partition {
        throw reader.malformed("partition \(partition) is out of order")
      }
      previous = partition
      let streamCount = try reader.count(
        "streams", limit: ReplicationLimits.streamsOfPartition, itemSize: smallestStream)
      guard streamCount > 0 else { throw reader.malformed("partition \(partition) without a stream") }
      var streams: [Origin: StreamHead] = [:]
      streams.reserveCapacity(streamCount)
      var previousOrigin: Origin?
      for _ in 0..<streamCount {
        let origin = try reader.origin()
        if let previousOrigin, previousOrigin >= origin {
          throw reader.malformed("origin \(origin) is out of order")
        }
        previousOrigin = origin
        let sequence = try reader.sequence()
        guard sequence > .zero else { throw reader.malformed("a stream of no events") }
        streams[origin] = StreamHead(sequence: sequence, hash: try reader.hash())
      }
      partitions[partition] = streams
    }
  }

  /// The canonical bytes.
  package var encoded: [UInt8] {
    var writer = WireWriter()
    encode(into: &writer)
    return writer.bytes
  }

  /// Reads canonical bytes from anywhere.
  package init(decoding bytes: [UInt8]) throws(ReplicationError) {
    var reader = WireReader(bytes, subject: "knowledge")
    try self.init(from: &reader)
    try reader.end()
  }
}
