// A record that is printed shows its own values; of where it comes from, one word is enough.

extension RecordHandle: CustomStringConvertible {
  /// `from a store`, or `new` for a value that no store made.
  public var description: String { loaded == nil ? "new" : "from a store" }
}

extension RecordHandle: CustomReflectable {
  /// Nothing inside.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
