import Foundation
import StemmaEvents
import StemmaNode

/// The temporary stores of this process, in one folder that is removed at exit.
enum TemporaryStores {
  /// The free space needed to use the memory file system, in bytes; containers often have little.
  private static let wantedRoom: UInt64 = 1 << 30

  private struct Current {
    var folder: TemporaryFolder?
    var stores = 0

    /// Traps if stores have no folder. In debug builds at each store.
    func checkInvariants() { precondition((folder == nil) == (stores == 0), "a store is in a folder") }
  }

  private static let current = Mutex(Current())

  /// An unused path for a store's directory: in the memory file system, if the platform has one
  /// (Linux), otherwise among the temporary files.
  static func newStore() throws(NodeError) -> URL {
    try current.withLock { (current) throws(NodeError) in
      let folder: TemporaryFolder
      if let known = current.folder {
        folder = known
      } else {
        folder = try TemporaryFolder(in: place())
        current.folder = folder
        atexit { TemporaryStores.current.withLock { $0.folder?.remove() } }
      }
      current.stores += 1
      assert(holds(current.checkInvariants))
      return URL(fileURLWithPath: folder.path).appendingPathComponent("\(current.stores)")
    }
  }

  /// Nil: the folder of temporary files.
  private static func place() -> String? {
    let memory = "/dev/shm"
    do {
      let room = try FileManager.default.attributesOfFileSystem(forPath: memory)[.systemFreeSize]
      if FileManager.default.isWritableFile(atPath: memory), let room = room as? NSNumber,
        room.uint64Value >= wantedRoom
      {
        return memory
      }
    } catch {
      // The path does not exist.
    }
    return nil
  }
}
