import StemmaEvents

// A change of scope, the mending of a fork and a giving up are decided durably in the mark, and carried out then. Where a
// process dies over one, whoever takes the writer lock next finishes it. Until then what it covers is on its way: events may
// be gone from some files and not from others, or be there under two names, and the tables need not follow them. That is no
// damage.

extension NodeMark {
  /// Whether something was decided that whoever writes next must carry out.
  var isUnfinished: Bool { pendingScope != nil || pendingFork != nil || pendingGivingUp != nil }

  /// Whether finishing it makes the tables anew.
  var remakesTables: Bool { pendingFork != nil || pendingGivingUp != nil }

  /// Whether what is unfinished covers a partition.
  var isUnsettled: @Sendable (Partition) -> Bool {
    let rewritten =
      (pendingFork?.branches ?? []).map(\.partition) + (pendingGivingUp?.cut ?? []).map(\.partition)
    let partitions = Set(rewritten.map { Partition($0) })
    return { [pendingScope] in pendingScope?.contains($0) == false || partitions.contains($0) }
  }

  /// Whether finishing a giving up gives up all of these losses, so that nothing else has to be decided.
  func givesUp(_ losses: [RecordedDamage.Loss]) -> Bool {
    guard let pending = pendingGivingUp else { return false }
    // What is to be given up is decided once more then.
    guard pending.isWritten else { return true }
    return losses.allSatisfy { loss in
      pending.cut.contains {
        $0.partition == loss.partition && Origin($0.origin).description == loss.origin && $0.from <= loss.from
      }
    }
  }

  /// What a person should know who reads: what is damaged, unless that is being given up, and what is unfinished.
  package var sentences: [String] {
    let damage = damage.map { givesUp($0.losses) ? [] : $0.sentences } ?? []
    return damage + unfinishedSentences
  }

  /// One sentence for each decision that is unfinished.
  package var unfinishedSentences: [String] {
    var sentences: [String] = []
    let end =
      damage == nil || pendingGivingUp != nil
      ? "is unfinished; the next write finishes it" : "is unfinished, and waits for the repair of the log"
    if let pendingScope {
      let patterns = pendingScope.patterns.isEmpty ? "nothing" : pendingScope.patterns.joined(separator: " ")
      sentences.append("a change of scope to \(patterns) \(end)")
    }
    if pendingFork != nil { sentences.append("the mending of a fork \(end)") }
    return sentences + [unfinishedGivingUp].compactMap(\.self)
  }

  var unfinishedGivingUp: String? {
    guard let record = pendingGivingUp?.record else { return nil }
    let what = record.events == 0 ? "what damaged files held besides" : record.lostEvents
    return "giving up \(what), which was decided on \(record.day), is unfinished; "
      + (givesUp(damage?.losses ?? [])
        ? "the next write, or `stemma repair --give-up`, finishes it"
        : "more was lost since, and `stemma repair --give-up` gives up that too")
  }
}
