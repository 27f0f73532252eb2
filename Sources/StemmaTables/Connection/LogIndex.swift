import GRDBSQLite
import Synchronization

/// The index of SQLite's write-ahead log, which lies in memory that all processes share: who looks at it knows without a
/// system call whether anybody has committed.
///
/// Its layout is SQLite's, fixed for as long as the format of the log is (https://sqlite.org/walformat.html, "The WAL-Index
/// File Format"): two copies of a header of 48 bytes, then numbers of checkpoints. A commit writes the second copy, then
/// the first, before it returns, with a counter of changes in both; so as long as the first copy is what it was, nothing was
/// committed. What a reader has locked is SQLite's business all the same: this only tells when asking it again is in vain.
struct LogIndex {
  /// What the header says; equal ones are of the same state.
  struct Header: Equatable {
    fileprivate let words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)
    /// How many pages the log has.
    fileprivate let length: UInt32
    /// How many of them are in the file already.
    fileprivate let moved: UInt32

    /// Whether the log is so long that it should be cut short, for which nobody may hold a state of it. Who holds a state
    /// that is in the file altogether is not in the way.
    var isLogLong: Bool { length >= LogIndex.longLog && moved != length }

    static func == (a: Header, b: Header) -> Bool { a.words == b.words }
  }

  /// SQLite begins to move pages at 1000.
  private static let longLog: UInt32 = 4000
  /// What the index is mapped by, `WALINDEX_PGSZ`.
  private static let regionBytes: Int32 = 32 << 10
  /// Where a header says that it is one, and how many pages the log has.
  private static let (readyOffset, lengthOffset) = (12, 16)
  /// Behind the two headers.
  private static let movedOffset = 96

  /// Stays where it is for as long as the connection is open. Nil if the connection has no such memory.
  private let region: UnsafeRawPointer?

  /// `handle`: a connection that has read something.
  init(_ handle: OpaquePointer) {
    var file: UnsafeMutablePointer<sqlite3_file>?
    let code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file)
    guard code == SQLITE_OK, let file, let methods = file.pointee.pMethods, methods.pointee.iVersion >= 2,
      let map = methods.pointee.xShmMap
    else {
      region = nil
      return
    }
    var start: UnsafeMutableRawPointer?
    // Gives the memory that SQLite itself uses; 0: makes none.
    let result = map(file, 0, Self.regionBytes, 0, &start)
    region = result == SQLITE_OK ? start.map { UnsafeRawPointer($0) } : nil
  }

  /// Nil if it cannot be seen.
  var header: Header? {
    // What another thread or process has written before it said that it had committed is read, and not what was read last.
    atomicMemoryFence(ordering: .acquiring)
    guard let region, region.load(fromByteOffset: Self.readyOffset, as: UInt8.self) != 0 else { return nil }
    return Header(
      words: region.load(as: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64).self),
      length: region.load(fromByteOffset: Self.lengthOffset, as: UInt32.self),
      moved: region.load(fromByteOffset: Self.movedOffset, as: UInt32.self))
  }
}
