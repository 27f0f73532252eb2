import StemmaEvents
import StemmaLog
import StemmaSchema
import StemmaTables

extension Node {
  /// One commit that is asked for: who, why, and what it does.
  package struct CommitRequest {
    package var note: CommitNote
    /// Called once more if it, or that of another commit of its group, meets damage of the tables.
    package var body: (WriteTransaction) throws(NodeError) -> Void

    package init(_ note: CommitNote, _ body: @escaping (WriteTransaction) throws(NodeError) -> Void) {
      self.note = note
      self.body = body
    }
  }

  /// Makes one commit.
  ///
  /// - Parameter body: called once more if the tables turn out to be damaged, when they are made anew.
  /// - Returns: what `body` returned; the events are durable then, and the tables show them.
  /// - Throws: what `body` threw, or why the commit could not be stored. Nothing of it is left then.
  @discardableResult
  package func write<Result>(
    _ note: CommitNote = CommitNote(), _ body: (WriteTransaction) throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    // `write` calls every body before it returns; the compiler cannot know.
    try withoutActuallyEscaping(body) { body throws(NodeError) in
      var result: Result?
      let outcomes = try write([
        CommitRequest(note) { transaction throws(NodeError) in result = try body(transaction) }
      ])
      sealOrNote()
      try outcomes[0].get()
      guard let result else { throw .damaged(what: "a commit ended without a result") }
      return result
    }
  }

  /// Makes several commits that share one sync. Each is all or nothing by itself: one that throws leaves the
  /// others as they are.
  ///
  /// Where one of them meets damage of the tables, even if its body says nothing of it, all are taken back before anything is
  /// appended, the tables are made anew, and every body is called once more. Whose body meets damage then is not made, and told so.
  /// - Parameters:
  ///   - joining: asked when all before are made, and before anything is stored, for requests that have come meanwhile and
  ///     become part of the group; until there are none, or the group is large.
  ///   - takingBack: called before the bodies are called again.
  /// - Returns: for each request, joined ones included, why it was not made, if it was not.
  /// - Throws: if the group could not be stored; then none of it is there.
  package func write(
    _ requests: [CommitRequest], joining: () -> [CommitRequest] = { [] }, takingBack: () -> Void = {}
  ) throws(NodeError) -> [Swift.Result<Void, NodeError>] {
    try lockedForEvents { () throws(NodeError) in
      var group = requests
      let outcomes: [Swift.Result<Void, NodeError>]
      do throws(NodeError) { outcomes = try store(&group, joining, endsAtDamage: true) } catch {
        guard case .tables(.needsRebuild) = error else { throw error }
        let told = mended(error)
        // Those that need nothing of what cannot be mended are made.
        guard told.isOfRebuiltTables || group.count > 1 else { throw told }
        takingBack()
        outcomes = try store(&group, joining, endsAtDamage: false)
      }
      continueSealingOrNote()
      return outcomes
    }
  }

  /// `endsAtDamage`: whether nothing is stored if a body meets damage of the tables, of which the error is then.
  private func store(
    _ group: inout [CommitRequest], _ joining: () -> [CommitRequest], endsAtDamage: Bool
  ) throws(NodeError) -> [Swift.Result<Void, NodeError>] {
    var durable: [Swift.Result<Void, NodeError>]?
    do throws(NodeError) {
      try transact(&group, joining, endsAtDamage: endsAtDamage, &durable)
      applied = log.token
    } catch {
      // Once the log has synced the events, the commit stands, and is shown by tables that are made from it; otherwise
      // whoever comes next brings them up to it.
      guard durable != nil else { throw error }
      applied = nil
      if !mended(error).isOfRebuiltTables {
        notices.append("the tables are behind the log: \(Explanations.text(of: error))")
      }
    }
    return durable ?? []
  }

  /// Lets `body` do what it wants to the tables, and takes everything back. A node that was opened for reading takes no
  /// lock for that: the tables' own, for which it waits as long as for the other, keeps everybody apart, and the log is
  /// not touched.
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
      let made = try Self.makeTables(in: folder, schema, log, mark, options, mode: .readWrite)
      try rehearse(in: made.tables, body)
    }
  }

  private func rehearse(
    in tables: Tables, _ body: (WriteTransaction) throws(NodeError) -> Void
  ) throws(NodeError) {
    /// Ends the transaction without a trace.
    struct Rehearsed: Error {}
    do {
      try tables.write({ $0 as any Error }) { (transaction) throws(any Error) in
        try body(try begin(CommitNote(), transaction))
        throw Rehearsed()
      }
    } catch is Rehearsed {} catch { try Self.wrapping { throw error } }
  }

  /// Commits of a group from which on no more join it.
  private static let largeGroup = 256

  /// `durable` gets the outcomes as soon as the events are synced.
  private func transact(
    _ group: inout [CommitRequest], _ joining: () -> [CommitRequest], endsAtDamage: Bool,
    _ durable: inout [Swift.Result<Void, NodeError>]?
  ) throws(NodeError) {
    try tables.write(NodeError.tables) { transaction throws(NodeError) in
      var outcomes: [Swift.Result<Void, NodeError>] = []
      var commits: [Commit] = []
      while outcomes.count < group.count {
        let request = group[outcomes.count]
        let write = try begin(request.note, transaction)
        func make() throws(NodeError) {
          try request.body(write)
          // What the body has hidden.
          if let damage = write.tableDamage { throw .tables(damage) }
        }
        do throws(NodeError) {
          if group.count == 1 { try make() } else { try transaction.savepoint(NodeError.tables, make) }
          assert(holds(write.checkInvariants))
          outcomes.append(.success(()))
          take(write)
          if !write.events.isEmpty { commits.append(Commit(write.events, note: write.note)) }
        } catch {
          write.note(error)
          if endsAtDamage, let damage = write.tableDamage { throw .tables(damage) }
          // A lone commit takes the transaction with it.
          if group.count == 1 { throw error }
          outcomes.append(.failure(error))
        }
        if outcomes.count == group.count, group.count < Self.largeGroup { group += joining() }
      }
      if !commits.isEmpty { try beginDueOrigin() }
      do throws(LogError) { try log.append(commits, sharingFrames: true) } catch { throw .log(error) }
      let (token, highest) = (log.token, clock.highest)
      let written = try sync(
        while: { () throws(TablesError) in
          // SQLite commits only what the log has synced: until then this is a position that nobody reads.
          transaction.advance(to: token)
          try transaction.writeAhead(clock: highest)
        }, isWorthwhile: !commits.isEmpty)
      durable = outcomes
      do throws(TablesError) { try written.get() } catch { throw .tables(error) }
    }
  }

  /// Makes what was appended durable, and runs `body`, which must not touch the log, meanwhile. That is what is handed to
  /// another thread, and not the sync, which so begins at once; if it ends before that thread has begun, this one runs `body`.
  ///
  /// - Returns: how `body` went: its error is none of the log.
  /// - Throws: the error of the sync, whatever became of `body`.
  private func sync(
    while body: () throws(TablesError) -> Void, isWorthwhile: Bool
  ) throws(NodeError) -> Swift.Result<Void, TablesError> {
    guard isWorthwhile else {
      do throws(LogError) { try log.sync() } catch { throw .log(error) }
      return Swift.Result { () throws(TablesError) in try body() }
    }
    let (synced, outcome) = withoutActuallyEscaping(body) { body in
      // What they change is touched by nobody else before `finish` has returned, which the compiler cannot see.
      nonisolated(unsafe) let body = body
      nonisolated(unsafe) var outcome = Swift.Result<Void, TablesError>.success(())
      let writing = DoneAhead { do throws(TablesError) { try body() } catch { outcome = .failure(error) } }
      let synced = Swift.Result { () throws(LogError) in try log.sync() }
      writing.finish()
      return (synced, outcome)
    }
    do throws(LogError) { try synced.get() } catch { throw .log(error) }
    return outcome
  }

  /// Goes on from where a commit has left the clock.
  func take(_ write: WriteTransaction) {
    clock = write.clock
    identifiers = write.identifiers
  }

  /// `beforeReadingLog`: called before the log is read, if it has to be.
  func begin(
    _ note: CommitNote, _ transaction: TablesTransaction, beforeReadingLog: @escaping () -> Void = {}
  ) throws(NodeError) -> WriteTransaction {
    let number: UInt64
    let origin = dueOrigin ?? mark.origin
    do { number = try transaction.highestCommit(of: origin) + 1 } catch { throw .tables(error) }
    let scope = mark.scope
    let write = WriteTransaction(
      schema: schema, tables: transaction, commit: CommitID(origin, number), clock: clock,
      identifiers: identifiers, wall: ports.clock, random: ports.random, note: note,
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
    write.isDamaged = isDamaged
    return write
  }

  // MARK: Sealing

  /// Has a segment made of a large journal, on another thread, while commits go on in the next journal; the writer lock is held
  /// to begin and to finish only, here or by whoever commits when it is made. Who commits faster than that waits once the
  /// next journal is as large.
  ///
  /// Commits stand whether or not this succeeds; it is tried again after the next one.
  private func continueSealingOrNote() {
    do throws(NodeError) {
      if let unfinished = sealing, unfinished.segment.isMade || log.isOpenJournalFull {
        sealing = nil
        try finish(unfinished.begun, unfinished.segment.take())
      }
      if sealing == nil, log.wantsSealing { try beginSealing() }
    } catch { noteSealing(error) }
  }

  /// Whoever writes meanwhile seals what is to be sealed.
  private func noteSealing(_ error: NodeError) {
    if error.isInUse { return }
    notices.append("the journal could not be sealed: \(Explanations.text(of: error))")
  }

  /// The writer lock must be held. Nothing is begun if somebody else is at it.
  private func beginSealing() throws(NodeError) {
    do throws(LogError) {
      guard let begun = try log.beginSealing() else { return }
      let segment = MadeAhead { [segmentIsMade] in
        let segment = Swift.Result { () throws(LogError) in try begun.write() }
        segmentIsMade()
        return segment
      }
      sealing = UnfinishedSealing(begun: begun, segment: segment)
    } catch { throw .log(error) }
  }

  /// The writer lock must be held.
  private func finish(
    _ begun: Sealing, _ segment: Swift.Result<SealedSegment, LogError>
  ) throws(NodeError) {
    do throws(LogError) { try log.finish(begun, segment.get()) } catch { throw .log(error) }
  }

  /// Makes segments of what is enough for them, also of what was begun, and returns when they are there; what a command does
  /// before it ends. The writer lock is held to begin and to finish only.
  package func sealIfWanted() throws(NodeError) {
    guard options.mode == .write else { return }
    while log.wantsSealing || sealing != nil {
      if sealing == nil {
        try locked { () throws(NodeError) in if log.wantsSealing { try beginSealing() } }
      }
      guard let unfinished = sealing else { return }
      sealing = nil
      let segment = unfinished.segment.take()
      try locked { () throws(NodeError) in try finish(unfinished.begun, segment) }
    }
  }

  /// As `sealIfWanted`, behind what stands whether or not this succeeds.
  package func sealOrNote() {
    do throws(NodeError) { try sealIfWanted() } catch { noteSealing(error) }
  }
}

/// A segment that is being made of a journal.
struct UnfinishedSealing {
  let begun: Sealing
  let segment: MadeAhead<Swift.Result<SealedSegment, LogError>>
}
