extension MergeError: CustomStringConvertible {
  /// What is wrong.
  package var description: String {
    switch self {
    case .gap(let dot, let missing): "event \(dot) has seen event \(missing), which is not there"
    case .coversItself(let dot): "event \(dot) says that it has seen itself"
    case .wrongVersion(let dot, let found, let expected):
      "event \(dot) has version \(found), where what it has seen makes \(expected.lowerBound)"
        + (expected.lowerBound == expected.upperBound ? "" : " to \(expected.upperBound)")
    case .fork(let dot): "two different events are called \(dot)"
    case .malformedState(let offset, let defect): "\(defect) at byte \(offset)"
    }
  }
}

extension StateDefect: CustomStringConvertible {
  package var description: String {
    switch self {
    case .cutShort: "it ends too early"
    case .unknownFormat: "its format is unknown"
    case .outOfRange: "a number is too large"
    case .unsorted: "a list is not in order"
    case .notUTF8: "a text is not UTF-8"
    case .notCanonical: "it is not written as it would be here"
    case .checksum: "its checksum does not hold"
    }
  }
}
