import Foundation
import StemmaLog
import StemmaNode
import StemmaTables
import Testing

@testable import Stemma

/// Holds a store until the process exits, like a global of a program.
private let kept = Kept()

private actor Kept {
  private var store: Store?
  func keep(_ store: Store) { self.store = store }
}

@Suite("Temporary stores")
struct TemporaryStoreTests {
  private func isThere(_ directory: URL) -> Bool { FileManager.default.fileExists(atPath: directory.path) }

  @Test("the files are gone when the store is closed, or released")
  func closedOrReleased() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    try await store.insert(Reminder.Draft(title: "Rest"))
    #expect(isThere(store.directory))
    await store.close()
    #expect(!isThere(store.directory))
    var released: Store? = try await Store.temporary(models: Reminder.self)
    let directory = try #require(released?.directory)
    #expect(isThere(directory))
    released = nil
    #expect(!isThere(directory))
  }

  @Test("a read that meets its store being closed says so, not what it misses of the files")
  func closedMeanwhile() async throws {
    for isInspection in [false, true] {
      let store = try await Store.temporary(models: Reminder.self)
      await #expect(throws: StoreError.closed) {
        if isInspection {
          try await store.inspect { _ in
            store.readers.close()
            throw StoreError.failed(.system, "disk I/O error")
          }
        } else {
          try await store.read { (_: ReadConnection) in
            store.readers.close()
            throw StoreError.failed(.system, "disk I/O error")
          }
        }
      }
    }
  }

  @Test("the files are gone when the process exits that still holds the store")
  func exited() async throws {
    let result = try await #require(
      processExitsWith: .exitCode(7), observing: [\.standardOutputContent]
    ) {
      let store = try await Store.temporary(models: Reminder.self)
      try await store.insert(Reminder.Draft(title: "Rest"))
      await kept.keep(store)
      print("directory=\(store.directory.path)=")
      exit(7)
    }
    let output = String(decoding: result.standardOutputContent, as: UTF8.self)
    let directory = URL(fileURLWithPath: String(try #require(output.split(separator: "=").dropFirst().first)))
    #expect(!isThere(directory))
    #expect(!isThere(directory.deletingLastPathComponent()))
  }

  @Test("what a process that was killed has left is removed by the next one, and nothing else is")
  func killed() throws {
    let place = FileManager.default.temporaryDirectory.appendingPathComponent("place-\(UUID())")
    defer { do { try FileManager.default.removeItem(at: place) } catch {} }
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    let alive = try TemporaryFolder(in: place.path)
    let foreign = place.appendingPathComponent("stemma-notes")
    let unlocked = place.appendingPathComponent("stemma-temporary-\(UUID())")
    for directory in [foreign, unlocked] {
      let store = directory.appendingPathComponent("1")
      try FileManager.default.createDirectory(at: store, withIntermediateDirectories: true)
      try Data("1".utf8).write(to: directory.appendingPathComponent("lock"))
    }
    let next = try TemporaryFolder(in: place.path)
    #expect(!isThere(unlocked))
    #expect(isThere(URL(fileURLWithPath: alive.path)) && isThere(foreign))
    #expect(isThere(URL(fileURLWithPath: next.path)))
    next.remove()
    #expect(!isThere(URL(fileURLWithPath: next.path)))
  }
}
