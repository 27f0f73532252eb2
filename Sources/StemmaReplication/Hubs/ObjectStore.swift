/// Keeps bytes under keys: a bucket, a folder, or a web site. Calls block, from any thread.
///
/// A call is one attempt. The caller repeats it after `.unknown`.
///
/// Requirements: a key that was written can be read at once, by everyone. Of several writers that
/// `put` a key `ifAbsent`, one succeeds. Lists may lag behind.
package protocol ObjectStore: AnyObject, Sendable {
  /// The address in errors. It contains no secret.
  var name: String { get }
  /// The bytes under a key, or those of a range that the object has; nil: there is none.
  func get(_ key: String, _ range: Range<UInt64>?) throws(ObjectError) -> [UInt8]?
  /// Writes an object.
  ///
  /// - Parameter ifAbsent: whether an object under this key stays as it is.
  /// - Returns: false if there is one already. Always true without `ifAbsent`.
  func put(_ key: String, _ bytes: [UInt8], ifAbsent: Bool) throws(ObjectError) -> Bool
  /// The first keys with a prefix, in the order of their bytes.
  ///
  /// - Parameter last: only later keys are listed.
  func list(_ prefix: String, after last: String?) throws(ObjectError) -> ObjectPage
  /// Removes an object, if there is one.
  func delete(_ key: String) throws(ObjectError)
}

/// A part of a list.
package struct ObjectPage: Sendable {
  package struct Entry: Hashable, Sendable {
    package var key: String
    /// Changes with the content.
    package var tag: String

    package init(key: String, tag: String) {
      self.key = key
      self.tag = tag
    }
  }

  package var entries: [Entry]
  /// Whether no key follows.
  package var isLast: Bool

  package init(entries: [Entry], isLast: Bool) {
    self.entries = entries
    self.isLast = isLast
  }
}

package enum ObjectError: Error, Hashable, Sendable {
  /// The outcome is unknown, or the store is busy: a write may have happened, or may still happen.
  case unknown(String)
  /// Nothing was done, and repeating the call would not help.
  case refused(String)

  package var reason: String {
    switch self {
    case .unknown(let reason), .refused(let reason): reason
    }
  }
}
