@testable import Stemma
import StemmaSimulation

/// A condition in two forms: for a statement, and as a Swift closure.
struct Condition: Sendable {
  let expression: @Sendable (Chore.Columns) -> ColumnExpression<Bool>
  let holds: @Sendable (Chore) -> Bool

  init(
    _ expression: @escaping @Sendable (Chore.Columns) -> ColumnExpression<Bool>,
    _ holds: @escaping @Sendable (Chore) -> Bool
  ) {
    self.expression = expression
    self.holds = holds
  }
}

/// An order in two forms. Equal rows keep the order of their keys.
struct Order: Sendable {
  let term: @Sendable (Chore.Columns) -> Ordering
  let precedes: @Sendable (Chore, Chore) -> Bool
}

extension SplitMix64 {
  static let words = ["", "a", "ab", "B", "ba", "*", "a?", "[a]", "é", "Zoë", "%", "_a", "it's", "\"q\""]

  mutating func word() -> String { element(Self.words) }
  mutating func rank() -> Int? { element([nil, -1, 0, 1, 2, 3, .max, .min]) }
  mutating func effort() -> Double { element([0, -1.5, 0.25, 2, 1e9]) }
  mutating func due() -> Date? {
    element([nil, 0, 0.5, 0.001, 60, -86_400]).map { ReadStatementTests.date($0) }
  }

  /// Their order as text differs from their order as numbers.
  mutating func price() -> Decimal {
    Decimal(
      sign: below(2) == 0 ? .minus : .plus, exponent: -2,
      significand: Decimal(element([0, 5, 95, 1025, 10_000])))
  }

  mutating func chore(id: Int, owners: Int) -> Chore {
    Chore(
      id: id, title: word(), isDone: below(2) == 0, rank: rank(), effort: effort(), due: due(),
      ownerId: below(2) == 0 ? nil : below(owners),
      cost: Chore.Cost(price: price(), unit: below(3) == 0 ? nil : word()),
      note: below(3) == 0 ? word() : nil)
  }

  mutating func condition(depth: Int = 2) -> Condition {
    if depth > 0, below(2) == 0 {
      let (a, b) = (condition(depth: depth - 1), condition(depth: depth - 1))
      switch below(3) {
      case 0: return Condition({ a.expression($0) && b.expression($0) }, { a.holds($0) && b.holds($0) })
      case 1: return Condition({ a.expression($0) || b.expression($0) }, { a.holds($0) || b.holds($0) })
      default: return Condition({ !a.expression($0) }, { !a.holds($0) })
      }
    }
    switch below(4) {
    case 0: return comparison()
    case 1: return textCondition()
    case 2: return columnCondition()
    default: return membership()
    }
  }

  private mutating func comparison() -> Condition {
    let (rank, number, effort, due) = (rank(), below(9), effort(), due())
    let price = price()
    switch below(11) {
    case 0: return Condition({ $0.rank == rank }, { $0.rank == rank })
    case 1: return Condition({ $0.rank != rank }, { $0.rank != rank })
    case 2: return Condition({ $0.rank < number }, { $0.rank.map { $0 < number } ?? false })
    case 3: return Condition({ $0.id >= number }, { $0.id >= number })
    case 4: return Condition({ $0.effort > effort }, { $0.effort > effort })
    case 5: return Condition({ $0.effort <= effort }, { $0.effort <= effort })
    case 6: return Condition({ $0.due == due }, { $0.due == due })
    case 7: return Condition({ $0.cost.price > price }, { $0.cost.price > price })
    case 8: return Condition({ $0.cost.price.in([price, 0]) }, { [price, 0].contains($0.cost.price) })
    case 9: return Condition({ $0.cost.unit == nil }, { $0.cost.unit == nil })
    default:
      let due = due ?? ReadStatementTests.date(0)
      return Condition({ $0.due >= due }, { $0.due.map { $0 >= due } ?? false })
    }
  }

  private mutating func textCondition() -> Condition {
    let word = word()
    switch below(5) {
    case 0: return Condition({ $0.title == word }, { $0.title == word })
    case 1:
      return Condition({ $0.title < word }, { $0.title.utf8.lexicographicallyPrecedes(word.utf8) })
    case 2: return Condition({ $0.title.contains(word) }, { word.isEmpty || $0.title.contains(word) })
    case 3: return Condition({ $0.title.hasPrefix(word) }, { $0.title.hasPrefix(word) })
    default: return Condition({ $0.title.hasSuffix(word) }, { $0.title.hasSuffix(word) })
    }
  }

  private mutating func columnCondition() -> Condition {
    switch below(5) {
    case 0: return Condition({ $0.rank == $0.id }, { $0.rank == $0.id })
    case 1: return Condition({ $0.rank != $0.ownerId }, { $0.rank != $0.ownerId })
    case 2:
      return Condition(
        { $0.rank < $0.ownerId }, { row in row.rank.flatMap { a in row.ownerId.map { a < $0 } } ?? false })
    case 3: return Condition({ $0.isDone.expression }, { $0.isDone })
    default: return Condition({ $0.id + 1 == $0.ownerId }, { $0.id + 1 == $0.ownerId })
    }
  }

  private mutating func membership() -> Condition {
    let (ids, words) = ((0..<below(5)).map { _ in below(12) }, (0..<below(4)).map { _ in word() })
    let ranks = (0..<below(4)).map { _ in rank() }.filter { $0 != nil }
    let (low, high) = (ReadStatementTests.date(0), ReadStatementTests.date(0.5))
    switch below(6) {
    case 4:
      return Condition(
        { (low...high).contains($0.due) }, { $0.due.map { (low...high).contains($0) } ?? false })
    case 5:
      return Condition(
        { (low..<high).contains($0.due) }, { $0.due.map { (low..<high).contains($0) } ?? false })
    case 0: return Condition({ $0.id.in(ids) }, { ids.contains($0.id) })
    case 1: return Condition({ words.contains($0.title) }, { words.contains($0.title) })
    case 2: return Condition({ $0.rank.in(ranks) }, { $0.rank != nil && ranks.contains($0.rank) })
    default: return Condition({ (2...6).contains($0.id) }, { (2...6).contains($0.id) })
    }
  }

  mutating func order() -> Order {
    switch below(7) {
    case 0: return Order(term: { $0.id.desc() }, precedes: { $0.id > $1.id })
    case 1:
      return Order(
        term: { $0.title.asc() }, precedes: { $0.title.utf8.lexicographicallyPrecedes($1.title.utf8) })
    case 2:
      // Null sorts first.
      return Order(
        term: { $0.rank.asc() },
        precedes: { a, b in b.rank.map { b in a.rank.map { $0 < b } ?? true } ?? false })
    case 3:
      return Order(
        term: { $0.due.desc(nulls: .last) },
        precedes: { a, b in a.due.map { a in b.due.map { a > $0 } ?? true } ?? false })
    case 4: return Order(term: { $0.isDone.asc() }, precedes: { !$0.isDone && $1.isDone })
    case 5: return Order(term: { $0.cost.price.asc() }, precedes: { $0.cost.price < $1.cost.price })
    default: return Order(term: { $0.effort.desc() }, precedes: { $0.effort > $1.effort })
    }
  }
}

extension Array {
  func stablySorted(by precedes: (Element, Element) -> Bool) -> [Element] {
    enumerated().sorted { a, b in
      if precedes(a.element, b.element) { return true }
      if precedes(b.element, a.element) { return false }
      return a.offset < b.offset
    }.map(\.element)
  }
}
