import StemmaEvents

/// The graph of a history without contents: for each event its stream, and the events that it has
/// seen.
struct EventGraph: Hashable {
  var origins: [Int]
  var contexts: [Set<Int>]

  init(origins: [Int], contexts: [Set<Int>]) {
    self.origins = origins
    self.contexts = contexts
  }

  init(_ events: [Event]) {
    origins = events.map { Int($0.id.origin.rawValue) }
    contexts = events.map { event in Set(events.indices.filter { event.context.covers(events[$0].id) }) }
  }

  /// The events that must be delivered before an event: its context, and the earlier part of its
  /// stream.
  func past(_ index: Int) -> Set<Int> {
    contexts[index].union((0..<index).filter { origins[$0] == origins[index] })
  }

  /// The least description over all orders of the events: rows of (stream, seen…).
  var canonical: [[Int]] {
    Self.orders(Array(origins.indices)).map(described).min { a, b in
      a.lexicographicallyPrecedes(b) { $0.lexicographicallyPrecedes($1) }
    } ?? []
  }

  private func described(_ order: [Int]) -> [[Int]] {
    // First the places of earlier events in the stream, then those of the context.
    order.map { event in
      let place = { (other: Int) in order.firstIndex(of: other) ?? -1 }
      let stream = origins.indices.filter { origins[$0] == origins[event] }
      return stream.filter { $0 < event }.map(place) + [-1] + contexts[event].map(place).sorted()
    }
  }

  private static func orders(_ elements: [Int]) -> [[Int]] {
    guard !elements.isEmpty else { return [[]] }
    return elements.flatMap { first in orders(elements.filter { $0 != first }).map { [first] + $0 } }
  }

  /// The canonical form of every graph with contexts that a node can have read.
  static func all(events: Int) -> Set<[[Int]]> {
    var graphs = [EventGraph(origins: [], contexts: [])]
    for count in 0..<events {
      graphs = graphs.flatMap { graph in
        (0...count).flatMap { origin in
          subsets(count).filter { subset in subset.allSatisfy { graph.past($0).isSubset(of: subset) } }
            .map { EventGraph(origins: graph.origins + [origin], contexts: graph.contexts + [$0]) }
        }
      }
    }
    return Set(graphs.map(\.canonical))
  }

  private static func subsets(_ count: Int) -> [Set<Int>] {
    (0..<1 << count).map { mask in Set((0..<count).filter { mask & 1 << $0 != 0 }) }
  }
}
