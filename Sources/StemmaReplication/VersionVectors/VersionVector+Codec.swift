import StemmaEvents

/// The canonical encoding of a version vector: equal vectors have equal bytes. No others are read.
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
/// Numbers are LEB128 varints in their shortest form. Streams without events are omitted.
extension VersionVector {
  func encode(into writer: inout [UInt8]) {
    let held = sortedPartitions.compactMap { name in
      let streams = streams(of: name)
      return streams.isEmpty ? nil : (name, streams)
    }
    writer.appendVarint(held.count)
    for (partition, streams) in held {
      writer.appendCounted(partition.bytes)
      writer.appendVarint(streams.count)
      for (origin, head) in streams {
        writer.append(origin)
        writer.appendVarint(head.sequence.rawValue)
        writer.append(head.hash)
      }
    }
  }

  init(from reader: inout WireReader) throws(ReplicationError) {
    self.init()
    let smallestStream = 8 + 1 + 16
    let count = try reader.count(
      "partitions", limit: ReplicationLimits.partitions, each: 3 + smallestStream)
    partitions.reserveCapacity(count)
    var previous: Partition?
    for _ in 0..<count {
      let partition = try reader.partition()
      if let previous, previous >= partition {
        throw .malformed("versionVector", "partition \(partition) is out of order")
      }
      previous = partition
      let streamCount = try reader.count(
        "streams", limit: ReplicationLimits.streamsOfPartition, each: smallestStream)
      guard streamCount > 0 else {
        throw .malformed("versionVector", "partition \(partition) without a stream")
      }
      var streams: [Origin: StreamHead] = [:]
      streams.reserveCapacity(streamCount)
      var previousOrigin: Origin?
      for _ in 0..<streamCount {
        let origin = try reader.origin()
        if let previousOrigin, previousOrigin >= origin {
          throw .malformed("versionVector", "origin \(origin) is out of order")
        }
        previousOrigin = origin
        let sequence = try reader.sequence()
        guard sequence > .zero else { throw .malformed("versionVector", "a stream of no events") }
        streams[origin] = StreamHead(sequence: sequence, hash: try reader.hash())
      }
      partitions[partition] = streams
    }
  }

  /// The canonical bytes.
  package var encoded: [UInt8] {
    var bytes: [UInt8] = []
    encode(into: &bytes)
    return bytes
  }

  /// Decodes canonical bytes from any source.
  package init(decoding bytes: [UInt8]) throws(ReplicationError) {
    self = try bytes.read { (reader) throws(ReplicationError) in
      let versionVector = try VersionVector(from: &reader)
      try reader.finish("versionVector")
      return versionVector
    }
  }
}
