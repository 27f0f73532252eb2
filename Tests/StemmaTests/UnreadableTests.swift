import Testing

@testable import Stemma

/// A model as two versions of a program declare it.
private enum Old {
  @Table("tickets") struct Ticket {
    enum State: String, KeyValue, CaseIterable { case open, closed }
    @Selection struct ID: Hashable {
      let state: State
      let number: Int
    }
    let id: ID
    var title: String
    var next: State
  }
}

private enum New {
  @Table("tickets") struct Ticket {
    enum State: String, KeyValue, CaseIterable { case open, closed, waiting }
    @Selection struct ID: Hashable {
      let state: State
      let number: Int
    }
    let id: ID
    var title: String
    var next: State
  }
}

/// Handling of records that a program cannot read completely, because a newer program wrote them.
@Suite("Values that a program cannot read")
struct UnreadableTests {
  private typealias Ticket = Old.Ticket
  private let unknown = StoreError.unreadable(table: "tickets", column: "next", value: "\"waiting\"")

  /// Two stores of one directory. The old one can read the second of three tickets.
  private func stores() async throws -> (old: Store, new: Store) {
    let old = try await Store.temporary(models: Ticket.self)
    let new = try await Store(at: old.directory, models: New.Ticket.self)
    try await new.write { tx in
      try tx.insert(New.Ticket(id: .init(state: .open, number: 1), title: "a", next: .waiting))
      try tx.insert(New.Ticket(id: .init(state: .open, number: 2), title: "b", next: .closed))
      try tx.insert(New.Ticket(id: .init(state: .waiting, number: 3), title: "c", next: .open))
    }
    return (old, new)
  }

  private func titles(_ store: Store) async throws -> [String] {
    try await Ticket.select { $0.title }.fetchAll(store)
  }

  @Test("can be deleted by every statement that does not return them")
  func deleted() async throws {
    let first = Ticket.ID(state: .open, number: 1)
    for delete in [
      Ticket.find(first).delete(), Ticket.find([first]).delete(), Ticket.where { $0.title == "a" }.delete(),
      Ticket.order { $0.title }.limit(1).delete(),
      Ticket.delete(Ticket(id: first, title: "", next: .open)),
    ] {
      let (old, _) = try await stores()
      await #expect(throws: unknown) { try await Ticket.find(first).fetchOne(old) }
      try await delete.execute(old)
      #expect(try await titles(old) == ["b", "c"])
    }
    let (old, _) = try await stores()
    try await old.delete(Ticket.self, first)
    #expect(try await titles(old) == ["b", "c"])
    // The old program cannot represent the key of the third ticket.
    try await Ticket.all.distinct().delete().execute(old)
    #expect(try await titles(old) == [])
  }

  @Test("are read by a closure that is asked about each row, and one that throws keeps all")
  func mapped() async throws {
    struct Kept: Error {}
    let store = try await Store.temporary(models: Ticket.self)
    try await store.write { tx in
      for number in 1...3 {
        try tx.insert(Ticket(id: .init(state: .open, number: number), title: "a", next: .open))
      }
    }
    let delete = Ticket.order { $0.title }.map { row throws -> Ticket in
      guard row.id.number < 3 else { throw Kept() }
      return row
    }.delete()
    await #expect(throws: Kept.self) { try await delete.execute(store) }
    #expect(try await titles(store) == ["a", "a", "a"])
  }

  @Test("are not returned, and what was to return them changes nothing")
  func returned() async throws {
    let (old, _) = try await stores()
    await #expect(throws: unknown) { try await Ticket.delete().returning(\.title).fetchAll(old) }
    await #expect(throws: unknown) {
      try await Ticket.where { $0.title == "a" }.update { $0.title = "x" }.execute(old)
    }
    #expect(try await titles(old) == ["a", "b", "c"])
  }

  @Test("count, and their other columns are read, joined and filtered by")
  func otherColumns() async throws {
    let (old, _) = try await stores()
    #expect(try await Ticket.all.fetchCount(old) == 3)
    #expect(try await Ticket.count().fetchOne(old) == 3)
    #expect(try await Ticket.where { $0.next == .open }.select { $0.title }.fetchAll(old) == ["c"])
    #expect(try await Ticket.group { $0.next }.select { $0.id.number.count() }.fetchAll(old) == [1, 1, 1])
  }

  @Test("a record that became one since it was read can be saved; what was set is recorded, the rest stays")
  func saved() async throws {
    let (old, new) = try await stores()
    let key = Ticket.ID(state: .open, number: 2)
    var ticket = try await old.find(Ticket.self, key)
    try await New.Ticket.find(.init(state: .open, number: 2)).update { $0.next = .waiting }.execute(new)
    ticket.title = "B"
    let row = ticket
    // The call that returns the current record fails and records nothing.
    await #expect(throws: unknown) { try await old.update(row) }
    #expect(try await titles(old) == ["a", "b", "c"])
    try await Ticket.update(row).execute(old)
    let now = try await new.find(New.Ticket.self, .init(state: .open, number: 2))
    #expect(now.title == "B" && now.next == .waiting)
    #expect(try await old.conflicts().map(\.key) == [])
    // A draft that leaves such a column unchanged, like a draft of a type with fewer columns.
    try await Ticket.upsert(Ticket.Draft(id: key, title: "C", next: .closed)).execute(old)
    #expect(try await titles(old) == ["a", "C", "c"])
  }
}
