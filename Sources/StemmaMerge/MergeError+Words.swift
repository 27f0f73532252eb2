extension MergeError: CustomStringConvertible {
  /// The reason for the rejection.
  package var description: String {
    switch self {
    case .gap(let id, let missing): "event \(id) has seen event \(missing), which is not there"
    case .coversItself(let id): "event \(id) says that it has seen itself"
    case .wrongVersion(let id, let found, let expected):
      "event \(id) has version \(found), where what it has seen makes \(expected.lowerBound)"
        + (expected.lowerBound == expected.upperBound ? "" : " to \(expected.upperBound)")
    case .fork(let id): "two different events are called \(id)"
    case .malformed(let subject, let found): "malformed \(subject): \(found)"
    }
  }
}
