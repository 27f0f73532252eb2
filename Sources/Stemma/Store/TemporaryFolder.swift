import Foundation
import StemmaEvents
import StemmaLog
import Synchronization

/// The folder of a process's temporary stores.
///
/// It goes when the process exits, and is locked until then: what a process that was killed has left is removed by the
/// next one that needs such a folder, as its lock is free.
final class TemporaryFolder: Sendable {
  let directory: URL
  private let lock: any File

  private static let prefix = "stemma-stores-"
  private static let lockName = "lock"
  /// The place for files in memory is used with so much room at least, in bytes; containers often have but a little.
  private static let wantedRoom: UInt64 = 1 << 30

  init(in place: URL) throws {
    Self.removeLeftovers(in: place)
    let files = POSIXFileSystem()
    while true {
      let directory = place.appendingPathComponent(Self.prefix + UUID().uuidString)
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      let lock = try files.open(directory.appendingPathComponent(Self.lockName).path, .create)
      // Whoever removes leftovers may have come between.
      guard try lock.tryLock(), FileManager.default.fileExists(atPath: directory.path) else { continue }
      self.directory = directory
      self.lock = lock
      return
    }
  }

  func remove() {
    // Nobody is left who could be told.
    do { try FileManager.default.removeItem(at: directory) } catch {}
  }

  private static func removeLeftovers(in place: URL) {
    let files = POSIXFileSystem()
    let names: [String]
    do { names = try FileManager.default.contentsOfDirectory(atPath: place.path) } catch { return }
    for name in names where name.hasPrefix(prefix) {
      let directory = place.appendingPathComponent(name)
      do {
        let lock = try files.open(directory.appendingPathComponent(lockName).path, .write)
        if try lock.tryLock() { try FileManager.default.removeItem(at: directory) }
      } catch {
        // Another user's, or somebody else removes it, or its lock is not yet made.
        continue
      }
    }
  }

  // MARK: The folder of this process

  private struct Current {
    var folder: TemporaryFolder?
    var stores = 0

    /// Traps if stores are nowhere. In debug builds at each store.
    func checkInvariants() { precondition((folder == nil) == (stores == 0), "a store is in a folder") }
  }

  private static let current = Mutex(Current())

  /// A path for a store's directory at which there is nothing yet: in memory where the system has a place for files there
  /// (Linux), otherwise where temporary files are.
  static func newStore() throws -> URL {
    try current.withLock { current in
      let folder: TemporaryFolder
      if let known = current.folder {
        folder = known
      } else {
        folder = try TemporaryFolder(in: place())
        current.folder = folder
        atexit { TemporaryFolder.current.withLock { $0.folder?.remove() } }
      }
      current.stores += 1
      assert(holds(current.checkInvariants))
      return folder.directory.appendingPathComponent("\(current.stores)")
    }
  }

  private static func place() -> URL {
    let memory = URL(fileURLWithPath: "/dev/shm")
    do {
      let room = try FileManager.default.attributesOfFileSystem(forPath: memory.path)[.systemFreeSize]
      if FileManager.default.isWritableFile(atPath: memory.path),
        let room = room as? NSNumber, room.uint64Value >= wantedRoom
      {
        return memory
      }
    } catch {
      // There is no such place.
    }
    return FileManager.default.temporaryDirectory
  }
}
