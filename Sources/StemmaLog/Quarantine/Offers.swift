import StemmaEvents

/// What somebody offers of events that damage has taken. May hold more; the rest is left alone.
package struct Offer: Sendable {
  package var events: [Event]
  package var notes: [CommitID: CommitNote]

  package init(_ events: [Event], notes: [CommitID: CommitNote] = [:]) {
    self.events = events
    self.notes = notes
  }
}

/// Offers, compared with what is known of the lost events.
///
/// An offer is believed as far as its digests sum to what a footer says that the file held of a stream, or to what
/// the tables remember of the whole stream. So a part of what a file lost of a stream cannot be believed. Each offer
/// is tried alone, because two that differ could spoil each other, and then all of them together. Where neither a footer
/// nor a table tells of a stream, what is offered stands.
struct ProvenOffers {
  private typealias Repository = [StreamName: [Sequence: Event]]

  /// The lost events of a place, by stream: all of them or none.
  private(set) var events: [UInt64: [StreamName: [Event]]] = [:]
  private(set) var notes: [CommitID: CommitNote] = [:]
  /// Streams of which all lost events were offered, and never the right ones.
  private(set) var forged: [StreamName] = []

  init(_ offers: [Offer], _ survey: Survey) {
    var repositories: [Repository] = []
    for offer in offers {
      var repository: Repository = [:]
      for event in offer.events {
        let name = StreamName(event)
        repository[name, default: [:]][event.dot.sequence] = event
      }
      repositories.append(repository)
      notes.merge(offer.notes) { kept, _ in kept }
    }
    if repositories.count > 1 {
      repositories.append(
        repositories.reduce(into: [:]) { all, one in
          all.merge(one) { a, b in a.merging(b) { kept, _ in kept } }
        })
    }
    let streams = Dictionary(grouping: survey.lost, by: \.stream)
    for (name, ranges) in streams.sorted(by: { $0.key < $1.key }) {
      prove(name, ranges, repositories.compactMap { $0[name] }, survey)
    }
    assert(holds { checkInvariants(survey) })
  }

  /// Traps if more is believed than was lost, or nothing is believed that is called forged. In debug builds when offers have been
  /// compared.
  private func checkInvariants(_ survey: Survey) {
    let lost = Dictionary(grouping: survey.lost.filter { $0.place != nil }, by: \.stream)
    var believed: [StreamName: UInt64] = [:]
    for (place, streams) in events {
      precondition(survey.files[place] != nil, "what is put back goes into a damaged file")
      for (name, events) in streams { believed[name, default: 0] += UInt64(events.count) }
    }
    for (name, count) in believed {
      let wanted = (lost[name] ?? []).reduce(0) { $0 + $1.count }
      precondition(count <= wanted, "only what was lost is put back")
      precondition(count < wanted || !forged.contains(name), "what is put back whole was not forged")
    }
  }

  private mutating func prove(
    _ name: StreamName, _ ranges: [LostRange], _ candidates: [[Sequence: Event]], _ survey: Survey
  ) {
    var isForged = false
    if let whole = candidates.first(where: { candidate in
      guard let events = ranges.events(in: candidate) else { return false }
      let isRight = survey.isWhole(name, ranges, events)
      if !isRight { isForged = true }
      return isRight
    }) {
      return add(name, ranges, whole)
    }
    for (place, parts) in Dictionary(grouping: ranges, by: \.place) {
      guard let place, let file = survey.files[place] else { continue }
      let claim = file.claims[name]
      // Where nobody knows anything of the stream, each file has what it tells, as if there were no other.
      if claim == nil, survey.held != nil { continue }
      for candidate in candidates {
        guard let events = parts.events(in: candidate) else { continue }
        if claim.map({ (file.readable[name] ?? .zero) + events.streamHash == $0.hash }) ?? true {
          add(name, parts, candidate)
          break
        }
        isForged = true
      }
    }
    if isForged, !ranges.allSatisfy({ range in range.place.map { events[$0]?[name] != nil } ?? true }) {
      forged.append(name)
    }
  }

  private mutating func add(_ name: StreamName, _ ranges: [LostRange], _ candidate: [Sequence: Event]) {
    for (place, parts) in Dictionary(grouping: ranges, by: \.place) {
      if let place { events[place, default: [:]][name] = parts.events(in: candidate) }
    }
  }
}

extension Survey {
  /// Whether these are the lost events of a stream, in all files, by what is known of it.
  fileprivate func isWhole(_ name: StreamName, _ ranges: [LostRange], _ events: [Event]) -> Bool {
    let head = held?[name.partition, name.origin] ?? .none
    if head.sequence == lastSequence(of: name, ranges) {
      return (readable[name]?.hash ?? .zero) + events.streamHash == head.hash
    }
    // More can be read than was remembered. Where footers tell, they are asked file by file.
    return ranges.allSatisfy { range in range.place.map { files[$0]?.claims[name] == nil } ?? true }
  }

  private func lastSequence(of name: StreamName, _ ranges: [LostRange]) -> Sequence {
    max(readable[name]?.sequence ?? .zero, ranges.map(\.to).max() ?? .zero)
  }

  /// What a file held of streams that stay incomplete, by partition; nil where that cannot be told, or not in one
  /// stretch. `contents`: what can be read of it.
  func gaps(_ missing: [LostRange], at place: UInt64, _ contents: NumberedEvents) -> [Partition:
    PartitionGap]?
  {
    var gaps: [Partition: PartitionGap] = [:]
    let streams = Dictionary(grouping: missing, by: \.stream)
    for (name, ranges) in streams {
      guard ranges.allSatisfy(\.isPlaceSure), let run = run(of: name, ranges, at: place, contents) else {
        return nil
      }
      gaps[name.partition, default: PartitionGap()].streams.append(run)
      gaps[name.partition, default: PartitionGap()].events += ranges.reduce(0) { $0 + $1.count }
    }
    return gaps
  }

  private func run(
    of name: StreamName, _ missing: [LostRange], at place: UInt64, _ contents: NumberedEvents
  ) -> StreamRun? {
    if let claim = files[place]?.claims[name] { return claim }
    let head = held?[name.partition, name.origin] ?? .none
    let all = lost.filter { $0.stream == name }
    guard all.count == missing.count, head.sequence == lastSequence(of: name, all) else { return nil }
    let there = contents.events.map(\.event).filter {
      $0.partition == name.partition && $0.dot.origin == name.origin
    }
    let elsewhere = (readable[name]?.hash ?? .zero) - there.streamHash
    let numbers = there.map(\.dot.sequence)
    guard let from = (missing.map(\.from) + numbers).min(), let to = (missing.map(\.to) + numbers).max()
    else { return nil }
    return StreamRun(origin: name.origin, from: from, to: to, hash: head.hash - elsewhere)
  }
}

extension [Event] {
  /// The sum of their digests.
  fileprivate var streamHash: StreamHash {
    var digester = EventDigester()
    return reduce(.zero) { $0 + digester.digest(of: $1).hash }
  }
}

extension [LostRange] {
  /// The events of these ranges; nil if any is not there.
  fileprivate func events(in offered: [Sequence: Event]) -> [Event]? {
    var events: [Event] = []
    for range in self {
      guard range.count <= UInt64(offered.count) else { return nil }
      for number in range.from.rawValue...range.to.rawValue {
        guard let event = offered[Sequence(number)] else { return nil }
        events.append(event)
      }
    }
    return events
  }
}
