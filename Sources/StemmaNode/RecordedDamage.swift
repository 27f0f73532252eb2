import StemmaEvents
import StemmaLog

/// What a node knows of damage to its log, kept in the mark until it is mended: so every process that opens the
/// node leaves the partitions alone that lost events, without reading the whole log first.
package struct RecordedDamage: Sendable, Equatable, Encodable {
  /// A place in a file whose bytes are not what they were.
  package struct Place: Sendable, Hashable, Encodable {
    /// In `log/`.
    package var file: String
    package var offset: UInt64
    /// In words.
    package var what: String
  }

  /// Events of one stream that cannot be read any more.
  package struct Loss: Sendable, Hashable, Encodable {
    package var partition: String
    /// Sixteen hexadecimal digits.
    package var origin: String
    package var from: UInt64
    package var to: UInt64
    /// The file that held them, in `log/`.
    package var file: String?

    package var count: UInt64 { to - from + 1 }

    fileprivate func continues(_ other: Loss) -> Bool {
      other.to + 1 == from && partition == other.partition && origin == other.origin && file == other.file
    }
  }

  package var places: [Place] = []
  package var losses: [Loss] = []
  /// Whether more may be lost than `losses` says. No partition is sure to be whole then.
  package var isVague = false
  /// Whether the tables were lost, too, and made anew around the damage: then they lack what it took, and remember less.
  package var areTablesPartial = false

  init(_ survey: Survey) {
    places = survey.damage.map { Self.place($0) }
    isVague = !survey.vague.isEmpty
    for range in survey.lost {
      let loss = Loss(
        partition: range.partition.description, origin: range.origin.description, from: range.from.rawValue,
        to: range.to.rawValue,
        file: survey.path(of: range).map(\.fileName))
      if let last = losses.last, loss.continues(last) {
        losses[losses.count - 1].to = loss.to
      } else {
        losses.append(loss)
      }
    }
  }

  init(_ stored: MarkReader) throws(NodeError) {
    for place in try stored.members("places") {
      places.append(
        Place(file: try place.text("file"), offset: try place.number("offset"), what: try place.text("what")))
    }
    losses = try stored.losses("losses")
    isVague = try stored.flag("isVague")
    if stored.has("areTablesPartial") { areTablesPartial = try stored.flag("areTablesPartial") }
  }

  /// Traps if events are called lost that nobody could have had.
  func checkInvariants() {
    for loss in losses { precondition(0 < loss.from && loss.from <= loss.to, "a loss has an event") }
    precondition(Set(losses).count == losses.count, "a loss is told once")
  }

  /// What is known of a file is true of it under its new name. Returns whether anything is.
  mutating func rename(_ old: String, to new: String) -> Bool {
    let before = self
    let (old, new) = (old.fileName, new.fileName)
    for index in places.indices where places[index].file == old { places[index].file = new }
    for index in losses.indices where losses[index].file == old { losses[index].file = new }
    return self != before
  }

  static func place(_ damage: Damage) -> Place {
    Place(file: damage.path.fileName, offset: damage.offset, what: damage.flaw.description)
  }

  /// What a person should know.
  package var sentences: [String] {
    let shown = places.count > Self.placesInWords ? Self.placesInWords - 1 : places.count
    var sentences = places.prefix(shown).map { "log/\($0.file) is damaged at byte \($0.offset): \($0.what)" }
    if shown < places.count {
      sentences.append(
        "the log is damaged in \(grouped(places.count - shown)) other places; `stemma verify` lists them")
    }
    if let words = Self.words(losses) {
      sentences.append(
        words + " cannot be read; \(partitions.count == 1 ? "its" : "their") records can only be read until "
          + "that is mended; `stemma verify` says how")
    }
    if isVague {
      sentences.append("what else was lost cannot be told; nothing can be written until the log is repaired")
    }
    return sentences
  }

  private static let placesInWords = 3

  /// `1,203 events of partition site=berlin`, or of how many partitions; nil if there are none.
  static func words(_ losses: [Loss]) -> String? {
    let partitions = Set(losses.map(\.partition))
    guard let first = partitions.first else { return nil }
    let count = losses.reduce(0) { $0 + $1.count }
    return "\(counted(count, "event")) of "
      + (partitions.count == 1 ? "partition \(first)" : counted(partitions.count, "partition"))
  }

  /// The partitions that lost events.
  var partitions: Set<Partition> { Set(losses.map { Partition($0.partition) }) }

  func contains(_ damage: [Damage]) -> Bool {
    // A missing file is called by either of its possible names, and a checksum may be found wrong in two ways.
    func stem(_ file: String) -> Substring { file.prefix { $0 != "." } }
    return damage.allSatisfy { damage in
      let wanted = Self.place(damage)
      return places.contains { stem($0.file) == stem(wanted.file) && $0.offset == wanted.offset }
    }
  }
}

/// What damage took, and what of it is only out of the ordinary reader's reach.
struct DamageToll: Sendable {
  var missing: [RecordedDamage.Loss]
  /// The damaged files tell these events themselves; a repair puts them back, those that stand among missing ones
  /// together with them, or when they are given up.
  var rescuable: [RecordedDamage.Loss]
  var isVague: Bool
  /// Commits among `rescuable` whose notes nothing proves.
  var unnoted: Int

  init(_ survey: Survey, _ salvage: Salvage) {
    unnoted = salvage.unnotedCommits.count
    var survey = survey
    survey.vague = survey.vague(after: salvage)
    isVague = !survey.vague.isEmpty
    survey.lost = salvage.rescuable.sorted { $0.precedes($1) }
    rescuable = RecordedDamage(survey).losses
    survey.lost = salvage.missing
    missing = RecordedDamage(survey).losses
  }
}

extension MarkReader {
  func losses(_ name: String) throws(NodeError) -> [RecordedDamage.Loss] {
    try members(name).map { loss throws(NodeError) in
      let (from, to) = (try loss.number("from", as: UInt64.self), try loss.number("to", as: UInt64.self))
      guard from <= to, to <= UInt64(Int64.max) else { throw loss.failure() }
      return RecordedDamage.Loss(
        partition: try loss.text("partition"), origin: try loss.origin(try loss.text("origin")).description,
        from: from, to: to, file: loss.has("file") ? try loss.text("file") : nil)
    }
  }
}
