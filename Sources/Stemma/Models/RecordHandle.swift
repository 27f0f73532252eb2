import StemmaEvents
import StemmaNode

/// Ties a value to its store, and holds which of the record's events the value has seen. All
/// handles are equal and hash alike, as a handle is no part of the record.
///
/// Each copy of a value has its own: what is set in one, or recorded from one, is unknown to the
/// others.
public struct RecordHandle: Sendable, Hashable {
  let loaded: LoadedRecord?
  /// The columns that were set since the value was read, in no particular order.
  private var settings: [Setting] = []

  /// The record as it was read. Nil if it was read from past tables: it can be neither changed nor
  /// asked for its relationships.
  private var current: LoadedRecord? { loaded.flatMap { $0.isPast ? nil : $0 } }

  /// The handle of a value that no store made.
  public init() { loaded = nil }

  @inline(__always)
  init(_ loaded: LoadedRecord) { self.loaded = loaded }

  /// Records that a column, counted without the key, was set. It held `old` before.
  public mutating func noteSet<Content: ColumnValue>(_ column: Int, from old: Content) {
    if current != nil { note(column, old.datum.value) }
  }

  /// Records that a column was set whose stored form is a representation of the property.
  public mutating func noteSet<Representation: ColumnRepresentation>(
    _ column: Int, from old: Representation.Represented, as type: Representation.Type
  ) {
    if current != nil { note(column, Representation(representing: old).datum.value) }
  }

  private mutating func note(_ column: Int, _ old: Value) {
    if let index = settings.firstIndex(where: { $0.column == column }) {
      settings[index].note(old)
    } else {
      settings.append(Setting(column: column, old))
    }
  }

  /// The columns whose `values` differ from what was read or recorded from this value.
  ///
  /// In order, counted without the key. Nil for a value that no store made: any column may differ.
  func unrecorded(_ values: [Value]) -> [Setting.Difference]? {
    guard current != nil else { return nil }
    return settings.compactMap { $0.difference(of: values[$0.column]) }.sorted { $0.column < $1.column }
  }

  /// The state of the record that this value has seen: as it was read, or as recorded from it
  /// later. Nil for a value that no store made.
  var view: RecordView? {
    guard let loaded = current else { return nil }
    let recorded = settings.flatMap(\.marks).compactMap { mark in mark.view.map { (mark.number, $0) } }
    return recorded.max { $0.0 < $1.0 }?.1 ?? loaded.view
  }

  /// Refuses a value that was read inside a commit that failed. It has seen event ids that were
  /// never written and may since belong to other events.
  ///
  /// - Throws: `notCommitted`.
  func check(_ model: String) throws(StoreError) {
    if loaded?.isTakenBack ?? false { throw .notCommitted(model: model) }
  }

  /// The marks of the columns that are being recorded.
  func marks(of columns: [Int]) -> [SettingMark] {
    settings.filter { columns.contains($0.column) }.map(\.last)
  }

  /// The newest setting of all columns; nil if there is none.
  var newestMark: SettingMark? { settings.map(\.last).max { $0.number < $1.number } }

  /// Traps if it contradicts itself. For tests.
  func checkInvariants() {
    precondition(loaded != nil || settings.isEmpty, "of a value that no store made nothing is remembered")
    precondition(Set(settings.map(\.column)).count == settings.count, "a column is remembered once")
    loaded?.checkInvariants()
    for setting in settings { setting.checkInvariants() }
  }

  /// Always true, so that the equality of a record is that of its properties.
  public static func == (a: RecordHandle, b: RecordHandle) -> Bool { true }
  /// Adds nothing, as all handles are equal.
  public func hash(into hasher: inout Hasher) {}

  func store(of model: String) throws(StoreError) -> Store {
    guard let loaded = current else { throw .notFromStore(model: model) }
    return loaded.store
  }
}

/// The encoded form has no trace of a value's store. These methods replace the compiler's calls for
/// the hidden property.
extension RecordHandle: Codable {
  /// Reads nothing: a decoded value belongs to no store.
  public init(from decoder: any Decoder) throws { self.init() }
  /// Writes nothing.
  public func encode(to encoder: any Encoder) throws {}
}

extension KeyedEncodingContainer {
  /// Writes neither a key nor a value.
  public mutating func encode(_ value: RecordHandle, forKey key: Key) throws {}
}

extension KeyedDecodingContainer {
  /// The handle of a value that no store made; the key is not looked for.
  public func decode(_ type: RecordHandle.Type, forKey key: Key) throws -> RecordHandle { RecordHandle() }
}
