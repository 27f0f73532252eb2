import StemmaLog
import Synchronization

/// An open file of a `SimulatedFileSystem`.
final class SimulatedFile: File {
  private let system: SimulatedFileSystem
  private let path: String
  private let inode: Int
  private let number: Int
  private let epoch: Int
  private let isWritable: Bool
  private let isClosed = Atomic(false)

  init(
    _ system: SimulatedFileSystem, path: String, inode: Int, number: Int, epoch: Int, isWritable: Bool
  ) {
    self.system = system
    self.path = path
    self.inode = inode
    self.number = number
    self.epoch = epoch
    self.isWritable = isWritable
  }

  deinit { close() }

  private func perform<Result: Sendable>(
    _ operation: String, _ body: (inout SimulatedFileSystem.State) throws(LogError) -> Result
  ) throws(LogError) -> Result {
    try system.perform(operation, path) { (state) throws(LogError) in
      if isClosed.load(ordering: .acquiring) || state.epoch != epoch {
        throw .system(path: path, operation: operation, errno: System.badDescriptor)
      }
      return try body(&state)
    }
  }

  private func requireWritable(_ operation: String) throws(LogError) {
    if !isWritable { throw .system(path: path, operation: operation, errno: System.badDescriptor) }
  }

  func read(at offset: UInt64, count: Int) throws(LogError) -> [UInt8] {
    try perform("pread") { (state) throws(LogError) in
      let bytes = state.inodes[inode]?.current ?? []
      guard offset < UInt64(bytes.count) else { return [] }
      let end = min(bytes.count, Int(offset) + count)
      state.bytesRead += end - Int(offset)
      return Array(bytes[Int(offset)..<end])
    }
  }

  func write(_ bytes: [UInt8], at offset: UInt64) throws(LogError) {
    try requireWritable("pwrite")
    do throws(LogError) {
      try perform("pwrite") { (state) throws(LogError) in state.write(bytes, at: Int(offset), to: inode) }
    } catch {
      // A failed write stores half of its bytes.
      system.closed { state in
        guard state.epoch == epoch, !isClosed.load(ordering: .acquiring) else { return }
        state.write(Array(bytes.prefix(bytes.count / 2)), at: Int(offset), to: inode)
      }
      throw error
    }
  }

  func sync() throws(LogError) {
    try perform("fdatasync") { (state) throws(LogError) in
      if system.lie == .fileSyncs { return }
      state.settle(SimulatedFileSystem.State.isAbout(inode))
    }
  }

  func truncate(to size: UInt64) throws(LogError) {
    try requireWritable("ftruncate")
    try perform("ftruncate") { (state) throws(LogError) in state.truncate(inode, to: Int(size)) }
  }

  func size() throws(LogError) -> UInt64 {
    try perform("fstat") { (state) throws(LogError) in UInt64(state.inodes[inode]?.current.count ?? 0) }
  }

  func identity() throws(LogError) -> FileIdentity {
    try perform("statx") { (state) throws(LogError) in
      FileIdentity(inode: UInt64(inode), birthSeconds: Int64(inode), birthNanoseconds: 0)
    }
  }

  func tryLock() throws(LogError) -> Bool {
    try perform("flock") { (state) throws(LogError) in
      guard var found = state.inodes[inode] else { return false }
      if let holder = found.lockedBy { return holder == number }
      found.lockedBy = number
      state.inodes[inode] = found
      return true
    }
  }

  func enqueue() throws(LogError) {
    try requireWritable("fcntl")
    try perform("fcntl") { (state) throws(LogError) in state.inodes[inode]?.queue.append(number) }
  }

  func isBehindOthers() throws(LogError) -> Bool {
    try perform("fcntl") { (state) throws(LogError) in
      guard let first = state.inodes[inode]?.queue.first else { return false }
      return first != number
    }
  }

  func close() {
    guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
    system.closed { state in
      guard state.epoch == epoch else { return }
      state.open[number] = nil
      if state.inodes[inode]?.lockedBy == number { state.inodes[inode]?.lockedBy = nil }
      state.inodes[inode]?.queue.removeAll { $0 == number }
    }
  }
}
