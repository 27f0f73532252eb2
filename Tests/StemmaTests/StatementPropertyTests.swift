import Testing

@testable import Stemma
import StemmaSimulation

/// Random statements give what plain Swift over arrays gives, before and after the tables are made anew.
@Suite("Random statements")
struct StatementPropertyTests {
  @Test("give the rows of a plain model in memory, and again after a rebuild", arguments: 1...6)
  func likeAModel(seed: UInt64) async throws {
    print("seed \(seed)")
    var chance = SplitMix64(seed: seed)
    let witness = try await Witness(Worker.self, Chore.self)
    let store = witness.store
    var model = PlainModel()
    for step in 1...60 {
      let change = chance.change(of: model)
      var changed = model
      let expected = Result { try change.applied(to: &changed) }
      let isKept = chance.below(8) != 0
      do {
        try await store.write { tx in
          try change.run(tx)
          if !isKept { throw Abandoned() }
        }
        #expect(throws: Never.self, "\(seed).\(step): \(change.name) should have failed") {
          try expected.get()
        }
        model = changed
      } catch is Abandoned {} catch {
        #expect(throws: (any Error).self, "\(seed).\(step): \(change.name) failed: \(error)") {
          try expected.get()
        }
      }
      try await compare(store, model, &chance, "\(seed).\(step): \(change.name)")
    }
    try await witness.rebuild()
    for round in 1...20 { try await compare(store, model, &chance, "\(seed), rebuilt, \(round)") }
  }

  private struct Abandoned: Error {}

  private func compare(
    _ store: Store, _ model: PlainModel, _ chance: inout SplitMix64, _ place: String
  ) async throws {
    #expect(try await Chore.all.fetchAll(store).map(\.words) == model.sortedChores.map(\.words), "\(place)")
    #expect(
      try await Worker.all.fetchAll(store).map(\.words) == model.sortedWorkers.map(\.words), "\(place)")
    let (condition, order) = (chance.condition(), chance.order())
    let (limit, offset) = (chance.below(6), chance.below(3))
    let found = model.sortedChores.filter(condition.holds)
    let query = Chore.where(condition.expression)
    let ordered = found.stablySorted(by: order.precedes)
    #expect(
      try await query.order(order.term).fetchAll(store).map(\.words) == ordered.map(\.words), "\(place)")
    #expect(
      try await query.order(order.term).limit(limit, offset: offset).select { $0.id }.fetchAll(store)
        == ordered.dropFirst(offset).prefix(limit).map(\.id), "\(place)")
    #expect(try await query.fetchCount(store) == found.count, "\(place)")
    #expect(try await query.count().fetchOne(store) == found.count, "\(place)")
    let numbers = try await query.select { ($0.effort.sum(), $0.id.max(), $0.due.min(), $0.rank.count()) }
      .fetchOne(store)
    #expect(numbers?.0 == (found.isEmpty ? nil : found.reduce(0) { $0 + $1.effort }), "\(place)")
    #expect(numbers?.1 == found.map(\.id).max(), "\(place)")
    #expect(numbers?.2 == found.compactMap(\.due).min(), "\(place)")
    #expect(numbers?.3 == found.compactMap(\.rank).count, "\(place)")
    #expect(
      try await query.select { $0.cost.price.max() }.fetchAll(store) == [found.map(\.cost.price).max()],
      "\(place)")
    let groups = try await query.group { $0.isDone }.select { ($0.isDone, $0.id.count()) }.fetchAll(store)
    let plain = Dictionary(grouping: found, by: \.isDone).sorted { !$0.key && $1.key }
    #expect(groups.map(\.0) == plain.map(\.key) && groups.map(\.1) == plain.map(\.value.count), "\(place)")
    let pairs = try await query.leftJoin { $0.owner }.fetchAll(store)
    #expect(pairs.map(\.0.id) == found.map(\.id), "\(place)")
    #expect(pairs.map(\.1?.name) == found.map { $0.ownerId.flatMap { model.workers[$0]?.name } }, "\(place)")
  }
}

/// The same records as plain values.
struct PlainModel: Sendable {
  var chores: [Int: Chore] = [:]
  var workers: [Int: Worker] = [:]

  var sortedChores: [Chore] { chores.values.sorted { $0.id < $1.id } }
  var sortedWorkers: [Worker] { workers.values.sorted { $0.id < $1.id } }
}

/// A change in two forms.
struct PlainChange: Sendable {
  let name: String
  let run: @Sendable (Store.Transaction) throws -> Void
  let apply: @Sendable (inout PlainModel) throws -> Void

  func applied(to model: inout PlainModel) throws { try apply(&model) }
}

private struct Taken: Error {}

extension SplitMix64 {
  mutating func change(of model: PlainModel) -> PlainChange {
    let (id, owners) = (below(12), 5)
    let chore = chore(id: id, owners: owners)
    let condition = condition()
    switch below(11) {
    case 0, 1:
      return PlainChange(name: "insert \(id)") {
        try Chore.insert { chore }.execute($0)
      } apply: { model in
        if model.chores[id] != nil { throw Taken() }
        model.chores[id] = chore
      }
    case 2:
      return PlainChange(name: "upsert \(id)") {
        try Chore.upsert { Chore.Draft(chore) }.execute($0)
      } apply: {
        $0.chores[id] = chore
      }
    case 3:
      return PlainChange(name: "insert or update \(id)") { tx in
        try Chore.insert {
          chore
        } onConflictDoUpdate: {
          $0.title = $1.title
        }.execute(tx)
      } apply: { model in
        if model.chores[id] == nil { model.chores[id] = chore } else { model.chores[id]?.title = chore.title }
      }
    case 4: return update(condition, chore)
    case 5:
      return PlainChange(name: "delete some") {
        try Chore.where(condition.expression).delete().execute($0)
      } apply: { model in
        model.chores = model.chores.filter { !condition.holds($0.value) }
      }
    case 6: return rowUpdate(chore)
    case 7, 8: return staleUpdates(chore)
    case 9:
      let worker = Worker(id: below(owners), name: word(), bossId: below(2) == 0 ? nil : below(owners))
      return PlainChange(name: "upsert worker \(worker.id)") {
        try Worker.upsert { Worker.Draft(worker) }.execute($0)
      } apply: {
        $0.workers[worker.id] = worker
      }
    default:
      let worker = below(owners)
      return PlainChange(name: "delete worker \(worker)") {
        try Worker.find(worker).delete().execute($0)
      } apply: {
        $0.delete(worker: worker)
      }
    }
  }

  private mutating func update(_ condition: Condition, _ chore: Chore) -> PlainChange {
    let order = order()
    let limit = below(4)
    let change: @Sendable (inout Chore) -> Void = { row in
      row.title = chore.title
      row.rank = chore.rank
      row.ownerId = chore.ownerId
      row.cost.price += chore.cost.price
      row.isDone.toggle()
    }
    return PlainChange(name: "update some") {
      try Chore.where(condition.expression).order(order.term).limit(limit).update(change).execute($0)
    } apply: { model in
      let rows = model.sortedChores.filter(condition.holds).stablySorted(by: order.precedes)
      for var row in rows.prefix(limit) {
        change(&row)
        model.chores[row.id] = row
      }
    }
  }

  /// Copies of a row that was read before others changed it: each records what was set in it, and takes nothing back.
  private func staleUpdates(_ chore: Chore) -> PlainChange {
    PlainChange(name: "update copies of \(chore.id)") { tx in
      let old = try tx.find(Chore.self, chore.id)
      try Chore.find(chore.id).update {
        $0.title = chore.title
        $0.cost.price = chore.cost.price
      }.execute(tx)
      var (first, second) = (old, old)
      first.rank = chore.rank
      try tx.update(first)
      second.cost.unit = chore.cost.unit
      try tx.update(second)
      first.effort = chore.effort
      try tx.update(first)
      try tx.update(old)
    } apply: { model in
      guard var row = model.chores[chore.id] else { throw Taken() }
      (row.title, row.cost) = (chore.title, chore.cost)
      (row.rank, row.effort) = (chore.rank, chore.effort)
      model.chores[chore.id] = row
    }
  }

  private func rowUpdate(_ chore: Chore) -> PlainChange {
    PlainChange(name: "update row \(chore.id)") { tx in
      var row = try tx.find(Chore.self, chore.id)
      row.due = chore.due
      row.effort = chore.effort
      row.ownerId = chore.ownerId
      try Chore.update(row).execute(tx)
    } apply: { model in
      guard var row = model.chores[chore.id] else { throw Taken() }
      row.due = chore.due
      row.effort = chore.effort
      row.ownerId = chore.ownerId
      model.chores[chore.id] = row
    }
  }
}

extension PlainModel {
  /// References to the record become null with it.
  fileprivate mutating func delete(worker id: Int) {
    guard workers.removeValue(forKey: id) != nil else { return }
    for (key, chore) in chores where chore.ownerId == id { chores[key]?.ownerId = nil }
    for (key, worker) in workers where worker.bossId == id { workers[key]?.bossId = nil }
  }
}

extension Chore {
  /// All that counts of it.
  fileprivate var words: String {
    let values: [(any Sendable)?] = [
      id, title, isDone, rank, effort, due?.timeIntervalSince1970, ownerId, cost.price, cost.unit,
    ]
    return values.map { $0.map { "\($0)" } ?? "-" }.joined(separator: "|")
  }
}

extension Worker {
  fileprivate var words: String { "\(id)|\(name)|\(bossId.map { "\($0)" } ?? "-")" }
}

extension Array {
  fileprivate func stablySorted(by precedes: (Element, Element) -> Bool) -> [Element] {
    enumerated().sorted { a, b in
      if precedes(a.element, b.element) { return true }
      if precedes(b.element, a.element) { return false }
      return a.offset < b.offset
    }.map(\.element)
  }
}
