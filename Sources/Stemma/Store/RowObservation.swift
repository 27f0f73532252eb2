import GRDBSQLite
import StemmaTables

/// The rows of a statement, again and again.
///
/// The first element is what is there now; each further one what is there after a commit that has changed it, whether it
/// was made here, came from a peer or is another process's. No element shows a part of a commit. A commit yields at most
/// one element: those that are made while the last one is worked on are one together, so nothing piles up behind somebody
/// who is slow.
///
/// A record is changed, too, when only what is known of its history is: a peer wrote the same value. The element then
/// looks like the last one, but its records know of both writes, and saving one of them is no conflict.
public struct RowObservation<Output: Sendable>: AsyncSequence, Sendable {
  /// All rows, not only those that have changed.
  public typealias Element = [Output]

  let store: Store
  let text: StatementText
  let read: @Sendable (RowCursor) throws -> [Output]

  /// Begins an observation of its own: its first element is what is there when `next` is called.
  public func makeAsyncIterator() -> Iterator {
    Iterator(observation: self, changes: store.changes.stream().makeAsyncIterator())
  }

  /// One observation of the rows, which keeps the store alive.
  public struct Iterator: AsyncIteratorProtocol {
    let observation: RowObservation
    var changes: AsyncStream<Void>.Iterator
    private var last: Int?

    init(observation: RowObservation, changes: AsyncStream<Void>.Iterator) {
      self.observation = observation
      self.changes = changes
    }

    /// - Throws: what reading throws; `unreadable` for example. The rows are read again after the next commit, if it is
    ///   called again.
    public mutating func next() async throws -> [Output]? {
      while await changes.next() != nil {
        let (store, text, read, last) = (observation.store, observation.text, observation.read, last)
        // Most commits are about other rows: those that are there are compared before they are made values.
        let found: (digest: Int, rows: [Output])?
        do {
          found = try await store.read { (connection: ReadConnection) -> (digest: Int, rows: [Output])? in
            try connection.snapshot {
              let statement = try connection.statement(text.sql)
              let digest = try statement.read(text, store) { rows in
                var hasher = Hasher()
                while try rows.next() { rows.hash(into: &hasher) }
                return hasher.finalize()
              }
              if digest == last { return nil }
              return (digest, try statement.read(text, store, read))
            }
          }
        } catch StoreError.closed { return nil } catch {
          // Who asks again gets the rows, also those that it has had.
          self.last = nil
          throw error
        }
        guard let found else { continue }
        self.last = found.digest
        return found.rows
      }
      return nil
    }
  }
}

extension Store {
  /// The rows of a statement now, and again after commits that change them.
  public func observe<Statement: ReadStatement>(_ rows: Statement) -> RowObservation<Statement.Output> {
    RowObservation(store: self, text: rows.text) { try rows.all($0) }
  }
}

extension RowCursor {
  /// Takes in all that the current row holds. 64 bits, of a function that differs from process to process.
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
        // The pointer first: asking for the size may otherwise convert the value under it.
        let start = sqlite3_column_blob(handle, column)
        let count = Int(sqlite3_column_bytes(handle, column))
        hasher.combine(count)
        hasher.combine(bytes: UnsafeRawBufferPointer(start: start, count: count))
      }
    }
  }
}
