import Foundation
import StemmaLog

/// A folder for files that are needed as long as this object is there, which takes it away. Only its user can read it.
///
/// It is locked for as long: what a process has left that was killed is removed by the next one that makes such a folder in the
/// same place, as its lock is free.
package final class TemporaryFolder: Sendable {
  private static let prefix = "stemma-temporary-"
  private static let lockName = "lock"

  package let path: String
  private let lock: any File

  /// `place`: a folder; nil: the system's for temporary files.
  package init(in place: String? = nil) throws(NodeError) {
    let place = place ?? FileManager.default.temporaryDirectory.path
    let files = POSIXFileSystem()
    Self.removeLeftovers(in: place, files)
    while true {
      // Foundation's UUIDs are all the same where no file can be opened.
      let made = place + "/" + Self.prefix + String(UInt64.random(in: .min ... .max), radix: 16)
      do throws(LogError) { try files.createDirectory(made, mode: 0o700) } catch {
        throw .noTemporaryPlace(path: place, error)
      }
      do throws(LogError) {
        let lock = try files.open(made + "/" + Self.lockName, .create)
        // Whoever removes leftovers may have come between.
        guard try lock.tryLock(), FileManager.default.fileExists(atPath: made) else { continue }
        (path, self.lock) = (made, lock)
        return
      } catch {
        // Without a lock nobody would know that it is left.
        do { try FileManager.default.removeItem(atPath: made) } catch {}
        throw .log(error)
      }
    }
  }

  deinit { remove() }

  package func remove() {
    // Nobody is left who could be told; the next one tries it again.
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
        // Somebody else removes it, or its lock is not made yet.
        continue
      }
    }
  }
}
