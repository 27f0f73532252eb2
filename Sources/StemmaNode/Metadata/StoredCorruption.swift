import StemmaEvents

extension RecordedCorruption {
  init(_ stored: MetadataReader) throws(NodeError) {
    for place in try stored.members("places") {
      places.append(
        Place(file: try place.text("file"), offset: try place.number("offset"), what: try place.text("what")))
    }
    losses = try stored.losses("losses")
    isVague = try stored.flag("isVague")
    if stored.has("areTablesPartial") { areTablesPartial = try stored.flag("areTablesPartial") }
  }
}

extension MetadataReader {
  func losses(_ name: String) throws(NodeError) -> [RecordedCorruption.Loss] {
    try members(name).map { loss throws(NodeError) in
      let (from, to) = (try loss.number("from", as: UInt64.self), try loss.number("to", as: UInt64.self))
      guard from <= to, to <= UInt64(Int64.max) else { throw loss.failure() }
      return RecordedCorruption.Loss(
        partition: try loss.text("partition"), origin: try loss.origin(try loss.text("origin")).description,
        from: from, to: to)
    }
  }
}
