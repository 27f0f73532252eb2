import Foundation
import StemmaEvents
import StemmaNode
import Synchronization

/// The temporary stores of this process, in one folder that goes when it exits.
enum TemporaryStores {
  /// The place for files in memory is used with so much room at least, in bytes; containers often have but a little.
  private static let wantedRoom: UInt64 = 1 << 30

  private struct Current {
    var folder: TemporaryFolder?
    var stores = 0

    /// Traps if stores are nowhere. In debug builds at each store.
    func checkInvariants() { precondition((folder == nil) == (stores == 0), "a store is in a folder") }
  }

  private static let current = Mutex(Current())

  /// A path for a store's directory at which there is nothing yet: in memory where the system has a place for files there
  /// (Linux), otherwise where temporary files are.
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

  /// Nil: where temporary files are.
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
      // There is no such place.
    }
    return nil
  }
}
