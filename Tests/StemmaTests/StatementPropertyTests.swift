import Testing

@testable import Stemma
import StemmaSimulation

/// Random statements give the same results as plain Swift over arrays, before and after a rebuild
/// of the tables.
@Suite("Random statements")
struct StatementPropertyTests {
  @Test("give the rows of a plain model in memory, and again after a rebuild", arguments: 1...6)
  func likeAModel(seed: UInt64) async throws {
    print("seed \(seed)")
    var chance = SplitMix64(seed: seed)
    let witness = try await Witness(Worker.self, Chore.self, Step.self, Badge.self)
    let store = witness.store
    var model = PlainModel()
    /// Chores as they were read, with their life at that time.
    var copies: [(row: Chore, life: Int)] = []
    for step in 1...60 {
      let change = chance.change(of: model, copies)
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
      if step.isMultiple(of: 5) {
        copies = try await Chore.all.fetchAll(store).map { ($0, model.lives[$0.id] ?? 0) }
      }
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
    #expect(
      try await Step.all.fetchAll(store).map(\.words) == model.sortedSteps.map(\.words), "\(place)")
    #expect(
      try await Badge.all.fetchAll(store).map(\.words) == model.sortedBadges.map(\.words), "\(place)")
    #expect(try await store.conflicts().filter { $0.kind != .dangling }.isEmpty, "\(place)")
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
    let steps = try await query.join { $0.steps }.fetchAll(store)
    #expect(
      steps.map(\.1.words)
        == model.sortedSteps.filter { step in found.contains { $0.id == step.id.choreId } }.map(\.words),
      "\(place)")
    let pairs = try await query.leftJoin { $0.owner }.fetchAll(store)
    #expect(pairs.map(\.0.id) == found.map(\.id), "\(place)")
    #expect(pairs.map(\.1?.name) == found.map { $0.ownerId.flatMap { model.workers[$0]?.name } }, "\(place)")
  }
}

extension Chore {
  /// All relevant values as text.
  fileprivate var words: String {
    let values: [(any Sendable)?] = [
      id, title, isDone, rank, effort, due?.timeIntervalSince1970, ownerId, cost.price, cost.unit, note,
    ]
    return values.map { $0.map { "\($0)" } ?? "-" }.joined(separator: "|")
  }
}

extension Worker {
  fileprivate var words: String { "\(id)|\(name)|\(bossId.map { "\($0)" } ?? "-")" }
}

extension Step {
  fileprivate var words: String { "\(id.choreId)|\(id.number)|\(text)" }
}

extension Badge {
  fileprivate var words: String { "\(id)|\(workerId)" }
}
