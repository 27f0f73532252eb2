import StemmaEvents

// A scope change or fork repair is recorded durably in the node metadata before it is executed. If
// the process crashes, the next process that takes the writer lock completes it. Until then, events
// may exist under two ids, and the tables need not match them. That is not corruption.

extension NodeMetadata {
  /// Whether a recorded operation must be completed by the next writer.
  var isUnfinished: Bool { pendingScope != nil || pendingFork != nil }

  /// Whether completing it rebuilds the tables.
  var remakesTables: Bool { pendingFork != nil }

  /// Whether an unfinished operation concerns a partition.
  var isUnsettled: @Sendable (Partition) -> Bool {
    let partitions = Set((pendingFork?.branches ?? []).map { Partition($0.partition) })
    return { [pendingScope] in pendingScope?.contains($0) == false || partitions.contains($0) }
  }

  /// Warnings for readers: corruption and unfinished operations.
  package var sentences: [Notice] { (corruption?.sentences ?? []) + unfinishedSentences }

  /// One sentence for each unfinished operation.
  package var unfinishedSentences: [Notice] {
    var sentences: [Notice] = []
    let end =
      corruption == nil
      ? "is unfinished; the next write finishes it" : "is unfinished, and waits for the repair of the log"
    if let pendingScope {
      let patterns = pendingScope.patterns.isEmpty ? "nothing" : pendingScope.patterns.joined(separator: " ")
      sentences.append("a change of scope to \(patterns) \(end)")
    }
    if pendingFork != nil { sentences.append("the repair of a fork \(end)") }
    return sentences
  }
}
