import StemmaEvents
import StemmaHistory
import StemmaNode

/// The branches beside the lines of `log --graph`.
///
/// A node has a lane from its newest event to its first. An event that builds on another node's
/// event has a separate lane, which joins exactly at that event. Everything reachable downwards
/// from an event of one partition had been seen by its writer. Partitions are fetched separately.
/// For a record, the lanes show only the history of that record.
final class EventBranches {
  private enum Branch: Hashable {
    /// Leads to the next event of a node.
    case origin(Origin)
    case event(QualifiedEventID)
  }

  /// The maximum number of lanes between nodes side by side. A clone that changes many old records
  /// would need one each. Beyond the maximum, text names the events.
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

  /// Whether the event alone does not identify the visible events that it builds on.
  func needsAccount(of event: Event) -> Bool {
    EventAccounts.isNeeded(forParentsOf: event)
      || filter.dividesRecords && event.context.entries.contains { isDrawn($0.origin, beside: event) }
  }

  /// Whether a lane leads from an event to an event of this origin that it builds on.
  private func isDrawn(_ origin: Origin, beside event: Event) -> Bool {
    isOfRecord || origin != event.id.origin
  }

  /// A line with its surrounding branches.
  func lines(of stored: StoredEvent, _ text: String, _ accounts: EventAccounts?) -> [String] {
    let event = stored.event
    endLanes(at: stored.position)
    let parents = (accounts?.parents(of: event) ?? []).filter { isDrawn($0.origin, beside: event) }
    let hidden = self.hidden(parents, of: event, accounts)
    var crossings = drawing.count { if case .event = $0 { true } else { false } }
    var targets: [Branch] = []
    var drawn: [EventID] = []
    var named: [EventID] = []
    for parent in parents {
      let branch = Branch.event(QualifiedEventID(partition: event.partition, id: parent))
      let isNew = !drawing.leads(to: branch)
      if hidden.contains(parent) || !isOfRecord && isNew && crossings >= Self.crossings {
        named.append(parent)
        continue
      }
      if isNew { crossings += 1 }
      targets.append(branch)
      drawn.append(parent)
    }
    let goesOn = !isOfRecord && first[event.id.origin].map { $0 < stored.position } ?? true
    let lanes = drawing.draw(
      [.origin(event.id.origin), .event(event.name)],
      parents: (goesOn ? [.origin(event.id.origin)] : []) + targets)
    var lines = [lanes.before, lanes.line + text].compactMap(\.self)
    // The lanes of a record need no names.
    let names =
      (isOfRecord ? [] : drawn.map { printable(description.name($0)) })
      + named.map { "after \(printable(description.name($0)))" }
    if lanes.after != nil || !names.isEmpty {
      lines.append(([lanes.after ?? String(drawing.beside.dropLast())] + names).joined(separator: " "))
    }
    return lines
  }

  /// Ends the lanes of nodes whose first event is above and was not shown.
  private func endLanes(at position: Position) {
    drawing.end {
      guard case .origin(let origin) = $0, let first = first[origin] else { return false }
      return position < first
    }
  }

  /// The parents that are not shown.
  private func hidden(_ parents: [EventID], of event: Event, _ accounts: EventAccounts?) -> Set<EventID> {
    guard filter.dividesRecords else { return [] }
    let known = accounts?.knownParents(of: event) ?? []
    let shown = known.filter { filter.contains($0.stored, $0.message) }.map(\.event.id)
    return Set(parents).subtracting(shown)
  }
}
