import StemmaEvents

/// A manifest: its fields, and the files that it lists.
enum ManifestInspection {
  static func run(
    _ source: InspectedFile, _ body: (InspectedPart) -> Void
  ) throws(LogError) {
    let count = Int(min(source.size, UInt64(Manifest.sizeLimit)))
    var part = InspectedPart(.header, at: 0, UInt64(count))
    let bytes = try source.bytes(at: 0, count: count)
    let manifest = try part.reading { () throws(LogError) in
      try Manifest(decoding: bytes, path: source.path)
    }
    if let manifest {
      part.say("log", manifest.log.description)
      part.say("turn", manifest.turn)
      part.say("nextSegment", manifest.nextSegment)
      part.say("firstJournal", manifest.firstJournal)
      part.say("start", manifest.start.position)
      part.say("cuts", UInt64(manifest.cuts))
      for entry in manifest.segments {
        part.say(
          LogFileName.segment(entry.number).text,
          "@\(entry.base) to before @\(entry.past), \(entry.size) bytes, \(entry.digest)")
      }
      for file in manifest.obsolete { part.say("obsolete", file.name.text) }
    }
    body(part)
    if source.size > part.end {
      var rest = InspectedPart(.unknown, at: part.end, source.size - part.end)
      rest.complain(.disagreement("a manifest is not that long"))
      body(rest)
    }
  }
}
