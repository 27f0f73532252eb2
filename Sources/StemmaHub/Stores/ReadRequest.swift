import StemmaReplication

/// A GET of an object or a range of it, and what its answer means.
struct ReadRequest {
  let range: Range<UInt64>?

  /// Whole objects may have up to 1 GiB.
  static let largest = 1 << 30
  /// Time is allowed for the transfer of a whole object of this size.
  private static let usual = 64 << 20
  /// Beyond the size of any object.
  private static let farthest: UInt64 = 1 << 62

  /// An empty range cannot be asked for. One byte shows whether the object exists.
  private var asked: Range<UInt64>? {
    range.map { range in
      let lower = min(range.lowerBound, Self.farthest)
      return lower..<max(lower + 1, min(range.upperBound, Self.farthest))
    }
  }

  /// The value of the header `range`.
  var header: String? { asked.map { "bytes=\($0.lowerBound)-\($0.upperBound - 1)" } }

  var limit: Int {
    asked.map { Int(min($0.upperBound - $0.lowerBound, UInt64(Self.largest))) } ?? Self.largest
  }

  var expected: Int { range == nil ? Self.usual : limit }

  /// The bytes in an answer with status 200, 206 or 416; nil: another status.
  func bytes(_ answer: ObjectHTTPClient.Answer, _ name: String) throws(ObjectError) -> [UInt8]? {
    switch answer.status {
    case 200:
      guard range != nil else {
        if answer.isTooLong { throw .refused("\(name): the object is longer than 1 GiB") }
        return answer.body
      }
      // An empty object has no range. Go's servers answer with the whole object then.
      if answer.body.isEmpty, !answer.isTooLong { return [] }
      throw .refused("\(name): the server ignores the header Range and sends whole objects")
    case 206:
      guard let range, let asked else { throw .refused("\(name): a range was sent that was not requested") }
      guard !answer.isTooLong, let sent = Self.range(answer.headers.first(name: "content-range")),
        sent.lowerBound == asked.lowerBound, sent.upperBound <= asked.upperBound,
        sent.count == answer.body.count
      else { throw .refused("\(name): the server sent another range than \(asked)") }
      return range.isEmpty ? [] : answer.body
    case 416 where range != nil: return []
    default: return nil
    }
  }

  /// The range in a header such as `bytes 0-99/1234`.
  private static func range(_ header: String?) -> Range<UInt64>? {
    guard let match = header?.wholeMatch(of: #/bytes (\d+)-(\d+)/(\d+|\*)/#),
      let first = UInt64(match.1), let last = UInt64(match.2), first <= last, last < farthest
    else { return nil }
    return first..<last + 1
  }
}
