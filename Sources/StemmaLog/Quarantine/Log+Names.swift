extension Log {
  /// Gives the files that have the names of others their own (`NamePlan`). Returns the names that they had. Durable on
  /// return.
  ///
  /// Interrupted at any point, the log is as it was, or some of the files still have names of others.
  package func restoreNames() throws(LogError) -> [String] {
    let plan = try namePlan()
    try checkWritable()
    if plan.isEmpty {
      // Whoever gave a file its name may have failed before the name was durable.
      try poisoning { () throws(LogError) in try fileSystem.syncDirectory(directory) }
      return []
    }
    try perform(plan)
    try load()
    return plan.restored.sorted().map(\.text)
  }

  /// The same where journals have part in it, before anything is written: a writer must not begin a file behind one whose end
  /// it has not seen. False: none have.
  func restoreJournalNames() throws(LogError) -> Bool {
    let plan = try namePlan()
    guard plan.names.contains(where: { $0.key.isJournal || $0.value.isJournal }) else { return false }
    try perform(plan)
    for (name, own) in plan.names.sorted(by: { $0.value < $1.value }) where plan.restored.contains(name) {
      recovery.renamed.append((from: name.path(in: directory), to: own.path(in: directory)))
    }
    return true
  }

  /// Paths of the files that `restoreNames` gives their own.
  package func misnamedFiles() throws(LogError) -> [String] {
    try namePlan().restored.sorted().map { $0.path(in: directory) }
  }

  /// Reads the headers of all files, if anything is wrong with one.
  private func namePlan() throws(LogError) -> NamePlan {
    if listing.damage.isEmpty, listing.misnamed.isEmpty, listing.renamedJournals.isEmpty,
      listing.outsiders.isEmpty
    {
      return NamePlan()
    }
    let files = listing.names.map(LogFileName.init).filter { $0.number != nil }
    var own: [LogFileName: LogFileName] = [:]
    for name in files {
      let path = name.path(in: directory)
      let said = try LogFileName(inHeaderOf: path, log: id, fileSystem)
      // Of several journals that claim one number, that which holds most is the one.
      if case .journal(let number)? = said, listing.renamedJournals[number] ?? path != path, said != name {
        continue
      }
      own[name] = said
    }
    return try NamePlan(
      files: files, own: own, replaced: listing.replacedNumbers, highest: watermark?.journal ?? 0,
      isWhole: isWholeSegment)
  }

  private func isWholeSegment(_ name: LogFileName) throws(LogError) -> Bool {
    let path = name.path(in: directory)
    return try Omissions?.some(Omissions()).reading { () throws(LogError) in
      let header = try SegmentHeader(of: fileSystem.open(path, .read), path: path, log: id)
      let segment = try Segment(path: path, header: header, fileSystem: fileSystem)
      return try segment.digestOfBytes() == segment.trailer.digest
    } ?? false
  }

  private func perform(_ plan: NamePlan) throws(LogError) {
    for name in plan.aside.sorted() { try moveAside(name.path(in: directory)) }
    listing.headers = [:]
    let last = listing.names.compactMap { LogFileName($0).number }.reduce(listing.highestNumber, max)
    let spare = LogFileName.segment(last + 1)
    var pending = plan.names
    while let first = pending.keys.filter(plan.restored.contains).min() ?? pending.keys.min() {
      // Files that have each other's names go around through one that nobody has; first one that can be told there.
      let (name, own) =
        pending.sorted { $0.key < $1.key }.first { pending[$0.value] == nil } ?? (first, spare)
      pending[own] = own == spare ? pending[name] : nil
      pending[name] = nil
      // One after the other: a name that is given anew must be free on disk.
      try poisoning { () throws(LogError) in
        try fileSystem.rename(name.path(in: directory), to: own.path(in: directory))
        try fileSystem.syncDirectory(directory)
      }
    }
  }
}
