import StemmaEvents
import StemmaSchema

/// The encoding of a state: `_state` in the tables, followed by a checksum (`StateChecksum`).
///
/// The state of a row omits the values that its columns show. A tombstone has no columns, so its
/// state is complete. `MergeRules` numbers fields and registers, so decoding needs the rules of an
/// equal schema (a new schema rebuilds the tables). All integers are LEB128 varints (zz = zigzag),
/// unless a width is given (big-endian).
///
///     1 byte   format 1; bit 4: shown values are omitted, bit 5: `latest` is at the end,
///              bit 6: there are names, bit 7: `version` is at the end
///     context  n, then n × (origin: 8 bytes, sequence)
///     writes   n, then n × (origin's index in the context × 8 + operation, context's sequence −
///              sequence, version, zz(milliseconds − those of the write before), counter), by id
///     names    if bit 6: n, then n × (length, UTF-8), sorted: fields that the schema lacks
///     existence, base: two sets
///     registers n, then n × (number − the one before − 1, set), from number 2; the others have the
///              base's
///     cells    n, then n × (field, write, tag, value), sorted by field and write: `cells` without
///              those in columns, and with tag 7 the fields whose column shows the default because
///              the shown sibling has no cell
///     latest   if bit 5: milliseconds, counter; otherwise it is the highest of the writes
///     version  if bit 7; otherwise it is the highest of the writes
///
/// Set of writes: 0 is the empty one, 1 + w that of write w alone. The number 1 + n (n = number of
/// writes) is followed by a count of at least 2 and that many (w − the one before − 1).
/// Tags: 0 null, 1 false, 2 true, 3 integer zz, 4 double 8 bytes, 5 string, 6 JSON: length and
/// UTF-8; 7 no value.
///
/// A value is omitted if it is the shown sibling's, its field is in the schema, and the column
/// returns it exactly. Several siblings of `createdAt` or `updatedAt` are not omitted: their column
/// shows the earliest or latest. A set of events has one encoding; any other bytes are rejected.
extension RecordState {
  private enum Flag {
    static let format: UInt8 = 1
    static let formatMask: UInt8 = 0b0000_1111
    static let omitsShown: UInt8 = 1 << 4
    static let latest: UInt8 = 1 << 5
    static let names: UInt8 = 1 << 6
    static let version: UInt8 = 1 << 7
  }

  private enum Tag {
    static let null: UInt8 = 0
    static let no: UInt8 = 1
    static let yes: UInt8 = 2
    static let int: UInt8 = 3
    static let double: UInt8 = 4
    static let string: UInt8 = 5
    static let json: UInt8 = 6
    static let unwritten: UInt8 = 7
  }

  /// The first byte of a state that omits shown values and has no names.
  static func head(isLatestGiven: Bool) -> UInt8 {
    Flag.format | Flag.omitsShown | (isLatestGiven ? Flag.latest : 0)
  }

  /// The canonical bytes. `omitsShown`: omit the values in the table's columns.
  package func encoded(_ rules: MergeRules, omitsShown: Bool) -> [UInt8] {
    var seal = StateChecksum(Key(trusted: []))
    return encoded(rules, omitsShown: omitsShown, &seal)
  }

  /// As above. `seal` receives the omitted values.
  func encoded(_ rules: MergeRules, omitsShown: Bool, _ seal: inout StateChecksum) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(24 + StateChecksum.size + 12 * (context.entries.count + writes.count))
    let needsLatest = latest != highestTimestamp
    let needsVersion = version != highestVersion
    bytes.append(
      Flag.format | (omitsShown ? Flag.omitsShown : 0) | (needsLatest ? Flag.latest : 0)
        | (names.isEmpty ? 0 : Flag.names) | (needsVersion ? Flag.version : 0))
    bytes.appendVarint(UInt64(context.entries.count))
    for entry in context.entries {
      bytes.appendFixed(entry.origin.rawValue)
      bytes.appendVarint(entry.sequence.rawValue)
    }
    append(writesTo: &bytes)
    if !names.isEmpty {
      bytes.appendVarint(UInt64(names.count))
      for name in names { bytes.appendCounted(name) }
    }
    append(siblingsTo: &bytes)
    append(cellsTo: &bytes, rules, omitsShown: omitsShown, &seal)
    if needsLatest {
      bytes.appendVarint(latest.milliseconds)
      bytes.appendVarint(UInt64(latest.counter))
    }
    if needsVersion { bytes.appendVarint(version.rawValue) }
    return bytes
  }

  private var highestTimestamp: Timestamp {
    var highest = Timestamp.zero
    for write in writes { highest = max(highest, write.timestamp) }
    return highest
  }

  private var highestVersion: Version {
    var highest = Version.zero
    for write in writes { highest = max(highest, write.version) }
    return highest
  }

  private func append(writesTo bytes: inout [UInt8]) {
    bytes.appendVarint(UInt64(writes.count))
    var entry = 0
    var milliseconds: UInt64 = 0
    for write in writes {
      while context.entries[entry].origin != write.id.origin { entry += 1 }
      bytes.appendVarint(UInt64(entry) << 3 | UInt64(write.operation.rawValue))
      bytes.appendVarint(context.entries[entry].sequence.rawValue - write.id.sequence.rawValue)
      bytes.appendVarint(write.version.rawValue)
      bytes.appendZigzag(Int64(write.timestamp.milliseconds) - Int64(milliseconds))
      bytes.appendVarint(UInt64(write.timestamp.counter))
      milliseconds = write.timestamp.milliseconds
    }
  }

  private func append(siblingsTo bytes: inout [UInt8]) {
    let existence = listed(MergeRules.existence)
    let base = listed(MergeRules.base)
    append(set: existence, to: &bytes)
    append(set: base, to: &bytes)
    var count: UInt64 = 0
    var previous = MergeRules.base
    for sibling in siblings[base.upperBound...] where sibling.register != previous {
      count += 1
      previous = sibling.register
    }
    bytes.appendVarint(count)
    previous = MergeRules.base
    var index = base.upperBound
    while index < siblings.count {
      let register = siblings[index].register
      var end = index
      while end < siblings.count, siblings[end].register == register { end += 1 }
      bytes.appendVarint(UInt64(register - previous - 1))
      append(set: index..<end, to: &bytes)
      previous = register
      index = end
    }
  }

  private func append(set: Range<Int>, to bytes: inout [UInt8]) {
    switch set.count {
    case 0: bytes.appendVarint(0)
    case 1: bytes.appendVarint(1 + UInt64(siblings[set.lowerBound].write))
    default:
      bytes.appendVarint(1 + UInt64(writes.count))
      bytes.appendVarint(UInt64(set.count))
      var next: UInt32 = 0
      for sibling in siblings[set] {
        bytes.appendVarint(UInt64(sibling.write - next))
        next = sibling.write + 1
      }
    }
  }

  private func append(
    cellsTo bytes: inout [UInt8], _ rules: MergeRules, omitsShown: Bool, _ seal: inout StateChecksum
  ) {
    guard omitsShown else {
      bytes.appendVarint(UInt64(cells.count))
      for cell in cells { append(cell.field, cell.write, cell.value, to: &bytes) }
      return
    }
    var given: [(field: UInt32, write: UInt32, value: Value?)] = []
    var unwritten = unwrittenColumns(rules)[...]
    func appendUnwritten(before cell: Cell?) {
      while let next = unwritten.first, cell?.isBefore(field: next.field, write: next.write) != true {
        unwritten.removeFirst()
        given.append((next.field, next.write, nil))
        if let value = rules.defaultValue(ofField: Int(next.field)) { seal.add(Int(next.field), value) }
      }
    }
    var shown = ShownWrite()
    for cell in cells {
      let field = cell.field
      appendUnwritten(before: cell)
      let isInColumn =
        Int(field) < rules.fields.count && write(ofColumn: field, &shown, rules) == cell.write
        && rules.column(Int(field), holds: cell.value)
      if isInColumn {
        seal.add(Int(field), cell.value)
      } else {
        given.append((field, cell.write, cell.value))
      }
    }
    appendUnwritten(before: nil)
    bytes.appendVarint(UInt64(given.count))
    for cell in given { append(cell.field, cell.write, cell.value, to: &bytes) }
  }

  /// The fields whose column shows the default because the shown sibling has no value; by field.
  private func unwrittenColumns(_ rules: MergeRules) -> [(field: UInt32, write: UInt32)] {
    guard rules.hasDefaults else { return [] }
    var found: [(field: UInt32, write: UInt32)] = []
    var shown = ShownWrite()
    for field in rules.fields.indices where rules.defaultValue(ofField: field) != nil {
      guard let write = write(ofColumn: UInt32(field), &shown, rules),
        written(field: UInt32(field), write: write) == nil
      else { continue }
      found.append((UInt32(field), write))
    }
    return found
  }

  private func append(_ field: UInt32, _ write: UInt32, _ value: Value?, to bytes: inout [UInt8]) {
    bytes.appendVarint(UInt64(field))
    bytes.appendVarint(UInt64(write))
    if let value { append(value, to: &bytes) } else { bytes.append(Tag.unwritten) }
  }

  private func append(_ value: Value, to bytes: inout [UInt8]) {
    switch value {
    case .null: bytes.append(Tag.null)
    case .bool(let flag): bytes.append(flag ? Tag.yes : Tag.no)
    case .int(let number):
      bytes.append(Tag.int)
      bytes.appendZigzag(number)
    case .double(let number):
      bytes.append(Tag.double)
      bytes.appendFixed(number.bitPattern)
    case .string(let text):
      bytes.append(Tag.string)
      bytes.appendCounted(text)
    case .json(let text):
      bytes.append(Tag.json)
      bytes.appendCounted(text)
    }
  }

  /// Decodes the bytes of `encoded`. `column` returns an omitted value, by the field's number in
  /// the rules, in that order. Throws `malformed` for other bytes.
  package init(
    decoding bytes: UnsafeRawBufferPointer, _ rules: MergeRules, column: (Int) -> Value
  ) throws(MergeError) {
    var reader = ByteReader<MergeError>(bytes)
    let flags = try reader.byte("state")
    guard flags & Flag.formatMask == Flag.format else { throw .malformed("state", "an unknown format") }
    try readContext(&reader)
    try readWrites(&reader)
    if flags & Flag.names != 0 { try readNames(&reader, rules) }
    try readSiblings(&reader, rules)
    let unwritten = try readCells(&reader, rules, omitsShown: flags & Flag.omitsShown != 0)
    latest = highestTimestamp
    version = highestVersion
    if flags & Flag.latest != 0 {
      let highest = latest
      latest = Timestamp(
        milliseconds: try reader.number("state", limit: (1 << 48) - 1),
        counter: UInt16(try reader.number("state", limit: 0xffff)))
      guard latest > highest else { throw .notCanonical("state") }
    }
    if flags & Flag.version != 0 {
      let highest = version
      version = Version(try reader.number("state", limit: Limits.highestNumber))
      guard version > highest else { throw .notCanonical("state") }
    }
    try reader.finish("state")
    for index in names.indices {
      let field = UInt32(rules.fields.count + index)
      guard
        cells.contains(where: { $0.field == field })
          || !rules.isOptimistic && !listed(rules.register(of: field)).isEmpty
      else { throw .notCanonical("state") }
    }
    if flags & Flag.omitsShown != 0 { takeColumns(rules, unwritten, column) }
  }

  package init(
    decoding bytes: [UInt8], _ rules: MergeRules, column: (Int) -> Value = { _ in .null }
  ) throws(MergeError) {
    self = try bytes.withUnsafeBufferPointer { (buffer) throws(MergeError) in
      try RecordState(decoding: UnsafeRawBufferPointer(buffer), rules, column: column)
    }
  }

  /// Appends only the context of encoded bytes, for a caller that reads only shown values.
  ///
  /// The entries are checked as in `Context(canonical:)`. If it throws, `entries` may have some of
  /// them.
  package static func readContext(
    of bytes: UnsafeRawBufferPointer, into entries: inout [Context.Entry]
  ) throws(MergeError) {
    var reader = ByteReader<MergeError>(bytes)
    let flags = try reader.byte("context")
    guard flags & Flag.formatMask == Flag.format else { throw .malformed("state", "an unknown format") }
    try readContext(&reader, into: &entries)
  }

  /// The only context entry of encoded bytes, as in most records; nil if there are none or several.
  package static func readSingleContext(of bytes: UnsafeRawBufferPointer) throws(MergeError) -> Context.Entry?
  {
    var reader = ByteReader<MergeError>(bytes)
    let flags = try reader.byte("context")
    guard flags & Flag.formatMask == Flag.format else { throw .malformed("state", "an unknown format") }
    guard try reader.count("context", each: 9) == 1 else { return nil }
    return try readEntry(&reader)
  }

  private static func readContext(
    _ reader: inout ByteReader<MergeError>, into entries: inout [Context.Entry]
  ) throws(MergeError) {
    let first = entries.count
    for _ in 0..<(try reader.count("context", each: 9)) {
      let entry = try readEntry(&reader)
      guard entries.count == first || entries[entries.count - 1].origin < entry.origin else {
        throw .unsorted("context")
      }
      entries.append(entry)
    }
  }

  /// Inlined and without calls to other modules, because every row that is read has an entry.
  @inline(__always)
  private static func readEntry(_ reader: inout ByteReader<MergeError>) throws(MergeError) -> Context.Entry {
    let origin = Origin(try reader.fixed("context"))
    let sequence = try reader.number("context", limit: Limits.highestNumber)
    guard sequence != 0 else { throw .unsorted("context") }
    return Context.Entry(origin: origin, sequence: SequenceNumber(sequence))
  }

  private mutating func readContext(_ reader: inout ByteReader<MergeError>) throws(MergeError) {
    var entries: [Context.Entry] = []
    try Self.readContext(&reader, into: &entries)
    context = Context(trusted: entries)
  }

  private mutating func readWrites(_ reader: inout ByteReader<MergeError>) throws(MergeError) {
    let count = try reader.count("writes", each: 5)
    // Reserves space for the event that is usually applied next.
    writes.reserveCapacity(count + 1)
    var milliseconds: Int64 = 0
    for _ in 0..<count {
      let head = try reader.varint("writes")
      guard head >> 3 < UInt64(context.entries.count),
        let operation = EventOperation(rawValue: UInt8(truncatingIfNeeded: head & 7))
      else { throw .outOfRange("writes") }
      let entry = context.entries[Int(head >> 3)]
      let gap = try reader.number("writes", limit: entry.sequence.rawValue - 1)
      let id = EventID(entry.origin, SequenceNumber(entry.sequence.rawValue - gap))
      if let last = writes.last, last.id >= id { throw .unsorted("writes") }
      let version = Version(try reader.number("writes", limit: Limits.highestNumber))
      let (sum, overflow) = milliseconds.addingReportingOverflow(try reader.zigzag("writes"))
      guard !overflow, (0..<(1 << 48)).contains(sum), version > .zero else {
        throw .outOfRange("writes")
      }
      milliseconds = sum
      let counter = UInt16(try reader.number("writes", limit: 0xffff))
      writes.append(
        Write(
          id: id, version: version, timestamp: Timestamp(milliseconds: UInt64(sum), counter: counter),
          operation: operation))
    }
  }

  private mutating func readNames(_ reader: inout ByteReader<MergeError>, _ rules: MergeRules)
    throws(MergeError)
  {
    let count = try reader.count("names", each: 1)
    guard count > 0 else { throw .notCanonical("names") }
    for _ in 0..<count {
      let name = try reader.text("names", limit: Limits.name)
      if let last = names.last, !last.hasBytes(before: name) { throw .unsorted("names") }
      var hint = 0
      guard rules.index(of: name, hint: &hint) == nil, !rules.isIgnored(name) else {
        throw .notCanonical("names")
      }
      names.append(name)
    }
  }

  private mutating func readSiblings(_ reader: inout ByteReader<MergeError>, _ rules: MergeRules)
    throws(MergeError)
  {
    try readSet(of: MergeRules.existence, &reader)
    try readSet(of: MergeRules.base, &reader)
    let base = listed(MergeRules.base)
    guard siblings[base].allSatisfy({ writes[Int($0.write)].operation == .create }),
      writes.isEmpty || base.lowerBound > 0
    else { throw .notCanonical("siblings") }
    let end = UInt64(rules.registerCount) + (rules.isOptimistic ? 0 : UInt64(names.count))
    var next = UInt64(MergeRules.firstRegister)
    for _ in 0..<(try reader.count("siblings", each: 2)) {
      let gap = try reader.number("siblings", limit: end)
      guard next + gap < end else { throw .outOfRange("siblings") }
      let start = siblings.count
      try readSet(of: UInt32(next + gap), &reader)
      guard start < siblings.count,
        !siblings[start...].elementsEqual(siblings[base], by: { $0.write == $1.write })
      else { throw .notCanonical("siblings") }
      next += gap + 1
    }
    let before = writes.count
    removeUnusedWrites()
    guard writes.count == before else { throw .notCanonical("siblings") }
  }

  private mutating func readSet(of register: UInt32, _ reader: inout ByteReader<MergeError>)
    throws(MergeError)
  {
    let code = try reader.number("siblings", limit: UInt64(writes.count) + 1)
    if code == 0 { return }
    if code <= UInt64(writes.count) {
      siblings.append(Sibling(register: register, write: UInt32(code - 1)))
      return
    }
    let count = try reader.count("siblings", each: 1)
    guard count >= 2 else { throw .notCanonical("siblings") }
    var next: UInt64 = 0
    for _ in 0..<count {
      let gap = try reader.number("siblings", limit: UInt64(writes.count))
      guard next + gap < UInt64(writes.count) else { throw .outOfRange("siblings") }
      siblings.append(Sibling(register: register, write: UInt32(next + gap)))
      next += gap + 1
    }
  }

  /// Returns the fields whose column shows the default.
  private mutating func readCells(
    _ reader: inout ByteReader<MergeError>, _ rules: MergeRules, omitsShown: Bool
  ) throws(MergeError) -> Set<Int> {
    var unwritten: Set<Int> = []
    var last: Cell?
    var shown = ShownWrite()
    let count = try reader.count("cells", each: 3)
    let fieldCount = UInt64(rules.fields.count + names.count)
    cells.reserveCapacity(count + Int(fieldCount))
    for _ in 0..<count {
      let field = try reader.varint("cells")
      let write = try reader.varint("cells")
      guard field < fieldCount, write < UInt64(writes.count) else { throw .outOfRange("cells") }
      let value = try readValue(&reader)
      let cell = Cell(field: UInt32(field), write: UInt32(write), value: value ?? .null)
      if let last, !last.isBefore(field: cell.field, write: cell.write) {
        throw .unsorted("cells")
      }
      guard
        siblings[siblings(of: rules.register(of: cell.field))].contains(where: { $0.write == cell.write })
      else { throw .notCanonical("cells") }
      last = cell
      if value == nil {
        guard omitsShown, rules.defaultValue(ofField: Int(field)) != nil,
          self.write(ofColumn: cell.field, &shown, rules) == cell.write
        else { throw .notCanonical("cells") }
        unwritten.insert(Int(field))
      } else {
        guard value != .null || rules.distinguishesNull(Int(field)) else {
          throw .notCanonical("cells")
        }
        cells.append(cell)
      }
    }
    return unwritten
  }

  /// Nil for the tag without a value.
  private func readValue(_ reader: inout ByteReader<MergeError>) throws(MergeError) -> Value? {
    switch try reader.byte("value") {
    case Tag.null: return .null
    case Tag.unwritten: return nil
    case Tag.no: return .bool(false)
    case Tag.yes: return .bool(true)
    case Tag.int: return .int(try reader.zigzag("value"))
    case Tag.double: return .double(Double(bitPattern: try reader.fixed("value")))
    case Tag.string: return .string(try reader.text("value", limit: Limits.value))
    case Tag.json: return .json(try reader.text("value", limit: Limits.value))
    default: throw .outOfRange("value")
    }
  }

  /// Fills in the omitted values.
  private mutating func takeColumns(
    _ rules: MergeRules, _ unwritten: Set<Int>, _ column: (Int) -> Value
  ) {
    let given = cells.count
    var shown = ShownWrite()
    for field in 0..<UInt32(rules.fields.count) {
      guard let write = write(ofColumn: field, &shown, rules), !isGiven(field, write, among: given) else {
        continue
      }
      let value = column(Int(field))
      if unwritten.contains(Int(field)) { continue }
      if !value.isNull || rules.distinguishesNull(Int(field)) {
        cells.append(Cell(field: field, write: write, value: value))
      }
    }
    if given > 0 { cells.sort { $0.isBefore(field: $1.field, write: $1.write) } }
  }

  private func isGiven(_ field: UInt32, _ write: UInt32, among given: Int) -> Bool {
    for index in 0..<given where cells[index].field == field && cells[index].write == write { return true }
    return false
  }

  /// The last result for a register, which adjacent fields often share.
  private struct ShownWrite {
    var register: UInt32 = .max
    var write: UInt32?
    var hasSeveral = false
  }

  /// The write whose value the column of a known field has; nil if it is not one write's.
  private func write(ofColumn field: UInt32, _ shown: inout ShownWrite, _ rules: MergeRules) -> UInt32? {
    let register = rules.registers[Int(field)]
    if register != shown.register {
      let group = siblings(of: register)
      shown = ShownWrite(register: register, write: nil, hasSeveral: group.count > 1)
      if !group.isEmpty {
        let index = group.count == 1 ? group.lowerBound : strongest(of: group, in: register, rules)
        shown.write = siblings[index].write
      }
    }
    return shown.hasSeveral && rules.mergesByTime(Int(field)) ? nil : shown.write
  }
}
