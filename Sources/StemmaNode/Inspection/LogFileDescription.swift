import StemmaEvents
import StemmaLog

/// A file of the log as `segments` lists it.
package struct LogFileDescription: Sendable {
  package struct PartitionShare: Sendable {
    package var partition: String
    package var events: UInt64
    /// From 1; nil in a journal. Other partitions may share the first and the last one.
    package var blocks: ClosedRange<Int>?
    /// For each origin its name and the numbers of its events.
    package var streams: [(origin: String, from: UInt64, to: UInt64)]
  }

  package var number: UInt64
  /// The file number in the positions of its events.
  package var place: UInt64
  package var kind: String
  package var file: String
  package var events: UInt64
  /// The first and last position, and the lowest and highest time of its events; nil where there are none.
  package var positions: (first: String, last: String)?
  package var times: (first: String, last: String)?
  package var rawBytes: UInt64
  package var storedBytes: UInt64
  /// nil: damage keeps it from being told.
  package var partitions: [PartitionShare]?
  package var blocks: Int?
  package var digest: String?
  /// What is wrong with it: if nothing else is known of it, why, otherwise what was found when it was read last.
  package var damage: String?

  package func json(withPartitions: Bool) -> JSON {
    func pair(_ range: (first: String, last: String)?) -> JSON {
      range.map { .array([.string($0.first), .string($0.last)]) } ?? .null
    }
    func number(_ value: UInt64) -> JSON { Value.int(Int64(clamping: value)).json }
    var members: [(name: String, value: JSON)] = [
      ("number", number(self.number)), ("place", number(place)), ("kind", .string(kind)),
      ("file", .string(file)), ("events", number(events)), ("positions", pair(positions)),
      ("times", pair(times)), ("rawBytes", number(rawBytes)), ("storedBytes", number(storedBytes)),
      ("partitions", partitions.map { .int(Int64($0.count)) } ?? .null),
      ("blocks", blocks.map { .int(Int64($0)) } ?? .null),
      ("digest", digest.map { .string($0) } ?? .null), ("damage", damage.map { .string($0) } ?? .null),
    ]
    guard withPartitions else { return .object(members) }
    let shares = (partitions ?? []).map { share in
      JSON.object([
        ("partition", .string(share.partition)), ("events", number(share.events)),
        (
          "blocks",
          share.blocks.map { .array([.int(Int64($0.lowerBound)), .int(Int64($0.upperBound))]) } ?? .null
        ),
        (
          "streams",
          .array(
            share.streams.map { stream in
              .object([
                ("origin", .string(stream.origin)), ("from", number(stream.from)), ("to", number(stream.to)),
              ])
            })
        ),
      ])
    }
    members.append(("partitionList", .array(shares)))
    return .object(members)
  }
}

extension Node {
  /// The files of the log in their order. One that is damaged is among them, and says so. Reads the footers of
  /// segments, and decodes the journal.
  package func logFiles() throws(NodeError) -> [LogFileDescription] {
    try Self.wrapping {
      try log.files().map { file in
        do throws(LogError) {
          return describe(
            file, try log.content(of: file, takesDoubled: true), damage: recordedDamage(of: file))
        } catch {
          guard case .damaged(_, let offset, let flaw) = error else { throw error }
          let standIn = log.standIns.first { $0.missing == file.path }
          let what =
            standIn.map { Explanations.missing(unless: $0.other) }
            ?? "damaged at byte \(offset): \(flaw)"
          return describe(file, nil, damage: what)
        }
      }
    }
  }

  /// Blocks are not read here, but somebody may have met a damaged one.
  private func recordedDamage(of file: LogFile) -> String? {
    mark.damage?.places.first { file.path.hasSuffix("/" + $0.file) }
      .map { "damaged at byte \($0.offset): \($0.what)" }
  }

  private func describe(
    _ file: LogFile, _ content: LogFileContent?, damage: String?
  ) -> LogFileDescription {
    let description = self.description
    // Finding a name means looking through all of them, and there may be many streams.
    var names: [Origin: String] = [:]
    for run in content?.partitions ?? [] {
      for stream in run.streams where names[stream.origin] == nil {
        names[stream.origin] = mark.displayName(of: stream.origin)
      }
    }
    let shares = content?.partitions.map { run in
      LogFileDescription.PartitionShare(
        partition: run.partition.description, events: run.events,
        blocks: run.blocks.isEmpty ? nil : run.blocks.lowerBound + 1...run.blocks.upperBound,
        streams: run.streams.map { stream in
          (names[stream.origin] ?? stream.origin.description, stream.from.rawValue, stream.to.rawValue)
        })
    }
    let positions = { (index: UInt64) in Position(file: file.place, index: index).description }
    return LogFileDescription(
      number: file.number, place: file.place, kind: "\(file.kind)",
      file: file.path.fileName, events: file.events,
      positions: file.end > 0 ? (positions(0), positions(file.end - 1)) : nil,
      times: content?.times.map { (description.time($0.lowerBound), description.time($0.upperBound)) },
      rawBytes: file.rawBytes, storedBytes: file.storedBytes, partitions: shares,
      blocks: content?.blocks,
      digest: file.digest?.description, damage: damage)
  }
}
