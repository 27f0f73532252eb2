@testable import Stemma
import StemmaSimulation

/// The same records as plain values.
struct PlainModel: Sendable {
  var chores: [Int: Chore] = [:]
  var workers: [Int: Worker] = [:]
  var steps: [Step.ID: Step] = [:]
  var badges: [Int: Badge] = [:]
  /// The number of times that each chore was deleted or written completely. An older copy belongs
  /// to an earlier record.
  var lives: [Int: Int] = [:]

  var sortedChores: [Chore] { chores.values.sorted { $0.id < $1.id } }
  var sortedWorkers: [Worker] { workers.values.sorted { $0.id < $1.id } }
  var sortedSteps: [Step] {
    steps.values.sorted { ($0.id.choreId, $0.id.number) < ($1.id.choreId, $1.id.number) }
  }
  var sortedBadges: [Badge] { badges.values.sorted { $0.id < $1.id } }
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
  mutating func change(of model: PlainModel, _ copies: [(row: Chore, life: Int)]) -> PlainChange {
    switch below(5) {
    case 0: return childChange()
    case 1:
      // Two copies of one value that set the same field are in conflict.
      let known = copies.filter {
        model.lives[$0.row.id] ?? 0 == $0.life && model.chores[$0.row.id]?.note == $0.row.note
      }
      return known.isEmpty ? workerChange() : saving(element(known.map(\.row)))
    case 2: return workerChange()
    default: return choreChange()
    }
  }

  private mutating func choreChange() -> PlainChange {
    let id = below(12)
    let chore = chore(id: id, owners: 5)
    let condition = condition()
    switch below(9) {
    case 0, 1:
      return PlainChange(name: "insert \(id)") {
        try Chore.insert { chore }.execute($0)
      } apply: { model in
        if model.chores[id] != nil { throw Taken() }
        model.write(chore)
      }
    case 2:
      return PlainChange(name: "upsert \(id)") {
        try Chore.upsert { Chore.Draft(chore) }.execute($0)
      } apply: {
        $0.write(chore)
      }
    case 3:
      return PlainChange(name: "insert or update \(id)") { tx in
        try Chore.insert {
          chore
        } onConflictDoUpdate: {
          $0.title = $1.title
        }.execute(tx)
      } apply: { model in
        if model.chores[id] == nil { model.write(chore) } else { model.chores[id]?.title = chore.title }
      }
    case 4: return update(condition, chore)
    case 5:
      return PlainChange(name: "delete some") {
        try Chore.where(condition.expression).delete().execute($0)
      } apply: { model in
        for chore in model.sortedChores where condition.holds(chore) { model.delete(chore: chore.id) }
      }
    case 6: return rowUpdate(chore)
    default: return staleUpdates(chore)
    }
  }

  private mutating func workerChange() -> PlainChange {
    let id = below(5)
    if below(2) == 0 {
      let worker = Worker(id: id, name: word(), bossId: below(2) == 0 ? nil : below(5))
      return PlainChange(name: "upsert worker \(id)") {
        try Worker.upsert { Worker.Draft(worker) }.execute($0)
      } apply: {
        $0.workers[id] = worker
      }
    }
    return PlainChange(name: "delete worker \(id)") {
      try Worker.find(id).delete().execute($0)
    } apply: {
      try $0.delete(worker: id)
    }
  }

  /// Changes of records that are deleted with another one, or prevent its deletion.
  private mutating func childChange() -> PlainChange {
    let step = Step(id: Step.ID(choreId: below(12), number: below(3)), text: word())
    let badge = Badge(id: below(3), workerId: below(5))
    switch below(4) {
    case 0:
      return PlainChange(name: "insert step") {
        try Step.insert { Step.Draft(step) }.execute($0)
      } apply: { model in
        if model.steps[step.id] != nil { throw Taken() }
        model.steps[step.id] = step
      }
    case 1:
      let others = (0..<3).map { Step(id: Step.ID(choreId: step.id.choreId, number: $0), text: step.text) }
      return PlainChange(name: "upsert steps") { tx in
        for other in others { try tx.upsert(Step.Draft(other)) }
      } apply: { model in
        for other in others { model.steps[other.id] = other }
      }
    case 2:
      return PlainChange(name: "upsert badge \(badge.id)") {
        try Badge.upsert { Badge.Draft(badge) }.execute($0)
      } apply: {
        $0.badges[badge.id] = badge
      }
    default:
      return PlainChange(name: "delete badge \(badge.id)") {
        try Badge.find(badge.id).delete().execute($0)
      } apply: {
        $0.badges[badge.id] = nil
      }
    }
  }

  /// Saves a row that was read some commits ago. Its own changes are recorded, and other changes
  /// since then remain.
  private mutating func saving(_ copy: Chore) -> PlainChange {
    let note = word()
    return PlainChange(name: "save a copy of \(copy.id)") { tx in
      var copy = copy
      copy.note = note
      try tx.update(copy)
    } apply: {
      $0.chores[copy.id]?.note = note
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

  /// Copies of a row that was read before other changes. Each records its own changes and reverts
  /// nothing.
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
  fileprivate mutating func write(_ chore: Chore) {
    chores[chore.id] = chore
    lives[chore.id, default: 0] += 1
  }

  /// Also deletes the records that depend on it.
  fileprivate mutating func delete(chore id: Int) {
    chores[id] = nil
    lives[id, default: 0] += 1
    steps = steps.filter { $0.key.choreId != id }
  }

  /// Clears references to the record, unless one of them prevents the deletion.
  fileprivate mutating func delete(worker id: Int) throws {
    guard workers[id] != nil else { return }
    if badges.values.contains(where: { $0.workerId == id }) { throw Taken() }
    workers[id] = nil
    for (key, chore) in chores where chore.ownerId == id { chores[key]?.ownerId = nil }
    for (key, worker) in workers where worker.bossId == id { workers[key]?.bossId = nil }
  }
}
