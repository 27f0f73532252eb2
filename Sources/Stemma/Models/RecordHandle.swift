import Synchronization

/// Ties a value to the store that it was read from, and remembers which of the record's events it has seen.
/// All handles are equal and hash alike: where a value comes from is no part of it.
public struct RecordHandle: Sendable, Hashable {
  let loaded: LoadedRecord?
  /// The columns that were set since the value was read, in no order. Copies of the value that were made before know
  /// nothing of it.
  private(set) var settings: [Setting] = []

  /// A column that was set.
  struct Setting: Sendable {
    /// Counted without the key.
    var column: Int
    /// Unlike that of all other settings of this process.
    var number: UInt64
  }

  private static let lastNumber = Atomic<UInt64>(0)

  /// The handle of a value that no store made.
  public init() { loaded = nil }

  /// `untracked`: columns that can be set without being noted, and hence may always differ from what was read.
  init(_ loaded: LoadedRecord, untracked: [Int] = []) {
    self.loaded = loaded
    settings = untracked.map { Setting(column: $0, number: 0) }
  }

  /// Notes that columns were set: `count` of them from `first` on, counted without the key.
  public mutating func noteSet(_ first: Int, count: Int = 1) {
    guard loaded != nil else { return }
    let number = Self.lastNumber.add(1, ordering: .relaxed).newValue
    for column in first..<(first + count) {
      if let index = settings.firstIndex(where: { $0.column == column }) {
        settings[index].number = number
      } else {
        settings.append(Setting(column: column, number: number))
      }
    }
  }

  /// As above, of one column; `type` is there for the compiler to check that it is one of columns.
  @inlinable
  public mutating func noteSet<Content: ColumnValue>(_ first: Int, as type: Content.Type) { noteSet(first) }

  /// The columns that may differ from what was read or recorded from this value; nil: all.
  func unrecorded(_ view: ValueView?) -> Set<Int>? {
    guard let view else { return nil }
    return Set(settings.filter { $0.number == 0 || !view.recorded.contains($0.number) }.map(\.column))
  }

  /// Always true, so that the equality of a record is that of its properties.
  public static func == (a: RecordHandle, b: RecordHandle) -> Bool { true }
  /// Adds nothing, as all handles are equal.
  public func hash(into hasher: inout Hasher) {}

  func store(of model: String) throws(StoreError) -> Store {
    guard let loaded else { throw .notFromStore(model: model) }
    return loaded.store
  }
}

/// Where a value comes from is no part of its encoded form: these take the place of the calls that the compiler
/// makes for the hidden property, and leave nothing behind.
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
