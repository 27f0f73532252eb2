import StemmaEvents

extension Log {
  /// Traps if what the log believes contradicts itself. For tests and the simulator.
  package func checkInvariants() {
    for (index, journal) in journals.enumerated() {
      journal.checkInvariants()
      precondition(index == 0 || journals[index - 1].number < journal.number, "journals rise")
      precondition(journal.number <= listing.highestNumber, "no number is used twice")
    }
    listing.checkInvariants()
    footers.checkInvariants()
    var places: Set<UInt64> = []
    for header in listing.headers.values {
      precondition(header.number <= listing.highestNumber, "no number is used twice")
      precondition(places.insert(header.place).inserted, "each place has one file")
    }
    precondition(journals.allSatisfy { !places.contains($0.number) }, "each place has one file")
    if recovery.damage.isEmpty, options.mode == .readWrite, let open = journals.last {
      precondition(open.durable <= open.size, "nothing is durable that is not there")
      precondition(places.allSatisfy { $0 < open.number }, "the open journal is the last file")
    }
    if let watermark, let open = journals.last, watermark.journal == open.number, recovery.damage.isEmpty {
      precondition(watermark.durable <= open.durable, "the watermark never runs ahead")
    }
  }
}

extension LogDirectory {
  /// Traps if a file is counted under two names, or under none of its own.
  fileprivate func checkInvariants() {
    precondition(
      headers.allSatisfy { $0.key == $0.value.number }, "a file counts by the number in its header")
    precondition(
      misnamed.allSatisfy { $0.key != $0.value.number }, "a file has its own name or another one's")
    precondition(strays.allSatisfy { $0.key != $0.value.number }, "a file has its own name or another one's")
    precondition(misnamed.keys.allSatisfy { strays[$0] == nil }, "a file can have its own name, or it cannot")
    precondition(
      strays.keys.allSatisfy { $0 <= highestNumber },
      "no number that the log has not come to counts")
    let own = misnamed.values.map(\.number)
    precondition(Set(own).count == own.count, "a name is given to one file")
    precondition(own.allSatisfy { headers[$0] == nil }, "a name is given to a file if no other one has it")
    precondition(standIns.keys.allSatisfy { headers[$0] == nil }, "what is there needs nothing in its place")
  }
}

extension Journal {
  func checkInvariants() {
    var offset = UInt64(JournalHeader.size)
    var index: UInt64 = 0
    for mark in marks {
      let isBehindHole = holes.contains { $0.offset == offset }
      precondition(isBehindHole || mark.offset == offset, "frames follow each other")
      precondition(mark.offset >= offset && mark.end > mark.offset, "offsets rise")
      precondition(isBehindHole ? mark.first >= index : mark.first == index, "indices rise")
      offset = mark.end
      index = mark.past
    }
    precondition(size == offset && end == index, "the end is behind the last frame")
    precondition(allocated >= size, "the file holds what was read")
  }
}
