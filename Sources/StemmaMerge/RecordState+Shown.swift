import StemmaEvents
import StemmaSchema

/// What a reader sees of a record: of each register the sibling that wins.
///
/// The highest (version, timestamp, origin, sequence) wins: a wrong clock can never beat a longer history.
/// Under LATEST the fields' order is (timestamp, version, origin, sequence); existence keeps the first one,
/// or what its own policy says. `createdAt` and `updatedAt` show the earliest and the latest of their
/// siblings.
extension RecordState {
  /// Whether the record is shown as existing.
  package func exists(_ rules: MergeRules) -> Bool {
    shownSibling(of: MergeRules.existence, rules).map { writes[Int(siblings[$0].write)].exists } ?? false
  }

  /// Whether a deletion and another change have not seen each other.
  package var existenceIsInConflict: Bool {
    let group = listed(MergeRules.existence)
    guard group.count > 1 else { return false }
    var hasDeletion = false
    var hasOther = false
    for sibling in siblings[group] {
      if writes[Int(sibling.write)].exists { hasOther = true } else { hasDeletion = true }
    }
    return hasDeletion && hasOther
  }

  /// Whether an event is a sibling of any register.
  package func hasSibling(_ dot: Dot) -> Bool { writes.contains { $0.dot == dot } }

  /// The value shown of a field, by its stored name; its default, or null, if it was never written.
  package func value(of field: String, _ rules: MergeRules) -> Value {
    index(of: field, rules).map { shownValue(of: $0, rules) } ?? .null
  }

  /// The value shown of the n-th of the rules' fields.
  package func value(ofField index: Int, _ rules: MergeRules) -> Value {
    shownValue(of: UInt32(index), rules)
  }

  /// What is shown of every field that is not null, also of those that the schema does not know; sorted by
  /// the bytes of the names.
  package func values(_ rules: MergeRules) -> [Assignment] {
    if isEmpty { return [] }
    var assignments: [Assignment] = []
    for field in 0..<UInt32(rules.fields.count + names.count) {
      let value = shownValue(of: field, rules)
      if !value.isNull { assignments.append(Assignment(name(of: field, rules), value)) }
    }
    return names.isEmpty ? assignments : assignments.sorted { $0.field.hasBytes(before: $1.field) }
  }

  /// The fields of which more is known than that they are null, and always was, since the last create: those
  /// with a value that is shown or in conflict, and those that an event after the create has written. Sorted
  /// by the bytes of their names.
  package func knownFields(_ rules: MergeRules) -> [String] {
    let count = rules.fields.count + names.count
    var known: [String] = []
    for field in 0..<UInt32(count) {
      let isListed = !listed(rules.register(of: field)).isEmpty
      if isListed || cells.contains(where: { $0.field == field }) { known.append(name(of: field, rules)) }
    }
    return names.isEmpty ? known : known.sorted { $0.hasBytes(before: $1) }
  }

  func shownValue(of field: UInt32, _ rules: MergeRules) -> Value {
    if rules.mergesByTime(Int(field)) { return timeShown(of: field, rules) }
    guard let sibling = shownSibling(of: rules.register(of: field), rules) else {
      return rules.defaultValue(ofField: Int(field)) ?? .null
    }
    return value(field: field, write: siblings[sibling].write, rules)
  }

  private func timeShown(of field: UInt32, _ rules: MergeRules) -> Value {
    var shown = Value.null
    for cell in cells where cell.field == field {
      if shown.isNull {
        shown = cell.value
      } else if Int(field) == rules.createdAt {
        shown = TimeOrder.earlier(shown, cell.value)
      } else {
        shown = TimeOrder.later(shown, cell.value)
      }
    }
    return shown
  }

  /// The index into `siblings` of the one that wins in a register; nil if it was never written.
  func shownSibling(of register: UInt32, _ rules: MergeRules) -> Int? {
    let group = siblings(of: register)
    return group.isEmpty ? nil : strongest(of: group, in: register, rules)
  }

  /// The winner of a group of siblings that is not empty.
  func strongest(of group: Range<Int>, in register: UInt32, _ rules: MergeRules) -> Int {
    var strongest = group.lowerBound
    for index in group.dropFirst()
    where isOutdone(siblings[strongest].write, by: siblings[index].write, in: register, rules) {
      strongest = index
    }
    return strongest
  }

  /// The order of a register's siblings, the winner last.
  func isOutdone(_ a: UInt32, by b: UInt32, in register: UInt32, _ rules: MergeRules) -> Bool {
    let a = writes[Int(a)]
    let b = writes[Int(b)]
    if register == MergeRules.existence {
      if a.exists != b.exists {
        switch rules.deletePolicy {
        case .deleteWins: return a.exists
        case .updateWins: return b.exists
        case .byVersion: break
        }
      }
    } else if rules.conflictPolicy == .latest, a.timestamp != b.timestamp {
      return a.timestamp < b.timestamp
    }
    return (a.version, a.timestamp, a.dot) < (b.version, b.timestamp, b.dot)
  }
}
