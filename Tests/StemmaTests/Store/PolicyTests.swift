import Foundation
import Testing

@testable import Stemma

/// The common part of the models of these tests, which differ in their merge policies.
protocol Noted: Table where PrimaryKey == UUID, Draft: MessageDraft {
  var id: UUID { get }
  var title: String { get set }
  var isDone: Bool { get set }
}

protocol MessageDraft: TableDraft {
  init(id: UUID?, title: String, isDone: Bool)
}

enum Merging {
  @Table("notes", policy: .automerge) struct Automerge: Noted {
    let id: UUID
    var title: String
    var isDone = false
  }
  @Table("notes", policy: .latest) struct Latest: Noted {
    let id: UUID
    var title: String
    var isDone = false
  }
  @Table("notes", policy: .optimistic) struct Optimistic: Noted {
    let id: UUID
    var title: String
    var isDone = false
  }
  @Table("notes", deletes: .byVersion) struct ByVersion: Noted {
    let id: UUID
    var title: String
    var isDone = false
  }
  @Table("notes", deletes: .deleteWins) struct DeleteWins: Noted {
    let id: UUID
    var title: String
    var isDone = false
  }
  @Table("notes", deletes: .updateWins) struct UpdateWins: Noted {
    let id: UUID
    var title: String
    var isDone = false
  }
}

extension Merging.Automerge.Draft: MessageDraft {}
extension Merging.Latest.Draft: MessageDraft {}
extension Merging.Optimistic.Draft: MessageDraft {}
extension Merging.ByVersion.Draft: MessageDraft {}
extension Merging.DeleteWins.Draft: MessageDraft {}
extension Merging.UpdateWins.Draft: MessageDraft {}

/// Two stores that both hold one note, and observe their notes.
private struct Notes<Note: Noted> {
  let (here, there): (Store, Store)
  let id: UUID
  private var seenHere, seenThere: RowObservation<Note>.Iterator

  init(_ type: Note.Type) async throws {
    here = try await Store.temporary(options: .init(name: "here"), models: Note.self)
    there = try await Store.temporary(options: .init(name: "there"), models: Note.self)
    id = try await here.insert(Note.Draft(id: nil, title: "old", isDone: false)).primaryKey
    try await here.sync(with: there)
    seenHere = here.observe(Note.all).makeAsyncIterator()
    seenThere = there.observe(Note.all).makeAsyncIterator()
    try await expect(["old"])
  }

  /// Sets the title here, once for each of `titles`. Then `body` makes its change there.
  func edit(here titles: [String], there body: (Store) async throws -> Void) async throws {
    for title in titles { try await Note.find(id).update { $0.title = title }.execute(here) }
    // Waits until the wall clock is later than the last event, because the clock may not advance
    // within a millisecond.
    let last = try #require(try await here.history(of: Note.self, id).last).time
    while Date() <= last.addingTimeInterval(0.002) {}
    try await body(there)
  }

  /// Edits the title on both sides. The shorter history is there, is later, and also completes the
  /// note.
  func editBoth() async throws {
    try await edit(here: ["one", "two"]) { [id] in
      try await Note.find(id).update {
        $0.title = "late"
        $0.isDone = true
      }.execute($0)
    }
    try await here.sync(with: there)
  }

  /// Both observations finally yield these rows, whatever the number of commits.
  mutating func expect(
    _ titles: [String], isDone: Bool? = nil, _ location: Testing.SourceLocation = #_sourceLocation
  ) async throws {
    for rows in [try await Self.last(of: &seenHere), try await Self.last(of: &seenThere)] {
      #expect(rows?.map(\.title) == titles, sourceLocation: location)
      if let isDone { #expect(rows?.map(\.isDone) == [isDone], sourceLocation: location) }
    }
  }

  private static func last(of seen: inout RowObservation<Note>.Iterator) async throws -> [Note]? {
    var rows = try await seen.next()
    while let next = try seen.pending?.takeFirst() { rows = next }
    return rows
  }

  /// Resolves the one open conflict there, and syncs.
  func resolve(_ decision: (Conflict) throws -> Stemma.Resolution) async throws {
    let conflicts = try await there.conflicts(of: Note.self)
    #expect(conflicts.count == 1)
    let conflict = try #require(conflicts.first)
    try await there.resolve(conflict, decision(conflict))
    try await here.sync(with: there)
    for store in [here, there] { #expect(try await store.conflicts().isEmpty) }
  }
}

/// Two stores exchange edits, get a conflict, show the winner of the policy of `@Table`, and agree
/// on a resolution.
@Suite("Policies of @Table over two stores", .timeLimit(.minutes(20)))
struct PolicyTests {
  @Test("automerge: each field by itself; the longer history is shown, and the other value can be taken")
  func automerge() async throws {
    var notes = try await Notes(Merging.Automerge.self)
    try await notes.editBoth()
    try await notes.expect(["two"], isDone: true)
    try await notes.resolve { conflict in
      #expect(conflict.field == "title")
      let values = try conflict.candidates.map { try $0.value(as: String.self) }
      #expect(values == ["two", "late"])
      return .take(conflict.candidates[1])
    }
    try await notes.expect(["late"], isDone: true)
  }

  @Test("latest: each field by itself; the later value is shown, however short its history")
  func latest() async throws {
    var notes = try await Notes(Merging.Latest.self)
    try await notes.editBoth()
    try await notes.expect(["late"], isDone: true)
    try await notes.resolve { conflict in
      let values = try conflict.candidates.map { try $0.value(as: String.self) }
      #expect(values == ["late", "two"])
      return .set("both")
    }
    try await notes.expect(["both"], isDone: true)
  }

  @Test("optimistic: the whole record of the longer history is shown, and the other one can be taken")
  func optimistic() async throws {
    var notes = try await Notes(Merging.Optimistic.self)
    try await notes.editBoth()
    try await notes.expect(["two"], isDone: false)
    try await notes.resolve { conflict in
      #expect(conflict.field == nil)
      let values = try conflict.candidates.map { try $0.value(of: "isDone", as: Bool.self) }
      #expect(values == [false, true])
      return .take(conflict.candidates[1])
    }
    try await notes.expect(["late"], isDone: true)
  }

  @Test("optimistic: of a record that was deleted, too, both conflicts can be decided, each by itself")
  func optimisticAndDeleted() async throws {
    typealias Note = Merging.Optimistic
    var stores: [Store] = []
    for name in ["a", "b", "c"] {
      stores.append(try await Store.temporary(options: .init(name: name), models: Note.self))
    }
    let id = try await stores[0].insert(Note.Draft(id: nil, title: "old", isDone: false)).id
    for other in stores.dropFirst() { try await stores[0].sync(with: other) }
    try await Note.find(id).update { $0.title = "a" }.execute(stores[0])
    try await Note.find(id).update { $0.title = "b" }.execute(stores[1])
    try await Note.find(id).delete().execute(stores[2])
    for other in stores.dropFirst() { try await stores[0].sync(with: other) }
    let conflicts = try await stores[0].conflicts()
    #expect(conflicts.map(\.kind) == [.delete, .value] && conflicts.map(\.field) == [nil, nil])
    let chosen = try #require(conflicts.last?.candidates.last)
    try await stores[0].resolve(conflicts[1], .take(chosen))
    try await stores[0].resolve(conflicts[0], .keep)
    #expect(try await stores[0].conflicts().isEmpty)
    #expect(
      try await stores[0].find(Note.self, id).title == chosen.value(of: "title", as: String.self))
  }

  @Test(
    "a deletion beside edits: the policy says which is shown, and it can be decided the other way",
    arguments: [1, 3], [0, 3])
  func deletions(edits: Int, changesBeforeDeletion changes: Int) async throws {
    // With two histories of equal length, the deletion is later.
    try await deletion(Merging.ByVersion.self, edits, changes, isShown: edits > changes + 1)
    try await deletion(Merging.DeleteWins.self, edits, changes, isShown: false)
    try await deletion(Merging.UpdateWins.self, edits, changes, isShown: true)
  }

  private func deletion<Note: Noted>(
    _ type: Note.Type, _ edits: Int, _ changes: Int, isShown: Bool
  ) async throws {
    var notes = try await Notes(type)
    let id = notes.id
    let titles = (1...edits).map { "edit \($0)" }
    try await notes.edit(here: titles) { there in
      for _ in 0..<changes { try await Note.find(id).update { $0.isDone.toggle() }.execute(there) }
      try await Note.find(id).delete().execute(there)
    }
    try await notes.here.sync(with: notes.there)
    let kept = titles.suffix(1)
    try await notes.expect(isShown ? Array(kept) : [])
    try await notes.resolve { conflict in
      #expect(conflict.kind == .delete)
      #expect(conflict.candidates.map(\.exists) == [isShown, !isShown])
      return isShown ? .delete : .keep
    }
    try await notes.expect(isShown ? [] : Array(kept))
  }

  @Test("a closure decides when the sync leaves a conflict, and both sides observe what it decided")
  func closure() async throws {
    var notes = try await Notes(Merging.Automerge.self)
    try await notes.here.resolveConflicts(of: Merging.Automerge.self) { conflict in
      do {
        return .set(try conflict.candidates.map { try $0.value(as: String.self) }.joined(separator: "+"))
      } catch {
        return nil
      }
    }
    try await notes.editBoth()
    try await notes.here.sync(with: notes.there)
    try await notes.expect(["two+late"], isDone: true)
    for store in [notes.here, notes.there] { #expect(try await store.conflicts().isEmpty) }
  }
}
