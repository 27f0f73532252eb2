import StemmaEvents

extension RecordState {
  /// The assignments after which this state shows what another does: all fields of each differing
  /// register, in byte order of the names.
  package func differences(from other: RecordState, _ rules: MergeRules) -> [Assignment] {
    var differing: Set<UInt32> = []
    var fields: [(name: String, register: UInt32)] = []
    for field in 0..<UInt32(rules.fields.count) {
      fields.append((rules.fields[Int(field)], rules.register(of: field)))
    }
    for name in names + other.names.filter({ name in !names.contains { $0.hasSameBytes(as: name) } }) {
      // Outside of the schema each field has its own register, except under OPTIMISTIC.
      fields.append(
        (name, rules.isOptimistic ? MergeRules.firstRegister : rules.registerCount + UInt32(fields.count)))
    }
    for (name, register) in fields where value(of: name, rules) != other.value(of: name, rules) {
      differing.insert(register)
    }
    return fields.filter { differing.contains($0.register) }
      .map { Assignment($0.name, other.value(of: $0.name, rules)) }
      .sorted { $0.field.hasBytes(before: $1.field) }
  }
}
