import StemmaReplication

/// The keys that every store accepts: components of `A-Z a-z 0-9 . _ -`, separated by slashes.
///
/// A key is valid in each store or in none, so that objects can be copied between stores.
package enum ObjectKey {
  /// Names of unfinished files in a folder begin with it. No component of a key does.
  package static let temporaryPrefix = ".tmp-"
  /// In bytes. The limit of S3, which includes the prefix of the store.
  package static let longest = 1024
  /// In bytes. The limit of most file systems.
  package static let longestComponent = 255

  /// Whether the key has only valid components: none is empty, `.`, or `..`.
  package static func isValid(_ key: String) -> Bool {
    guard !key.isEmpty, key.utf8.count <= longest else { return false }
    return key.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).allSatisfy {
      isComponent($0)
    }
  }

  /// Whether keys can have this prefix. It may end within a component.
  package static func isValidPrefix(_ prefix: String) -> Bool {
    isValid(prefix + "_")
  }

  static func check(_ key: String, in store: String) throws(ObjectError) {
    guard isValid(key) else { throw .refused("\(store): the key \"\(printable(key))\" is not valid") }
  }

  static func check(prefix: String, in store: String) throws(ObjectError) {
    guard isValidPrefix(prefix) else {
      throw .refused("\(store): no valid key begins with \"\(printable(prefix))\"")
    }
  }

  /// The order of the bytes.
  static func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }

  /// A text from outside, in one line and of limited length.
  static func printable(_ text: some StringProtocol, limit: Int = 300) -> String {
    String(
      text.unicodeScalars.prefix(limit).map { scalar in
        scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value) ? " " : Character(scalar)
      })
  }

  private static func isComponent(_ component: some Sequence<UInt8>) -> Bool {
    let bytes = Array(component)
    guard !bytes.isEmpty, bytes.count <= longestComponent, bytes != [0x2e], bytes != [0x2e, 0x2e] else {
      return false
    }
    return !bytes.starts(with: temporaryPrefix.utf8) && bytes.allSatisfy(isPermitted)
  }

  private static func isPermitted(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}
