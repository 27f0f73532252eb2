import StemmaLog
import Synchronization

/// A file system in memory that keeps what is durable apart from what is only written.
///
/// Every write, truncation and change of a directory takes effect for readers at once, and stands in a queue
/// until a sync of that file or directory moves it, in order, into the durable image. `crash` keeps an
/// arbitrary part of the queue: each operation as a whole, or not, or a write torn to some of its sectors; then
/// all open files are gone. That is harsher than real disks, which keep more order.
///
/// A sync of a file that fails writes an arbitrary part of what it should have, too, and drops the rest for good: the next one
/// succeeds without it. That is what kernels do with pages that they could not write (Rebello et al., "Can Applications
/// Recover from fsync Failures?", 2020). What readers see then differs, so there are both: `DroppedPages`. What is written from
/// then on lasts again with the next sync, as `File.sync` promises; where a port does not keep that, it is a `Lie`. The names
/// of a directory whose sync failed wait for the next one: file systems write these through a journal of their own, and
/// where that fails, they take no more changes.
package final class SimulatedFileSystem: FileSystem {
  /// An operation that is to fail.
  package struct Fault: Sendable {
    /// The number of the operation, counted from 1 since the file system was made.
    package var operation: Int
    package var errno: Int32
    /// Whether all later operations fail too.
    package var isLasting: Bool
    /// What becomes of the pages, where the operation is the sync of a file.
    package var pages: DroppedPages

    package init(
      operation: Int, errno: Int32, isLasting: Bool = false, pages: DroppedPages = .forgotten
    ) {
      self.operation = operation
      self.errno = errno
      self.isLasting = isLasting
      self.pages = pages
    }
  }

  /// What readers see of what a failed sync has dropped.
  package enum DroppedPages: Sendable, CaseIterable {
    /// What the disk has, at once: what `POSIXFileSystem` makes of ext4 and XFS, where the file keeps its length, and what
    /// Btrfs does, where it may lose it.
    case forgotten
    /// What was written, until power fails: where nothing can be forgotten, as on Darwin and on tmpfs.
    case kept
  }

  /// A disk that breaks its word: what relies on it must be caught by whoever tests with it.
  package enum Lie: Sendable, CaseIterable {
    /// Syncs of files confirm what they did not do.
    case fileSyncs
    /// Syncs of directories do.
    case directorySyncs
    /// Syncs of files confirm what was written over bytes that a failed one has dropped, and leave the disk as it is: ext4
    /// under a port that does not make it forget these.
    case writesOverDroppedPages
  }

  /// Torn writes keep or lose pieces of this size.
  static let sector = 512

  struct Inode: Sendable {
    var durable: [UInt8] = []
    var current: [UInt8] = []
    /// Where nothing that is written reaches the disk, of one that lies about that.
    var dropped: [Range<Int>] = []
    /// The open file that holds the lock.
    var lockedBy: Int?
    /// The open files in the queue for it.
    var queue: [Int] = []
  }

  enum Entry: Hashable, Sendable {
    case file(Int)
    case directory
  }

  enum Change: Sendable {
    case write(inode: Int, offset: Int, bytes: [UInt8])
    case truncate(inode: Int, size: Int)
    /// Names that get another entry, at once; nil: none.
    case names([(path: String, entry: Entry?)])
  }

  struct State: Sendable {
    var inodes: [Int: Inode] = [:]
    var nextInode = 1
    var durableNames: [String: Entry] = ["/": .directory]
    var names: [String: Entry] = ["/": .directory]
    var queue: [Change] = []
    var chooser: SplitMix64
    var faults: [Fault] = []
    var operations: [String] = []
    /// Rises with each crash: files of an earlier epoch are closed.
    var epoch = 0
    var nextFile = 1
    /// Paths of open files, by number.
    var open: [Int: String] = [:]
    var bytesRead = 0
  }

  private let state: Mutex<State>

  let lie: Lie?

  package init(seed: UInt64 = 1, lie: Lie? = nil) {
    self.lie = lie
    state = Mutex(State(chooser: SplitMix64(seed: seed)))
  }

  /// What was asked of the file system, one line each, failed operations too.
  package var operations: [String] { state.withLock { $0.operations } }

  /// Files that were opened and not yet closed.
  package var openFiles: Int { state.withLock { $0.open.count } }

  /// Their paths, for the message of a test.
  package var openPaths: [String] { state.withLock { $0.open.values.sorted() } }

  /// How many bytes of files were read.
  package var bytesRead: Int { state.withLock { $0.bytesRead } }

  package func inject(_ faults: [Fault]) { state.withLock { $0.faults = faults } }

  /// The machine loses power now and starts again. Faults end.
  package func crash() {
    state.withLock { state in
      for change in state.queue { state.keepSomeOf(change) }
      state.queue = []
      state.faults = []
      state.epoch += 1
      state.open = [:]
      state.dropOrphans()
      state.names = state.durableNames
      let linked = Set(state.names.values)
      for inode in Array(state.inodes.keys) {
        if linked.contains(.file(inode)) {
          let durable = state.inodes[inode]?.durable ?? []
          state.inodes[inode] = Inode(durable: durable, current: durable)
        } else {
          state.inodes[inode] = nil
        }
      }
    }
  }

  /// The current bytes of a file, without an operation; nil if there is none.
  package func contents(_ path: String) -> [UInt8]? {
    state.withLock { state in
      guard case .file(let inode) = state.names[path] else { return nil }
      return state.inodes[inode]?.current
    }
  }

  /// Puts bytes into a file, durable at once, without an operation: rot, or a file from elsewhere.
  package func plant(_ bytes: [UInt8], at path: String) {
    state.withLock { state in
      let number: Int
      if case .file(let inode) = state.names[path] {
        number = inode
      } else {
        number = state.nextInode
        state.nextInode += 1
        state.names[path] = .file(number)
        state.durableNames[path] = .file(number)
      }
      state.inodes[number, default: Inode()].durable = bytes
      state.inodes[number, default: Inode()].current = bytes
    }
  }

  /// A copy of all names and bytes, with nothing unsynced, no faults, and a count of operations of its own.
  package func copy(seed: UInt64 = 1) -> SimulatedFileSystem {
    let copy = SimulatedFileSystem(seed: seed, lie: lie)
    let (names, inodes, next) = state.withLock { ($0.names, $0.inodes, $0.nextInode) }
    copy.state.withLock { state in
      state.names = names
      state.durableNames = names
      state.nextInode = next
      state.inodes = inodes.mapValues { Inode(durable: $0.current, current: $0.current) }
    }
    return copy
  }

  /// Counts an operation and fails if it must.
  func perform<Result: Sendable>(
    _ operation: String, _ path: String, _ body: (inout State) throws(LogError) -> Result
  ) throws(LogError) -> Result {
    try state.withLock { (state: inout sending State) throws(LogError) -> Result in
      state.operations.append(operation + " " + path)
      let number = state.operations.count
      for fault in state.faults
      where fault.operation == number || (fault.isLasting && fault.operation < number) {
        if operation == "fdatasync", case .file(let inode) = state.names[path] {
          state.drop(inode, fault.pages, isLying: lie == .writesOverDroppedPages)
        }
        throw .system(path: path, operation: operation, errno: fault.errno)
      }
      return try body(&state)
    }
  }

  func withState(_ body: (State) -> Void) { state.withLock { body($0) } }

  func closed(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

  // MARK: FileSystem

  package func open(_ path: String, _ access: FileAccess) throws(LogError) -> any File {
    let (inode, number, epoch) = try perform("open", path) { (state) throws(LogError) in
      var found = state.names[path]
      if found == .directory { throw .notAFile(path: path, .directory) }
      if found == nil {
        guard access == .create || access == .openOrCreate else {
          throw .system(path: path, operation: "open", errno: System.notFound)
        }
        try state.requireDirectory(of: path, "open")
        found = .file(state.nextInode)
        state.inodes[state.nextInode] = Inode()
        state.nextInode += 1
        state.change([(path, found)])
      } else if access == .create {
        throw .system(path: path, operation: "open", errno: System.alreadyExists)
      }
      guard case .file(let inode) = found else {
        throw .system(path: path, operation: "open", errno: System.notFound)
      }
      state.nextFile += 1
      state.open[state.nextFile] = path
      return (inode, state.nextFile, state.epoch)
    }
    return SimulatedFile(
      self, path: path, inode: inode, number: number, epoch: epoch, isWritable: access != .read)
  }

  package func list(_ directory: String) throws(LogError) -> [String] {
    try perform("list", directory) { (state) throws(LogError) in
      guard state.names[directory] == .directory else {
        throw .system(path: directory, operation: "opendir", errno: System.notFound)
      }
      return state.names.keys.filter { State.directory(of: $0) == directory && $0 != directory }
        .map { State.name(of: $0) }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
  }

  package func createDirectory(_ path: String) throws(LogError) {
    try perform("mkdir", path) { (state) throws(LogError) in
      guard state.names[path] == nil else {
        throw .system(path: path, operation: "mkdir", errno: System.alreadyExists)
      }
      try state.requireDirectory(of: path, "mkdir")
      state.change([(path, .directory)])
    }
  }

  package func rename(_ path: String, to target: String) throws(LogError) {
    try perform("rename", path) { (state) throws(LogError) in
      guard let entry = state.names[path] else {
        throw .system(path: path, operation: "rename", errno: System.notFound)
      }
      state.change([(path, nil), (target, entry)])
    }
  }

  package func remove(_ path: String) throws(LogError) {
    try perform("unlink", path) { (state) throws(LogError) in
      guard case .file = state.names[path] else {
        throw .system(path: path, operation: "unlink", errno: System.notFound)
      }
      state.change([(path, nil)])
    }
  }

  package func syncDirectory(_ path: String) throws(LogError) {
    try perform("fsync", path) { (state) throws(LogError) in
      guard state.names[path] == .directory else {
        throw .system(path: path, operation: "open", errno: System.notFound)
      }
      if lie == .directorySyncs { return }
      state.settle { change in
        if case .names(let names) = change {
          names.contains { State.directory(of: $0.path) == path }
        } else {
          false
        }
      }
    }
  }

  /// One user has it all.
  package func isOwn(_ directory: String) -> Bool { true }
}
