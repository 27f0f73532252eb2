/// Numbers at a fixed address: the unpacked columns of a block.
///
/// An array is too slow for millions of accesses a second: a change checks for shared storage, and
/// a read through a class counts a reference. Only the creator writes to a table, before it shares
/// it. Threads can therefore share it without a lock, which the compiler cannot verify. A type that
/// continues to write is not Sendable, because its copies would write to the same memory. The
/// elements are plain values that need no release.
final class FixedTable<Element: Sendable>: @unchecked Sendable {
  /// For filling the table and for loops over it. A variable must hold the table during the access.
  let elements: UnsafeMutableBufferPointer<Element>

  init(repeating element: Element, count: Int) {
    elements = .allocate(capacity: count)
    elements.initialize(repeating: element)
  }

  init(_ source: [Element]) {
    elements = .allocate(capacity: source.count)
    _ = elements.initialize(from: source)
  }

  deinit { elements.deallocate() }

  @inline(__always)
  var count: Int { elements.count }

  /// Traps outside of the table, as an array does.
  @inline(__always)
  subscript(index: Int) -> Element {
    precondition(UInt(bitPattern: index) < UInt(bitPattern: elements.count), "no such place in a block")
    return elements[index]
  }
}
