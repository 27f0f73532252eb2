import StemmaEvents

/// The partitions, blocks and times of one log file.
package struct LogFileContent: Sendable {
  /// Sorted by partition.
  package var partitions: [PartitionRun]
  /// Blocks of a segment, frames of a journal.
  package var blocks: Int
  /// nil: there are no events.
  package var times: ClosedRange<Timestamp>?
}

extension Log {
  /// Like `content(of:)`, but accepts duplicate event ids. Notes corruption and returns nil.
  package func content(of file: LogFile, around omissions: Omissions) throws(LogError) -> LogFileContent? {
    try Omissions?.some(omissions).reading { () throws(LogError) in
      try content(of: file, acceptsDuplicates: true)
    }
  }

  /// The content of a file that `files` listed, from the footer of a segment or by decoding a
  /// journal. Throws `.corrupt`. `acceptsDuplicates`: a journal may have duplicate event ids.
  package func content(of file: LogFile, acceptsDuplicates: Bool = false) throws(LogError) -> LogFileContent {
    for view in views where view.base == file.positions.lowerBound {
      switch view {
      case .segment(let entry):
        let footer = try segment(entry).footer(of: nil, footers)
        let lowest = footer.blocks.map(\.lowestTimestamp).min()
        let highest = footer.blocks.map(\.highestTimestamp).max()
        return LogFileContent(
          partitions: footer.partitions, blocks: footer.blocks.count, times: Self.range(lowest, highest))
      case .journal(let journal):
        var runs = RunCollector(path: journal.path, acceptsDuplicates: acceptsDuplicates)
        var lowest: Timestamp?
        var highest: Timestamp?
        for part in journal.parts(in: 0..<UInt64.max) {
          for event in try journal.read(part).events {
            try runs.add(event.event, offset: journal.offset(of: part))
            let time = event.event.timestamp
            lowest = lowest.map { min($0, time) } ?? time
            highest = highest.map { max($0, time) } ?? time
          }
        }
        return LogFileContent(
          partitions: runs.partitions, blocks: journal.marks.count, times: Self.range(lowest, highest))
      case .corrupt(let corruption, _): throw corruption.error
      }
    }
    return LogFileContent(partitions: [], blocks: 0)
  }

  private static func range(_ lowest: Timestamp?, _ highest: Timestamp?) -> ClosedRange<Timestamp>? {
    guard let lowest, let highest, lowest <= highest else { return nil }
    return lowest...highest
  }
}
