import StemmaEvents

/// Events that a node has declared lost.
package struct GivenUp: Sendable, Equatable, Encodable {
  /// When, in milliseconds since 1970.
  package var time: UInt64
  /// What damage had taken.
  package var losses: [RecordedDamage.Loss]
  /// Whether more may have been lost than `losses` says.
  package var isVague: Bool
  /// Events behind the lost ones that were written again under new origins.
  package var again: UInt64
  /// Events that were written in place of lost ones, from what the tables showed.
  package var standIns: UInt64
  /// Updates of nothing that were written before these, so that every version is what it was.
  package var fillers: UInt64
  /// Lost events that the tables had not taken in: nothing is known of what they said.
  package var unknown: UInt64

  package var events: UInt64 { losses.reduce(0) { $0 + $1.count } }
  package var partitions: [String] { Set(losses.map(\.partition)).sorted() }

  /// Of the decision.
  var day: Substring { Timestamp(milliseconds: time).utcText.prefix(10) }

  /// `293 lost events of site=ber, site=par`.
  var lostEvents: String {
    let places =
      partitions.isEmpty
      ? ""
      : " of \(partitions.count > 4 ? counted(partitions.count, "partition") : partitions.joined(separator: ", "))"
    return "\(counted(events, "lost event"))\(places)"
  }

  /// What a person should know of it.
  var sentence: String {
    if events == 0 {
      return "what damaged files held besides was given up on \(day): that cannot be told"
    }
    return "\(lostEvents) \(events == 1 ? "was" : "were") given up on \(day); `stemma verify` says which"
  }

  package var json: JSON {
    .object([
      ("time", .string(Timestamp(milliseconds: time).utcText)), ("events", .int(Int64(clamping: events))),
      ("lost", .array(losses.map(\.json))), ("isVague", .bool(isVague)),
      ("again", .int(Int64(clamping: again))),
      ("standIns", .int(Int64(clamping: standIns))), ("fillers", .int(Int64(clamping: fillers))),
      ("unknown", .int(Int64(clamping: unknown))),
    ])
  }
}

/// A giving up that was decided, and perhaps not carried out to its end: kept in the mark, so that whoever takes the
/// writer lock next finishes it.
package struct PendingGivingUp: Sendable, Equatable, Encodable {
  /// What will be noted when it is done.
  var record: GivenUp
  /// New origins that restated events are written under. Nothing else is.
  var origins: [UInt64]
  /// What goes from the log.
  var cut: [StreamSuffix]
  /// Whether everything is written again, durably, so that what is cut may go.
  var isWritten = false

  /// What an attempt that comes after this one removes without saying it again: what this one had said again already,
  /// or, if it was interrupted while saying it, what it said.
  var dropped: [EventName: Sequence] {
    if isWritten { return cut.starts }
    let partitions = Set(cut.map { Partition($0.partition) })
    var dropped: [EventName: Sequence] = [:]
    for partition in partitions {
      for origin in origins { dropped[EventName(stream: partition, Origin(origin))] = Sequence(1) }
    }
    return dropped
  }
}

// MARK: Reading the mark

extension GivenUp {
  init(_ stored: MarkReader) throws(NodeError) {
    time = try stored.number("time")
    losses = try stored.losses("losses")
    isVague = try stored.flag("isVague")
    again = try stored.number("again")
    standIns = try stored.number("standIns")
    fillers = stored.has("fillers") ? try stored.number("fillers") : 0
    unknown = try stored.number("unknown")
  }
}

extension PendingGivingUp {
  init(_ stored: MarkReader) throws(NodeError) {
    record = try GivenUp(try stored.member("record"))
    origins = try stored.numbers("origins")
    cut = try stored.streams("cut")
    isWritten = try stored.flag("isWritten")
  }
}
