// The debug output of a record shows its own values, and one word about its origin.

extension RecordHandle: CustomStringConvertible {
  /// `from a store`, or `new` for a value that no store made.
  public var description: String { loaded == nil ? "new" : "from a store" }
}

extension RecordHandle: CustomReflectable {
  /// Nothing inside.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
