/// The encoding of the values of one column, in the byte before them.
enum ValueEncoding {
  /// Integers and times as they are, or as differences from the value before.
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
  /// Up to here every integer has a double of its own.
  static let exact: Int64 = 1 << 53
}

// MARK: Writing

/// One column of values, while events are appended.
private struct ValueColumn {
  var numbers: [Int64] = []
  var lengths: [Int] = []
  var bytes: [UInt8] = []
}

/// Stream V: the values, one column for each (field, type), each in position order.
struct BlockValuesWriter {
  private var columns: [ValueColumn] = []
  /// The approximate size of the values in bytes.
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

  /// Traps if a column has values of another type, or too many. Unused columns may remain.
  func checkInvariants(_ fields: [BlockShape.Field]) {
    precondition(fields.count <= columns.count, "each column is there")
    var count = 0
    for (place, column) in columns.enumerated() {
      let tag = place < fields.count ? fields[place].tag : .null
      let isText = tag == .string || tag == .json
      precondition(isText ? column.numbers.isEmpty : column.lengths.isEmpty, "a column is of one type")
      precondition(column.lengths.reduce(0, +) == column.bytes.count, "all bytes are those of texts")
      precondition(place < fields.count || column.numbers.isEmpty, "what is left of another block is empty")
      count += column.numbers.count + column.lengths.count
    }
    precondition(count <= assignmentCount, "each value is assigned once")
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

  /// The encoding byte and the integers, as differences if these take less than nine tenths.
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

  /// The doubles as whole numbers with the same least number of decimal places. nil if that is
  /// inexact for any of them, or saves no bytes.
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

/// Stream V, inflated, verified and unpacked: every value of a block at a fixed address. Callers
/// can pass texts to C in place as long as this object lives.
package final class BlockValues: Sendable {
  /// One for each assignment, in position order: the bits of a number, or the place of a text.
  private let cells: FixedTable<UInt64>
  private let stored: Memory
  private let unpacked: Memory

  init(
    _ stored: Memory, _ names: BlockNames, _ rows: BlockRows, limit: Int
  ) throws(EventsError) {
    var counts = [Int](repeating: 0, count: names.columns.count)
    for (shape, outline) in names.outlines.elements.enumerated() {
      for field in Int(outline.firstField)..<Int(outline.firstField + outline.fieldCount) {
        let column = Int(names.columnOfField[field])
        if column >= 0 { counts[column] += rows.shapeCounts[shape] }
      }
    }
    // Each value takes a byte at least.
    let total = counts.reduce(0, +)
    guard total <= stored.bytes.count else {
      throw .malformed("values", "\(total) in \(stored.bytes.count) bytes")
    }
    let columns = FixedTable(repeating: UInt64(0), count: total)
    var decoder = Decoder(source: stored.bytes, cells: columns.elements, limit: limit)
    let next = FixedTable(repeating: 0, count: counts.count)
    for (column, field) in names.columns.enumerated() {
      next.elements[column] = decoder.made
      try decoder.read(field.tag, count: counts[column])
    }
    try decoder.reader.finish("values")

    cells = FixedTable(repeating: 0, count: rows.assignmentCount)
    Self.place(columns.elements, from: next.elements, into: cells.elements, names, rows.table.elements)
    self.stored = stored
    unpacked = Memory(decoder.unpacked)
  }

  /// Distributes the values of the columns to the assignments. `next`: the start of each column.
  private static func place(
    _ columns: UnsafeMutableBufferPointer<UInt64>, from next: UnsafeMutableBufferPointer<Int>,
    into cells: UnsafeMutableBufferPointer<UInt64>, _ names: BlockNames,
    _ rows: UnsafeMutableBufferPointer<BlockRow>
  ) {
    let outlines = names.outlines.elements
    let columnOfField = names.columnOfField.elements
    var cell = 0
    for row in rows.indices {
      let outline = outlines[Int(rows[row].shape)]
      for field in Int(outline.firstField)..<Int(outline.firstField &+ outline.fieldCount) {
        let column = Int(columnOfField[field])
        if column >= 0 {
          cells[cell] = columns[next[column]]
          next[column] &+= 1
        }
        cell &+= 1
      }
    }
    withExtendedLifetime(names) {}
  }

  /// The bits of an assigned number. The value must be a number.
  func bits(_ assignment: Int) -> UInt64 { cells[assignment] }

  /// The UTF-8 bytes of an assigned text. The value must be a text.
  @inline(__always)
  func text(_ assignment: Int) -> UnsafeRawBufferPointer {
    let place = TextPlace(rawValue: cells[assignment])
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

/// The place of a text: 25 bits of count (`Limits.value` is 2^24), then offset, then memory.
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
  var reader: ByteReader<EventsError>
  /// Memory of the caller, one cell for each value.
  let cells: UnsafeMutableBufferPointer<UInt64>
  /// The number of decoded cells.
  private(set) var made = 0
  /// Unpacked texts that are packed in the stream.
  private(set) var unpacked: [UInt8] = []
  let limit: Int

  init(source: UnsafeRawBufferPointer, cells: UnsafeMutableBufferPointer<UInt64>, limit: Int) {
    self.source = source
    self.cells = cells
    self.limit = limit
    reader = ByteReader<EventsError>(source)
  }

  /// Traps on a read or write outside of stream and cells. In debug builds after each column.
  func checkInvariants() {
    precondition((0...cells.count).contains(made), "each value has its place")
    reader.checkInvariants()
  }

  mutating func read(_ tag: ValueTag, count: Int) throws(EventsError) {
    defer { assert(holds(checkInvariants)) }
    let encoding = try reader.byte("encoding of a column")
    guard count <= reader.remaining else {
      throw .malformed("values", "\(count) in \(reader.remaining) bytes")
    }
    // Every column is read once, so the cells suffice.
    let column = UnsafeMutableBufferPointer(rebasing: cells[made..<made + count])
    made += count
    switch (tag, encoding) {
    case (.bool, ValueEncoding.plain):
      for index in 0..<count { column[index] = try reader.number("boolean", limit: 1) }
    case (.int, _): try readIntegers(encoding, column)
    case (.double, ValueEncoding.plain):
      for index in 0..<count {
        let number = Double(bitPattern: try reader.fixed("double"))
        guard !number.isNaN, number != 0 || number.sign == .plus else {
          throw .malformed("double", "NaN or -0")
        }
        column[index] = number.bitPattern
      }
    case (.double, ValueEncoding.scaled): try readScaled(column)
    case (.string, ValueEncoding.plain), (.json, ValueEncoding.plain): try readTexts(column)
    case (.string, ValueEncoding.hex): try readHex(column)
    case (.string, ValueEncoding.uuid): try readUUIDs(column)
    case (.string, _) where TimeText(rawValue: encoding) != nil:
      if let form = TimeText(rawValue: encoding) { try readTimes(form, column) }
    default: throw .malformed("encoding of a column", "\(encoding) for type \(tag.rawValue)")
    }
  }

  private mutating func readIntegers(
    _ encoding: UInt8, _ column: UnsafeMutableBufferPointer<UInt64>
  ) throws(EventsError) {
    guard encoding == ValueEncoding.plain || encoding == ValueEncoding.delta else {
      throw .malformed("encoding of a column", "\(encoding) for integers")
    }
    var reader = reader
    guard column.count <= reader.remaining else {
      throw .malformed("integers", "\(column.count) in \(reader.remaining) bytes")
    }
    var previous: Int64 = 0
    for index in column.indices {
      let number = try reader.zigzag("integer")
      previous = encoding == ValueEncoding.delta ? previous &+ number : number
      column[index] = UInt64(bitPattern: previous)
    }
    self.reader = reader
  }

  private mutating func readScaled(_ column: UnsafeMutableBufferPointer<UInt64>) throws(EventsError) {
    let places = try reader.byte("decimal places")
    guard places <= ValueEncoding.places else { throw .malformed("decimal places", "\(places)") }
    let power = ValueEncoding.powers[Int(places)]
    for index in column.indices {
      let number = try reader.zigzag("decimal")
      guard (-ValueEncoding.exact...ValueEncoding.exact).contains(number) else {
        throw .malformed("decimal", "beyond 2^53")
      }
      column[index] = (Double(number) / power).bitPattern
    }
  }

  private mutating func readTexts(_ column: UnsafeMutableBufferPointer<UInt64>) throws(EventsError) {
    var reader = reader
    var total = 0
    for index in column.indices {
      let length = try reader.count("text", limit: Limits.value)
      column[index] = UInt64(truncatingIfNeeded: length)
      total += length
    }
    var offset = source.count - reader.remaining
    let isASCII = try reader.bytes(total, "texts").isASCII
    for index in column.indices {
      let length = Int(column[index])
      if !isASCII {
        let text = UnsafeRawBufferPointer(rebasing: source[offset..<offset + length])
        guard text.isUTF8 else { throw .malformed("text", "not UTF-8") }
      }
      column[index] = TextPlace(offset: offset, count: length, isUnpacked: false).rawValue
      offset += length
    }
    self.reader = reader
  }

  private mutating func readHex(_ column: UnsafeMutableBufferPointer<UInt64>) throws(EventsError) {
    var total = 0
    for index in column.indices {
      let length = try reader.count("hexadecimal text", limit: Limits.value / 2)
      column[index] = UInt64(length)
      total += length
    }
    let packed = try reader.bytes(total, "hexadecimal texts")
    let start = try unpack(2 * total) { HexDigits.unpack(packed, to: $0) }
    var offset = start
    for index in column.indices {
      let length = 2 * Int(column[index])
      column[index] = TextPlace(offset: offset, count: length, isUnpacked: true).rawValue
      offset += length
    }
  }

  private mutating func readUUIDs(_ column: UnsafeMutableBufferPointer<UInt64>) throws(EventsError) {
    let packed = try reader.bytes(16 * column.count, "UUID")
    let start = try unpack(36 * column.count) { target in
      for index in 0..<packed.count / 16 {
        HexDigits.unpack(uuid: packed, at: 16 * index, to: target + 36 * index)
      }
    }
    for index in column.indices {
      column[index] = TextPlace(offset: start + 36 * index, count: 36, isUnpacked: true).rawValue
    }
  }

  private mutating func readTimes(
    _ form: TimeText, _ column: UnsafeMutableBufferPointer<UInt64>
  ) throws(EventsError) {
    try readIntegers(try reader.byte("encoding of times"), column)
    var reader = reader
    var failed: Int64?
    let start = try unpack(form.count * column.count) { target throws(EventsError) in
      for index in column.indices {
        let number = Int64(bitPattern: column[index])
        let minutes = form == .offset ? try reader.zigzag("offset of a time") : 0
        if !form.write(.init(number: number, minutes: minutes), to: target + form.count * index) {
          failed = number
          return
        }
      }
    }
    if let failed { throw .malformed("time", "\(failed) has no text") }
    for index in column.indices {
      let place = start + form.count * index
      column[index] = TextPlace(offset: place, count: form.count, isUnpacked: true).rawValue
    }
    self.reader = reader
  }

  /// Appends `count` bytes of text, which `fill` writes. Returns their offset.
  private mutating func unpack(
    _ count: Int, _ fill: (UnsafeMutablePointer<UInt8>) throws(EventsError) -> Void
  ) throws(EventsError) -> Int {
    let start = unpacked.count
    guard count <= limit - start else {
      throw .overLimit("texts", found: UInt64(start + count), limit: UInt64(limit))
    }
    unpacked.append(contentsOf: repeatElement(0, count: count))
    try unpacked.withUnsafeMutableBufferPointer { bytes throws(EventsError) in
      if let base = bytes.baseAddress { try fill(base + start) }
    }
    return start
  }
}
