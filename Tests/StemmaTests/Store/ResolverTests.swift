import Foundation
import Testing

@testable import Stemma

private enum Deciding {
  @Table struct Note {
    let id: UUID
    var title: String
  }
}

/// With children that prevent its deletion.
private enum Kept {
  @Table struct Author {
    let id: UUID
    var name: String
    @HasMany("authorId", onDelete: .restrict) var works: Related<Work>
  }
  @Table struct Work {
    let id: UUID
    var title: String
    var authorId: UUID?
    @BelongsTo("authorId") var author: Author?
  }
}

/// The decision of a resolver for every conflict.
enum Choice: String, CaseIterable, Sendable {
  case keep, delete, shown, newest, takeDeletion, nothing

  @Sendable func decide(_ conflict: Conflict) -> Stemma.Resolution? {
    switch self {
    case .keep: conflict.kind == .delete ? .keep : .shown
    case .delete: conflict.kind == .delete ? .delete : .newest
    case .shown: .shown
    case .newest: .newest
    case .takeDeletion: conflict.candidates.last { !$0.exists || conflict.kind == .value }.map { .take($0) }
    case .nothing: nil
    }
  }
}

@Suite("Resolvers")
struct ResolverTests {
  private func stores(_ models: any Table.Type...) async throws -> (Store, Store) {
    func store(_ name: String) async throws -> Store {
      try await Store.temporary(options: .init(name: name), models: models)
    }
    return (try await store("here"), try await store("there"))
  }

  /// A chosen deletion counts as a decision. Otherwise two stores with opposite decisions would
  /// answer each other forever, at every sync.
  @Test("two that decide differently come to an end", arguments: Choice.allCases, Choice.allCases)
  func opposed(_ mine: Choice, _ yours: Choice) async throws {
    typealias Note = Deciding.Note
    let (here, there) = try await stores(Note.self)
    let deleted = try await here.insert(Note.Draft(title: "deleted there"))
    let edited = try await here.insert(Note.Draft(title: "edited by both"))
    try await here.sync(with: there)
    try await Note.find(deleted.id).update { $0.title = "kept" }.execute(here)
    try await Note.find(deleted.id).delete().execute(there)
    try await Note.find(edited.id).update { $0.title = "one" }.execute(here)
    try await Note.find(edited.id).update { $0.title = "two" }.execute(there)
    try await here.resolveConflicts(of: Note.self, with: mine.decide)
    try await there.resolveConflicts(of: Note.self, with: yours.decide)
    var counts: [UInt64] = []
    for _ in 0..<6 {
      try await here.sync(with: there)
      counts.append(try await here.status().events)
    }
    #expect(counts.suffix(3).allSatisfy { $0 == counts.last }, "\(counts)")
    #expect(try await Note.all.fetchAll(here).map(\.title) == Note.all.fetchAll(there).map(\.title))
    if mine != .nothing || yours != .nothing {
      let open = try await here.conflicts().filter { !$0.candidates.allSatisfy(\.isResolution) }
      #expect(open.map(\.key) == [])
    }
  }

  @Test("a deletion that was decided for says so, an ordinary one does not")
  func decidedDeletion() async throws {
    typealias Note = Deciding.Note
    let (here, there) = try await stores(Note.self)
    let note = try await here.insert(Note.Draft(title: "a"))
    try await here.sync(with: there)
    try await Note.find(note.id).update { $0.title = "b" }.execute(here)
    try await Note.find(note.id).delete().execute(there)
    try await here.pull(from: there.directory.path)
    let conflict = try #require(try await here.conflicts().first)
    #expect(conflict.candidates.map(\.isResolution) == [false, false])
    // The other store is not asked about two decisions.
    try await there.pull(from: here.directory.path)
    try await here.resolve(conflict, .keep)
    try await there.resolve(try #require(try await there.conflicts().first), .delete)
    try await here.sync(with: there)
    let decided = try #require(try await here.conflicts().first)
    #expect(decided.kind == .delete && decided.candidates.map(\.isResolution) == [true, true])
    try await here.resolveConflicts(of: Note.self) { conflict in
      Issue.record("asked about \(conflict.key)")
      return nil
    }
  }

  @Test("a resolver gets the authors of what has come by a sync")
  func writers() async throws {
    typealias Note = Deciding.Note
    let (here, there) = try await stores(Note.self)
    let note = try await here.insert(Note.Draft(title: "a"))
    try await here.sync(with: there)
    try await here.resolveConflicts(of: Note.self) { conflict in
      #expect(conflict.candidates.compactMap(\.author) == ["ana"])
      return .shown
    }
    try await Note.find(note.id).update { $0.title = "b" }.execute(here)
    try await there.write(author: "ana") { tx in
      _ = try Note.find(note.id).update { $0.title = "c" }.execute(tx)
    }
    try await here.sync(with: there)
    #expect(try await here.conflicts().isEmpty)
  }

  @Test("a decision that does not fit the conflict's kind is refused with those that do")
  func unfitDecisions() async throws {
    typealias Author = Kept.Author
    let (here, there) = try await stores(Author.self, Kept.Work.self)
    let author = try await here.insert(Author.Draft(name: "a"))
    try await here.sync(with: there)
    try await Author.find(author.id).update { $0.name = "b" }.execute(here)
    try await Author.find(author.id).update { $0.name = "c" }.execute(there)
    try await there.write { tx in
      try tx.delete(Author.self, author.id)
      try tx.insert(Author.Draft(id: author.id, name: "d"))
    }
    try await here.sync(with: there)
    try await Author.find(author.id).delete().execute(here)
    try await Author.find(author.id).update { $0.name = "e" }.execute(there)
    try await there.insert(Kept.Work.Draft(title: "w", authorId: UUID()))
    try await here.sync(with: there)
    let id = author.id.uuidString.lowercased()
    let deletion = try #require(try await here.conflicts().first { $0.kind == .delete })
    let existence = "is decided by `.keep`, `.delete`, `.take`, `.shown` or `.newest`"
    await #expect(throws: StoreError.failed(.malformed, "whether Author \(id) exists \(existence)")) {
      try await here.resolve(deletion, .set("x"))
    }
    try await here.resolve(deletion, .keep)
    let dangling = try #require(try await here.conflicts().first { $0.kind == .dangling })
    for decision in [Stemma.Resolution.shown, .delete, .set("x")] {
      do {
        try await here.resolve(dangling, decision)
        Issue.record("nothing was thrown")
      } catch StoreError.failed(_, let what) {
        #expect(what.hasPrefix("`author` of Work ") && what.contains("create that, link another"), "\(what)")
      }
    }
    try await Author.find(author.id).update { $0.name = "f" }.execute(here)
    try await Author.find(author.id).update { $0.name = "g" }.execute(there)
    try await here.sync(with: there)
    let values = try #require(try await here.conflicts().first { $0.kind == .value })
    let name = "is a conflict of values, decided by `.take`, `.set`, `.shown` or `.newest`"
    for decision in [Stemma.Resolution.keep, .delete] {
      await #expect(throws: StoreError.failed(.malformed, "`name` of Author \(id) \(name)")) {
        try await here.resolve(values, decision)
      }
    }
  }

  /// Two authors that were deleted there and renamed here. The first one has a new work here.
  private func restricted() async throws -> (Store, Store, first: Kept.Author, second: Kept.Author) {
    let (here, there) = try await stores(Kept.Author.self, Kept.Work.self)
    let first = try await here.insert(Kept.Author.Draft(name: "first"))
    let second = try await here.insert(Kept.Author.Draft(name: "second"))
    try await here.sync(with: there)
    for author in [first, second] {
      try await Kept.Author.find(author.id).update { $0.name = "renamed" }.execute(here)
      try await Kept.Author.find(author.id).delete().execute(there)
    }
    try await here.insert(Kept.Work.Draft(title: "a", authorId: first.id))
    return (here, there, first, second)
  }

  @Test("a decision that a delete rule forbids leaves only its conflict open, and is reported once")
  func forbidden() async throws {
    let (here, there, first, second) = try await restricted()
    try await here.resolveConflicts(of: Kept.Author.self) { $0.kind == .delete ? .delete : nil }
    do {
      try await here.sync(with: there)
      Issue.record("nothing was thrown")
    } catch StoreError.unresolved(let what) {
      #expect(what.contains(first.id.uuidString.lowercased()) && what.contains("Work"), "\(what)")
    }
    #expect(try await here.get(Kept.Author.self, byIdentifier: second.id) == nil)
    let open = try await here.conflicts(of: Kept.Author.self)
    #expect(open.map(\.key) == [first.id.uuidString.lowercased()])
    // Other work continues.
    let other = try await here.insert(Kept.Author.Draft(name: "other"))
    try await here.sync(with: there)
    #expect(try await there.get(Kept.Author.self, byIdentifier: other.id)?.name == "other")
    await #expect(throws: StoreError.restricted(model: "Author", key: open[0].key, by: "Work", count: 1)) {
      try await here.resolve(open[0], .delete)
    }
    // Once the rule permits the deletion, the conflict is resolved.
    try await Kept.Work.all.delete().execute(here)
    #expect(try await here.conflicts(of: Kept.Author.self).isEmpty)
    #expect(try await here.get(Kept.Author.self, byIdentifier: first.id) == nil)
  }

  @Test("a decision that has to wait for another one is made after it")
  func ordered() async throws {
    typealias Author = Kept.Author
    typealias Work = Kept.Work
    let (here, there) = try await stores(Author.self, Work.self)
    let author = try await here.insert(Author.Draft(name: "a"))
    let work = try await here.insert(Work.Draft(title: "a", authorId: author.id))
    try await here.sync(with: there)
    for name in ["b", "c"] {
      try await Author.find(author.id).update { $0.name = name }.execute(here)
      try await Work.find(work.id).update { $0.title = name }.execute(here)
    }
    try await Work.find(work.id).delete().execute(there)
    try await Author.find(author.id).delete().execute(there)
    try await here.resolveConflicts(of: Author.self) { $0.kind == .delete ? .delete : nil }
    try await here.resolveConflicts(of: Work.self) { $0.kind == .delete ? .delete : nil }
    try await here.sync(with: there)
    #expect(try await here.conflicts().isEmpty)
    #expect(try await Author.all.fetchAll(here).isEmpty)
    #expect(try await Work.all.fetchAll(here).isEmpty)
  }

  @Test("each of two stores decides, also where the other one cannot")
  func both() async throws {
    let (here, there, first, second) = try await restricted()
    try await here.resolveConflicts(of: Kept.Author.self) { $0.kind == .delete ? .delete : nil }
    try await there.resolveConflicts(of: Kept.Author.self) { conflict in
      conflict.key == first.id.uuidString.lowercased() && conflict.kind == .delete ? .keep : nil
    }
    do {
      try await here.sync(with: there)
      Issue.record("nothing was thrown")
    } catch StoreError.unresolved {}
    #expect(try await there.get(Kept.Author.self, byIdentifier: first.id)?.name == "renamed")
    try await here.sync(with: there)
    #expect(try await here.conflicts(of: Kept.Author.self).isEmpty)
    #expect(try await here.get(Kept.Author.self, byIdentifier: second.id) == nil)
  }

  @Test("where neither of two stores can decide, both reasons are reported, once")
  func neither() async throws {
    let (here, there, first, _) = try await restricted()
    let id = first.id.uuidString.lowercased()
    func resolver(_ decision: Stemma.Resolution) -> @Sendable (Conflict) -> Stemma.Resolution? {
      { $0.key == id && $0.kind == .delete ? decision : nil }
    }
    try await here.resolveConflicts(of: Kept.Author.self, with: resolver(.set("x")))
    try await there.resolveConflicts(of: Kept.Author.self, with: resolver(.delete))
    do {
      try await here.sync(with: there)
      Issue.record("nothing was thrown")
    } catch StoreError.unresolved(let what) {
      #expect(
        what == """
          Author \(id): whether Author \(id) exists is decided by `.keep`, `.delete`, `.take`, `.shown` or `.newest`; \
          Author \(id): Author \(id) still has 1 Work; delete or unlink them first
          """)
    }
    try await here.sync(with: there)
    for store in [here, there] {
      #expect(try await store.conflicts(of: Kept.Author.self).contains { $0.key == id })
    }
  }

  @Test("the history shows who has decided, and why")
  func deciders() async throws {
    typealias Note = Deciding.Note
    let (here, there) = try await stores(Note.self)
    let note = try await here.insert(Note.Draft(title: "a"))
    func conflict() async throws {
      try await here.sync(with: there)
      try await Note.find(note.id).update { $0.title += "b" }.execute(here)
      try await Note.find(note.id).update { $0.title += "c" }.execute(there)
      try await here.sync(with: there)
    }
    func decision() async throws -> [String?] {
      let events = try await here.history(of: note)
      return events.last.map { [$0.operation.rawValue, $0.author, $0.message] } ?? []
    }
    try await conflict()
    let open = try #require(try await here.conflicts().first)
    try await here.resolve(open, .shown, author: "ben", message: "the older")
    #expect(try await decision() == ["resolve", "ben", "the older"])
    try await here.resolveConflicts(of: Note.self) { _ in .newest }
    try await conflict()
    #expect(try await decision() == ["resolve", nil, "decided by the program's resolver"])
  }
}
