import Foundation
import Testing

@testable import Stemma

@Table private struct Depot {
  @Selection struct ID: Hashable {
    let site: String
    let name: String
  }
  let id: ID
  var text: String?
}

@Table private struct Crate {
  @Selection struct ID: Hashable {
    let site: String
    let number: Int
  }
  let id: ID
  var depotName: String?
  @BelongsTo("site", "depotName") var depot: Depot?
}

/// The first attempts of a user are correct, or the error gives the correct form.
@Suite("Joins, SQL, drafts and the past as they are written first")
struct WayOutTests {
  @Test("SQL of records that begins with other columns says with which")
  func star() async throws {
    let store = try await ReadStatementTests.store()
    // The table has the columns in another order, followed by its internal ones.
    let star = SQL<Chore>("SELECT *, 1 FROM chores")
    do {
      _ = try await SQL<Chore>("SELECT title, * FROM chores").fetchAll(store)
      Issue.record("columns of something else are no record")
    } catch StoreError.failed(.invalidQuery, let why) {
      #expect(why.contains(#"SELECT \(columns: Chore.self)"#))
    }
    await #expect(throws: StoreError.self) { try await SQL<Chore>("SELECT 1").fetchOne(store) }
    let right = SQL<Chore>("SELECT \(columns: Chore.self), 1 FROM \(Chore.self) ORDER BY 1")
    #expect(try await right.fetchAll(store).map(\.id) == [1, 2, 3, 4])
    // No row may be read from the wrong columns.
    do { #expect(try await star.fetchAll(store).count == 4) } catch StoreError.failed {}
  }

  @Test("a model joins another one by a condition")
  func join() async throws {
    let store = try await ReadStatementTests.store()
    let pairs = try await Worker.join(Chore.self) { $0.id == $1.ownerId }.fetchAll(store)
    #expect(pairs.map(\.0.name) == ["Ben", "Ben", "Cleo"])
    let all = try await Worker.leftJoin(Chore.self) { $0.id == $1.ownerId && $1.isDone == true }.fetchAll(
      store)
    #expect(all.map(\.1?.id) == [nil, nil, 2])
  }

  @Test("a draft takes the part of the key that an optional parent shares from it")
  func draft() async throws {
    let store = try await Store.temporary(models: Depot.self, Crate.self)
    let depot = try await store.insert(Depot.Draft(site: "s", name: "d"))
    let crate = try await store.insert(Crate.Draft(number: 1, depot: depot))
    #expect(crate.id == Crate.ID(site: "s", number: 1) && crate.depotName == "d")
    let alone = try await store.insert(Crate.Draft(site: "s", number: 2))
    #expect(alone.depotName == nil)
    // If both are given, they must agree.
    #expect(throws: StoreError.self) { try Crate.Draft(site: "t", number: 3, depot: depot) }
    let both = try Crate.Draft(site: "s", number: 3, depot: depot)
    #expect(try await store.insert(both).depotName == "d")
  }

  @Test("records of the past have the records of then along")
  func past() async throws {
    let store = try await Store.temporary(models: Team.self, Member.self)
    let team = try await store.insert(Team.Draft(mantra: "One"))
    let member = try await store.insert(Member.Draft(name: "Tim", team: team))
    let then = try #require(try await store.history(of: member).last)
    try await store.write { tx in
      try Team.find(team.id).update { $0.mantra = "Two" }.execute(tx)
      try tx.insert(Member.Draft(name: "Tom", team: team))
    }
    let (members, teams, first, count) = try await store.asOf(.event(then)) { past in
      (
        try past.fetchAll(Member.all) { [$0.team.members] },
        try past.fetchAll(Team.all, including: { [$0.members] }),
        try past.fetchOne(Member.order { $0.name.desc() }), try past.fetchCount(Member.all)
      )
    }
    #expect(try members.map { try $0.loaded(\.team)?.mantra } == ["One"])
    #expect(try members[0].loaded(\.team)?.loaded(\.members).map(\.name) == ["Tim"])
    #expect(try teams[0].loaded(\.members).map(\.name) == ["Tim"])
    #expect(first?.name == "Tim" && count == 1)
    // It belongs to no store: it never mixes with present records, and an update compares it with
    // the current record.
    await #expect(throws: StoreError.notFromStore(model: "Member")) { try await members[0].team }
    let included = try #require(try members[0].loaded(\.team))
    await #expect(throws: StoreError.notFromStore(model: "Team")) { try await included.members.fetch() }
    #expect(throws: StoreError.notLoaded(model: "Member", relationship: "team")) {
      try #require(first).loaded(\.team)
    }
    var old = teams[0]
    old.mantra = "Three"
    #expect(try await store.update(old).mantra == "Three")
  }
}
