import Foundation
import StemmaEvents
import StemmaReplication

/// Finds out whether a store does what a hub needs, by doing it, below `doctor/`.
package struct HubDoctor {
  /// One requirement.
  package struct Finding: Sendable {
    package var requirement: String
    /// Nil: it is fulfilled.
    package var failure: String?
    /// An observation that matters but is no failure.
    package var remark: String?
  }

  /// Writers that race for one key, how often they do, and the length of their objects.
  private static let writers = 2
  private static let races = 20
  private static let raceLength = 4096
  /// Attempts at a list that shows a new object.
  private static let lists = 20

  private let store: any ObjectStore
  private let calls: HubCalls
  private let options: Hub.Options
  private let folder: String

  package init(_ store: any ObjectStore, _ options: Hub.Options) {
    self.store = store
    self.options = options
    calls = HubCalls(store: store, options: options)
    folder = "doctor/\(options.makeLogID())/"
  }

  /// Checks everything, and removes what it wrote. A store that cannot be written to fails the
  /// first requirement, and no others are checked.
  package func examine() -> [Finding] {
    var findings = [check("an object can be written and read", writeAndRead)]
    guard findings[0].failure == nil else { return findings }
    findings.append(check("a range of an object can be read", readRange))
    findings.append(check("an absent object is reported as absent", readAbsent))
    findings.append(check("If-None-Match: * keeps an existing object", keepExisting))
    findings.append(check("of two writers of a key, one succeeds", race))
    findings.append(check("a list shows a new object", list))
    findings.append(check("a list shows that an object has changed", change))
    do throws(HubError) { try clean() } catch {
      findings.append(
        Finding(
          requirement: "what was written can be removed",
          remark: "\(folder) is still there: \(error.asReplicationError)"))
    }
    return findings
  }

  private func check(_ requirement: String, _ body: () throws(HubError) -> Outcome) -> Finding {
    do throws(HubError) {
      switch try body() {
      case .holds: return Finding(requirement: requirement)
      case .remark(let text): return Finding(requirement: requirement, remark: text)
      case .fails(let why): return Finding(requirement: requirement, failure: why)
      }
    } catch {
      let reason = if case .store(_, let error) = error { error.reason } else { "\(error)" }
      return Finding(requirement: requirement, failure: reason)
    }
  }

  private enum Outcome { case holds, remark(String), fails(String) }

  private func get(_ name: String, _ range: Range<UInt64>? = nil) throws(HubError) -> [UInt8]? {
    try calls.calling { () throws(ObjectError) in try store.get(folder + name, range) }
  }

  private func put(_ name: String, _ bytes: [UInt8], ifAbsent: Bool = false) throws(HubError) -> Bool {
    try calls.calling { () throws(ObjectError) in try store.put(folder + name, bytes, ifAbsent: ifAbsent) }
  }

  private static let content = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }

  private func writeAndRead() throws(HubError) -> Outcome {
    _ = try put("object", Self.content)
    return try get("object") == Self.content ? .holds : .fails("other bytes were read than were written")
  }

  private func readRange() throws(HubError) -> Outcome {
    for range in [0..<10, 70_000..<70_001, 99_990..<100_000] as [Range<Int>] {
      let found = try get("object", UInt64(range.lowerBound)..<UInt64(range.upperBound))
      guard found == Array(Self.content[range]) else {
        return .fails("bytes \(range.lowerBound) to \(range.upperBound) were not what was written there")
      }
    }
    return .holds
  }

  private func readAbsent() throws(HubError) -> Outcome {
    try get("absent") == nil ? .holds : .fails("it was read")
  }

  private func keepExisting() throws(HubError) -> Outcome {
    _ = try put("kept", [1])
    guard try !put("kept", [2], ifAbsent: true) else {
      return .fails("the store ignores the condition: a second writer would replace a manifest")
    }
    return try get("kept") == [1] ? .holds : .fails("the object was replaced nevertheless")
  }

  private func race() throws(HubError) -> Outcome {
    var busy = 0
    for number in 0..<Self.races {
      let key = "\(folder)race-\(number)"
      let contents = (0..<Self.writers).map { [UInt8](repeating: UInt8($0), count: Self.raceLength) }
      let results = Mutex<[Result<Bool, ObjectError>?]>(Array(repeating: nil, count: Self.writers))
      DispatchQueue.concurrentPerform(iterations: Self.writers) { writer in
        let result = Result { () throws(ObjectError) in try store.put(key, contents[writer], ifAbsent: true) }
        results.withLock { $0[writer] = result }
      }
      var winners: [Int] = []
      var unknown: [Int] = []
      for (writer, result) in results.withLock({ $0 }).enumerated() {
        switch result {
        case .success(true): winners.append(writer)
        case .failure(.unknown): unknown.append(writer)
        case .failure(let error): throw .store(store.name, error)
        case .success(false), nil: break
        }
      }
      busy += unknown.count
      guard winners.count <= 1 else { return .fails("both writers got the answer that they have written") }
      // If both have met each other, none has won, and each tries again.
      if winners.isEmpty, !unknown.isEmpty {
        if try put("race-\(number)", contents[unknown[0]], ifAbsent: true) { winners = [unknown[0]] }
      }
      guard let found = try get("race-\(number)") else {
        return .fails("the object is absent after the race")
      }
      if let winner = winners.first, found != contents[winner] {
        return .fails("the object is not that of the writer with the answer that it has written")
      }
      guard contents.contains(found) else { return .fails("the object is that of no writer") }
    }
    return busy == 0
      ? .holds : .remark("\(busy) of \(Self.races * Self.writers) writers had to try again")
  }

  /// All keys below the folder, with their tags.
  private func tags() throws(HubError) -> [String: String] {
    var tags: [String: String] = [:]
    var last: String?
    while true {
      let page = try calls.calling { () throws(ObjectError) in try store.list(folder, after: last) }
      for entry in page.entries { tags[entry.key] = entry.tag }
      guard !page.isLast, let end = page.entries.last?.key else { return tags }
      last = end
    }
  }

  private func list() throws(HubError) -> Outcome {
    _ = try put("listed", [1])
    for attempt in 1...Self.lists {
      if try tags()[folder + "listed"] != nil {
        return attempt == 1 ? .holds : .remark("list number \(attempt) was the first to show it")
      }
      options.pause(1)
    }
    return .fails("\(Self.lists) lists did not show it")
  }

  private func change() throws(HubError) -> Outcome {
    let before = try tags()[folder + "listed"]
    _ = try put("listed", [2])
    for attempt in 1...Self.lists {
      if try tags()[folder + "listed"] != before {
        return attempt == 1 ? .holds : .remark("list number \(attempt) was the first to show it")
      }
      options.pause(1)
    }
    return .fails("its tag stays the same, so readers would not see that a hint has changed")
  }

  private func clean() throws(HubError) {
    for key in try tags().keys.sorted() {
      try calls.calling { () throws(ObjectError) in try store.delete(key) }
    }
  }
}
