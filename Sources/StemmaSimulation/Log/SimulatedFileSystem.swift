import StemmaEvents
import StemmaLog

/// A file system in memory that separates durable data from data that is only written.
///
/// Every write, truncation and directory change is visible to readers at once. It waits in a queue.
/// A sync of its file or directory moves it, in order, into the durable image. A `crash` keeps an
/// arbitrary part of the queue: each operation completely or not at all, or a write torn to some of
/// its sectors. Then all open files are closed. Real disks reorder less.
///
/// A failed sync of a file also writes an arbitrary part of the data, and drops the rest
/// permanently: the next sync succeeds without it. Kernels do this with pages that they could not
/// write (Rebello et al., "Can Applications Recover from fsync Failures?", 2020). `DroppedPages`
/// are the variants that readers see. Later writes become durable with the next sync, as
/// `File.sync` promises; a port that breaks this is a `Lie`. The names of a directory whose sync
/// failed wait for the next one: file systems journal them, and accept no change after the journal
/// fails.
package final class SimulatedFileSystem: FileSystem {
  /// An operation that fails.
  package struct Fault: Sendable {
    /// The number of the operation, counted from 1 since the creation of the file system.
    package var operation: Int
    package var errno: Int32
    /// Whether all later operations fail too.
    package var isLasting: Bool
    /// The fate of the pages if the operation is a file sync.
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

  /// The data that readers see after a failed sync has dropped pages.
  package enum DroppedPages: Sendable, CaseIterable {
    /// The durable data, at once: `POSIXFileSystem` on ext4 and XFS, where the file keeps its
    /// length, and Btrfs, where it may lose it.
    case forgotten
    /// The written data, until power fails: where pages cannot be dropped, as on Darwin and tmpfs.
    case kept
  }

  /// A disk that breaks a promise: tests must detect code that relies on it.
  package enum Lie: Sendable, CaseIterable {
    /// File syncs confirm writes that are not durable.
    case fileSyncs
    /// Directory syncs confirm names that are not durable.
    case directorySyncs
    /// File syncs confirm writes over bytes that a failed sync has dropped, but do not store them:
    /// ext4 under a port that does not drop its pages.
    case writesOverDroppedPages
  }

  /// The unit that a torn write keeps or loses.
  static let sector = 512

  struct Inode: Sendable {
    var durable: [UInt8] = []
    var current: [UInt8] = []
    /// Ranges whose writes never reach a disk with `Lie.writesOverDroppedPages`.
    var dropped: [Range<Int>] = []
    /// The open file that holds the lock.
    var lockedBy: Int?
    /// The open files in the queue for the lock.
    var queue: [Int] = []
  }

  enum Entry: Hashable, Sendable {
    case file(Int)
    case directory
  }

  enum Change: Sendable {
    case write(inode: Int, offset: Int, bytes: [UInt8])
    case truncate(inode: Int, size: Int)
    /// New entries of names, applied together; nil removes a name.
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

  /// The requested operations, one line each, including failed ones.
  package var operations: [String] { state.withLock { $0.operations } }

  /// Files that were opened and not yet closed.
  package var openFiles: Int { state.withLock { $0.open.count } }

  /// Their paths, for test messages.
  package var openPaths: [String] { state.withLock { $0.open.values.sorted() } }

  /// How many bytes of files were read.
  package var bytesRead: Int { state.withLock { $0.bytesRead } }

  package func inject(_ faults: [Fault]) { state.withLock { $0.faults = faults } }

  /// Simulates a power failure and restart. Clears the faults.
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

  /// The current bytes of a file, without counting an operation; nil if it does not exist.
  package func contents(_ path: String) -> [UInt8]? {
    state.withLock { state in
      guard case .file(let inode) = state.names[path] else { return nil }
      return state.inodes[inode]?.current
    }
  }

  /// Stores durable bytes in a file, without counting an operation: bit rot, or a foreign file.
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

  /// A copy of all names and bytes, synced, without faults, and with its own count of operations.
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

  /// Counts an operation, and fails if a fault is injected for it.
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

  /// The simulation has one user.
  package func isOwn(_ directory: String) -> Bool { true }
}
