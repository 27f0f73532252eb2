import Foundation
import StemmaLog

/// A directory for temporary files, removed with this object. Only its user can read it.
///
/// It is locked while in use. The next process that creates one in the same place removes the
/// unlocked leftovers of crashed processes.
package final class TemporaryFolder: Sendable {
  private static let prefix = "stemma-temporary-"
  private static let lockName = "lock"

  package let path: String
  private let lock: any File

  /// - Parameter place: the parent directory; nil: the system's directory for temporary files.
  package init(in place: String? = nil) throws(NodeError) {
    let place = place ?? FileManager.default.temporaryDirectory.path
    let files = POSIXFileSystem()
    Self.removeLeftovers(in: place, files)
    while true {
      // Foundation returns equal UUIDs if no file can be opened.
      let made = place + "/" + Self.prefix + String(UInt64.random(in: .min ... .max), radix: 16)
      do throws(LogError) { try files.createDirectory(made, mode: 0o700) } catch {
        throw .noTemporaryPlace(path: place, error)
      }
      do throws(LogError) {
        let lock = try files.open(made + "/" + Self.lockName, .create)
        // Another process may have removed it as a leftover before it was locked.
        guard try lock.tryLock(), FileManager.default.fileExists(atPath: made) else { continue }
        (path, self.lock) = (made, lock)
        return
      } catch {
        // A directory without a lock would never be recognized as a leftover.
        do { try FileManager.default.removeItem(atPath: made) } catch {}
        throw .log(error)
      }
    }
  }

  deinit { remove() }

  package func remove() {
    // The error cannot be reported here. A later process removes the directory.
    do { try FileManager.default.removeItem(atPath: path) } catch {}
  }

  private static func removeLeftovers(in place: String, _ files: POSIXFileSystem) {
    let names: [String]
    do { names = try files.list(place) } catch { return }
    for name in names where name.hasPrefix(prefix) {
      let path = place + "/" + name
      do {
        guard try files.isOwn(path) else { continue }
        let lock = try files.open(path + "/" + lockName, .write)
        defer { lock.close() }
        if try lock.tryLock() { try FileManager.default.removeItem(atPath: path) }
      } catch {
        // Another process is removing it, or its lock does not exist yet.
        continue
      }
    }
  }
}
