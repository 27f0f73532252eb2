import StemmaEvents

// Each segment names the file before it by its digest. What is written anew has another digest, and keeps those that it
// replaces: the file behind it may name it by any of them. So it is with a file that is made where another one stands behind
// already, out of a journal or of nothing: it takes the digest by which that one names the file before it, as that of its own
// number in the list of what it replaces, and with that a number of its own.

extension Log {
  /// The header of a segment that is to stand at a place.
  ///
  /// `former`: of the file that it stands in for. `replaced`: what it stands in for. `omissions`: gets the damage of the file
  /// before, which cannot be named then; without it that is thrown.
  func header(
    at place: UInt64, former: SegmentHeader? = nil, replacing replaced: [ReplacedFile] = [],
    around omissions: Omissions? = nil
  ) throws(LogError) -> SegmentHeader {
    var replaced = replaced
    if let name = nameGiven(behind: place), !replaced.contains(where: { $0.digest == name }) {
      replaced.append(ReplacedFile(number: place, digest: name))
    }
    try LogLimits.check("replaced files", replaced.count, LogLimits.replaced)
    let number = replaced.isEmpty ? place : listing.highestNumber + 1
    if number > LogLimits.fileNumber {
      throw .overLimit(subject: "file number", found: number, limit: LogLimits.fileNumber)
    }
    return SegmentHeader(
      log: id, number: number, place: place,
      predecessor: try predecessor(at: place, former: former, omissions), replaced: replaced)
  }

  /// What the segment behind a place calls the file before it; nil if there is none.
  func nameGiven(behind place: UInt64) -> SegmentDigest? {
    listing.headers.values.filter { $0.place > place }.min { $0.place < $1.place }?.predecessor
  }

  /// Whether the segment that has this trailer, and replaces no other one, stood at a place, as far as the file behind tells;
  /// nil: it does not. `damaged`: places of which nobody knows what stood there.
  func stood(_ trailer: SegmentTrailer, at place: UInt64, among damaged: Set<UInt64>) -> Bool? {
    let segment = listing.headers.values.filter { $0.place > place }.min { $0.place < $1.place }
    let journal = journals.first { $0.number > place }
    let next = min(segment?.place ?? .max, journal?.number ?? .max)
    if damaged.contains(where: { $0 > place && $0 < next }) { return nil }
    if let segment, segment.place == next {
      if segment.predecessor == trailer.digest { return true }
      // Made anew while the file before it was damaged, it names another one.
      return segment.replaced.isEmpty ? false : nil
    }
    guard let before = journal?.header.predecessor, before.position.file == place, before.position.index > 0
    else { return nil }
    return before == LogToken(position: Position(file: place, index: trailer.end), chain: trailer.chain)
  }

  /// What a file calls the one before it: what it did, if that one goes by that name, or may do so.
  private func predecessor(
    at place: UInt64, former: SegmentHeader?, _ omissions: Omissions?
  ) throws(LogError) -> SegmentDigest {
    let before = listing.headers.values.filter { $0.place < place }.max { $0.place < $1.place }
    var names: [SegmentDigest]? = [.none]
    if let before { names = try omissions.reading { () throws(LogError) in try segment(before).names } }
    let nearest = before?.place ?? 0
    let isUnsure = names == nil || listing.damage.contains { $0.place > nearest && $0.place < place }
    if let former, isUnsure || names?.contains(former.predecessor) == true { return former.predecessor }
    return names?.first ?? .none
  }
}

extension Segment {
  /// By which the file behind it may name it.
  var names: [SegmentDigest] { [trailer.digest] + header.replaced.map(\.digest) }
}
