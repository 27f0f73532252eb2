import GRDBSQLite
import Synchronization

/// The index of SQLite's write-ahead log, in memory that all processes share. It shows without a
/// system call whether any process has committed.
///
/// SQLite guarantees the layout (https://sqlite.org/walformat.html, "The WAL-Index File Format"):
/// two copies of a header of 48 bytes, then checkpoint numbers. Before it returns, a commit writes
/// the second copy, then the first, with a change counter in both. An unchanged first copy
/// therefore means that no commit has returned. SQLite's locks remain necessary.
struct LogIndex {
  /// The first copy of the header. Equal headers belong to the same state.
  struct Header: Equatable {
    fileprivate let words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)
    /// How many pages the log has.
    fileprivate let length: UInt32
    /// How many of them a checkpoint has copied to the file.
    fileprivate let moved: UInt32

    /// Whether the log is long enough to be truncated, so that readers must not hold a state of it.
    /// A reader whose state is completely in the file blocks no truncation.
    var isLogLong: Bool { length >= LogIndex.longLog && moved != length }

    static func == (a: Header, b: Header) -> Bool { a.words == b.words }
  }

  /// SQLite starts checkpoints at 1000 pages.
  private static let longLog: UInt32 = 4000
  /// The size of a mapped region, `WALINDEX_PGSZ`.
  private static let regionBytes: Int32 = 32 << 10
  /// The offsets of the initialized flag and of the log's page count in a header.
  private static let (readyOffset, lengthOffset) = (12, 16)
  /// Follows the two headers.
  private static let movedOffset = 96

  /// Stays mapped while the connection is open. Nil if the connection has no shared memory.
  private let region: UnsafeRawPointer?

  /// - Parameter handle: a connection that has read something.
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
    // Returns the memory that SQLite itself uses. With 0, it creates none.
    let result = map(file, 0, Self.regionBytes, 0, &start)
    region = result == SQLITE_OK ? start.map { UnsafeRawPointer($0) } : nil
  }

  /// Nil if the index is not mapped or not initialized.
  var header: Header? {
    // Makes the writes visible that other threads and processes made before they committed.
    atomicMemoryFence(ordering: .acquiring)
    guard let region, region.load(fromByteOffset: Self.readyOffset, as: UInt8.self) != 0 else { return nil }
    return Header(
      words: region.load(as: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64).self),
      length: region.load(fromByteOffset: Self.lengthOffset, as: UInt32.self),
      moved: region.load(fromByteOffset: Self.movedOffset, as: UInt32.self))
  }
}
