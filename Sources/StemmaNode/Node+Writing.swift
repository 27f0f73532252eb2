import StemmaEvents
import StemmaLog
import StemmaSchema
import StemmaTables

extension Node {
  /// One requested commit: its note and its body.
  package struct CommitRequest {
    package var message: CommitMessage
    /// Whether the commit returns when it is written, and becomes durable with the next sync.
    package var isRelaxed: Bool
    /// Called again if any body of the group meets corruption of the tables.
    package var body: (WriteTransaction) throws(NodeError) -> Void

    package init(
      _ message: CommitMessage, isRelaxed: Bool = false,
      _ body: @escaping (WriteTransaction) throws(NodeError) -> Void
    ) {
      self.message = message
      self.isRelaxed = isRelaxed
      self.body = body
    }
  }

  /// Makes one commit.
  ///
  /// - Parameter body: called again if the tables are corrupt, after they are rebuilt.
  /// - Returns: the result of `body`; the events are durable and visible in the tables.
  /// - Throws: the error of `body`, or of storing the commit. Nothing of it is stored then.
  @discardableResult
  package func write<Result>(
    _ message: CommitMessage = CommitMessage(), _ body: (WriteTransaction) throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    // `write` calls every body before it returns, which the compiler cannot know.
    try withoutActuallyEscaping(body) { body throws(NodeError) in
      var result: Result?
      let outcomes = try write([
        CommitRequest(message) { transaction throws(NodeError) in result = try body(transaction) }
      ])
      sealOrNote()
      try outcomes[0].get()
      guard let result else { throw .corrupt(what: "a commit ended without a result") }
      return result
    }
  }

  /// Makes several commits that share one sync. Each is atomic by itself. If all are relaxed and
  /// the log is complete, they wait for the next sync.
  ///
  /// If a body meets corruption of the tables, even if it catches the error, the group is rolled
  /// back. The tables are rebuilt, and every body runs again. A body that then meets corruption
  /// fails.
  /// - Parameters:
  ///   - joining: returns requests that join the group, until there are none or the group is large.
  ///     Called after all others are made and before anything is stored.
  ///   - takingBack: called before the bodies are called again.
  /// - Returns: the result of each request, including joined ones. A failure affects no other.
  /// - Throws: if the group could not be stored; none of it is stored then.
  package func write(
    _ requests: [CommitRequest], joining: () -> [CommitRequest] = { [] }, takingBack: () -> Void = {}
  ) throws(NodeError) -> [Swift.Result<Void, NodeError>] {
    try lockedForEvents(syncing: false) { () throws(NodeError) in
      var group = requests
      let outcomes: [Swift.Result<Void, NodeError>]
      do throws(NodeError) { outcomes = try store(&group, joining, endsAtCorruption: true) } catch {
        guard case .tables(.needsRebuild) = error else { throw error }
        let told = recovered(error)
        // Requests that do not need the corrupt parts succeed.
        guard told.isOfRebuiltTables || group.count > 1 else { throw told }
        takingBack()
        outcomes = try store(&group, joining, endsAtCorruption: false)
      }
      continueSealingOrNote()
      return outcomes
    }
  }

  /// With `endsAtCorruption`, throws and stores nothing if a body meets corruption of the tables.
  private func store(
    _ group: inout [CommitRequest], _ joining: () -> [CommitRequest], endsAtCorruption: Bool
  ) throws(NodeError) -> [Swift.Result<Void, NodeError>] {
    var durable: [Swift.Result<Void, NodeError>]?
    do throws(NodeError) {
      try transact(&group, joining, endsAtCorruption: endsAtCorruption, &durable)
      tablesState.applied = log.token
    } catch {
      // After the log has synced the events, the commit is durable and rebuilt tables show it.
      // Otherwise the next process refreshes them.
      guard durable != nil else { throw error }
      tablesState.applied = nil
      if !recovered(error).isOfRebuiltTables {
        notices.append("the tables are behind the log: \(Explanations.text(of: error))")
      }
    }
    return durable ?? []
  }

  /// Runs `body` on the tables and rolls everything back. A node opened for reading takes only the
  /// lock of the tables, with the same wait, because the log is not changed.
  package func rehearse(_ body: (WriteTransaction) throws(NodeError) -> Void) throws(NodeError) {
    guard options.mode == .read else {
      return try locked { () throws(NodeError) in try rehearse(in: tables, body) }
    }
    var isBegun = false
    do throws(NodeError) {
      let writable = try Self.wrapping { () throws(TablesError) in
        try Tables.open(at: tables.path, schema: schema, mode: .readWrite, wait: options.wait)
      }
      try rehearse(in: writable) { transaction throws(NodeError) in
        isBegun = true
        try body(transaction)
      }
    } catch {
      guard !isBegun, case .tables(let refusal) = error, refusal.isRefusalToOpen else { throw error }
      let folder = try TemporaryFolder()
      defer { withExtendedLifetime(folder) {} }
      let made = try Self.makeTables(in: folder, schema, log, metadata, options, mode: .readWrite)
      try rehearse(in: made.tables, body)
    }
  }

  private func rehearse(
    in tables: Tables, _ body: (WriteTransaction) throws(NodeError) -> Void
  ) throws(NodeError) {
    /// Rolls back the transaction.
    struct Rehearsed: Error {}
    do {
      try tables.write({ $0 as any Error }) { (transaction) throws(any Error) in
        try body(try begin(CommitMessage(), transaction))
        throw Rehearsed()
      }
    } catch is Rehearsed {} catch { try Self.wrapping { throw error } }
  }

  /// The size from which no more commits join a group.
  private static let largeGroup = 256

  /// Sets `durable` to the outcomes when the events are synced.
  private func transact(
    _ group: inout [CommitRequest], _ joining: () -> [CommitRequest], endsAtCorruption: Bool,
    _ durable: inout [Swift.Result<Void, NodeError>]?
  ) throws(NodeError) {
    try tables.write(NodeError.tables) { transaction throws(NodeError) in
      var outcomes: [Swift.Result<Void, NodeError>] = []
      var commits: [Commit] = []
      while outcomes.count < group.count {
        let request = group[outcomes.count]
        let write = try begin(request.message, transaction)
        func make() throws(NodeError) {
          try request.body(write)
          // Corruption that the body has caught.
          if let corruption = write.tableCorruption { throw .tables(corruption) }
        }
        do throws(NodeError) {
          if group.count == 1 { try make() } else { try transaction.savepoint(NodeError.tables, make) }
          assert(holds(write.checkInvariants))
          outcomes.append(.success(()))
          take(write)
          if !write.events.isEmpty { commits.append(Commit(write.events, message: write.message)) }
        } catch {
          write.note(error)
          if endsAtCorruption, let corruption = write.tableCorruption { throw .tables(corruption) }
          // A lone commit has no savepoint; its error ends the transaction.
          if group.count == 1 { throw error }
          outcomes.append(.failure(error))
        }
        if outcomes.count == group.count, group.count < Self.largeGroup { group += joining() }
      }
      if !commits.isEmpty { try beginDueOrigin() }
      do throws(LogError) { try log.append(commits, sharingFrames: true) } catch { throw .log(error) }
      let (token, highest) = (log.token, writer.clock.highest)
      if group.allSatisfy(\.isRelaxed), metadata.corruption == nil, log.recovery.corruption.isEmpty {
        let synced = log.syncedToken
        durable = outcomes
        tablesState.isSynced = synced == token
        transaction.advance(to: token, synced: synced)
        do throws(TablesError) { return try transaction.keep(clock: highest) } catch { throw .tables(error) }
      }
      let written = try sync(
        while: { () throws(TablesError) in
          // SQLite commits only after the log has synced, so this position is invisible until then.
          transaction.advance(to: token)
          try transaction.writeAhead(clock: highest)
        }, isWorthwhile: !commits.isEmpty)
      durable = outcomes
      tablesState.isSynced = true
      do throws(TablesError) { try written.get() } catch { throw .tables(error) }
    }
  }

  /// Syncs relaxed commits. A process calls this some time after them, and before it ends.
  package func syncOrNote() {
    if tablesState.isSynced { return }
    do throws(NodeError) { try locked { () throws(NodeError) in } } catch {
      // The other writer syncs them first.
      if error.isInUse { return }
      notices.append("commits with relaxed durability were not synced: \(Explanations.text(of: error))")
    }
  }

  /// Syncs the log while `body`, which must not touch the log, runs on another thread, so that the
  /// sync begins at once. If that thread has not started when the sync ends, this one runs `body`.
  ///
  /// - Returns: the outcome of `body`.
  /// - Throws: the error of the sync, whatever the outcome of `body`.
  private func sync(
    while body: () throws(TablesError) -> Void, isWorthwhile: Bool
  ) throws(NodeError) -> Swift.Result<Void, TablesError> {
    guard isWorthwhile else {
      do throws(LogError) { try log.sync() } catch { throw .log(error) }
      return Swift.Result { () throws(TablesError) in try body() }
    }
    let (synced, outcome) = withoutActuallyEscaping(body) { body in
      // No other code touches their captures until `take` returns, which the compiler cannot see.
      nonisolated(unsafe) let body = body
      nonisolated(unsafe) var outcome = Swift.Result<Void, TablesError>.success(())
      let writing = MadeAhead<Void> {
        do throws(TablesError) { try body() } catch { outcome = .failure(error) }
      }
      let synced = Swift.Result { () throws(LogError) in try log.sync() }
      writing.take()
      return (synced, outcome)
    }
    do throws(LogError) { try synced.get() } catch { throw .log(error) }
    return outcome
  }

  /// Adopts the clock and generator states of a commit.
  func take(_ write: WriteTransaction) {
    writer.clock = write.clock
    writer.identifiers = write.identifiers
  }

  /// - Parameter beforeReadingLog: called before the log is read, if that is necessary.
  func begin(
    _ message: CommitMessage, _ transaction: TablesTransaction, beforeReadingLog: @escaping () -> Void = {}
  ) throws(NodeError) -> WriteTransaction {
    let number: UInt64
    let origin = writer.dueOrigin ?? metadata.origin
    do { number = try transaction.highestCommit(of: origin) + 1 } catch { throw .tables(error) }
    let scope = metadata.scope
    let write = WriteTransaction(
      schema: schema, tables: transaction, commit: CommitID(origin, number), clock: writer.clock,
      identifiers: writer.identifiers, wall: ports.clock, random: ports.random, message: message,
      isInScope: { scope.contains($0) },
      history: { [log] (record) throws(NodeError) in
        beforeReadingLog()
        return try Self.wrapping {
          var events: [Event] = []
          var reader = log.events(of: record)
          while let stored = try reader.next() { events.append(stored.event) }
          return events
        }
      })
    write.isCorrupt = isCorrupt
    write.writable = writable
    return write
  }

  // MARK: Sealing

  /// Builds a segment of a large journal on another thread while commits go to the next journal.
  /// The lock is held only to begin and to finish, by the process that commits when the segment is
  /// built. A faster writer waits when the next journal is as large.
  ///
  /// Commits are valid even if this fails; it is tried again after the next one.
  private func continueSealingOrNote() {
    do throws(NodeError) {
      if let unfinished = sealing.unfinished, unfinished.segment.isMade || log.isOpenJournalFull {
        sealing.unfinished = nil
        try finish(unfinished.begun, unfinished.segment.take())
      }
      if sealing.unfinished == nil, log.wantsSealing { try beginSealing() }
    } catch { noteSealing(error) }
  }

  /// A concurrent writer seals the journal.
  private func noteSealing(_ error: NodeError) {
    if error.isInUse { return }
    notices.append("the journal could not be sealed: \(Explanations.text(of: error))")
  }

  /// The caller holds the writer lock. Begins nothing if another process is sealing.
  private func beginSealing() throws(NodeError) {
    do throws(LogError) {
      guard let begun = try log.beginSealing() else { return }
      let segment = MadeAhead { [isMade = sealing.isMade] in
        let segment = Swift.Result { () throws(LogError) in try begun.write() }
        isMade()
        return segment
      }
      sealing.unfinished = UnfinishedSealing(begun: begun, segment: segment)
    } catch { throw .log(error) }
  }

  /// The caller holds the writer lock.
  private func finish(
    _ begun: Sealing, _ segment: Swift.Result<SealedSegment, LogError>
  ) throws(NodeError) {
    do throws(LogError) { try log.finish(begun, segment.get()) } catch { throw .log(error) }
  }

  /// Builds all due segments, including a started one, and waits for them. Commands run this before
  /// they end. The writer lock is held only to begin and to finish.
  package func sealIfWanted() throws(NodeError) {
    guard options.mode == .write else { return }
    while log.wantsSealing || sealing.unfinished != nil {
      if sealing.unfinished == nil {
        try locked { () throws(NodeError) in if log.wantsSealing { try beginSealing() } }
      }
      guard let unfinished = sealing.unfinished else { return }
      sealing.unfinished = nil
      let segment = unfinished.segment.take()
      try locked { () throws(NodeError) in try finish(unfinished.begun, segment) }
    }
  }

  /// As `sealIfWanted`, after commits that are valid even if this fails.
  package func sealOrNote() {
    do throws(NodeError) { try sealIfWanted() } catch { noteSealing(error) }
  }
}

extension Node {
  /// Whether consecutive series have held the lock for long.
  var holdsLong: Bool {
    seriesState.since.map { ports.clock.milliseconds() >= $0 + CommitSeries.longestHold } ?? false
  }

  /// Runs a series of commits. Commits before an error stay in the log. With `isRelaxed`, they
  /// share one fsync, at the end of the series or when it waits for durability.
  package func series(isRelaxed: Bool = false, _ body: (CommitSeries) throws -> Void) throws {
    var failure: (any Error)?
    if seriesState.since == nil { seriesState.since = ports.clock.milliseconds() }
    defer {
      if holdsLong {
        System.sleep(milliseconds: CommitSeries.pause)
        seriesState.since = nil
      }
    }
    try lockedForEvents { () throws(NodeError) in
      var isDurable = false
      do {
        try tables.write({ $0 as any Error }) { (transaction) throws(any Error) in
          transaction.memoryLimit = seriesState.memory
          let series = try CommitSeries(self, transaction, isRelaxed: isRelaxed)
          let outcome = Result { try body(series) }
          try series.end()
          seriesState.open = series.isComplete ? nil : series.size
          try outcome.get()
          isDurable = true
          if series.holdsBack, transaction.holdBack() {
            try holdBack()
          } else {
            seriesState.heldBack = nil
            try transaction.keep(clock: writer.clock.highest)
            transaction.advance(to: log.token)
          }
        }
        tablesState.applied = log.token
      } catch let error as NodeError { failure = error } catch let error as TablesError {
        failure = NodeError.tables(error)
      } catch { failure = error }
      guard let error = failure as? NodeError else { return }
      failure = recovered(error)
      // The log holds the series, and so do tables rebuilt from it.
      if isDurable, case NodeError.tables(.rebuilt)? = failure { failure = nil }
    }
    switch failure {
    case nil: return
    case let error as LogError: throw NodeError.log(error)
    case .some(let error): throw error
    }
  }
}

extension Node {
  static let heldBackFileName = "importing"

  /// Signals readers that the tables are held back.
  private func holdBack() throws(NodeError) {
    do throws(LogError) {
      if seriesState.heldBack == nil {
        seriesState.heldBack = try HeldBack(Self.path(directory, Self.heldBackFileName), ports.fileSystem)
      }
      try seriesState.heldBack?.lock()
    } catch { throw .log(error) }
  }

  /// Prepares for many series, whose records and pages may take this many bytes together.
  package func beginSeries(memory: Int) throws(NodeError) {
    seriesState.memory = memory * 3 / 4
    log.keepsAppended = true
    let cache = max(memory / 4, Tables.ordinaryCache)
    do throws(TablesError) { try tables.useCache(cache) } catch { throw .tables(error) }
  }

  /// Refreshes the tables with the held-back series. All commits are durable even if this fails.
  package func endSeries() {
    seriesState.memory = TablesTransaction.ordinaryMemory
    log.keepsAppended = false
    do throws(NodeError) {
      try writeHeldBack()
      do throws(TablesError) { try tables.useCache() } catch { throw .tables(error) }
    } catch {
      notices.append("the tables are behind the log: \(Explanations.text(of: error))")
    }
  }

  private func writeHeldBack() throws(NodeError) {
    guard seriesState.heldBack != nil else { return }
    try locked { () throws(NodeError) in
      guard seriesState.heldBack != nil else { return }
      try tables.write(NodeError.tables) { transaction throws(NodeError) in
        do throws(TablesError) { try transaction.keep(clock: writer.clock.highest) } catch {
          throw .tables(error)
        }
        transaction.advance(to: log.token)
      }
      seriesState.heldBack = nil
    }
  }

  /// Whether a live process has made commits that the tables will follow later.
  static func isHoldingBack(_ directory: String, _ ports: Ports) throws(NodeError) -> Bool {
    do throws(LogError) {
      let file = try ports.fileSystem.open(path(directory, heldBackFileName), .read)
      defer { file.close() }
      return try !file.tryLock()
    } catch {
      if error.isNotFound { return false }
      if case .system(_, _, System.noAccess) = error { return false }
      throw .log(error)
    }
  }
}

/// A segment being built from a journal.
struct UnfinishedSealing {
  let begun: Sealing
  let segment: MadeAhead<Swift.Result<SealedSegment, LogError>>
}
