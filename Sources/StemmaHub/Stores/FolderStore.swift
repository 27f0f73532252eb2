import StemmaEvents
import StemmaReplication

/// Objects in the files of a folder, on a local disk or a network file system.
///
/// A key is the path below the folder. A write goes to a file `.tmp-…` in the folder of its target.
/// The file is synced, linked or renamed to its final name, and the folder is synced. A crash
/// leaves the old object or the new one, and perhaps an unfinished file, which no list shows.
///
/// `put` with `ifAbsent` uses link(2): of several links to one name, the file system makes one. If
/// the file system has no hard links, renameat2(2) with RENAME_NOREPLACE does the same.
package final class FolderStore: CountedStore {
  package let name: String
  private let path: String
  private let canLink: Bool
  private let counter = RequestCounter()
  /// Folders whose names this object has made durable.
  private let durable = Mutex<Set<String>>([])

  /// Reads of larger files are refused.
  private static let largest: UInt64 = 1 << 30

  /// - Parameters:
  ///   - path: the folder. The first write creates it if its parent exists.
  ///   - canLink: false: treats the file system as one without hard links.
  package init(_ path: String, canLink: Bool = true) {
    var path = path
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    self.path = path
    self.canLink = canLink
    name = path
  }

  package var requestCount: RequestCount { counter.count }

  private func file(_ key: String) -> String { path + "/" + key }

  // MARK: Reading

  package func get(_ key: String, _ range: Range<UInt64>?) throws(ObjectError) -> [UInt8]? {
    try ObjectKey.check(key, in: name)
    counter.add(\.reads)
    let path = file(key)
    let opened: FolderFile
    do { opened = try FolderFile(reading: path) } catch {
      if error.isAbsence { return nil }
      throw error.objectError
    }
    guard opened.kind != .folder else { return nil }
    guard opened.kind == .file else { throw .refused("\(path): this is not a regular file") }
    let lower = min(range?.lowerBound ?? 0, opened.size)
    let upper = min(range?.upperBound ?? opened.size, opened.size)
    guard upper - lower <= Self.largest else { throw .refused("\(path): it is larger than 1 GiB") }
    do {
      let bytes = try opened.read(lower..<upper)
      counter.add(bytesIn: bytes.count)
      return bytes
    } catch { throw error.objectError }
  }

  /// One page has all keys.
  package func list(_ prefix: String, after last: String?) throws(ObjectError) -> ObjectPage {
    try ObjectKey.check(prefix: prefix, in: name)
    counter.add(\.lists)
    var entries: [ObjectPage.Entry] = []
    var open = [prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""]
    while let folder = open.popLast() {
      let found: [FolderEntry]
      do { found = try FolderEntry.all(in: path + "/" + folder) } catch {
        // Another process has removed it.
        if error.isAbsence { continue }
        throw error.objectError
      }
      for entry in found {
        let key = folder + entry.name
        guard ObjectKey.isValid(key) else { continue }
        switch entry.kind {
        case .file:
          guard key.hasPrefix(prefix), last.map({ ObjectKey.precedes($0, key) }) ?? true else { continue }
          entries.append(.init(key: key, tag: entry.tag))
        case .folder:
          let below = key + "/"
          if below.hasPrefix(prefix) || prefix.hasPrefix(below) { open.append(below) }
        case .other: continue
        }
      }
    }
    entries.sort { ObjectKey.precedes($0.key, $1.key) }
    return ObjectPage(entries: entries, isLast: true)
  }

  // MARK: Writing

  package func put(_ key: String, _ bytes: [UInt8], ifAbsent: Bool) throws(ObjectError) -> Bool {
    try ObjectKey.check(key, in: name)
    counter.add(\.writes)
    counter.add(bytesOut: bytes.count)
    let target = file(key)
    let folder = String(target[..<(target.lastIndex(of: "/") ?? target.endIndex)])
    do throws(FolderError) {
      try makeFolders(for: key)
      let unfinished = try FolderFile(unfinishedIn: folder, bytes)
      // The name is gone after a rename.
      defer { unfinished.remove() }
      let isWritten = ifAbsent ? try publish(unfinished, target) : try replace(unfinished, target)
      unfinished.remove()
      // Without success, the object of another writer may be seen here but not be durable yet.
      do throws(FolderError) { try FolderFile.sync(folder: folder) } catch {
        throw error.afterTheFact
      }
      return isWritten
    } catch { throw error.objectError }
  }

  private func replace(_ unfinished: FolderFile, _ target: String) throws(FolderError) -> Bool {
    try unfinished.rename(to: target)
    return true
  }

  /// Gives a file its name unless that name is taken.
  private func publish(_ unfinished: FolderFile, _ target: String) throws(FolderError) -> Bool {
    if canLink {
      do throws(FolderError) {
        try unfinished.link(to: target)
        return true
      } catch {
        // NFS repeats requests whose answer was lost, and the second one finds the first one's
        // link (link(2)).
        if unfinished.links == 2 { return true }
        if error.isExistence { return try isTaken(target) }
        guard error.isUnsupported else { throw error }
      }
    }
    do throws(FolderError) {
      try unfinished.rename(toAbsent: target)
      return true
    } catch {
      if error.isExistence { return try isTaken(target) }
      throw error
    }
  }

  /// False. Throws if the name does not belong to an object.
  private func isTaken(_ target: String) throws(FolderError) -> Bool {
    let kind: FileKind
    do throws(FolderError) { kind = try FolderEntry.kind(target) } catch {
      // Another process has removed the object since.
      if error.isAbsence { return false }
      throw error
    }
    guard kind != .folder else {
      throw FolderError(path: target, operation: "link", code: FolderError.isFolder)
    }
    return false
  }

  package func delete(_ key: String) throws(ObjectError) {
    try ObjectKey.check(key, in: name)
    counter.add(\.deletions)
    let path = file(key)
    do throws(FolderError) {
      guard try FolderEntry.kind(path) != .folder else { return }
      try FolderFile.remove(path)
      let folder = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
      do throws(FolderError) { try FolderFile.sync(folder: folder) } catch {
        throw error.afterTheFact
      }
    } catch {
      if !error.isAbsence { throw error.objectError }
    }
  }

  /// Creates the folders of a key, and makes them durable.
  private func makeFolders(for key: String) throws(FolderError) {
    var parent = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    if parent.isEmpty { parent = path.hasPrefix("/") ? "/" : "." }
    var folder = path
    for component in [""] + key.split(separator: "/").dropLast().map(String.init) {
      if !component.isEmpty {
        parent = folder
        folder += "/" + component
      }
      let isNew = try FolderFile.make(folder: folder)
      // A folder that another process has created may not be durable yet. The parent of the store
      // may be unreadable, and is synced only by the creator of the store.
      if isNew || (folder != path && durable.withLock { !$0.contains(folder) }) {
        try FolderFile.sync(folder: parent)
        durable.withLock { _ = $0.insert(folder) }
      }
    }
  }
}
