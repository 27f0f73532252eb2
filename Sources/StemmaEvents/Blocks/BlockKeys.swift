/// Consecutive keys of one partition and model in a block, and how they are written.
struct BlockRun: Sendable {
  /// The type of the keys' leading part, if it is omitted because the partition's name has it.
  enum Leading: UInt8, Sendable {
    case kept = 0
    case string = 1
    case int = 2
    case bool = 3
  }

  /// How the rest of each key is written.
  enum Rest: UInt8, Sendable {
    /// As it is.
    case plain = 0
    /// One string of lowercase hexadecimal digits, an even number of them: two in a byte.
    case hex = 1
    /// One string that is a UUID in lower case: 16 bytes.
    case uuid = 2
  }

  /// Index in the block's partitions.
  var partition: Int
  /// Index in the block's names.
  var model: Int
  /// The first of the run's keys, and how many.
  var firstKey: Int
  var keyCount: Int
  var leading: Leading = .kept
  var rest: Rest = .plain

  /// The encoded leading part that the partition's name contains, read as a part of this type. Nil
  /// if the name is not of the form `field=value`, or its value is no text of this type.
  static func leadingPart(of partition: Partition, as leading: Leading) -> [UInt8]? {
    let name = partition.bytes
    guard leading != .kept, let mark = name.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    var bytes: [UInt8] = []
    let written = name[(mark + 1)...]
    // Most need no escapes.
    if leading == .string, !written.contains(where: { $0 == 0 || Partition.isSpecial($0) }) {
      bytes.reserveCapacity(written.count + 2)
      bytes.append(0x02)
      bytes.append(contentsOf: written)
      bytes.append(0)
      return bytes
    }
    guard let value = unescaped(written) else { return nil }
    switch leading {
    case .kept: return nil
    case .string: Key.encode(.string(value), into: &bytes)
    case .int:
      guard let number = Int64(value), String(number) == value else { return nil }
      Key.encode(.int(number), into: &bytes)
    case .bool:
      guard value == "true" || value == "false" else { return nil }
      Key.encode(.bool(value == "true"), into: &bytes)
    }
    return bytes
  }

  /// Reverses `Partition.escape`. Nil for texts that it does not produce, such as a second part.
  private static func unescaped(_ escaped: ArraySlice<UInt8>) -> String? {
    var bytes: [UInt8] = []
    var index = escaped.startIndex
    while index < escaped.endIndex {
      if escaped[index] == UInt8(ascii: "%"), escaped.endIndex - index > 2,
        let high = HexDigits.value(upper: escaped[index + 1]),
        let low = HexDigits.value(upper: escaped[index + 2])
      {
        bytes.append(high << 4 | low)
        index += 3
      } else {
        bytes.append(escaped[index])
        index += 1
      }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    var again: [UInt8] = []
    Partition.escape(text.utf8, into: &again)
    return again.elementsEqual(escaped) ? text : nil
  }
}

extension Key {
  /// Whether `Key(encoded:)` accepts the bytes. The same rules, without an allocation.
  package static func isEncoding(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard (1...Limits.key).contains(bytes.count) else { return false }
    var index = 0
    while index < bytes.count {
      guard let next = endOfPart(bytes, index) else { return false }
      index = next
    }
    return true
  }

  package enum PartType: Sendable { case string, int, double, bool }

  /// The type of the part at `index`, which moves behind it; nil if no part is encoded there.
  package static func partType(_ bytes: UnsafeRawBufferPointer, _ index: inout Int) -> PartType? {
    guard let end = endOfPart(bytes, index) else { return nil }
    let tag = bytes[index]
    index = end
    return switch tag {
    case 0x02: .string
    case 0x21: .double
    case 0x26, 0x27: .bool
    default: .int
    }
  }

  /// The end of the part that begins at `start`; nil if no part is encoded there.
  private static func endOfPart(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int? {
    let tag = bytes[start]
    var index = start + 1
    switch tag {
    case 0x02:
      // A zero byte is a character, so the text is UTF-8 exactly if all bytes between zeros are.
      var piece = index
      while index < bytes.count {
        if bytes[index] == 0 {
          guard UnsafeRawBufferPointer(rebasing: bytes[piece..<index]).isUTF8 else { return nil }
          guard index + 1 < bytes.count, bytes[index + 1] == 0xFF else { return index + 1 }
          index += 2
          piece = index
        } else {
          index += 1
        }
      }
      return nil
    case 0x0C...0x1C:
      let count = abs(Int(tag) - 0x14)
      guard bytes.count - index >= count else { return nil }
      var stored: UInt64 = tag < 0x14 ? .max : 0
      for offset in 0..<count { stored = stored << 8 | UInt64(bytes[index + offset]) }
      let magnitude = tag < 0x14 ? ~stored : stored
      guard (64 - magnitude.leadingZeroBitCount + 7) / 8 == count,
        magnitude <= (tag < 0x14 ? 1 << 63 : 1 << 63 - 1)
      else { return nil }
      return index + count
    case 0x21:
      guard bytes.count - index >= 8 else { return nil }
      let stored = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      let number = Double(bitPattern: stored >> 63 == 1 ? stored & ~(1 << 63) : ~stored)
      return number.isNaN || (number == 0 && number.sign == .minus) ? nil : index + 8
    case 0x26, 0x27: return index
    default: return nil
    }
  }
}

/// The runs and keys of a block, verified and complete.
struct BlockKeys: Sendable {
  let runs: [BlockRun]
  /// The run of each key.
  let runOfKey: FixedTable<UInt32>
  /// The start of each key in `bytes`, and the end of the last one.
  let offsets: FixedTable<UInt32>
  let bytes: Memory

  var count: Int { runOfKey.count }

  @inline(__always)
  func key(_ index: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: bytes.bytes[Int(offsets[index])..<Int(offsets[index + 1])])
  }

  /// `limit`: maximum count of keys. `byteLimit`: maximum bytes of all keys. `wanted`: keys of
  /// other runs than this record's are skipped, and empty.
  init(
    _ reader: inout ByteReader<EventsError>, _ names: BlockNames, limit: Int, byteLimit: Int,
    for wanted: BlockReader.Record? = nil
  ) throws(EventsError) {
    let (runs, count) = try Self.readRuns(&reader, names, limit: limit)
    guard count <= reader.remaining / 2 else {
      throw .malformed("keys", "\(count) in \(reader.remaining) bytes")
    }
    let runOfKey = FixedTable(repeating: UInt32(0), count: count)
    let offsets = FixedTable(repeating: UInt32(0), count: count + 1)
    var columns = KeyReading(count: count, reader: reader)
    try columns.readLengths()
    var parts: [[UInt8]?] = []
    for (index, run) in runs.enumerated() {
      for key in run.firstKey..<run.firstKey + run.keyCount { runOfKey.elements[key] = UInt32(index) }
      let isPassed =
        wanted.map { wanted in
          names.partitions[run.partition] != wanted.partition
            || !names.names[run.model].hasSameBytes(as: wanted.model)
        } ?? false
      parts.append(isPassed ? nil : try Self.leadingPart(of: run, names))
      try columns.place(run, leading: parts[index]?.count, byteLimit: byteLimit, offsets.elements)
    }
    var failure: EventsError?
    bytes = Memory(count: Int(offsets[count])) { target in
      do throws(EventsError) {
        for (run, part) in zip(runs, parts) {
          if let part {
            try columns.unpack(run, part, offsets.elements, target)
          } else {
            try columns.skip(run)
          }
        }
      } catch { failure = error }
    }
    if let failure { throw failure }
    (self.runs, self.runOfKey, self.offsets) = (runs, runOfKey, offsets)
    reader = columns.reader
  }

  private static func readRuns(
    _ reader: inout ByteReader<EventsError>, _ names: BlockNames, limit: Int
  ) throws(EventsError) -> ([BlockRun], keys: Int) {
    let count = try reader.count("runs", each: 4)
    var runs: [BlockRun] = []
    runs.reserveCapacity(count)
    var keys = 0
    for index in 0..<count {
      let gap = try reader.count("partition of a run", limit: names.partitions.count)
      let partition = (runs.last?.partition ?? 0) + gap
      guard partition < names.partitions.count else { throw .malformed("partition of a run", "out of range") }
      let model = try reader.index("model of a run", below: names.names.count)
      if index > 0, gap == 0, !names.names[runs[index - 1].model].hasBytes(before: names.names[model]) {
        throw .malformed("runs", "not in order")
      }
      let members = try reader.count("keys of a run", limit: limit - keys)
      let form = try reader.byte("form of a run")
      guard members > 0, form < 16, let leading = BlockRun.Leading(rawValue: form & 3),
        let rest = BlockRun.Rest(rawValue: form >> 2)
      else { throw .malformed("run", "\(members) keys, form \(form)") }
      runs.append(
        BlockRun(
          partition: partition, model: model, firstKey: keys, keyCount: members, leading: leading,
          rest: rest))
      keys += members
    }
    return (runs, keys)
  }

  private static func leadingPart(of run: BlockRun, _ names: BlockNames) throws(EventsError) -> [UInt8] {
    guard run.leading != .kept else { return [] }
    guard let part = BlockRun.leadingPart(of: names.partitions[run.partition], as: run.leading) else {
      throw .malformed("run", "partition that contains no key part of type \(run.leading.rawValue)")
    }
    return part
  }
}

/// Decodes the columns of keys: first the lengths, to allocate memory for all keys, then the keys.
private struct KeyReading {
  private let shared: FixedTable<UInt32>
  private let suffixes: FixedTable<UInt32>
  var reader: ByteReader<EventsError>

  init(count: Int, reader: ByteReader<EventsError>) {
    shared = FixedTable(repeating: 0, count: count)
    suffixes = FixedTable(repeating: 0, count: count)
    self.reader = reader
  }

  mutating func readLengths() throws(EventsError) {
    var reader = reader
    for index in 0..<shared.count {
      shared.elements[index] = UInt32(truncatingIfNeeded: try reader.count("key", limit: Limits.key))
    }
    for index in 0..<shared.count {
      suffixes.elements[index] = UInt32(truncatingIfNeeded: try reader.count("key", limit: Limits.key))
    }
    self.reader = reader
  }

  /// Sets the ends of the run's keys. `leading`: length of the omitted part; nil: empty keys.
  func place(
    _ run: BlockRun, leading: Int?, byteLimit: Int, _ offsets: UnsafeMutableBufferPointer<UInt32>
  ) throws(EventsError) {
    var end = Int(offsets[run.firstKey])
    var payload = 0
    for key in run.firstKey..<run.firstKey + run.keyCount {
      let prefix = Int(shared.elements[key])
      guard prefix <= payload else { throw .malformed("key", "shares more than there is") }
      payload = prefix + Int(suffixes.elements[key])
      if let leading {
        let rest = payload
        let size =
          switch run.rest {
          case .plain: leading + rest
          case .hex: leading + 2 * rest + 2
          case .uuid: leading + 38
          }
        guard (1...Limits.key).contains(size) else { throw .malformed("key", "not the encoding of one") }
        guard run.rest != .uuid || rest == 16 else { throw .malformed("key", "UUID of \(rest) bytes") }
        end += size
        guard end <= byteLimit else {
          throw .overLimit("keys", found: UInt64(end), limit: UInt64(byteLimit))
        }
      }
      offsets[key + 1] = UInt32(truncatingIfNeeded: end)
    }
  }

  mutating func skip(_ run: BlockRun) throws(EventsError) {
    var skipped = 0
    for key in run.firstKey..<run.firstKey + run.keyCount { skipped += Int(suffixes.elements[key]) }
    _ = try reader.bytes(skipped, "keys")
  }

  /// Writes the run's complete keys to their places in `target`.
  mutating func unpack(
    _ run: BlockRun, _ part: [UInt8], _ offsets: UnsafeMutableBufferPointer<UInt32>,
    _ target: UnsafeMutableRawBufferPointer
  ) throws(EventsError) {
    var reader = reader
    /// The packed rest of the current key. A plain rest is in the key itself.
    let payload = FixedTable(repeating: UInt8(0), count: run.rest == .plain ? 0 : Limits.key)
    let packed = UnsafeRawBufferPointer(payload.elements)
    var before = 0
    var length = 0
    for key in run.firstKey..<run.firstKey + run.keyCount {
      let start = Int(offsets[key])
      let whole = UnsafeMutableRawBufferPointer(rebasing: target[start..<Int(offsets[key + 1])])
      let prefix = Int(shared.elements[key])
      let suffix = try reader.bytes(Int(suffixes.elements[key]), "keys")
      // The prefix is the longest shared one, so the next byte decides the order.
      if key > run.firstKey {
        let last = run.rest == .plain ? UnsafeRawBufferPointer(rebasing: target[before..<start]) : packed
        guard let first = suffix.first, prefix == length || first > last[prefix] else {
          throw .malformed("keys", "not in order")
        }
      }
      length = prefix + suffix.count
      part.withUnsafeBytes { whole.copyMemory(from: $0) }
      let rest = UnsafeMutableRawBufferPointer(rebasing: whole[part.count...])
      if run.rest == .plain {
        rest.copyMemory(from: UnsafeRawBufferPointer(rebasing: target[before..<before + prefix]))
        UnsafeMutableRawBufferPointer(rebasing: rest[prefix...]).copyMemory(from: suffix)
        guard Self.isEncoding(UnsafeRawBufferPointer(whole), behind: part.count) else {
          throw .malformed("key", "not the encoding of one")
        }
      } else {
        UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(payload.elements)[prefix...])
          .copyMemory(from: suffix)
        // Digits and hyphens need no escape and no check.
        let text = rest.bindMemory(to: UInt8.self)
        text[0] = 0x02
        text[text.count - 1] = 0
        if let target = text.baseAddress.map({ $0 + 1 }) {
          if run.rest == .uuid {
            HexDigits.unpack(uuid: packed, at: 0, to: target)
          } else {
            HexDigits.unpack(UnsafeRawBufferPointer(rebasing: packed[..<length]), to: target)
          }
        }
      }
      before = start + part.count
    }
    self.reader = reader
  }

  /// Whether a key is valid behind its verified parts. FF there would continue a text.
  private static func isEncoding(_ key: UnsafeRawBufferPointer, behind known: Int) -> Bool {
    if known == 0 || known < key.count && key[known] == 0xFF { return Key.isEncoding(key) }
    return known == key.count || Key.isEncoding(UnsafeRawBufferPointer(rebasing: key[known...]))
  }
}
