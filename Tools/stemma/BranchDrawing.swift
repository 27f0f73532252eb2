/// Draws branches beside lines, newest first, as `git log --graph` does. Each line has a name and names its
/// parents, which come later; a lane leads from a line to a parent that is still to come.
struct BranchDrawing<Name: Hashable> {
  /// For each lane the name that it leads to, nil for a free one.
  private var lanes: [Name?] = []

  /// What stands before, beside and after the line `name`; for further lines of its text use `beside`.
  mutating func draw(_ name: Name, parents: [Name]) -> (before: String?, line: String, after: String?) {
    var column = lanes.firstIndex(of: name)
    var before: String?
    if let first = column {
      let others = lanes.indices.filter { $0 > first && lanes[$0] == name }
      if !others.isEmpty {
        before = connection(at: first, to: others, closing: true)
        for other in others { lanes[other] = nil }
      }
    } else {
      column = lanes.firstIndex { $0 == nil } ?? lanes.count
    }
    let own = column ?? 0
    if own == lanes.count { lanes.append(nil) }
    let line = lanes.indices.map { $0 == own ? "* " : lanes[$0] == nil ? "  " : "│ " }.joined()
    lanes[own] = parents.first
    var targets: [Int] = []
    for parent in parents.dropFirst() {
      if let lane = lanes.firstIndex(of: parent) {
        targets.append(lane)
        continue
      }
      let lane = lanes.indices.first { $0 > own && lanes[$0] == nil } ?? lanes.count
      if lane == lanes.count { lanes.append(nil) }
      opened.insert(lane)
      lanes[lane] = parent
      targets.append(lane)
    }
    let after = targets.isEmpty ? nil : connection(at: own, to: targets, closing: false)
    opened = []
    while let last = lanes.last, last == nil { lanes.removeLast() }
    return (before, line, after)
  }

  /// The lanes beside a line that is none of the names.
  var beside: String { lanes.map { $0 == nil ? "  " : "│ " }.joined() }

  /// Lanes that begin with the line that is being drawn.
  private var opened: Set<Int> = []

  private func connection(at column: Int, to targets: [Int], closing: Bool) -> String {
    let low = min(column, targets.min() ?? column)
    let high = max(column, targets.max() ?? column)
    var text = ""
    for lane in 0..<max(lanes.count, high + 1) {
      let isActive = lane < lanes.count && lanes[lane] != nil && !opened.contains(lane)
      let isInside = low < lane && lane < high
      let sign: String
      if lane == column {
        sign = low == column ? "├" : high == column ? "┤" : "┼"
      } else if targets.contains(lane) {
        let isEdge = lane == high || lane == low
        if closing {
          sign = isEdge ? "╯" : "┴"
        } else if isActive {
          sign = lane == high ? "┤" : lane == low ? "├" : "┼"
        } else {
          sign = isEdge ? "╮" : "┬"
        }
      } else {
        sign = isInside ? (isActive ? "┼" : "─") : isActive ? "│" : " "
      }
      text += sign + (low <= lane && lane < high ? "─" : " ")
    }
    while text.last == " " { text.removeLast() }
    return text
  }
}
