import StemmaEvents
import StemmaSchema

/// The basis of the next event of a record.
package struct Heads: Hashable, Sendable {
  /// The next event's context.
  package var context: Context
  /// The next event's version: 1 + the highest in the context.
  package var version: Version
  /// The highest timestamp of the context; the next event's must exceed it.
  package var latest: Timestamp

  package init(context: Context, version: Version, latest: Timestamp) {
    self.context = context
    self.version = version
    self.latest = latest
  }
}

extension RecordState {
  /// The basis of an event that has seen all of this state. A reader keeps it with the values: the
  /// state that was read counts, not the one at the time of writing.
  package var heads: Heads { Heads(context: context, version: version.next, latest: latest) }

  /// `version-hash`: identifies this exact set of events, for writes that must not meet a newer
  /// state. The hash is FNV-1a (64 bit) over each context entry in origin order, origin and
  /// sequence as 8 bytes big-endian. Its two halves are combined by exclusive or, then the upper 8
  /// bits of the result with the lowest 8. The lower 24 bits are printed as 6 hexadecimal digits.
  package var revision: String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for entry in context.entries {
      for number in [entry.origin.rawValue, entry.sequence.rawValue] {
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
          hash = (hash ^ (number >> shift & 0xff)) &* 0x0100_0000_01b3
        }
      }
    }
    let folded = UInt32(truncatingIfNeeded: hash ^ hash >> 32)
    let digits = String((folded ^ folded >> 24) & 0xff_ffff, radix: 16)
    return "\(version)-" + String(repeating: "0", count: 6 - digits.count) + digits
  }

  /// The assignments, completed with the other fields of their registers, as now shown. So an event
  /// that assigns one field of a reference assigns all of them. Under OPTIMISTIC, each event
  /// records all fields, unknown ones too. Sorted by name.
  ///
  /// An event without fields, such as a delete or a resolve of existence alone, stays as it is.
  package func completed(_ assignments: [Assignment], _ rules: MergeRules) -> [Assignment] {
    if rules.areFieldsAlone { return assignments.sorted { $0.field.hasBytes(before: $1.field) } }
    var completed = assignments
    var hint = 0
    var given = Set<UInt32>()
    for assignment in assignments {
      if let index = rules.index(of: assignment.field, hint: &hint) {
        given.insert(rules.registers[index])
      } else if rules.isOptimistic, !rules.isIgnored(assignment.field) {
        given.insert(MergeRules.firstRegister)
      }
    }
    for (register, fields) in fieldsByRegister(rules) where given.contains(register) {
      for field in fields {
        let name = name(of: field, rules)
        if assignments.contains(where: { $0.field.hasSameBytes(as: name) }) { continue }
        completed.append(Assignment(name, shownValue(of: field, rules)))
      }
    }
    return completed.sorted { $0.field.hasBytes(before: $1.field) }
  }

  /// The event that closes a conflict by choosing one of its candidates. Its context must cover all
  /// candidates, as `heads` does.
  ///
  /// For existence: a `delete` if the candidate is a deletion, otherwise a `resolve`; both assign
  /// `Event.existenceField`. For fields: a `resolve` that assigns every field of the register.
  /// Times that merge by themselves keep the shown value.
  package func resolution(
    of conflict: RegisterConflict, taking candidate: Candidate, _ rules: MergeRules
  ) -> (operation: EventOperation, assignments: [Assignment]) {
    switch conflict.kind {
    case .delete:
      (candidate.exists ? .resolve : .delete, [Assignment(Event.existenceField, .bool(candidate.exists))])
    case .value:
      (
        .resolve,
        candidate.values.map { given in
          guard let field = index(of: given.field, rules), rules.mergesByTime(Int(field)) else {
            return given
          }
          return Assignment(given.field, shownValue(of: field, rules))
        }
        .sorted { $0.field.hasBytes(before: $1.field) }
      )
    }
  }
}
