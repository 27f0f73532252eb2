/// Suggestions for an unknown name.
package enum Spelling {
  /// How many bytes may be added, removed or replaced.
  private static let tolerance = 2

  /// The known name that differs only in case, else the first of the nearest, within two bytes.
  package static func nearest(to name: String, among known: [String]) -> String? {
    if let same = known.first(where: { $0.lowercased() == name.lowercased() }) { return same }
    var nearest: (name: String, distance: Int)?
    for candidate in known {
      let distance = distance(candidate, name)
      // A short name must not be replaced as a whole.
      guard distance <= tolerance, distance < name.utf8.count, distance < nearest?.distance ?? .max else {
        continue
      }
      nearest = (candidate, distance)
    }
    return nearest?.name
  }

  /// Levenshtein's distance, in bytes.
  private static func distance(_ a: String, _ b: String) -> Int {
    let (a, b) = (Array(a.utf8), Array(b.utf8))
    var row = Array(0...b.count)
    for (i, x) in a.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, y) in b.enumerated() {
        let above = row[j + 1]
        row[j + 1] = x == y ? diagonal : min(diagonal, above, row[j]) + 1
        diagonal = above
      }
    }
    return row[b.count]
  }
}
