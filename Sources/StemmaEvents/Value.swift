import Foundation
import StemmaSchema

/// The value of a field in an event.
///
/// Lists and embedded types are canonical JSON text (`JSON.canonicalText`), so a value is always
/// flat. Equality compares bytes: Swift's `String ==` equates a composed and a decomposed `é`,
/// while SQLite and all other readers of the bytes distinguish them.
package enum Value: Sendable {
  case null
  case bool(Bool)
  case int(Int64)
  /// Never NaN; -0 is stored as 0.
  case double(Double)
  case string(String)
  /// Canonical JSON text of a list or an embedded value.
  case json(String)
}

extension Value: Hashable {
  package static func == (a: Value, b: Value) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.bool(let x), .bool(let y)): x == y
    case (.int(let x), .int(let y)): x == y
    case (.double(let x), .double(let y)): x == y
    case (.string(let x), .string(let y)), (.json(let x), .json(let y)): x.hasSameBytes(as: y)
    default: false
    }
  }

  package func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0 as UInt8)
    case .bool(let x): hasher.combine(x)
    case .int(let x): hasher.combine(x)
    case .double(let x): hasher.combine(x)
    case .string(let x), .json(let x):
      x.utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
  }

  package var isNull: Bool { if case .null = self { true } else { false } }
}

extension String {
  /// Equality of the UTF-8 bytes.
  package func hasSameBytes(as other: String) -> Bool {
    // At once if both texts are contiguous, as native strings are: the views compare byte by byte.
    let isSame = utf8.withContiguousStorageIfAvailable { a in
      other.utf8.withContiguousStorageIfAvailable { b in
        guard a.count == b.count else { return false }
        guard let startA = a.baseAddress, let startB = b.baseAddress else { return true }
        return memcmp(startA, startB, a.count) == 0
      }
    }
    if case .some(.some(let isSame)) = isSame { return isSame }
    return utf8.elementsEqual(other.utf8)
  }

  /// Order of the UTF-8 bytes, as in SQLite's BINARY collation.
  package func hasBytes(before other: String) -> Bool { self.utf8.lexicographicallyPrecedes(other.utf8) }
}

extension [UInt8] {
  /// Equality by `memcmp`: byte by byte costs several times as much.
  func isSame(as other: [UInt8]) -> Bool {
    guard count == other.count else { return false }
    return withUnsafeBytes { a in
      other.withUnsafeBytes { b in
        guard let startA = a.baseAddress, let startB = b.baseAddress else { return true }
        return startA == startB || memcmp(startA, startB, a.count) == 0
      }
    }
  }
}

/// One field's new value.
package struct Assignment: Hashable, Sendable {
  /// The field's stored name.
  package var field: String
  package var value: Value

  package init(_ field: String, _ value: Value) {
    self.field = field
    self.value = value
  }
}
