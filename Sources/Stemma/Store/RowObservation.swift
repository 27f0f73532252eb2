import GRDBSQLite
import StemmaTables

/// The rows of a statement, repeatedly.
///
/// The first element has the rows of the first call of `next`. Then each commit of this store that
/// changes the rows gives one, in order, also to a busy task. Peers, other processes and other
/// stores give one element for each look of this store. It looks after a sync, before a commit, and
/// several times a second while a task waits. No element shows a part of a commit.
/// a second while a task waits for an element. No element shows a part of a commit.
///
/// A commit that writes to a table of the statement reads all of its rows on the writer's thread,
/// even if none has changed. Its time grows with the observed rows, not with the changed ones.
/// `newest` costs commits nothing, and fits statements of many rows.
///
/// A slow task delays no commit. Up to 1,000 elements wait, with up to 100,000 rows together;
/// beyond that the oldest are dropped, as each has all rows.
///
/// A peer's write of the same value changes a record, too. The element then equals the last one,
/// but its records have seen both writes, and saving one of them is no conflict.
public struct RowObservation<Output: Sendable>: AsyncSequence, Sendable {
  /// All rows, not only those that have changed.
  public typealias Element = [Output]

  /// Limits of the queue for a slow task; a single element may exceed them.
  struct Limits {
    var elements = 1000
    var rows = 100_000
  }

  let store: Store
  let text: StatementText
  let read: @Sendable (RowCursor) throws -> [Output]
  var limits = Limits()

  /// Begins a separate observation: its first element has the rows at the time of `next`.
  public func makeAsyncIterator() -> Iterator {
    Iterator(observation: self, changes: store.changes.stream().makeAsyncIterator())
  }

  /// One observation of the rows, which keeps the store alive.
  public struct Iterator: AsyncIteratorProtocol {
    let observation: RowObservation
    var changes: AsyncStream<Void>.Iterator
    /// Nil until the first rows were read.
    private(set) var pending: PendingRows<Output>?

    init(observation: RowObservation, changes: AsyncStream<Void>.Iterator) {
      self.observation = observation
      self.changes = changes
    }

    /// - Throws: read errors, such as `unreadable`. The next call reads again after the next
    ///   commit.
    public mutating func next() async throws -> [Output]? {
      let store = observation.store
      while true {
        if let rows = try pending?.takeFirst() { return rows }
        if pending != nil, store.rows.isLookDue {
          await store.writer.look()
          continue
        }
        guard await changes.next() != nil else { return nil }
        guard pending == nil else { continue }
        do {
          let (pending, first) = try await PendingRows.begin(observation)
          self.pending = pending
          return first
        } catch StoreError.closed { return nil } catch is CancellationError { return nil }
      }
    }
  }
}

extension RowObservation {
  /// The newest rows alone, read without delaying commits. Commits during the work on an element
  /// give one element together.
  public var newest: NewestRowObservation<Output> { NewestRowObservation(observation: self) }
}

/// The newest rows of a statement, repeatedly. Made by `observe(_:).newest`.
public struct NewestRowObservation<Output: Sendable>: AsyncSequence, Sendable {
  /// All rows, not only those that have changed.
  public typealias Element = [Output]

  let observation: RowObservation<Output>

  /// Begins a separate observation: its first element has the rows at the time of `next`.
  public func makeAsyncIterator() -> Iterator { Iterator(rows: NewestRows(observation)) }

  /// One observation of the rows, which keeps the store alive.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var rows: NewestRows<Output>

    /// The rows: at once, then after each change. Nil if the store is closed or the task cancelled.
    ///
    /// - Throws: read errors, such as `unreadable`. The next call reads again after the next
    ///   commit.
    public mutating func next() async throws -> [Output]? { try await rows.next(isolation: nil) }
  }
}

/// The newest rows of a statement, repeatedly: commits during the work on rows give one element.
struct NewestRows<Output: Sendable> {
  private let observation: RowObservation<Output>
  private var changes: AsyncStream<Void>.Iterator
  private var last: Int?

  init(_ observation: RowObservation<Output>) {
    self.observation = observation
    changes = observation.store.changes.stream().makeAsyncIterator()
  }

  /// Nil if the store is closed or the task cancelled.
  mutating func next(isolation actor: isolated (any Actor)?) async throws -> [Output]? {
    while await changes.next(isolation: actor) != nil {
      let found: (digest: Int, rows: [Output])?
      do {
        found = try await observation.store.read { [observation, last] (connection: ReadConnection) in
          try connection.snapshot {
            let found = try observation.rows(since: last) { try connection.statement($0) }
            return try found.map { ($0.digest, try $0.rows.get()) }
          }
        }
      } catch StoreError.closed { return nil } catch is CancellationError { return nil } catch {
        // The next call returns the rows even if they are unchanged.
        last = nil
        throw error
      }
      guard let found else { continue }
      last = found.digest
      return found.rows
    }
    return nil
  }
}

extension RowObservation {
  /// The rows, and a digest of their contents.
  ///
  /// - Throws: if the statement cannot run. An error of a row is returned with the digest.
  func rows(_ prepare: RowFeed.Prepare) throws -> (digest: Int, rows: Result<[Output], any Error>) {
    let statement = try prepare(text.sql)
    return (try digest(statement), Result { try statement.read(text, store, read) })
  }

  /// The same; nil if `last` is their digest. Rows are compared before they are decoded, because
  /// most commits change other rows.
  func rows(
    since last: Int?, _ prepare: RowFeed.Prepare
  ) throws -> (digest: Int, rows: Result<[Output], any Error>)? {
    let statement = try prepare(text.sql)
    let digest = try digest(statement)
    return digest == last ? nil : (digest, Result { try statement.read(text, store, read) })
  }

  private func digest(_ statement: Statement) throws -> Int {
    try statement.read(text, store) { rows in
      var hasher = Hasher()
      while try rows.next() { rows.hash(into: &hasher) }
      return hasher.finalize()
    }
  }
}

extension Store {
  /// The rows of a statement now, and again for each commit that changes them.
  public func observe<Statement: ReadStatement>(_ rows: Statement) -> RowObservation<Statement.Output> {
    RowObservation(store: self, text: rows.text) { try rows.all($0) }
  }
}

extension RowCursor {
  /// Hashes the current row, to 64 bits. The hash function differs from process to process.
  func hash(into hasher: inout Hasher) {
    let handle = handle
    for column in 0..<sqlite3_column_count(handle) {
      let type = sqlite3_column_type(handle, column)
      hasher.combine(type)
      switch type {
      case SQLITE_INTEGER: hasher.combine(sqlite3_column_int64(handle, column))
      case SQLITE_FLOAT: hasher.combine(sqlite3_column_double(handle, column))
      case SQLITE_NULL: break
      default:
        // The pointer first: reading the size first may convert the value under it.
        let start = sqlite3_column_blob(handle, column)
        let count = Int(sqlite3_column_bytes(handle, column))
        hasher.combine(count)
        hasher.combine(bytes: UnsafeRawBufferPointer(start: start, count: count))
      }
    }
  }
}
