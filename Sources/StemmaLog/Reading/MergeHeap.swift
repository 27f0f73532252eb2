/// A binary heap whose least element comes first.
struct MergeHeap<Element: Comparable & Sendable>: Sendable {
  private var items: [Element] = []

  var first: Element? { items.first }

  mutating func insert(_ item: Element) {
    items.append(item)
    var child = items.count - 1
    while child > 0, items[child] < items[(child - 1) / 2] {
      items.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Traps if an element is above a lesser one. For tests.
  func checkInvariants() {
    for child in items.indices.dropFirst() {
      precondition(!(items[child] < items[(child - 1) / 2]), "no element is less than the one above it")
    }
  }

  /// Replaces the least element by `item`, or removes it without one. In O(log n) comparisons.
  mutating func replaceFirst(with item: Element?) {
    if let item {
      items[0] = item
    } else {
      let last = items.removeLast()
      if items.isEmpty { return }
      items[0] = last
    }
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < items.count && items[child] < items[least] {
        least = child
      }
      if least == parent { return }
      items.swapAt(parent, least)
      parent = least
    }
  }
}
