/// Numbers distinct elements in the order of their first use.
///
/// A few elements are compared one by one, from the last result on: names come in patterns, and
/// hashing one takes longer than comparing ten.
struct Numbering<Element: Hashable> {
  private(set) var elements: [Element] = []
  /// Indexes of all elements, if there are more than a few.
  private var indexes: [Element: Int] = [:]
  private var last = 0

  private static var few: Int { 16 }

  var count: Int { elements.count }

  subscript(index: Int) -> Element { elements[index] }

  mutating func removeAll() {
    elements.removeAll(keepingCapacity: true)
    if !indexes.isEmpty { indexes.removeAll(keepingCapacity: true) }
    last = 0
  }

  /// Nil if it has no number.
  mutating func index(of element: Element) -> Int? {
    guard let index = place(of: element) else { return nil }
    last = index
    return index
  }

  private func place(of element: Element) -> Int? {
    if last < elements.count, elements[last] == element { return last }
    if elements.count > Self.few { return indexes[element] }
    for index in elements.indices.dropFirst(last + 1) where elements[index] == element { return index }
    for index in elements.indices.prefix(last) where elements[index] == element { return index }
    return nil
  }

  /// Gives the next number to a new element.
  mutating func append(_ element: Element) {
    last = elements.count
    elements.append(element)
    if last > Self.few {
      indexes[element] = last
    } else if last == Self.few {
      for (index, element) in elements.enumerated() { indexes[element] = index }
    }
  }

  /// Traps if one element has two numbers, or is not found.
  func checkInvariants() {
    precondition(Set(elements).count == elements.count, "each has one number")
    precondition(
      elements.count <= Self.few ? indexes.isEmpty : indexes.count == elements.count, "many are hashed")
    precondition(indexes.allSatisfy { elements[$1] == $0 }, "each is found")
  }
}

extension Numbering: Sendable where Element: Sendable {}
