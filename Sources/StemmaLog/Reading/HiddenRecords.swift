import StemmaEvents

/// The records that may have lost events to corruption at one place.
package enum HiddenRecords: Sendable {
  /// The corrupt bytes are a key filter, which holds no events.
  case nothing
  /// From the first key of a block to that of the next one; nil: to the last record.
  case between(RecordKey, RecordKey?)

  package func contains(_ record: RecordKey) -> Bool {
    switch self {
    case .nothing: false
    case .between(let first, let last): first <= record && last.map { record <= $0 } ?? true
    }
  }
}
