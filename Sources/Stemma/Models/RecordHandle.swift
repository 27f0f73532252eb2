/// Ties a value to the store that it was read from, and remembers which of the record's events it has seen.
/// All handles are equal and hash alike: where a value comes from is no part of it.
public struct RecordHandle: Sendable, Hashable {
  let loaded: LoadedRecord?

  /// The handle of a value that no store made.
  public init() { loaded = nil }

  init(_ loaded: LoadedRecord) { self.loaded = loaded }

  public static func == (a: RecordHandle, b: RecordHandle) -> Bool { true }
  public func hash(into hasher: inout Hasher) {}

  func store(of model: String) throws(StoreError) -> Store {
    guard let loaded else { throw .notFromStore(model: model) }
    return loaded.store
  }
}
