import StemmaEvents

extension Log {
  /// Traps if the state in memory contradicts itself. For tests and the simulator.
  package func checkInvariants() {
    manifest.checkInvariants()
    footers.checkInvariants()
    var position = manifest.segments.last?.past ?? .first
    for (index, journal) in journals.enumerated() {
      journal.checkInvariants()
      precondition(journal.number >= manifest.firstJournal, "a sealed journal is none any more")
      precondition(index == 0 || journals[index - 1].number < journal.number, "journals rise")
      precondition(journal.base >= position, "positions rise")
      position = journal.endPosition
    }
    if recovery.corruption.isEmpty, options.mode == .readWrite, let open = journals.last {
      precondition(open.durable <= open.size, "nothing is durable that is not there")
    }
    if let watermark, let open = journals.last, watermark.journal == open.number, recovery.corruption.isEmpty
    {
      precondition(watermark.durable <= open.durable, "the watermark never runs ahead")
    }
  }
}

extension Journal {
  func checkInvariants() {
    var offset = UInt64(JournalHeader.size)
    var index: UInt64 = 0
    for mark in marks {
      let isBehindGap = gaps.contains { $0.offset == offset }
      precondition(isBehindGap || mark.offset == offset, "frames follow each other")
      precondition(mark.offset >= offset && mark.end > mark.offset, "offsets rise")
      precondition(isBehindGap ? mark.first >= index : mark.first == index, "indices rise")
      offset = mark.end
      index = mark.past
    }
    precondition(size == offset && end == index, "the end is behind the last frame")
    precondition(allocated >= size, "the file holds what was read")
  }
}
