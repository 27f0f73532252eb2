extension MergeError: CustomStringConvertible {
  /// The reason for the rejection.
  package var description: String {
    switch self {
    case .gap(let dot, let missing): "event \(dot) has seen event \(missing), which is not there"
    case .coversItself(let dot): "event \(dot) says that it has seen itself"
    case .wrongVersion(let dot, let found, let expected):
      "event \(dot) has version \(found), where what it has seen makes \(expected.lowerBound)"
        + (expected.lowerBound == expected.upperBound ? "" : " to \(expected.upperBound)")
    case .fork(let dot): "two different events are called \(dot)"
    case .malformed(let subject, let found): "malformed \(subject): \(found)"
    }
  }
}
