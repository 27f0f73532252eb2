/// The type tag of a value in blocks and in canonical events.
package enum ValueTag: UInt8, Sendable, CaseIterable {
  case null = 0
  case bool = 1
  case int = 2
  case double = 3
  case string = 4
  case json = 5
}

extension Value {
  package var tag: ValueTag {
    switch self {
    case .null: .null
    case .bool: .bool
    case .int: .int
    case .double: .double
    case .string: .string
    case .json: .json
    }
  }
}

/// The common facts of similar events: operation, relationship, assigned fields and value types.
package struct BlockShape: Hashable, Sendable {
  package struct Field: Hashable, Sendable {
    /// Index of the field's name in the block.
    package var name: Int
    package var tag: ValueTag
  }

  package var operation: EventOperation
  /// Index of the relationship's name in the block.
  package var relationship: Int?
  /// In the order of the assignments.
  package var fields: [Field]
}

/// The columns of values of a list of shapes: one for each (field, type) with bytes, in first-use
/// order. For each shape, the columns of its fields; -1 for null.
struct BlockColumns: Sendable {
  private var numbers = Numbering<BlockShape.Field>()
  var ofShapes: [[Int]] = []

  var fields: [BlockShape.Field] { numbers.elements }

  mutating func append(_ shape: BlockShape) {
    ofShapes.append(
      shape.fields.map { field in
        if field.tag == .null { return -1 }
        if let index = numbers.index(of: field) { return index }
        numbers.append(field)
        return numbers.count - 1
      })
  }

  /// Traps if a column is not found by its field and type, or is of null.
  func checkInvariants() {
    numbers.checkInvariants()
    precondition(fields.allSatisfy { $0.tag != .null }, "null takes no bytes")
    precondition(
      ofShapes.allSatisfy { $0.allSatisfy { $0 < fields.count } }, "the columns of shapes are there")
  }

  mutating func removeAll() {
    numbers.removeAll()
    ofShapes.removeAll(keepingCapacity: true)
  }
}

extension StringProtocol {
  /// GraphQL's rule for names, `[_A-Za-z][_0-9A-Za-z]*`, with a limit on their length.
  package var isName: Bool {
    guard (1...Limits.name).contains(utf8.count) else { return false }
    var isFirst = true
    for byte in utf8 {
      switch byte {
      case UInt8(ascii: "_"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"):
        break
      case UInt8(ascii: "0")...UInt8(ascii: "9") where !isFirst: break
      default: return false
      }
      isFirst = false
    }
    return true
  }
}

// MARK: Writing

/// Numbers each distinct origin, name, partition and shape of a block.
struct BlockNamesWriter {
  private(set) var origins = Numbering<Origin>()
  private(set) var names = Numbering<String>()
  private(set) var partitions = Numbering<Partition>()
  private(set) var shapes = Numbering<BlockShape>()
  private(set) var columns = BlockColumns()
  /// The approximate size of the tables in bytes.
  private(set) var rawBytes = 0

  private var lastShape = 0
  /// For each shape, the one that last followed it: a guess costs a tenth of hashing.
  private var following: [Int] = []
  /// The last shape of each bucket, a second guess. It can be from an earlier block.
  private var buckets: [Int] = []

  mutating func removeAll() {
    origins.removeAll()
    names.removeAll()
    partitions.removeAll()
    shapes.removeAll()
    columns.removeAll()
    following.removeAll(keepingCapacity: true)
    (lastShape, rawBytes) = (0, 0)
  }

  mutating func index(of origin: Origin) -> Int {
    if let index = origins.index(of: origin) { return index }
    origins.append(origin)
    rawBytes += 8
    return origins.count - 1
  }

  /// Traps on an invalid name, which schemas reject and no reader would accept.
  mutating func index(ofName name: String) -> Int {
    // Comparing Strings is safe here: in ASCII names, equal characters are equal bytes.
    if let index = names.index(of: name) { return index }
    precondition(name.isName, "\(name) is no name of a model, field or relationship")
    names.append(name)
    rawBytes += 1 + name.utf8.count
    return names.count - 1
  }

  mutating func index(of partition: Partition) -> Int {
    if let index = partitions.index(of: partition) { return index }
    partitions.append(partition)
    rawBytes += 2 + partition.bytes.count
    return partitions.count - 1
  }

  mutating func indexOfShape(of event: Event) -> Int {
    if lastShape < following.count {
      let guess = following[lastShape]
      if hasShape(guess, event) {
        lastShape = guess
        return guess
      }
    }
    let bucket = bucket(of: event)
    if buckets.isEmpty { buckets = [Int](repeating: -1, count: 256) }
    let candidate = buckets[bucket]
    let isFound = candidate >= 0 && candidate < shapes.count && hasShape(candidate, event)
    let index = isFound ? candidate : findShape(of: event)
    buckets[bucket] = index
    if lastShape < following.count { following[lastShape] = index }
    lastShape = index
    return index
  }

  /// Traps if an element has two numbers, or a shape names an unknown element.
  func checkInvariants() {
    origins.checkInvariants()
    names.checkInvariants()
    partitions.checkInvariants()
    shapes.checkInvariants()
    precondition(following.count == shapes.count, "each shape has a guess for the next one")
    precondition(following.allSatisfy { $0 < shapes.count }, "what is guessed is a shape")
    for (place, shape) in shapes.elements.enumerated() {
      precondition(
        (shape.fields.map(\.name) + (shape.relationship.map { [$0] } ?? [])).allSatisfy { $0 < names.count },
        "what a shape names is there")
      precondition(columns.ofShapes[place].count == shape.fields.count, "each field of a shape has a column")
    }
    precondition(columns.ofShapes.count == shapes.count, "each shape has columns")
    columns.checkInvariants()
  }

  private func hasShape(_ index: Int, _ event: Event) -> Bool {
    let count = event.assignments.count
    guard shapes[index].operation == event.operation, shapes[index].fields.count == count else {
      return false
    }
    switch (shapes[index].relationship, event.relationship) {
    case (nil, nil): break
    case (let name?, let relationship?): if names[name] != relationship { return false }
    default: return false
    }
    for place in 0..<count {
      let field = shapes[index].fields[place]
      guard field.tag == event.assignments[place].value.tag else { return false }
      guard names[field.name] == event.assignments[place].field else { return false }
    }
    return true
  }

  /// A cheap hash of operation, types and lengths of names, which distinguish most shapes.
  private func bucket(of event: Event) -> Int {
    var hash = UInt64(event.operation.rawValue)
    for assignment in event.assignments {
      let field = UInt64(assignment.field.utf8.count) << 3 | UInt64(assignment.value.tag.rawValue)
      hash = (hash ^ field) &* 0x9E37_79B9_7F4A_7C15
    }
    return Int(truncatingIfNeeded: hash >> 56)
  }

  private mutating func findShape(of event: Event) -> Int {
    var shape = BlockShape(operation: event.operation, relationship: nil, fields: [])
    shape.fields.reserveCapacity(event.assignments.count)
    if let relationship = event.relationship { shape.relationship = index(ofName: relationship) }
    for assignment in event.assignments {
      shape.fields.append(.init(name: index(ofName: assignment.field), tag: assignment.value.tag))
    }
    if let index = shapes.index(of: shape) { return index }
    for (a, b) in zip(event.assignments, event.assignments.dropFirst()) {
      precondition(a.field.hasBytes(before: b.field), "assignments are sorted by field, each field once")
    }
    let index = shapes.count
    shapes.append(shape)
    following.append(index)
    columns.append(shape)
    rawBytes += 2 + 2 * shape.fields.count
    return index
  }

  /// Appends the tables, with sorted partitions. Returns the place of each partition in that order.
  func write(to bytes: inout [UInt8]) -> [Int] {
    bytes.appendVarint(origins.count)
    for origin in origins.elements { bytes.appendFixed(origin.rawValue) }
    bytes.appendVarint(names.count)
    for name in names.elements { bytes.appendCounted(name) }
    let ranks = writePartitions(to: &bytes)
    bytes.appendVarint(shapes.count)
    for shape in shapes.elements {
      bytes.append(shape.operation.rawValue | (shape.relationship == nil ? 0 : 0x80))
      if let relationship = shape.relationship { bytes.appendVarint(relationship) }
      bytes.appendVarint(shape.fields.count)
      for field in shape.fields { bytes.appendVarint(field.name << 3 | Int(field.tag.rawValue)) }
    }
    return ranks
  }

  private func writePartitions(to bytes: inout [UInt8]) -> [Int] {
    // The block of one commit mostly has one partition.
    let sorted =
      partitions.count == 1 ? [0] : (0..<partitions.count).sorted { partitions[$0] < partitions[$1] }
    var ranks = [Int](repeating: 0, count: partitions.count)
    bytes.appendVarint(partitions.count)
    var previous: [UInt8] = []
    for (rank, index) in sorted.enumerated() {
      ranks[index] = rank
      let name = partitions[index].bytes
      var shared = 0
      while shared < min(name.count, previous.count), name[shared] == previous[shared] { shared += 1 }
      bytes.appendVarint(shared)
      bytes.appendVarint(name.count - shared)
      bytes.append(contentsOf: name[shared...])
      previous = name
    }
    return ranks
  }
}

// MARK: Reading

/// The tables at the head of stream K, verified.
struct BlockNames: Sendable {
  let origins: [Origin]
  let names: [String]
  let partitions: [Partition]
  let shapes: [BlockShape]
  /// The same, laid out for access at each event.
  let outlines: FixedTable<ShapeOutline>
  let fields: FixedTable<BlockShape.Field>
  /// The column of values of each of `fields`, -1 for null.
  let columnOfField: FixedTable<Int32>
  /// The field and type of each column of values.
  let columns: [BlockShape.Field]

  struct ShapeOutline: Sendable {
    var operation: EventOperation
    /// The index of its first field in `fields`, and their number.
    var firstField: Int32
    var fieldCount: Int32
  }

  /// `limit`: bytes of all partition names. Front coding can make them small on the wire.
  init(_ reader: inout ByteReader<EventsError>, limit: Int) throws(EventsError) {
    origins = try Self.readOrigins(&reader)
    names = try Self.readNames(&reader)
    partitions = try Self.readPartitions(&reader, limit: limit)
    shapes = try Self.readShapes(&reader, names: names)
    var columns = BlockColumns()
    var outlines: [ShapeOutline] = []
    var fields: [BlockShape.Field] = []
    for shape in shapes {
      columns.append(shape)
      outlines.append(
        ShapeOutline(
          operation: shape.operation, firstField: Int32(fields.count), fieldCount: Int32(shape.fields.count)))
      fields += shape.fields
    }
    self.outlines = FixedTable(outlines)
    self.fields = FixedTable(fields)
    columnOfField = FixedTable(columns.ofShapes.flatMap { $0.map { Int32($0) } })
    self.columns = columns.fields
  }

  private static func readOrigins(_ reader: inout ByteReader<EventsError>) throws(EventsError) -> [Origin] {
    let count = try reader.count("origins", each: 8)
    var origins: [Origin] = []
    origins.reserveCapacity(count)
    for _ in 0..<count { origins.append(Origin(try reader.fixed("origin"))) }
    guard Set(origins).count == count else { throw .malformed("origins", "one twice") }
    return origins
  }

  private static func readNames(_ reader: inout ByteReader<EventsError>) throws(EventsError) -> [String] {
    let count = try reader.count("names", each: 2)
    var names: [String] = []
    names.reserveCapacity(count)
    for _ in 0..<count {
      let name = try reader.text("name", limit: Limits.name)
      guard name.isName else { throw .malformed("name", name) }
      names.append(name)
    }
    guard Set(names).count == count else { throw .malformed("names", "one twice") }
    return names
  }

  private static func readPartitions(
    _ reader: inout ByteReader<EventsError>, limit: Int
  ) throws(EventsError) -> [Partition] {
    let count = try reader.count("partitions", each: 3)
    var partitions: [Partition] = []
    partitions.reserveCapacity(count)
    var name: [UInt8] = []
    var total = 0
    for _ in 0..<count {
      let shared = try reader.count("partition", limit: name.count)
      let rest = try reader.counted("partition", limit: Limits.partition - shared)
      // The prefix is the longest shared one, so the next byte decides the order.
      guard let first = rest.first, shared == name.count || first > name[shared] else {
        throw .malformed("partitions", "not in order")
      }
      name.removeLast(name.count - shared)
      name.append(contentsOf: rest)
      total += name.count
      guard total <= limit else {
        throw .overLimit("partitions", found: UInt64(total), limit: UInt64(limit))
      }
      partitions.append(try Partition(validating: name))
    }
    return partitions
  }

  private static func readShapes(
    _ reader: inout ByteReader<EventsError>, names: [String]
  ) throws(EventsError) -> [BlockShape] {
    let count = try reader.count("shapes", each: 2)
    var shapes: [BlockShape] = []
    shapes.reserveCapacity(count)
    for _ in 0..<count { shapes.append(try readShape(&reader, names: names)) }
    guard Set(shapes).count == count else { throw .malformed("shapes", "one twice") }
    return shapes
  }

  private static func readShape(
    _ reader: inout ByteReader<EventsError>, names: [String]
  ) throws(EventsError) -> BlockShape {
    let head = try reader.byte("shape")
    guard let operation = EventOperation(rawValue: head & 0x7F) else {
      throw .malformed("shape", "operation \(head & 0x7F)")
    }
    var shape = BlockShape(operation: operation, relationship: nil, fields: [])
    if head & 0x80 != 0 { shape.relationship = try reader.index("relationship", below: names.count) }
    let count = try reader.count("fields of a shape", each: 1)
    shape.fields.reserveCapacity(count)
    for index in 0..<count {
      let stored = try reader.number("field of a shape", limit: UInt64(names.count) << 3)
      let name = Int(stored >> 3)
      guard name < names.count, let tag = ValueTag(rawValue: UInt8(stored & 7)) else {
        throw .malformed("field of a shape", "name \(name), type \(stored & 7)")
      }
      if index > 0, !names[shape.fields[index - 1].name].hasBytes(before: names[name]) {
        throw .malformed("fields of a shape", "not in order")
      }
      shape.fields.append(.init(name: name, tag: tag))
    }
    return shape
  }
}
