import Testing

@testable import Stemma

@Table struct Chore {
  let id: Int
  var title: String
  var isDone = false
  var rank: Int?
  var effort: Double = 0
  var due: Date?
  var ownerId: Int?
  var cost = Cost()
  @Selection struct Cost {
    var price: Decimal = 0
    var unit: String?
  }
  var note: String?
  @BelongsTo("ownerId") var owner: Worker?
  @HasMany("choreId") var steps: Related<Step>
}

/// Deleted with its chore, which its key names.
@Table struct Step {
  @Selection struct ID: Hashable {
    let choreId: Int
    let number: Int
  }
  let id: ID
  var text: String
  @BelongsTo("choreId") var chore: Chore
}

@Table struct Worker {
  let id: Int
  var name: String
  var bossId: Int?
  @BelongsTo("bossId") var boss: Worker?
  @HasMany("bossId") var staff: Related<Worker>
  @HasMany("ownerId") var tasks: Related<Chore>
  @HasMany("workerId", onDelete: .restrict) var badges: Related<Badge>
}

/// Prevents the deletion of its worker.
@Table struct Badge {
  let id: Int
  var workerId: Int
  @BelongsTo("workerId") var worker: Worker
}

/// The selected columns of a chore, and of a worker's chores.
@Selection struct Brief: Equatable {
  var title: String
  var rank: Int?
  var isUrgent = false
}

@Selection struct Load: Hashable {
  let name: String
  let chores: Int
}

/// The meaning of each part of a reading statement.
@Suite("Statements that read")
struct ReadStatementTests {
  static func store() async throws -> Store {
    let store = try await Store.temporary(models: Chore.self, Worker.self)
    try await store.write { tx in
      try tx.insert(Worker(id: 1, name: "Ana", bossId: nil))
      try tx.insert(Worker(id: 2, name: "Ben", bossId: 1))
      try tx.insert(Worker(id: 3, name: "Cleo", bossId: 1))
      try tx.insert(Chore(id: 1, title: "paint", rank: 3, effort: 1.5, due: date(0.5), ownerId: 2))
      try tx.insert(
        Chore(id: 2, title: "Paper*", isDone: true, rank: nil, effort: 2, due: date(0), ownerId: 3))
      try tx.insert(Chore(id: 3, title: "bridge", rank: 1, effort: 0.5, due: nil, ownerId: 2))
      try tx.insert(Chore(id: 4, title: "bread[1]", isDone: true, rank: 2, due: date(-60), ownerId: nil))
    }
    return store
  }

  static func date(_ seconds: Double) -> Date { Date(timeIntervalSince1970: 1_700_000_000 + seconds) }

  private func ids(_ statement: Select<Chore>) async throws -> [Int] {
    try await statement.fetchAll(try await Self.store()).map(\.id)
  }

  @Test("comparing with values: null equals null and is neither less nor greater")
  func comparing() async throws {
    #expect(try await ids(Chore.where { $0.rank == 3 }) == [1])
    #expect(try await ids(Chore.where { $0.rank == nil }) == [2])
    #expect(try await ids(Chore.where { $0.rank != nil }) == [1, 3, 4])
    #expect(try await ids(Chore.where { $0.rank != 3 }) == [2, 3, 4])
    #expect(try await ids(Chore.where { $0.rank < 3 }) == [3, 4])
    #expect(try await ids(Chore.where { !($0.rank < 3) }) == [1, 2])
    #expect(try await ids(Chore.where { $0.rank >= 2 && !$0.isDone }) == [1])
    #expect(try await ids(Chore.where { $0.isDone || $0.rank <= 1 }) == [2, 3, 4])
    #expect(try await ids(Chore.where { $0.rank.between(2, and: 3) }) == [1, 4])
    #expect(try await ids(Chore.where { (1...3).contains($0.id) }) == [1, 2, 3])
    #expect(try await ids(Chore.where { (1..<3).contains($0.id) }) == [1, 2])
  }

  @Test("comparing with other columns, optional or not")
  func columns() async throws {
    #expect(try await ids(Chore.where { $0.rank == $0.id }) == [])
    #expect(try await ids(Chore.where { $0.id == $0.ownerId + 1 }) == [3])
    #expect(try await ids(Chore.where { $0.rank > $0.ownerId }) == [1])
    #expect(try await ids(Chore.where { $0.rank != $0.ownerId }) == [1, 2, 3, 4])
  }

  @Test("among values: one statement however many there are")
  func among() async throws {
    #expect(try await ids(Chore.where { $0.title.in(["paint", "bridge"]) }) == [1, 3])
    #expect(try await ids(Chore.where { [1, 4].contains($0.id) }) == [1, 4])
    #expect(try await ids(Chore.where { $0.id.in([]) }) == [])
    #expect(try await ids(Chore.find([4, 1, 9])) == [1, 4])
    let owners = Worker.where { $0.id.in(Chore.all.select { $0.ownerId }) }
    #expect(try await owners.fetchAll(Self.store()).map(\.id) == [2, 3])
    #expect(
      try await ids(Chore.where { $0.ownerId.in(Worker.where { $0.name == "Ben" }.select { $0.id }) }) == [
        1, 3,
      ])
    #expect(Chore.find([1]).text.sql == Chore.find([1, 2, 3]).text.sql)
  }

  @Test("text: case counts, and wildcards match themselves")
  func text() async throws {
    #expect(try await ids(Chore.where { $0.title.contains("pa") }) == [1])
    #expect(try await ids(Chore.where { $0.title.contains("") }) == [1, 2, 3, 4])
    #expect(try await ids(Chore.where { $0.title.hasPrefix("br") }) == [3, 4])
    #expect(try await ids(Chore.where { $0.title.hasPrefix("bread[") }) == [4])
    #expect(try await ids(Chore.where { $0.title.hasSuffix("*") }) == [2])
    #expect(try await ids(Chore.where { $0.title.hasSuffix("") }) == [1, 2, 3, 4])
    #expect(try await ids(Chore.where { $0.title.like("PA%") }) == [1, 2])
    #expect(try await ids(Chore.where { $0.title.glob("p*") }) == [1])
    #expect(try await ids(Chore.where { $0.title.lowercased().hasPrefix("pa") }) == [1, 2])
    #expect(try await ids(Chore.where { $0.title.length == 6 }) == [2, 3])
    #expect(try await ids(Chore.where { $0.title + "!" == "paint!" }) == [1])
  }

  @Test("points in time are compared as such, with or without a fraction")
  func dates() async throws {
    #expect(try await ids(Chore.where { $0.due > Self.date(0) }) == [1])
    #expect(try await ids(Chore.where { $0.due == Self.date(0) }) == [2])
    #expect(try await ids(Chore.order { $0.due.desc(nulls: .last) }) == [1, 2, 4, 3])
    let store = try await Self.store()
    #expect(try await Chore.select { $0.due.max() }.fetchOne(store) == Self.date(0.5))
    #expect(try await Chore.select { $0.due.min() }.fetchOne(store) == Self.date(-60))
  }

  @Test("order, limit and offset")
  func order() async throws {
    #expect(try await ids(Chore.order { $0.title }) == [2, 4, 3, 1])
    #expect(try await ids(Chore.order { $0.rank }) == [2, 3, 4, 1])
    #expect(try await ids(Chore.order { ($0.isDone, $0.rank.desc()) }) == [1, 3, 4, 2])
    #expect(try await ids(Chore.order { $0.isDone.desc() }) == [2, 4, 1, 3])
    #expect(try await ids(Chore.limit(2)) == [1, 2])
    #expect(try await ids(Chore.order { $0.id.desc() }.limit(2, offset: 1)) == [3, 2])
  }

  @Test("columns instead of whole rows")
  func select() async throws {
    let store = try await Self.store()
    #expect(try await Chore.select { $0.title }.fetchAll(store) == ["paint", "Paper*", "bridge", "bread[1]"])
    let pairs = try await Chore.where { $0.isDone }.select { ($0.title, $0.rank) }.fetchAll(store)
    #expect(pairs.map(\.0) == ["Paper*", "bread[1]"])
    #expect(pairs.map(\.1) == [nil, 2])
    #expect(try await Chore.select { $0.rank < 3 }.fetchAll(store) == [false, false, true, true])
    #expect(try await Chore.select { $0.isDone }.distinct().fetchAll(store) == [false, true])
    #expect(try await Chore.select { $0.rank ?? 0 }.order { $0.id.desc() }.fetchAll(store) == [2, 1, 0, 3])
    #expect(
      try await Chore.select { ($0.id, $0.effort * 2) }.map { "\($0): \($1)" }.fetchAll(store)
        == ["1: 3.0", "2: 4.0", "3: 1.0", "4: 0.0"])
  }

  @Test("columns as a struct: of rows, of groups, of a join, and of SQL of one's own")
  func selections() async throws {
    let store = try await Self.store()
    let briefs = try await Chore.where { $0.id <= 2 }
      .select { Brief.Columns(title: $0.title, rank: $0.rank, isUrgent: $0.rank >= 3) }.fetchAll(store)
    #expect(briefs == [Brief(title: "paint", rank: 3, isUrgent: true), Brief(title: "Paper*", rank: nil)])
    let loads = try await Worker.leftJoin { $0.tasks }.group { worker, _ in worker.id }
      .select { Load.Columns(name: $0.name, chores: $1.id.count()) }.fetchAll(store)
    #expect(
      loads == [Load(name: "Ana", chores: 0), Load(name: "Ben", chores: 2), Load(name: "Cleo", chores: 1)])
    let all = Chore.select { Load.Columns(name: $0.title.lowercased(), chores: $0.id * 2) }
    #expect(try await all.limit(1).fetchOne(store) == Load(name: "paint", chores: 2))
    #expect(try await all.fetchCount(store) == 4)
    let longest = try await SQL<Load>("SELECT title, length(title) FROM chores ORDER BY 2 DESC").fetchOne(
      store)
    #expect(longest == Load(name: "bread[1]", chores: 8))
    await #expect(throws: StoreError.self) {
      try await SQL<Load>("SELECT title, title FROM chores").fetchAll(store)
    }
  }

  @Test("count, sum, min, max, avg, and groups")
  func aggregates() async throws {
    let store = try await Self.store()
    #expect(try await Chore.count().fetchOne(store) == 4)
    #expect(try await Chore.where { $0.isDone }.fetchCount(store) == 2)
    #expect(try await Chore.limit(3).fetchCount(store) == 3)
    #expect(try await Chore.limit(3).count().fetchOne(store) == 3)
    #expect(try await Chore.limit(9, offset: 3).count().fetchOne(store) == 1)
    #expect(try await Chore.order { $0.id.desc() }.limit(2).select { $0.rank.sum() }.fetchOne(store) == 3)
    #expect(try await Chore.order { $0.id.desc() }.limit(2).select { $0.id.min() }.fetchOne(store) == 3)
    let all = Worker.leftJoin { $0.tasks }
    #expect(try await all.limit(2).select { worker, _ in worker.id.count() }.fetchOne(store) == 2)
    #expect(try await Chore.select { $0.rank.sum() }.fetchOne(store) == 6)
    #expect(try await Chore.where { $0.id > 9 }.select { $0.rank.sum() }.fetchAll(store) == [nil])
    #expect(try await Chore.select { $0.rank.count() }.fetchOne(store) == 3)
    #expect(try await Chore.select { $0.isDone.count(distinct: true) }.fetchOne(store) == 2)
    let extremes = try #require(
      try await Chore.select { ($0.title.min(), $0.rank.max(), $0.effort.avg()) }.fetchOne(store))
    #expect(extremes == ("Paper*", 3, 1))
    let groups = try await Chore.group { $0.ownerId }.having { $0.id.count() > 0 }
      .select { ($0.ownerId, $0.id.count(), $0.effort.sum()) }.fetchAll(store)
    #expect(groups.map(\.0) == [nil, 2, 3])
    #expect(groups.map(\.1) == [1, 2, 1])
    #expect(groups.map(\.2) == [0, 2, 2])
  }

  @Test("inside of a transaction, and several reads of one state")
  func transactions() async throws {
    let store = try await Self.store()
    let counts = try await store.write { tx in
      let before = try Chore.all.fetchCount(tx)
      try Chore.insert(Chore.Draft(id: 5, title: "five")).execute(tx)
      #expect(try Chore.find(5).fetchOne(tx)?.title == "five")
      return (before, try Chore.count().fetchOne(tx), try Chore.select { $0.id }.fetchAll(tx))
    }
    #expect(counts.0 == 4)
    #expect(counts.1 == 5)
    #expect(counts.2 == [1, 2, 3, 4, 5])
    let both = try await store.read { tx in
      (try tx.find(Chore.self, 5).title, try Chore.where { $0.id == 5 }.fetchCount(tx))
    }
    #expect(both == ("five", 1))
  }

}
