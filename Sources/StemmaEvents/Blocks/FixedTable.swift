/// Numbers at a fixed address: the columns of a block, once they are unpacked.
///
/// An array would do, were it not asked millions of times a second: each change of one that is a part of something
/// else looks whether it is shared, and each look at one in a class counts a reference. Written only by whoever has made
/// it, and as long as nobody else has it: that is why it may be shared between threads without a lock, which the compiler
/// cannot see. Whoever goes on writing to one is no Sendable, as a copy of him would write to the same. The elements are
/// plain values, of which nothing has to be released.
final class FixedTable<Element: Sendable>: @unchecked Sendable {
  /// For whoever fills the table, and for loops over all of it. The table must be held by a variable meanwhile.
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
