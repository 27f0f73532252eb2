import Foundation

/// A parsed drawing of branches. Each line of an event has a `*` in its lane, and lanes lead
/// downwards. A connection below an event leads out of it; one above an event leads into it.
struct GraphPicture {
  /// The texts after the drawing, from top to bottom.
  private(set) var events: [String] = []
  /// The targets of each event, by lines or in words (`after EVENT`).
  private(set) var parents: [String: Set<String>] = [:]
  /// Names after a connection, by the event above.
  private(set) var named: [String: [String]] = [:]
  /// Lanes that stop before they reach an event, by the event above their end.
  private(set) var loose: [String] = []
  /// Lines that cannot be parsed.
  private(set) var puzzles: [String] = []

  /// For each lane, the events from which it leads down.
  private var lanes: [[String]] = []
  private var column = 0

  private static let signs = Set<Character>(" *│├┤┼╮┬╯┴─")

  init(_ lines: [String]) {
    for line in lines {
      let drawing = Array(line.prefix { Self.signs.contains($0) })
      let text = String(line.dropFirst(drawing.count))
      if let star = drawing.firstIndex(of: "*") {
        read(event: text, star / 2, drawing)
      } else {
        if drawing.contains(where: { "├┤┼╮┬╯┴".contains($0) }) { read(connection: drawing, line) }
        guard let event = events.last else { continue }
        let partition = String(event.prefix { $0 != "|" }) + "|"
        let words = text.split(separator: " ").map { $0 == "after" ? "after" : partition + $0 }
        named[event, default: []] += words.filter { $0 != "after" }
        for (word, next) in zip(words, words.dropFirst()) where word == "after" {
          parents[event, default: []].insert(next)
        }
      }
    }
    if let last = events.last, lanes.contains(where: { !$0.isEmpty && $0 != [last] }) { loose.append(last) }
  }

  private func sign(_ drawing: [Character], _ lane: Int) -> Character {
    lane * 2 < drawing.count ? drawing[lane * 2] : " "
  }

  private mutating func read(event: String, _ own: Int, _ drawing: [Character]) {
    while lanes.count <= max(own, drawing.count / 2) { lanes.append([]) }
    for lane in lanes.indices where lane != own {
      switch sign(drawing, lane) {
      case "│": if lanes[lane].isEmpty { puzzles.append("a lane from nowhere beside \(event)") }
      default: end(lane)
      }
    }
    for above in lanes[own] { parents[above, default: []].insert(event) }
    lanes[own] = [event]
    column = own
    events.append(event)
  }

  private mutating func end(_ lane: Int) {
    // The last event of a branch leads nowhere.
    if !lanes[lane].isEmpty, lanes[lane] != [events.last ?? ""] { loose.append(events.last ?? "") }
    lanes[lane] = []
  }

  private mutating func read(connection drawing: [Character], _ line: String) {
    let count = (drawing.count + 1) / 2
    while lanes.count < count { lanes.append([]) }
    let joined = (0..<count).filter { "├┤┼╮┬╯┴".contains(sign(drawing, $0)) }
    guard let low = joined.first, let high = joined.last,
      drawing[low * 2...high * 2].enumerated().allSatisfy({ $0.offset % 2 == 0 || $0.element == "─" })
    else { return puzzles.append(line) }
    for lane in lanes.indices where !joined.contains(lane) {
      if sign(drawing, lane) != "│" { end(lane) }
    }
    func isOpen(_ lane: Int) -> Bool { "├┤┼╮┬".contains(sign(drawing, lane)) }
    let open = joined.filter(isOpen)
    if open.count == 1 {
      // All others lead into this lane.
      lanes[open[0]] = joined.flatMap { lanes[$0] }
      for lane in joined where lane != open[0] { lanes[lane] = [] }
    } else if open == joined, joined.contains(column), let event = events.last {
      for lane in joined where lane != column { lanes[lane].append(event) }
    } else {
      puzzles.append(line)
    }
  }

  /// All events that are reachable downwards from each event.
  var reachable: [String: Set<String>] { GraphPicture.closure(of: parents, events.reversed()) }

  /// `order`: causes before effects.
  static func closure(of parents: [String: Set<String>], _ order: [String]) -> [String: Set<String>] {
    var reachable: [String: Set<String>] = [:]
    for event in order {
      for parent in parents[event] ?? [] {
        reachable[event, default: []].formUnion((reachable[parent] ?? []).union([parent]))
      }
    }
    return reachable
  }
}
