/// Ties a value to the store that it was read from, and remembers which of the record's events it has seen.
/// All handles are equal and hash alike: where a value comes from is no part of it.
public struct RecordHandle: Sendable, Hashable {
  let loaded: LoadedRecord?

  /// The handle of a value that no store made.
  public init() { loaded = nil }

  init(_ loaded: LoadedRecord) { self.loaded = loaded }

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
