import Foundation
import Testing

@testable import Stemma

@Table private struct Visit {
  @Selection struct ID: Hashable {
    let day: Date.DayRepresentation
    let room: String
  }
  let id: ID
  var guest: String
}

@Table private struct Album {
  let id: UUID
  var title: String
  @HasMany("albumId", onDelete: .cascade) var photos: Related<Photo>
}

@Table private struct Photo {
  let id: UUID
  var albumId: UUID?
  @BelongsTo("albumId") var album: Album?
  @HasMany("photoId") var comments: Related<Comment>
}

@Table private struct Comment {
  let id: UUID
  var photoId: UUID?
  @BelongsTo("photoId") var photo: Photo?
}

/// Authors of commits, days as keys, and cascades of deletions.
@Suite("Authors, days as keys, cascades")
struct AuthorTests {
  @Test("commits have the store's author, that of a store for another one, or the one that a write names")
  func authors() async throws {
    let store = try await Store.temporary(options: .init(author: "app"), models: Reminder.self)
    let id = try await store.insert(Reminder.Draft(title: "Rest")).id
    let ann = store.as("ann")
    var row = try await ann.find(Reminder.self, id)
    row.title = "Walk"
    row = try await ann.update(row)
    try await Reminder.find(id).update { $0.isDone = true }.execute(ann)
    try await ann.write(author: "bob") { [row] in try $0.delete(row) }
    #expect(try await store.history(of: row).map(\.author) == ["app", "ann", "ann", "bob"])
    try await ann.checkInvariants()
    await ann.close()
    await #expect(throws: StoreError.closed) { try await store.get(Reminder.self, byIdentifier: id) }
    #expect(!FileManager.default.fileExists(atPath: store.directory.path))
  }

  @Test("a store for an author keeps a temporary store, and observes its commits")
  func lifetime() async throws {
    func made() async throws -> Store { try await Store.temporary(models: Reminder.self).as("ann") }
    let ann = try await made()
    try await ann.insert(Reminder.Draft(title: "Rest"))
    var rows = ann.observe(Reminder.all).makeAsyncIterator()
    #expect(try await rows.next()?.count == 1)
    try await ann.as("bob").insert(Reminder.Draft(title: "Walk"))
    #expect(try await rows.next()?.count == 2)
  }

  @Test("a resolver decides as the store's author")
  func resolver() async throws {
    let here = try await Store.temporary(options: .init(author: "app"), models: Reminder.self)
    let there = try await Store.temporary(models: Reminder.self)
    let id = try await here.insert(Reminder.Draft(title: "Rest")).id
    try await here.sync(with: there)
    try await Reminder.find(id).update { $0.title = "a" }.execute(here)
    try await Reminder.find(id).update { $0.title = "b" }.execute(there)
    try await here.resolveConflicts(of: Reminder.self) { _ in .shown }
    try await here.sync(with: there)
    let last = try #require(try await here.history(of: Reminder.self, id).last)
    #expect(last.operation == .resolve && last.author == "app")
  }

  @Test("a day is a key part: dates of one day are one key")
  func days() async throws {
    let store = try await Store.temporary(models: Visit.self)
    let noon = Date(timeIntervalSince1970: 1_700_000_000)
    let day = Date.DayRepresentation(representing: noon)
    try await store.insert(Visit.Draft(day: day, room: "a", guest: "Ana"))
    let read = try #require(try await Visit.all.fetchOne(store))
    #expect(
      read.id == Visit.ID(day: day, room: "a") && read.id.hashValue == Visit.ID(day: day, room: "a").hashValue
    )
    #expect(read.id.day.represented == Date(timeIntervalSince1970: 1_699_920_000))
    #expect(try await store.get(Visit.self, byIdentifier: .init(day: day, room: "a"))?.guest == "Ana")
    #expect(try await Visit.where { $0.id == Visit.ID(day: day, room: "a") }.fetchCount(store) == 1)
    await #expect(throws: StoreError.self) {
      let morning = Date.DayRepresentation(representing: Date(timeIntervalSince1970: 1_699_920_001))
      try await store.insert(Visit.Draft(day: morning, room: "a", guest: "Ben"))
    }
    let part = try await Store.temporary(
      options: .init(partitions: [.partition(Visit.self, day)]), models: Visit.self)
    #expect(try await part.scope() == ["day=2023-11-14"])
  }

  @Test("a deletion that cascades deletes records whose reference is optional")
  func cascade() async throws {
    let store = try await Store.temporary(models: Album.self, Photo.self, Comment.self)
    let album = try await store.insert(Album.Draft(title: "One"))
    let photo = try await store.insert(Photo.Draft(album: album))
    let kept = try await store.insert(Photo.Draft(albumId: nil))
    let comment = try await store.insert(Comment.Draft(photo: photo))
    try await store.delete(album)
    #expect(try await Photo.all.fetchAll(store).map(\.id) == [kept.id])
    // The rule belongs to this relationship, not to the following ones.
    #expect(try await store.find(Comment.self, comment.id).photoId == nil)
  }

  @Test("a statement gives its SQL")
  func sql() {
    #expect(Reminder.count().sql == #"SELECT count(*) FROM "reminders""#)
    #expect(SQL<Int>("SELECT \(5)").sql == "SELECT ?")
  }
}
