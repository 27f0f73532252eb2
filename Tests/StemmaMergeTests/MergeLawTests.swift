import StemmaSimulation
import Testing

/// The quick part of the laws; `simulate laws` runs the exhaustive part.
@Suite struct MergeLawTests {
  @Test(arguments: [LawModel.perField, LawModel.perRecord].indices)
  func lawsHoldOnEverySmallHistory(numbering: Int) {
    let policies = [LawModel.perField, LawModel.perRecord][numbering]
    var laws = MergeLaws(RealMerge(policies), contents: Content.everyOperation, limit: 2)
    laws.checkAll(events: 2)
    #expect(laws.failures.map(\.description) == [])
    #expect(laws.counts.histories > 100)
    var updates = MergeLaws(RealMerge(policies), contents: Content.updates, limit: 3)
    updates.checkAll(events: 3)
    #expect(updates.failures.map(\.description) == [])
    #expect(updates.counts.histories > 100)
  }

  @Test func lawsHoldOnARandomSample() {
    for (seed, policies) in [(UInt64(20), LawModel.perField), (21, LawModel.perRecord)] {
      var laws = MergeLaws(RealMerge(policies), contents: Content.varied, limit: 6)
      laws.checkSample(of: 60, upTo: 6, seed: seed)
      #expect(laws.failures.map(\.description) == [], "seed \(seed)")
    }
  }

  /// An event's version may be at or below that of an event in its context. It has still seen that
  /// event.
  @Test func lawsHoldWithVersionsThatAreTooLow() {
    for (seed, policies) in [(UInt64(22), LawModel.perField), (23, LawModel.perRecord)] {
      var laws = MergeLaws(
        RealMerge(policies), contents: Content.varied, limit: 6, lowersVersions: true)
      laws.checkSample(of: 120, upTo: 6, seed: seed)
      #expect(laws.failures.map(\.description) == [], "seed \(seed)")
    }
  }

  /// Compared with a complete enumeration of all lists of three events, distinguished up to
  /// renaming. Each of the 28 graphs is visited exactly once.
  @Test func everyGraphIsVisited() {
    for (events, graphs) in [(2, 4), (3, 28)] {
      var visited: [[[Int]]] = []
      var laws = MergeLaws(RealMerge(LawModel.perField), contents: [Content(.update)], limit: events)
      laws.checkAll(events: events) { visited.append(EventGraph($0).canonical) }
      #expect(Set(visited) == EventGraph.all(events: events))
      #expect(visited.count == graphs)
    }
  }

  @Test func sharesMakeUpTheWhole() {
    var whole = MergeLaws(RealMerge(LawModel.perField), contents: Content.updates, limit: 3)
    whole.checkAll(events: 3)
    var sum: UInt64 = 0
    for share in 0..<3 {
      var part = MergeLaws(RealMerge(LawModel.perField), contents: Content.updates, limit: 3)
      part.checkAll(events: 3, share: share, of: 3)
      sum += part.counts.histories
    }
    #expect(sum == whole.counts.histories)
  }

  /// Tests the test: a merge with this mistake is detected.
  @Test(arguments: PlantedBug.allCases) func plantedBugIsFound(bug: PlantedBug) {
    var found = 0
    for policies in [LawModel.perField, LawModel.perRecord] {
      var laws = MergeLaws(
        PlantedMerge(policies, bug: bug), contents: Content.varied, limit: 5, stopsAtFailure: true)
      laws.checkSample(of: 2000, upTo: 5, seed: 7)
      found += Int(laws.failed)
    }
    #expect(found > 0)
  }

  @Test func mergeWithoutAPlantedBugPasses() {
    for policies in [LawModel.perField, LawModel.perRecord] {
      var laws = MergeLaws(PlantedMerge(policies, bug: nil), contents: Content.varied, limit: 5)
      laws.checkSample(of: 100, upTo: 5, seed: 7)
      #expect(laws.failures.map(\.description) == [])
    }
  }
}
