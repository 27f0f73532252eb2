extension Limits {
  /// Entries of all implicit contexts of a block. Events of a record with many origins can imply
  /// many entries without a byte of their own. Beyond this limit, a writer writes contexts out.
  package static let blockImplicitEntries = 1 << 20
}
