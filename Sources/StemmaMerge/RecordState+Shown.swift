import StemmaEvents
import StemmaSchema

/// The shown values of a record: those of the winning sibling of each register.
///
/// The highest (version, timestamp, origin, sequence) wins, so a wrong clock never beats a longer
/// history. Under LATEST, fields compare (timestamp, version, origin, sequence). Existence always
/// uses the first order, or its own policy. `createdAt` and `updatedAt` show the earliest and the
/// latest of their siblings.
extension RecordState {
  /// Whether the record is shown as existing.
  package func exists(_ rules: MergeRules) -> Bool {
    shownSibling(of: MergeRules.existence, rules).map { writes[Int(siblings[$0].write)].exists } ?? false
  }

  /// Whether a deletion and another change are siblings.
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

  package func hasSibling(_ id: EventID) -> Bool { writes.contains { $0.id == id } }

  /// The shown value of a field, by its stored name; the default or null of an unwritten field.
  package func value(of field: String, _ rules: MergeRules) -> Value {
    index(of: field, rules).map { shownValue(of: $0, rules) } ?? .null
  }

  /// The shown value of one of the rules' fields, by its index.
  package func value(ofField index: Int, _ rules: MergeRules) -> Value {
    shownValue(of: UInt32(index), rules)
  }

  /// The shown values that are not null, also of fields that the schema lacks, in byte order of the
  /// names.
  package func values(_ rules: MergeRules) -> [Assignment] {
    if isEmpty { return [] }
    var assignments: [Assignment] = []
    for field in 0..<UInt32(rules.fields.count + names.count) {
      let value = shownValue(of: field, rules)
      if !value.isNull { assignments.append(Assignment(name(of: field, rules), value)) }
    }
    return names.isEmpty ? assignments : assignments.sorted { $0.field.hasBytes(before: $1.field) }
  }

  /// The fields that may be more than null since the last create. They have a shown or conflicting
  /// value, or an event after the create has written them. In byte order of their names.
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

  /// The index into `siblings` of a register's winner; nil if no event has written the register.
  func shownSibling(of register: UInt32, _ rules: MergeRules) -> Int? {
    let group = siblings(of: register)
    return group.isEmpty ? nil : strongest(of: group, in: register, rules)
  }

  /// The winner of a nonempty group of siblings.
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
    return (a.version, a.timestamp, a.id) < (b.version, b.timestamp, b.id)
  }
}
