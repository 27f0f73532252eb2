/// Draws branches beside lines, newest first, like `git log --graph`. Each line has a name and
/// lists its parents, which follow later. A lane leads from a line to a later parent.
struct BranchDrawing<Name: Hashable> {
  /// The target name of each lane, nil for a free lane.
  private var lanes: [Name?] = []

  /// The drawing before, beside and after a line. Further lines of its text use `beside`. `names`
  /// are all names by which a lane may refer to the line.
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

  /// Ends lanes whose target line is not drawn.
  mutating func end(where isOver: (Name) -> Bool) {
    for lane in lanes.indices where lanes[lane].map(isOver) ?? false {
      lanes[lane] = nil
      spent.insert(lane)
    }
    trim()
  }

  /// The number of lanes whose target satisfies a condition.
  func count(where isMeant: (Name) -> Bool) -> Int { lanes.count { $0.map(isMeant) ?? false } }

  func leads(to name: Name) -> Bool { lanes.contains(name) }

  /// Lanes that ended with the previous line. A line that began in one would look like its target.
  private var spent: Set<Int> = []

  private var freeLane: Int {
    var lane = 0
    while spent.contains(lane) || lane < lanes.count && lanes[lane] != nil { lane += 1 }
    return lane
  }

  private mutating func trim() {
    while let last = lanes.last, last == nil { lanes.removeLast() }
  }

  /// The lanes beside a line that is not a target.
  var beside: String { lanes.map { $0 == nil ? "  " : "│ " }.joined() }

  /// Lanes that begin with the current line.
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
        // A crossed lane is not joined.
        sign = isActive ? "│" : isInside ? "─" : " "
      }
      text += sign + (low <= lane && lane < high ? "─" : " ")
    }
    while text.last == " " { text.removeLast() }
    return text
  }
}
