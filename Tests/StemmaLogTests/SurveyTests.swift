import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

@Suite struct SurveyTests {
  /// A file that has the place of another one says that it held what others lost, and what stands.
  @Test func overlappingClaimsShareAGap() throws {
    var maker = EventMaker(seed: 3)
    maker.partitions = ["a"]
    let last = try #require(maker.commit(6).last)
    let name = StreamName(partition: last.partition, origin: last.dot.origin)
    #expect(last.dot.sequence == Sequence(6))
    var surveyor = Surveyor(held: nil, end: nil)
    for (place, range) in [(2, 1...5), (3, 2...9)] as [(UInt64, ClosedRange<UInt64>)] {
      var file = DamagedFile(kind: .nothing(path: "/log/\(place)"))
      file.claims[name] = StreamRun(
        origin: name.origin, from: Sequence(range.lowerBound), to: Sequence(range.upperBound), hash: .zero)
      file.tellsAll = true
      surveyor.survey.files[place] = file
    }
    surveyor.add(NumberedEvents(events: [BlockEvent(arrival: 0, event: last)]), place: 5)
    surveyor.conclude()
    #expect(surveyor.survey.lost.map(\.place) == [2, 3])
    #expect(surveyor.survey.lost.map { $0.from.rawValue...$0.to.rawValue } == [1...5, 7...9])
    #expect(surveyor.survey.lost.map(\.count) == [5, 3])
  }
}
