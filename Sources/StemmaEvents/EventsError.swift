/// What can be wrong with bytes and values that this module is asked to read.
package enum EventsError: Error, Equatable, Sendable {
  /// Bytes are not what the format demands: of what, and what was found instead.
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
