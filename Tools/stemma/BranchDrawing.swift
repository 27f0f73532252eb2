/// Draws branches beside lines, newest first, as `git log --graph` does. Each line has a name and names its
/// parents, which come later; a lane leads from a line to a parent that is still to come.
struct BranchDrawing<Name: Hashable> {
  /// For each lane the name that it leads to, nil for a free one.
  private var lanes: [Name?] = []

  /// What stands before, beside and after a line; for further lines of its text use `beside`. `names` are all that a
  /// lane may call it by.
  mutating func draw(_ names: Set<Name>, parents: [Name]) -> (before: String?, line: String, after: String?) {
    let leading = lanes.indices.filter { lanes[$0].map(names.contains) ?? false }
    let own = leading.first ?? freeLane
    while lanes.count <= own { lanes.append(nil) }
    let others = Array(leading.dropFirst())
    let before = others.isEmpty ? nil : connection(at: own, to: others, closing: true)
    for other in others { lanes[other] = nil }
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
    spent = lanes[own] == nil ? [own] : []
    trim()
    return (before, line, after)
  }

  /// Lets lanes end whose line is not drawn.
  mutating func end(where isOver: (Name) -> Bool) {
    for lane in lanes.indices where lanes[lane].map(isOver) ?? false {
      lanes[lane] = nil
      spent.insert(lane)
    }
    trim()
  }

  /// How many lanes there are that satisfy something.
  func count(where isMeant: (Name) -> Bool) -> Int { lanes.count { $0.map(isMeant) ?? false } }

  func leads(to name: Name) -> Bool { lanes.contains(name) }

  /// Lanes that ended just now: a line that began there would look like what they lead to.
  private var spent: Set<Int> = []

  private var freeLane: Int {
    var lane = 0
    while spent.contains(lane) || lane < lanes.count && lanes[lane] != nil { lane += 1 }
    return lane
  }

  private mutating func trim() {
    while let last = lanes.last, last == nil { lanes.removeLast() }
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
        // A lane that is only crossed is not joined.
        sign = isActive ? "│" : isInside ? "─" : " "
      }
      text += sign + (low <= lane && lane < high ? "─" : " ")
    }
    while text.last == " " { text.removeLast() }
    return text
  }
}
