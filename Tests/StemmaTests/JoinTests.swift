import Testing

@testable import Stemma

/// Rows of two tables at once.
@Suite("Statements that join")
struct JoinTests {
  private func store() async throws -> Store { try await ReadStatementTests.store() }

  @Test("along a relationship: pairs, without rows that have no other side")
  func pairs() async throws {
    let store = try await store()
    let pairs = try await Chore.join { $0.owner }.order { $1.name.desc() }.fetchAll(store)
    #expect(pairs.map(\.0.id) == [2, 1, 3])
    #expect(pairs.map(\.1.name) == ["Cleo", "Ben", "Ben"])
    let titles = try await Chore.where { !$0.isDone }.join { $0.owner }.where {
      $1.name == "Ben" && $0.rank > 1
    }
    .select { ($0.title, $1.name) }.fetchAll(store)
    #expect(titles.map(\.0) == ["paint"])
    // Both sides come from the store, so relationships work.
    #expect(try await pairs[0].1.boss?.name == "Ana")
    #expect(try await pairs[0].0.owner?.name == "Cleo")
  }

  @Test("a left join keeps rows that have no other side")
  func left() async throws {
    let store = try await store()
    let pairs = try await Chore.leftJoin { $0.owner }.fetchAll(store)
    #expect(pairs.map(\.0.id) == [1, 2, 3, 4])
    #expect(pairs.map(\.1?.id) == [2, 3, 2, nil])
    let names = try await Chore.leftJoin { $0.owner }.select { $1.name ?? "nobody" }.fetchAll(store)
    #expect(names == ["Ben", "Cleo", "Ben", "nobody"])
    #expect(try await Chore.leftJoin { $0.owner }.where { $1.id == nil }.fetchCount(store) == 1)
  }

  @Test("to many, with a count for each")
  func counts() async throws {
    let store = try await store()
    let counts = try await Worker.leftJoin { $0.tasks }.group { worker, _ in worker.name }
      .select { ($0.name, $1.id.count()) }.fetchAll(store)
    #expect(counts.map(\.0) == ["Ana", "Ben", "Cleo"])
    #expect(counts.map(\.1) == [0, 2, 1])
  }

  @Test("a table with itself, and over several steps")
  func selfJoin() async throws {
    let store = try await store()
    let pairs = try await Worker.join { $0.boss }.select { ($0.name, $1.name) }.fetchAll(store)
    #expect(pairs.map(\.0) == ["Ben", "Cleo"])
    #expect(pairs.map(\.1) == ["Ana", "Ana"])
    let bosses = try await Chore.join { $0.owner.boss }.select { ($0.title, $1.name) }.fetchAll(store)
    #expect(bosses.map(\.0) == ["paint", "Paper*", "bridge"])
    #expect(Set(bosses.map(\.1)) == ["Ana"])
    let peers = try await Worker.all.join(Worker.self) { $0.bossId == $1.bossId && $0.id < $1.id }
      .where { one, _ in one.bossId != nil }.fetchAll(store)
    #expect(peers.map(\.0.name) == ["Ben"])
    #expect(peers.map(\.1.name) == ["Cleo"])
  }

  @Test("many to many: each pair once, also where the join model has it twice or leads nowhere")
  func manyToMany() async throws {
    let store = try await Store.temporary(
      models: Article.self, Tag.self, ArticleTag.self, Rating.self, Person.self, Post.self)
    try await store.write { tx in
      let (data, sync) = (try tx.insert(Tag.Draft(name: "data")), try tx.insert(Tag.Draft(name: "sync")))
      let ana = try tx.insert(Person.Draft(name: "Ana"))
      let merging = try tx.insert(Article.Draft(title: "Merging"))
      let syncing = try tx.insert(Article.Draft(title: "Syncing"))
      let lost = try tx.insert(Article.Draft(title: "Lost"))
      try merging.tags.add(data, tx)
      try merging.tags.add(sync, tx)
      try tx.insert(ArticleTag.Draft(post: merging, tag: data))
      try tx.insert(ArticleTag.Draft(postId: lost.id, tagId: UUID()))
      try syncing.tags.add(sync, tx)
      try merging.raters.add(ana, tx)
      try lost.raters.add(ana, tx)
    }
    let pairs = try await Article.join { $0.tags }.fetchAll(store)
    #expect(pairs.map(\.0.title) == ["Merging", "Merging", "Syncing"])
    #expect(pairs.map(\.1.name) == ["data", "sync", "sync"])
    #expect(try await pairs[0].0.tags.count() == 2)
    let all = try await Article.leftJoin { $0.tags }.select { ($0.title, $1.name) }.fetchAll(store)
    #expect(all.map(\.0) == ["Merging", "Merging", "Syncing", "Lost"])
    #expect(all.map(\.1) == ["data", "sync", "sync", nil])
    // There and back again.
    let others = try await Article.join { $0.tags.posts }
      .where { one, other in one.id != other.id }.select { ($0.title, $1.title) }.fetchAll(store)
    #expect(others.map(\.0) == ["Merging", "Syncing"])
    #expect(others.map(\.1) == ["Syncing", "Merging"])
    // The key of this join model is the pair.
    #expect(try await Article.join { $0.raters }.fetchAll(store).map(\.0.title) == ["Merging", "Lost"])
    #expect(
      try await Tag.join { $0.posts.raters }.select { tag, _ in tag.name }.fetchAll(store) == [
        "data", "sync",
      ])
  }

  @Test("to one that two stores have made apart: the child that the property gives, and no other")
  func siblings() async throws {
    let here = try await Store.temporary(models: Customer.self, Cart.self)
    let there = try await Store.temporary(models: Customer.self, Cart.self)
    let (ana, ben, cleo) = try await here.write { tx in
      let ana = try tx.insert(Customer.Draft(name: "Ana"))
      return (ana, try tx.insert(Customer.Draft(name: "Ben")), try tx.insert(Customer.Draft(name: "Cleo")))
    }
    try await here.sync(with: there)
    try await here.insert(Cart.Draft(items: ["here"], customer: ana))
    var cart = try await there.insert(Cart.Draft(items: ["there"], customer: ana))
    try await there.insert(Cart.Draft(items: ["alone"], customer: ben))
    try await here.sync(with: there)
    func expectSame(_ items: [String], _ place: SourceLocation = #_sourceLocation) async throws {
      for store in [here, there] {
        let found = try await store.find(Customer.self, ana.id)
        #expect(try await found.activeCart?.items == items, sourceLocation: place)
        let pairs = try await Customer.join { $0.activeCart }.fetchAll(store)
        #expect(pairs.map(\.0.id) == [ana.id, ben.id], sourceLocation: place)
        #expect(pairs.map(\.1.items) == [items, ["alone"]], sourceLocation: place)
        let all = try await Customer.leftJoin { $0.activeCart }.fetchAll(store)
        #expect(all.map(\.0.id) == [ana.id, ben.id, cleo.id], sourceLocation: place)
        #expect(all.map(\.1?.items) == [items, ["alone"], nil], sourceLocation: place)
      }
    }
    let shown = try #require(try await here.find(Customer.self, ana.id).activeCart?.items)
    try await expectSame(shown)
    // Both carts are candidates of one customer's conflict. A join from the other side returns
    // both.
    #expect(try await Cart.join { $0.customer }.fetchCount(here) == 3)
    #expect(
      try await Cart.join { $0.customer.activeCart }.where { $0.id != $1.id }.fetchCount(here) == 1)
    // Each cart is shown after it was linked again, whichever has the lower key.
    for _ in 0..<2 {
      let other = try #require(
        try await Cart.where { $0.customerId == ana.id }.fetchAll(there).first { $0.id != cart.id })
      try await Cart.find(cart.id).update { $0.customerId = nil }.execute(there)
      try await Cart.find(cart.id).update { $0.customerId = ana.id }.execute(there)
      try await here.sync(with: there)
      try await expectSame(cart.items)
      cart = other
    }
    // Within a commit, including its changes so far.
    let items = try await here.write { [cart] tx in
      try Cart.find(cart.id).update { $0.customerId = nil }.execute(tx)
      try Cart.find(cart.id).update { $0.customerId = ana.id }.execute(tx)
      return try Customer.join { $0.activeCart }.fetchAll(tx).map(\.1.items)
    }
    #expect(items == [cart.items, ["alone"]])
  }

  @Test("columns of groups and parts of keys of a joined table have their names in every clause")
  func groups() async throws {
    let store = try await Store.temporary(models: Worker.self)
    try await store.write { tx in
      for (id, name) in ["Ana", "Ben"].enumerated() { try tx.insert(Worker.Draft(id: id, name: name)) }
      for (id, price) in [2, 10, 9].enumerated() {
        let cost = Chore.Cost(price: Decimal(price), unit: id == 0 ? nil : "h")
        try tx.insert(Chore.Draft(id: id, title: "\(price)", ownerId: 0, cost: cost))
      }
      for number in 1...2 { try tx.insert(Step.Draft(choreId: 1, number: number, text: "\(number)")) }
    }
    let costs = try await Worker.join { $0.tasks }.where { $1.cost.price > 2 && $1.cost.unit == "h" }
      .order { $1.cost.price.desc() }.select { ($0.name, $1.cost.price, $1.cost.unit) }.fetchAll(store)
    #expect(costs.map(\.0) == ["Ana", "Ana"])
    #expect(costs.map(\.1) == [10, 9])
    #expect(costs.map(\.2) == ["h", "h"])
    let all = try await Worker.leftJoin { $0.tasks }.order { ($0.id, $1.cost.price) }
      .select { ($0.name, $1.cost.price, $1.cost.unit ?? "") }.fetchAll(store)
    #expect(all.map(\.0) == ["Ana", "Ana", "Ana", "Ben"])
    #expect(all.map(\.1) == [2, 9, 10, nil])
    #expect(all.map(\.2) == ["", "h", "h", ""])
    let units = try await Worker.join { $0.tasks }.group { $1.cost.unit }.select {
      ($1.cost.unit, $1.id.count())
    }
    .fetchAll(store)
    #expect(units.map(\.0) == [nil, "h"])
    #expect(units.map(\.1) == [1, 2])

    let steps = try await Chore.join { $0.steps }.where { $1.id.number > 1 }
      .select { ($0.title, $1.id.choreId, $1.number) }.fetchAll(store)
    #expect(steps.map(\.0) == ["10"] && steps.map(\.1) == [1] && steps.map(\.2) == [2])
    let open = try await Chore.leftJoin { $0.steps }.order { $1.id.number.desc() }
      .select { ($0.id, $1.id.number) }.fetchAll(store)
    #expect(open.map(\.0) == [1, 1, 0, 2])
    #expect(open.map(\.1) == [2, 1, nil, nil])
    let counted = try await Worker.all.join(Step.self) { $0.id == $1.id.choreId && $1.id.number != 1 }
      .select { ($0.name, $1.id.number) }.fetchAll(store)
    #expect(counted.map(\.0) == ["Ben"] && counted.map(\.1) == [2])
    let cheap = try await Step.join { $0.chore }.where { $0.id.number == 1 && $1.cost.price == 10 }
      .fetchAll(store)
    #expect(cheap.map(\.0.text) == ["1"] && cheap.map(\.1.title) == ["10"])
  }

  @Test("SQL of one's own: values are bound, never a part of it")
  func sql() async throws {
    let store = try await store()
    let nasty = "paint'; DROP TABLE chores; --"
    #expect(
      try await SQL<Int>("SELECT count(*) FROM \(Chore.self) WHERE \(Chore.columns.title) = \(nasty)")
        .fetchOne(store) == 0)
    let done = try await SQL(
      "SELECT \(columns: Chore.self) FROM \(Chore.self) WHERE \(Chore.columns.isDone) = \(true) ORDER BY 1",
      as: Chore.self
    ).fetchAll(store)
    #expect(done.map(\.id) == [2, 4])
    let pairs = try await SQL("SELECT title, length(title) FROM chores ORDER BY id", as: (String, Int).self)
      .fetchAll(store)
    #expect(pairs.map(\.1) == [5, 6, 6, 8])
    let limit = 6
    #expect(
      try await Chore.where { SQL<Bool>("length(\($0.title)) < \(limit)") }.fetchAll(store).map(\.id) == [1])
    #expect(try await Chore.order { SQL<Int>("-\($0.id)") }.limit(1).fetchAll(store).map(\.id) == [4])
  }

  @Test("SQL of one's own only reads, and is one statement")
  func sqlReads() async throws {
    let store = try await store()
    for sql: SQLText in [
      "DELETE FROM chores", "SELECT 1; DELETE FROM chores", "COMMIT", "BEGIN", "ATTACH 'x' AS x", "",
    ] {
      await #expect(throws: StoreError.self) { try await SQL<Int>(sql).fetchAll(store) }
      await #expect(throws: StoreError.self) {
        try await store.write { _ = try SQL<Int>(sql).fetchAll($0) }
      }
    }
    #expect(try await Chore.all.fetchCount(store) == 4)
  }
}
