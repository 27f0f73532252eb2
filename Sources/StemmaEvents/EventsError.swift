/// Errors of decoding bytes and values.
package enum EventsError: Error, Equatable, Sendable {
  /// Bytes violate the format: in which subject, and what was found instead.
  case malformed(_ subject: String, _ found: String)
  /// A length or count is above its limit in `Limits`.
  case overLimit(_ subject: String, found: UInt64, limit: UInt64)
}

extension EventsError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .malformed(let subject, let found): "malformed \(subject): \(found)"
    case .overLimit(let subject, let found, let limit): "\(subject): \(found) is over the limit of \(limit)"
    }
  }
}
