import StemmaEvents
import StemmaNode

/// The branches beside the lines of `log --graph`.
///
/// A node has a lane, from its newest event down to its first. From an event that builds on another node's a lane of
/// its own leads down to that event, and joins it there and not above it: whatever can be reached downwards from an
/// event had been seen by whoever made it (of one partition: a node may fetch each by itself). With a record the lanes
/// are those of the record's history alone.
final class EventBranches {
  private enum Branch: Hashable {
    /// To the next event of a node.
    case origin(Origin)
    case event(EventName)
  }

  /// Lanes from one node to another that are drawn side by side. A clone that changes many old records would need one
  /// for each; of the others it is said in words on what they build.
  private static let crossings = 8

  private let description: EventDescription
  private let filter: LogFilter
  private let isOfRecord: Bool
  private let first: [Origin: Position]
  private var drawing = BranchDrawing<Branch>()

  init(_ node: Node, _ filter: LogFilter) throws {
    description = node.description
    self.filter = filter
    isOfRecord = filter.key != nil
    first = isOfRecord ? [:] : try node.firstPositions(filter)
  }

  /// Whether the event alone does not tell which events it builds on that are shown, too.
  func needsAccount(of event: Event) -> Bool {
    EventAccounts.isNeeded(forParentsOf: event)
      || filter.dividesRecords && event.context.entries.contains { isDrawn($0.origin, beside: event) }
  }

  /// Whether a lane leads from an event to one of this node that it builds on.
  private func isDrawn(_ origin: Origin, beside event: Event) -> Bool {
    isOfRecord || origin != event.dot.origin
  }

  /// A line with what stands around it.
  func lines(of stored: StoredEvent, _ text: String, _ accounts: EventAccounts?) -> [String] {
    let event = stored.event
    endLanes(at: stored.position)
    let parents = (accounts?.parents(of: event) ?? []).filter { isDrawn($0.origin, beside: event) }
    let hidden = self.hidden(parents, of: event, accounts)
    var crossings = drawing.count { if case .event = $0 { true } else { false } }
    var targets: [Branch] = []
    var drawn: [Dot] = []
    var named: [Dot] = []
    for parent in parents {
      let branch = Branch.event(EventName(partition: event.partition, dot: parent))
      let isNew = !drawing.leads(to: branch)
      if hidden.contains(parent) || !isOfRecord && isNew && crossings >= Self.crossings {
        named.append(parent)
        continue
      }
      if isNew { crossings += 1 }
      targets.append(branch)
      drawn.append(parent)
    }
    let goesOn = !isOfRecord && first[event.dot.origin].map { $0 < stored.position } ?? true
    let lanes = drawing.draw(
      [.origin(event.dot.origin), .event(event.name)],
      parents: (goesOn ? [.origin(event.dot.origin)] : []) + targets)
    var lines = [lanes.before, lanes.line + text].compactMap(\.self)
    // Where the lanes are those of a record they say it themselves.
    let names =
      (isOfRecord ? [] : drawn.map { printable(description.name($0)) })
      + named.map { "after \(printable(description.name($0)))" }
    if lanes.after != nil || !names.isEmpty {
      lines.append(([lanes.after ?? String(drawing.beside.dropLast())] + names).joined(separator: " "))
    }
    return lines
  }

  /// Lanes of nodes whose first event lies above, without having been shown.
  private func endLanes(at position: Position) {
    drawing.end {
      guard case .origin(let origin) = $0, let first = first[origin] else { return false }
      return position < first
    }
  }

  /// The parents that are not shown.
  private func hidden(_ parents: [Dot], of event: Event, _ accounts: EventAccounts?) -> Set<Dot> {
    guard filter.dividesRecords else { return [] }
    let known = accounts?.knownParents(of: event) ?? []
    let shown = known.filter { filter.contains($0.stored, $0.note) }.map(\.event.dot)
    return Set(parents).subtracting(shown)
  }
}
