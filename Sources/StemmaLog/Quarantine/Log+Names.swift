extension Log {
  /// Gives the segments that have the names of others their own, where that writes over nothing. Returns the names that
  /// they had. Durable on return.
  ///
  /// Interrupted at any point, the log is as it was, or some of the files still have names of others.
  package func restoreNames() throws(LogError) -> [String] {
    guard !listing.misnamed.isEmpty else { return [] }
    try checkWritable()
    try restoreNames(listing.misnamed.mapValues(\.number), LogFileName.segment(_:in:))
    let names = listing.misnamed.keys.sorted().map { LogFileName.digits($0) + ".segment" }
    listing.headers = [:]
    try load()
    return names
  }

  /// The same for journals, before anything is written: a writer must not begin a file behind one whose end it has not
  /// seen. False: there are none.
  func restoreJournalNames() throws(LogError) -> Bool {
    let renamed = listing.renamedJournals
    guard !renamed.isEmpty else { return false }
    var pending: [UInt64: UInt64] = [:]
    for (own, path) in renamed {
      guard case .journal(let name) = LogFileName(String(path.dropFirst(directory.count + 1))) else {
        continue
      }
      pending[name] = own
    }
    try restoreNames(pending, LogFileName.journal(_:in:))
    recovery.renamed += renamed.sorted { $0.key < $1.key }
      .map { (from: $0.value, to: LogFileName.journal($0.key, in: directory)) }
    return true
  }

  /// `names`: numbers of files, and the numbers that they are to have.
  private func restoreNames(
    _ names: [UInt64: UInt64], _ path: (UInt64, String) -> String
  ) throws(LogError) {
    let taken = listing.names.compactMap { name -> UInt64? in
      switch LogFileName(name) {
      case .segment(let number), .journal(let number): number
      case .watermark, .cut, .partial, .aside, .other: nil
      }
    }
    let spare = max(taken.max() ?? 0, listing.highestNumber) + 1
    var pending = names
    while let first = pending.keys.min() {
      // Files that have each other's names go around through one that nobody has.
      let (name, own) =
        pending.sorted { $0.key < $1.key }.first { pending[$0.value] == nil } ?? (first, spare)
      pending[own] = own == spare ? pending[name] : nil
      pending[name] = nil
      // One after the other: a name that is given anew must be free on disk.
      try poisoning { () throws(LogError) in
        try fileSystem.rename(path(name, directory), to: path(own, directory))
        try fileSystem.syncDirectory(directory)
      }
    }
  }
}
