/// How the values of one column are written: one byte before them.
enum ValueEncoding {
  /// Integers and times as they are, or each as the difference from the one before.
  static let plain: UInt8 = 0
  static let delta: UInt8 = 1
  /// Doubles as m / 10^k.
  static let scaled: UInt8 = 1
  /// Strings of lowercase hexadecimal digits, two in a byte.
  static let hex: UInt8 = 2
  /// Strings that are UUIDs in lower case, 16 bytes.
  static let uuid: UInt8 = 3
  // 4 … 7: `TimeText`.

  /// Doubles are written as decimals of at most this many places.
  static let places = 7
  static let powers: [Double] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000]
  /// Up to here every integer is a double of its own.
  static let exact: Int64 = 1 << 53
}

// MARK: Writing

/// One column of values while events come in.
private struct ValueColumn {
  var numbers: [Int64] = []
  var lengths: [Int] = []
  var bytes: [UInt8] = []
}

/// Stream V: the values, one column for each (field, type), each in arrival order.
struct BlockValuesWriter {
  private var columns: [ValueColumn] = []
  /// About how many bytes the values take.
  private(set) var byteCount = 0
  private(set) var assignmentCount = 0

  mutating func removeAll() {
    for index in columns.indices {
      columns[index].numbers.removeAll(keepingCapacity: true)
      columns[index].lengths.removeAll(keepingCapacity: true)
      columns[index].bytes.removeAll(keepingCapacity: true)
    }
    byteCount = 0
    assignmentCount = 0
  }

  /// `ofShape`: the column of each assignment, -1 for null.
  mutating func append(_ assignments: [Assignment], ofShape: [Int], columnCount: Int) {
    while columns.count < columnCount { columns.append(ValueColumn()) }
    assignmentCount += assignments.count
    for (assignment, column) in zip(assignments, ofShape) {
      switch assignment.value {
      case .null: break
      case .bool(let flag):
        columns[column].numbers.append(flag ? 1 : 0)
        byteCount += 1
      case .int(let number):
        columns[column].numbers.append(number)
        byteCount += number.zigzag.varintCount
      case .double(let number):
        precondition(!number.isNaN && (number != 0 || number.sign == .plus), "no value is NaN or -0")
        columns[column].numbers.append(Int64(bitPattern: number.bitPattern))
        byteCount += 4
      case .string(let text), .json(let text):
        let before = columns[column].bytes.count
        columns[column].bytes.appendText(text)
        let length = columns[column].bytes.count - before
        precondition(length <= Limits.value, "texts are checked before they become events")
        columns[column].lengths.append(length)
        byteCount += length + 1
      }
    }
  }

  func write(to output: inout [UInt8], _ fields: [BlockShape.Field]) {
    for (column, field) in zip(columns, fields) {
      switch field.tag {
      case .null: break
      case .bool:
        output.append(ValueEncoding.plain)
        for flag in column.numbers { output.append(UInt8(flag)) }
      case .int: Self.write(column.numbers, to: &output)
      case .double: Self.write(doubles: column.numbers, to: &output)
      case .string: Self.write(texts: column, to: &output)
      case .json: Self.write(plain: column, to: &output)
      }
    }
  }

  /// The encoding byte and the integers: delta if that takes less than nine tenths.
  private static func write(_ numbers: [Int64], to output: inout [UInt8]) {
    var plain = 0
    var delta = 0
    var previous: Int64 = 0
    for number in numbers {
      plain += number.zigzag.varintCount
      delta += (number &- previous).zigzag.varintCount
      previous = number
    }
    let isDelta = delta * 10 < plain * 9
    output.append(isDelta ? ValueEncoding.delta : ValueEncoding.plain)
    previous = 0
    for number in numbers {
      output.appendZigzag(isDelta ? number &- previous : number)
      previous = number
    }
  }

  private static func write(doubles: [Int64], to output: inout [UInt8]) {
    if let (places, numbers) = scaled(doubles) {
      output.append(ValueEncoding.scaled)
      output.append(UInt8(places))
      for number in numbers { output.appendZigzag(number) }
    } else {
      output.append(ValueEncoding.plain)
      for bits in doubles { output.appendFixed(UInt64(bitPattern: bits)) }
    }
  }

  /// The doubles as whole numbers of the same least number of decimal places; nil if that is not exact for
  /// all of them, or takes no less room.
  private static func scaled(_ doubles: [Int64]) -> (places: Int, numbers: [Int64])? {
    var places = 0
    for bits in doubles {
      let number = Double(bitPattern: UInt64(bitPattern: bits))
      while whole(number, places) == nil {
        places += 1
        if places > ValueEncoding.places { return nil }
      }
    }
    var numbers: [Int64] = []
    numbers.reserveCapacity(doubles.count)
    var size = 0
    for bits in doubles {
      guard let number = whole(Double(bitPattern: UInt64(bitPattern: bits)), places) else { return nil }
      numbers.append(number)
      size += number.zigzag.varintCount
    }
    return size < doubles.count * 8 ? (places, numbers) : nil
  }

  private static func whole(_ number: Double, _ places: Int) -> Int64? {
    let scaled = (number * ValueEncoding.powers[places]).rounded()
    guard abs(scaled) <= Double(ValueEncoding.exact), scaled / ValueEncoding.powers[places] == number else {
      return nil
    }
    return Int64(scaled)
  }

  private static func write(plain column: ValueColumn, to output: inout [UInt8]) {
    output.append(ValueEncoding.plain)
    for length in column.lengths { output.appendVarint(length) }
    output.append(contentsOf: column.bytes)
  }

  private static func write(texts column: ValueColumn, to output: inout [UInt8]) {
    let lengths = column.lengths
    if lengths.allSatisfy({ $0 >= 16 && $0 % 2 == 0 }),
      column.bytes.withUnsafeBytes({ $0.isLowercaseHex })
    {
      output.append(ValueEncoding.hex)
      for length in lengths { output.appendVarint(length / 2) }
      column.bytes.withUnsafeBytes { output.appendPacked(hex: $0) }
      return
    }
    if lengths.allSatisfy({ $0 == 36 }), column.bytes.withUnsafeBytes(areUUIDs) {
      output.append(ValueEncoding.uuid)
      column.bytes.withUnsafeBytes { all in
        for start in stride(from: 0, to: all.count, by: 36) {
          output.appendPacked(uuid: UnsafeRawBufferPointer(rebasing: all[start..<start + 36]))
        }
      }
      return
    }
    for form in TimeText.allCases where lengths.allSatisfy({ $0 == form.count }) {
      guard let readings = readings(column.bytes, form) else { continue }
      output.append(form.rawValue)
      write(readings.map(\.number), to: &output)
      if form == .offset { for reading in readings { output.appendZigzag(reading.minutes) } }
      return
    }
    write(plain: column, to: &output)
  }

  private static func areUUIDs(_ bytes: UnsafeRawBufferPointer) -> Bool {
    stride(from: 0, to: bytes.count, by: 36).allSatisfy {
      UnsafeRawBufferPointer(rebasing: bytes[$0..<$0 + 36]).isLowercaseUUID
    }
  }

  private static func readings(_ bytes: [UInt8], _ form: TimeText) -> [TimeText.Reading]? {
    bytes.withUnsafeBytes { all in
      var readings: [TimeText.Reading] = []
      for start in stride(from: 0, to: all.count, by: form.count) {
        let text = UnsafeRawBufferPointer(rebasing: all[start..<start + form.count])
        guard let reading = form.read(text) else { return nil }
        readings.append(reading)
      }
      return readings
    }
  }
}

// MARK: Reading

/// Stream V, inflated, checked and unpacked: every value of a block at a fixed address. Texts may be handed to
/// C in place for as long as this object lives.
package final class BlockValues: Sendable {
  /// One for each assignment of each event, events in arrival order: the cell of its value, or `nullCell`.
  private let cellOfAssignment: [UInt32]
  /// The values, column by column: the bits of a number, or the place of a text.
  private let cells: [UInt64]
  private let stored: Memory
  private let unpacked: Memory

  private static let nullCell = UInt32.max

  init(
    _ stored: Memory, _ names: BlockNames, _ rows: BlockRows, limit: Int
  ) throws(EventsError) {
    var decoder = Decoder(source: stored.bytes, limit: limit)
    var counts = [Int](repeating: 0, count: names.columns.fields.count)
    for (shape, columns) in names.columns.ofShapes.enumerated() {
      for column in columns where column >= 0 { counts[column] += rows.shapeCounts[shape] }
    }
    var next: [UInt32] = []
    next.reserveCapacity(counts.count)
    for (field, count) in zip(names.columns.fields, counts) {
      next.append(UInt32(decoder.cells.count))
      try decoder.read(field.tag, count: count)
    }
    try decoder.reader.finish("values")

    var cellOfAssignment: [UInt32] = []
    cellOfAssignment.reserveCapacity(rows.assignmentCount)
    for row in rows.rows {
      for column in names.columns.ofShapes[Int(row.shape)] {
        if column < 0 {
          cellOfAssignment.append(Self.nullCell)
        } else {
          cellOfAssignment.append(next[column])
          next[column] += 1
        }
      }
    }
    self.cellOfAssignment = cellOfAssignment
    self.cells = decoder.cells
    self.stored = stored
    self.unpacked = Memory(decoder.unpacked)
  }

  /// The bits of the number that the assignment has; of a type that has one.
  func bits(_ assignment: Int) -> UInt64 { cells[Int(cellOfAssignment[assignment])] }

  /// The UTF-8 bytes of the text that the assignment has; of a type that has one.
  func text(_ assignment: Int) -> UnsafeRawBufferPointer {
    let place = TextPlace(rawValue: bits(assignment))
    let memory = place.isUnpacked ? unpacked.bytes : stored.bytes
    return UnsafeRawBufferPointer(rebasing: memory[place.offset..<place.offset + place.count])
  }

  func value(_ assignment: Int, _ tag: ValueTag) -> Value {
    switch tag {
    case .null: .null
    case .bool: .bool(bits(assignment) != 0)
    case .int: .int(Int64(bitPattern: bits(assignment)))
    case .double: .double(Double(bitPattern: bits(assignment)))
    case .string: .string(String(decoding: text(assignment), as: UTF8.self))
    case .json: .json(String(decoding: text(assignment), as: UTF8.self))
    }
  }
}

/// Where a text stands: 25 bits of count (`Limits.value` is 2^24), then the offset, then which memory.
private struct TextPlace {
  let rawValue: UInt64

  init(rawValue: UInt64) { self.rawValue = rawValue }

  init(offset: Int, count: Int, isUnpacked: Bool) {
    rawValue = UInt64(count) | UInt64(offset) << 25 | (isUnpacked ? 1 << 63 : 0)
  }

  var count: Int { Int(rawValue & (1 << 25 - 1)) }
  var offset: Int { Int((rawValue & ~(1 << 63)) >> 25) }
  var isUnpacked: Bool { rawValue >> 63 == 1 }
}

private struct Decoder {
  let source: UnsafeRawBufferPointer
  var reader: ByteReader
  var cells: [UInt64] = []
  /// Texts that stand packed in the stream.
  var unpacked: [UInt8] = []
  let limit: Int

  init(source: UnsafeRawBufferPointer, limit: Int) {
    self.source = source
    self.limit = limit
    reader = ByteReader(source)
  }

  mutating func read(_ tag: ValueTag, count: Int) throws(EventsError) {
    let encoding = try reader.byte("encoding of a column")
    guard count <= reader.remaining else {
      throw .malformed("values", "\(count) in \(reader.remaining) bytes")
    }
    switch (tag, encoding) {
    case (.bool, ValueEncoding.plain):
      for _ in 0..<count { cells.append(try reader.number("boolean", limit: 1)) }
    case (.int, _):
      for number in try integers(encoding, count) { cells.append(UInt64(bitPattern: number)) }
    case (.double, ValueEncoding.plain):
      for _ in 0..<count { try append(Double(bitPattern: try reader.fixed("double"))) }
    case (.double, ValueEncoding.scaled): try readScaled(count)
    case (.string, ValueEncoding.plain), (.json, ValueEncoding.plain): try readTexts(count)
    case (.string, ValueEncoding.hex): try readHex(count)
    case (.string, ValueEncoding.uuid):
      for _ in 0..<count {
        let start = unpacked.count
        unpacked.appendUUID(try reader.bytes(16, "UUID"))
        try appendUnpacked(from: start)
      }
    case (.string, _) where TimeText(rawValue: encoding) != nil:
      if let form = TimeText(rawValue: encoding) { try readTimes(form, count) }
    default: throw .malformed("encoding of a column", "\(encoding) for type \(tag.rawValue)")
    }
  }

  private mutating func integers(_ encoding: UInt8, _ count: Int) throws(EventsError) -> [Int64] {
    guard encoding == ValueEncoding.plain || encoding == ValueEncoding.delta else {
      throw .malformed("encoding of a column", "\(encoding) for integers")
    }
    guard count <= reader.remaining else {
      throw .malformed("integers", "\(count) in \(reader.remaining) bytes")
    }
    var numbers: [Int64] = []
    numbers.reserveCapacity(count)
    var previous: Int64 = 0
    for _ in 0..<count {
      let number = try reader.zigzag("integer")
      previous = encoding == ValueEncoding.delta ? previous &+ number : number
      numbers.append(previous)
    }
    return numbers
  }

  private mutating func append(_ number: Double) throws(EventsError) {
    guard !number.isNaN, number != 0 || number.sign == .plus else {
      throw .malformed("double", "NaN or -0")
    }
    cells.append(number.bitPattern)
  }

  private mutating func readScaled(_ count: Int) throws(EventsError) {
    let places = try reader.byte("decimal places")
    guard places <= ValueEncoding.places else { throw .malformed("decimal places", "\(places)") }
    for _ in 0..<count {
      let number = try reader.zigzag("decimal")
      guard (-ValueEncoding.exact...ValueEncoding.exact).contains(number) else {
        throw .malformed("decimal", "beyond 2^53")
      }
      cells.append((Double(number) / ValueEncoding.powers[Int(places)]).bitPattern)
    }
  }

  private mutating func readTexts(_ count: Int) throws(EventsError) {
    var lengths: [UInt32] = []
    lengths.reserveCapacity(count)
    var total = 0
    for _ in 0..<count {
      let length = try reader.count("text", limit: Limits.value)
      lengths.append(UInt32(length))
      total += length
    }
    let start = source.count - reader.remaining
    let all = try reader.bytes(total, "texts")
    let isASCII = all.isASCII
    var offset = 0
    for length in lengths {
      if !isASCII {
        let text = UnsafeRawBufferPointer(rebasing: all[offset..<offset + Int(length)])
        guard text.isUTF8 else { throw .malformed("text", "not UTF-8") }
      }
      cells.append(
        TextPlace(offset: start + offset, count: Int(length), isUnpacked: false).rawValue)
      offset += Int(length)
    }
  }

  private mutating func readHex(_ count: Int) throws(EventsError) {
    var lengths: [UInt32] = []
    lengths.reserveCapacity(count)
    for _ in 0..<count {
      lengths.append(UInt32(try reader.count("hexadecimal text", limit: Limits.value / 2)))
    }
    for length in lengths {
      let start = unpacked.count
      unpacked.appendHex(try reader.bytes(Int(length), "hexadecimal texts"))
      try appendUnpacked(from: start)
    }
  }

  private mutating func readTimes(_ form: TimeText, _ count: Int) throws(EventsError) {
    let numbers = try integers(try reader.byte("encoding of times"), count)
    for number in numbers {
      let start = unpacked.count
      let minutes = form == .offset ? try reader.zigzag("offset of a time") : 0
      guard form.print(.init(number: number, minutes: minutes), to: &unpacked) else {
        throw .malformed("time", "\(number) has no text")
      }
      try appendUnpacked(from: start)
    }
  }

  private mutating func appendUnpacked(from start: Int) throws(EventsError) {
    guard unpacked.count <= limit else {
      throw .overLimit("texts", found: UInt64(unpacked.count), limit: UInt64(limit))
    }
    cells.append(TextPlace(offset: start, count: unpacked.count - start, isUnpacked: true).rawValue)
  }
}
