import StemmaEvents
import StemmaMerge
import Testing

@testable import StemmaHistory
@testable import StemmaNode

/// The text of `why` for each rule that can decide.
@Suite("The words of a decision")
struct DecisionWordsTests {
  private func candidate(
    _ number: Int, _ value: JSON, version: UInt64 = 2, time: String = "2026-01-05T09:00:00Z",
    author: String? = nil
  ) -> ConflictDescription.Candidate {
    ConflictDescription.Candidate(
      number: number, value: value, id: EventID(Origin(UInt64(number)), SequenceNumber(UInt64(number))),
      isResolution: false, event: number == 1 ? "a:7" : "b:1", version: version, timestamp: .zero, time: time,
      origin: number == 1 ? "a" : "b", author: author)
  }

  private func words(
    _ rule: Decision.Rule, _ candidates: [ConflictDescription.Candidate], field: String? = "title"
  ) -> [String] {
    FieldDecision(
      field: field, shown: candidates.first?.value ?? .null, rule: rule, candidates: candidates,
      isConflict: true
    ).words
  }

  private func reason(
    _ rule: Decision.Rule, _ a: ConflictDescription.Candidate, _ b: ConflictDescription.Candidate
  ) -> String {
    words(rule, [a, b]).last ?? ""
  }

  @Test("a field that was never written, or once")
  func few() {
    #expect(words(.unwritten, []) == ["title is null.", "It was never written."])
    #expect(
      words(.only, [candidate(1, .string("A"), author: "ann")]) == [
        "title is \"A\".",
        "a:7 (version 2, 2026-01-05T09:00:00Z, by ann) wrote it, and had seen every other write of it.",
      ])
  }

  @Test("several have, and they are listed, the one that is shown first")
  func candidates() {
    #expect(
      words(.agree, [candidate(1, .string("A")), candidate(2, .string("A"))]) == [
        "title is \"A\".", "2 writes had not seen each other:",
        "  1. \"A\"  a:7 (version 2, 2026-01-05T09:00:00Z)",
        "  2. \"A\"  b:1 (version 2, 2026-01-05T09:00:00Z)",
        "They agree.",
      ])
    #expect(
      words(.deleteWins, [candidate(1, .bool(false)), candidate(2, .bool(true))], field: nil).first
        == "The record does not exist.")
  }

  @Test("each rule has a reason of its own")
  func reasons() {
    let (a, b) = (candidate(1, .string("A")), candidate(2, .string("B")))
    #expect(
      reason(.version, candidate(1, .string("A"), version: 3), b)
        == "a:7 is shown: version 3, the longer history, goes before version 2.")
    #expect(
      reason(.timestamp, candidate(1, .string("A"), time: "2026-01-05T09:00:01Z"), b)
        == "a:7 is shown: the versions are equal, and 2026-01-05T09:00:01Z is later than 2026-01-05T09:00:00Z."
    )
    #expect(
      reason(.timestamp, candidate(1, .string("A"), version: 1, time: "2026-01-05T09:00:01Z"), b)
        == "a:7 is shown: the model's policy asks for the time first, and 2026-01-05T09:00:01Z is later than "
        + "2026-01-05T09:00:00Z.")
    #expect(
      reason(.timestamp, a, b)
        == "a:7 is shown: the versions are equal, and within the same millisecond its counter is the higher one."
    )
    #expect(
      reason(.origin, a, b)
        == "a:7 is shown: version and time are equal, and its origin is the higher number; that is arbitrary, and the "
        + "same on every node.")
    #expect(
      reason(.sequence, a, b)
        == "a:7 is shown: version and time are equal, and it is the later one of the two.")
    #expect(
      reason(.earliest, a, b) == "Of the times of creation the earliest is shown; it is no conflict.")
    #expect(reason(.latest, a, b) == "Of the times of change the latest is shown; it is no conflict.")
    #expect(reason(.deleteWins, a, b) == "By the model's policy a deletion wins: a:7 is shown.")
    #expect(
      reason(.updateWins, a, b) == "By the model's policy a change wins over a deletion: a:7 is shown.")
    #expect(Set(Decision.Rule.allCases.map { reason($0, a, b) }).count == Decision.Rule.allCases.count - 1)
  }
}
