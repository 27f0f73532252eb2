extension Limits {
  /// Entries of all implicit contexts of one block together. Each event of a record that many origins wrote
  /// may stand for a context of many entries without one byte of its own; beyond this a writer writes them out.
  package static let blockImplicitEntries = 1 << 20
}
