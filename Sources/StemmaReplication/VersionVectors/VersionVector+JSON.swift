import StemmaEvents

/// The JSON form of a version vector, for files that people carry between nodes:
///
///     {"PARTITION": {"ORIGIN": {"sequence": 3, "hash": "32 hexadecimal digits"}}}
///
/// An origin is written as 16 hexadecimal digits.
extension VersionVector {
  package var json: JSON {
    .object(
      sortedPartitions.compactMap { partition in
        let streams = streams(of: partition)
        guard !streams.isEmpty else { return nil }
        return (
          partition.description,
          .object(
            streams.map { origin, head in
              (
                origin.description,
                .object([
                  ("sequence", .int(Int64(clamping: head.sequence.rawValue))),
                  ("hash", .string(head.hash.description)),
                ])
              )
            })
        )
      })
  }

  /// - Throws: `.malformed` for any other form.
  package init(_ json: JSON) throws(ReplicationError) {
    self.init()
    for (name, value) in try Self.members(json, "an object of partitions") {
      let partition: Partition
      do throws(EventsError) { partition = try Partition(validating: Array(name.utf8)) } catch {
        throw Self.malformed("partition `\(name)` is not valid")
      }
      for (text, value) in try Self.members(value, "an object of origins in \(partition)") {
        guard text.utf8.count == 16, let origin = UInt64(text, radix: 16) else {
          throw Self.malformed("origin `\(text)` is not sixteen hexadecimal digits")
        }
        guard case .int(let sequence)? = value["sequence"], case .string(let hash)? = value["hash"],
          (1...Int64(Limits.highestNumber)).contains(sequence), hash.utf8.count == 32,
          let high = UInt64(hash.prefix(16), radix: 16), let low = UInt64(hash.suffix(16), radix: 16)
        else { throw Self.malformed("\(partition), \(text) has no valid sequence and hash") }
        self[partition, Origin(origin)] = StreamHead(
          sequence: SequenceNumber(UInt64(sequence)), hash: StreamHash(high: high, low: low))
      }
    }
  }

  private static func members(
    _ json: JSON, _ expected: String
  ) throws(ReplicationError) -> [(name: String, value: JSON)] {
    guard case .object(let members) = json else { throw malformed("expected \(expected)") }
    return members
  }

  private static func malformed(_ found: String) -> ReplicationError { .malformed("version vector", found) }
}
