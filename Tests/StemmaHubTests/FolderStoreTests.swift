import Foundation
import Servers
import StemmaReplication
import Testing

@testable import StemmaHub

@Suite("Stores in folders") struct FolderStoreTests {
  @Test("conformance, with hard links and without", arguments: [true, false])
  func conformance(canLink: Bool) throws {
    let scratch = try Scratch()
    let path = scratch.file("hub")
    try StoreConformance(open: { FolderStore(path, canLink: canLink) }, races: 50).run()
    // No unfinished file stays.
    let names = try #require(FileManager.default.enumerator(atPath: path)).compactMap { $0 as? String }
    #expect(names.count > 50)
    #expect(names.filter { $0.contains(".tmp-") } == [])
  }

  private func code(_ body: () throws -> Void) -> ObjectError? {
    do {
      try body()
      return nil
    } catch { return error as? ObjectError }
  }

  @Test("a folder without permission", .enabled(if: getuid() != 0, "root needs no permission"))
  func forbiddenFolder() throws {
    let scratch = try Scratch()
    let store = FolderStore(scratch.path)
    #expect(try store.put("a", [1], ifAbsent: true))
    defer { chmod(scratch.path, 0o700) }
    chmod(scratch.path, 0o500)
    for ifAbsent in [true, false] {
      #expect(code { _ = try store.put("b", [2], ifAbsent: ifAbsent) }?.isRefused == true)
    }
    #expect(code { try store.delete("a") }?.isRefused == true)
    chmod(scratch.path, 0)
    #expect(code { _ = try store.get("a", nil) }?.isRefused == true)
    #expect(code { _ = try store.list("", after: nil) }?.isRefused == true)
  }

  @Test("an absent folder has no objects, and only its parent must exist")
  func absentFolder() throws {
    let scratch = try Scratch()
    let store = FolderStore(scratch.file("hub/"))
    #expect(try store.get("a", nil) == nil)
    #expect(try store.list("", after: nil).entries == [])
    try store.delete("a")
    #expect(!FileManager.default.fileExists(atPath: scratch.file("hub")))
    #expect(try store.put("a", [1], ifAbsent: true))
    let deeper = FolderStore(scratch.file("x/y"))
    guard case .refused(let reason)? = code({ _ = try deeper.put("a", [1], ifAbsent: true) }) else {
      return #expect(Bool(false), "not refused")
    }
    #expect(reason.contains(scratch.file("x/y")))
  }

  @Test("folders, links and pipes with the name of an object are refused, and are not listed")
  func otherKinds() throws {
    let scratch = try Scratch()
    let store = FolderStore(scratch.path)
    #expect(try store.put("folder/a", [1], ifAbsent: true))
    #expect(mkfifo(scratch.file("pipe"), 0o666) == 0)
    try scratch.write(".tmp-1-abc", "unfinished")
    try scratch.write("with space", "foreign")
    let writes: [(String, Bool)] = [
      ("folder", true), ("folder", false), ("folder/a/b", true), ("folder/a/b", false),
    ]
    for (key, ifAbsent) in writes {
      guard case .refused? = code({ _ = try store.put(key, [2], ifAbsent: ifAbsent) }) else {
        #expect(Bool(false), "\(key) is not refused")
        continue
      }
    }
    guard case .refused? = code({ _ = try store.get("pipe", nil) }) else {
      return #expect(Bool(false), "the pipe is not refused")
    }
    #expect(try store.list("", after: nil).entries.map(\.key) == ["folder/a"])
    let names = try #require(FileManager.default.enumerator(atPath: scratch.path)).compactMap {
      $0 as? String
    }
    #expect(names.filter { $0.contains(".tmp-") } == [".tmp-1-abc"])
  }

  @Test("a full disk and missing permissions are refused with the path")
  func refusals() throws {
    #expect(FolderError(path: "/p", operation: "write", code: ENOSPC).objectError.isRefused)
    #expect(FolderError(path: "/p", operation: "write", code: EACCES).objectError.isRefused)
    for code in [EIO, ESTALE, EINTR, EMFILE, ENOMEM, ETIMEDOUT] {
      #expect(!FolderError(path: "/p", operation: "write", code: code).objectError.isRefused)
    }
    // The object may have its name already.
    #expect(!FolderError(path: "/p", operation: "fsync", code: ENOSPC).afterTheFact.objectError.isRefused)
    #expect(FolderError(path: "/p", operation: "write", code: ENOSPC).objectError.reason.contains("/p"))
  }

  private static let smallDisk = ProcessInfo.processInfo.environment["STEMMA_SMALL_DISK"]

  @Test(
    "a real file system that is full leaves the old object",
    .enabled(if: smallDisk != nil, "STEMMA_SMALL_DISK names no folder with less than 1 MiB of space"))
  func fullDisk() throws {
    let path = try #require(Self.smallDisk) + "/\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let store = FolderStore(path)
    #expect(try store.put("a", [1], ifAbsent: true))
    for ifAbsent in [true, false] {
      let key = ifAbsent ? "b" : "a"
      let failure = code { _ = try store.put(key, [UInt8](repeating: 7, count: 1 << 20), ifAbsent: ifAbsent) }
      #expect(failure?.isRefused == true)
    }
    #expect(try store.get("a", nil) == [1])
    #expect(try store.get("b", nil) == nil)
    // The unfinished files have left room.
    #expect(try store.put("b", [UInt8](repeating: 7, count: 20_000), ifAbsent: true))
  }
}

extension ObjectError {
  var isRefused: Bool { if case .refused = self { true } else { false } }
}
