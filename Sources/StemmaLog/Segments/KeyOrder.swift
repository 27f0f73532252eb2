import Foundation
import StemmaEvents

/// Sorts events by (partition, model, key) and `append` order, as segments and batches do.
///
/// Keys are compared in one buffer, and partitions and models by rank. Sorting neither copies
/// events nor counts references to them.
package struct KeyOrder {
  package struct Entry {
    /// The index of the event in `append` order.
    package let index: Int
    /// The same for all events of a partition, and for all events of a record.
    package fileprivate(set) var partition: UInt32
    package fileprivate(set) var record: UInt32 = 0
    fileprivate var model: UInt32
    fileprivate var key: Range<Int>
  }

  private var entries: [Entry] = []
  private var keys: [UInt8] = []
  private var partitions = Ranks()
  private var models = Ranks()

  /// The key order of events that are in position order.
  static func sorted(_ events: [BlockEvent]) -> [Entry] {
    var order = KeyOrder(reserving: events.count)
    // In place: copying an event out of an array counts its references.
    events.withUnsafeBufferPointer { events in
      for index in events.indices { order.append(events[index].event) }
    }
    return order.sorted()
  }

  package init(reserving count: Int) { entries.reserveCapacity(count) }

  package mutating func append(_ event: borrowing Event) {
    let start = keys.count
    keys.append(contentsOf: event.key.bytes)
    entries.append(
      Entry(
        index: entries.count, partition: partitions.number(of: event.partition.bytes),
        model: models.number(of: Array(event.model.utf8)), key: start..<keys.count))
  }

  /// Traps if an event has another one's key, or none. In debug builds before they are sorted.
  func checkInvariants() {
    var start = 0
    for (index, entry) in entries.enumerated() {
      precondition(entry.index == index, "events count as they were added")
      precondition(entry.key.lowerBound == start, "keys lie one behind the other")
      precondition(partitions.holds(entry.partition) && models.holds(entry.model), "names have numbers")
      start = entry.key.upperBound
    }
    precondition(start == keys.count, "all bytes are those of keys")
  }

  package consuming func sorted() -> [Entry] {
    assert(holds(checkInvariants))
    let (partitions, models) = (partitions.ranks(), models.ranks())
    var entries = entries
    for index in entries.indices {
      entries[index].partition = partitions[Int(entries[index].partition)]
      entries[index].model = models[Int(entries[index].model)]
    }
    keys.withUnsafeBytes { keys in
      func order(_ a: borrowing Entry, _ b: borrowing Entry) -> Int {
        if a.partition != b.partition { return a.partition < b.partition ? -1 : 1 }
        if a.model != b.model { return a.model < b.model ? -1 : 1 }
        return UnsafeRawBufferPointer(rebasing: keys[a.key])
          .compare(UnsafeRawBufferPointer(rebasing: keys[b.key]))
      }
      entries.sort { a, b in
        let order = order(a, b)
        return order == 0 ? a.index < b.index : order < 0
      }
      for index in entries.indices.dropFirst() {
        let isSame = order(entries[index - 1], entries[index]) == 0
        entries[index].record = entries[index - 1].record + (isSame ? 0 : 1)
      }
    }
    return entries
  }
}

/// Numbers names in the order of position, then by their bytes.
private struct Ranks {
  private var numbers: [[UInt8]: UInt32] = [:]
  private var last: (name: [UInt8], number: UInt32)?

  /// Events of one name mostly follow each other.
  mutating func number(of name: [UInt8]) -> UInt32 {
    if let last, last.name == name { return last.number }
    let number = numbers[name] ?? UInt32(numbers.count)
    numbers[name] = number
    last = (name, number)
    return number
  }

  func holds(_ number: UInt32) -> Bool { number < numbers.count }

  /// The rank of each number.
  func ranks() -> [UInt32] {
    var ranks = [UInt32](repeating: 0, count: numbers.count)
    let sorted = numbers.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    for (rank, name) in sorted.enumerated() { ranks[Int(name.value)] = UInt32(rank) }
    return ranks
  }
}

extension UnsafeRawBufferPointer {
  /// Negative, 0 or positive as these bytes sort before, equal or behind the others.
  package func compare(_ other: UnsafeRawBufferPointer) -> Int {
    guard let a = baseAddress, let b = other.baseAddress else { return count - other.count }
    let order = Int(memcmp(a, b, Swift.min(count, other.count)))
    return order == 0 ? count - other.count : order
  }
}
