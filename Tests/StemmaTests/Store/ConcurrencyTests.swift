import Synchronization
import Testing

@testable import Stemma

/// These tests also run under ThreadSanitizer, as docs/TESTING.md describes.
@Suite("Concurrent use of a store")
struct ConcurrencyTests {
  @Test("writers, readers and observers at once: each commit is there, and seen whole")
  func everythingAtOnce() async throws {
    let store = try await Store.temporary(models: Team.self, Member.self)
    let team = try await store.insert(Team.Draft(mantra: "All"))
    let (writers, commits) = (6, 20)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<writers {
        group.addTask {
          for number in 0..<commits {
            try await store.write { tx in
              let member = try tx.insert(Member.Draft(name: "\(writer).\(number)", teamId: nil))
              try team.members.add(member, tx)
            }
          }
        }
      }
      for _ in 0..<3 {
        group.addTask {
          for _ in 0..<commits {
            let eager = try await store.get(
              Team.self, byIdentifier: team.id, including: { [$0.members.team] })
            let members = try #require(eager).loaded(\.members)
            #expect(try members.allSatisfy { try $0.loaded(\.team)?.id == team.id })
            let unlinked = try await Member.where { $0.teamId == nil }.fetchCount(store)
            #expect(unlinked == 0)
          }
        }
      }
      group.addTask { for _ in 0..<commits { try await store.checkInvariants() } }
      group.addTask {
        var last = 0
        for try await rows in store.observe(Member.all) {
          #expect(rows.count >= last)
          last = rows.count
          if last == writers * commits { break }
        }
        #expect(last == writers * commits)
      }
      try await group.waitForAll()
    }
    #expect(try await team.members.count() == writers * commits)
    try await store.checkInvariants()
    await store.close()
    try await store.checkInvariants()
  }

  @Test("a store that is closed while others use it keeps nothing open")
  func closedMeanwhile() async throws {
    for _ in 0..<20 {
      let store = try await Store.temporary(models: Reminder.self)
      let id = try await store.insert(Reminder.Draft(title: "Rest")).id
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<4 {
          group.addTask {
            do {
              while true {
                _ = try await store.get(Reminder.self, byIdentifier: id)
                store.readers.checkInvariants()
                // Otherwise the other tasks might not get a thread.
                await Task.yield()
              }
            } catch {}
          }
        }
        group.addTask {
          do { for try await _ in store.observe(Reminder.all) { store.changes.checkInvariants() } } catch {}
        }
        group.addTask { await store.close() }
      }
      try await store.checkInvariants()
    }
  }

  private final class Count: Sendable {
    let number = Atomic<Int>(0)
  }

  @Test(
    "reads that begin after a commit has returned show it, of whichever store, and while tables are rebuilt"
  )
  func heldStates() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let other = try await Store(at: store.directory, models: Reminder.self)
    let id = try await store.insert(Reminder.Draft(title: "0")).id
    let count = 90
    let returned = Count()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for number in 1...count {
          if number.isMultiple(of: 15) {
            let rebuilder = number.isMultiple(of: 30) ? store : other
            _ = try await rebuilder.writer.access { node in try node.rebuild { _, _ in } }
          }
          let writer = number.isMultiple(of: 2) ? store : other
          try await Reminder.find(id).update { $0.title = "\(number)" }.execute(writer)
          returned.number.store(number, ordering: .releasing)
        }
      }
      for reader in [store, other, store, other] {
        group.addTask {
          var last = 0
          while last < count {
            let before = returned.number.load(ordering: .acquiring)
            let found = try #require(Int(try await reader.find(Reminder.self, id).title))
            let selected = try await Reminder.select { $0.title }.fetchAll(reader).compactMap { Int($0) }
            #expect(found >= Swift.max(before, last), "by key, of \(before)")
            #expect(selected.allSatisfy { $0 >= found } && selected.count == 1, "by a statement, of \(found)")
            last = found
            reader.readers.checkInvariants()
          }
        }
      }
      try await group.waitForAll()
    }
    for store in [store, other] { try await store.checkInvariants() }
  }

  @Test("two stores on one directory take turns and lose nothing")
  func sharedDirectory() async throws {
    let first = try await Store.temporary(models: Reminder.self)
    let second = try await Store(at: first.directory, models: Reminder.self)
    let count = 15
    try await withThrowingTaskGroup(of: Void.self) { group in
      for store in [first, second] {
        group.addTask {
          for number in 0..<count { try await store.insert(Reminder.Draft(title: "\(number)")) }
        }
      }
      group.addTask {
        for try await rows in first.observe(Reminder.all) where rows.count == 2 * count { break }
      }
      try await group.waitForAll()
    }
    #expect(try await Reminder.all.fetchCount(second) == 2 * count)
  }

  @Test(
    "copies of one value that are saved at the same time stay siblings or follow each other; none is lost")
  func sharedCopies() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let reminder = try await store.insert(Reminder.Draft(title: "Rest"))
    let titles = (0..<8).map { "title \($0)" }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for title in titles {
        group.addTask {
          var copy = reminder
          copy.title = title
          try await store.update(copy)
          copy._record.checkInvariants()
        }
      }
      try await group.waitForAll()
    }
    let written = try await store.history(of: reminder).compactMap {
      try $0.value(of: "title", as: String.self)
    }
    #expect(Set(written.dropFirst()) == Set(titles))
    #expect(try await titles.contains(store.find(Reminder.self, reminder.id).title))
  }

  @Test("stores that sync with each other in a ring while they write agree in the end")
  func ring() async throws {
    var stores: [Store] = []
    for name in ["a", "b", "c"] {
      stores.append(try await Store.temporary(options: .init(name: name), models: Reminder.self))
    }
    let ring = stores
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, store) in ring.enumerated() {
        group.addTask {
          for number in 0..<5 {
            try await store.insert(Reminder.Draft(title: "\(index).\(number)"))
            try await store.sync(with: ring[(index + 1) % ring.count])
          }
        }
      }
      try await group.waitForAll()
    }
    for _ in 0..<2 {
      for index in ring.indices { try await ring[index].sync(with: ring[(index + 1) % ring.count]) }
    }
    for store in ring {
      #expect(try await Reminder.all.fetchCount(store) == 15)
      try await store.checkInvariants()
    }
  }
}
