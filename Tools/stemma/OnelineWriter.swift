import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaSchema

/// Writes the lines of `log --oneline` straight from the blocks: the same as `EventText.summary`, without making an
/// event or a String for most of them. What is equal for many events of a block is rendered once.
final class OnelineWriter {
  private let text: EventText
  private let styles: (position: Style, operation: Style)
  private var blocks: [ObjectIdentifier: BlockTexts] = [:]
  private var origins: [Origin: [UInt8]] = [:]
  /// The day that was rendered last, up to its `T`.
  private var day: (number: UInt64, bytes: [UInt8]) = (.max, [])

  /// Blocks of which texts are kept: more than a segment has.
  private static let limit = 256

  /// What stands around styled text.
  private struct Style {
    let before: [UInt8]
    let after: [UInt8]

    init(_ style: Output.Style) {
      let parts = Output.styled("|", style).split(separator: "|", omittingEmptySubsequences: false)
      before = Array(parts[0].utf8)
      after = Array(parts[1].utf8)
    }
  }

  init(_ node: Node) {
    text = EventText(node)
    styles = (Style(.yellow), Style(.cyan))
  }

  func append(_ event: ScannedEvent, to bytes: inout [UInt8]) {
    let block = event.block
    let index = event.index
    let texts = texts(of: block)
    bytes += styles.position.before
    bytes.append(UInt8(ascii: "@"))
    Self.append(event.position.file, to: &bytes)
    bytes.append(UInt8(ascii: "."))
    Self.append(event.position.index, to: &bytes)
    bytes += styles.position.after
    bytes.append(UInt8(ascii: " "))
    append(block.timestamp(index), to: &bytes)
    bytes.append(UInt8(ascii: " "))
    let dot = block.dot(index)
    appendName(dot.origin, to: &bytes)
    bytes.append(UInt8(ascii: ":"))
    Self.append(dot.sequence.rawValue, to: &bytes)
    bytes.append(UInt8(ascii: " "))
    let shape = texts.shape(block.shape(index), ofKey: block.key(index))
    bytes += styles.operation.before
    bytes += shape.operation
    bytes += styles.operation.after
    bytes.append(UInt8(ascii: " "))
    texts.appendRecord(block.key(index), to: &bytes)
    bytes += shape.relationship
    for place in shape.fields.indices {
      bytes += shape.fields[place].prefix
      append(block, index, place, shape.fields[place].tag, to: &bytes)
    }
    bytes.append(10)
  }

  private func texts(of block: BlockContents) -> BlockTexts {
    let identifier = ObjectIdentifier(block)
    if let found = blocks[identifier] { return found }
    if blocks.count >= Self.limit { blocks.removeAll(keepingCapacity: true) }
    let made = BlockTexts(block, text.description)
    blocks[identifier] = made
    return made
  }

  private func append(_ timestamp: Timestamp, to bytes: inout [UInt8]) {
    let (number, rest) = timestamp.milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
    if number != day.number {
      let text = text.description.time(Timestamp(milliseconds: number * 86_400_000))
      day = (number, Array(text.utf8.prefix(11)))
    }
    bytes += day.bytes
    // Beyond the year 9999 there is no text.
    guard day.bytes.count == 11 else { return }
    let seconds = rest / 1000
    Self.appendPair(seconds / 3600, to: &bytes)
    bytes.append(UInt8(ascii: ":"))
    Self.appendPair(seconds / 60 % 60, to: &bytes)
    bytes.append(UInt8(ascii: ":"))
    Self.appendPair(seconds % 60, to: &bytes)
    var left = rest % 1000
    if left > 0 { bytes.append(UInt8(ascii: ".")) }
    var unit: UInt64 = 100
    while left > 0 {
      bytes.append(UInt8(ascii: "0") + UInt8(left / unit))
      left %= unit
      unit /= 10
    }
    bytes.append(UInt8(ascii: "Z"))
  }

  private static func appendPair(_ number: UInt64, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "0") + UInt8(number / 10))
    bytes.append(UInt8(ascii: "0") + UInt8(number % 10))
  }

  private func appendName(_ origin: Origin, to bytes: inout [UInt8]) {
    if let name = origins[origin] {
      bytes += name
    } else {
      let name = Array(text.description.name(of: origin).utf8)
      origins[origin] = name
      bytes += name
    }
  }

  private func append(
    _ block: BlockContents, _ index: Int, _ assignment: Int, _ tag: ValueTag, to bytes: inout [UInt8]
  ) {
    switch tag {
    case .null: bytes.append(contentsOf: "null".utf8)
    case .bool: bytes.append(contentsOf: (block.bits(index, assignment) != 0 ? "true" : "false").utf8)
    case .string:
      let text = block.text(index, assignment)
      if text.count <= Self.shortest, text.allSatisfy({ Self.isPlain[Int($0)] }) {
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: text)
        bytes.append(UInt8(ascii: "\""))
        return
      }
      bytes += Array(EventText.short(block.value(index, assignment, tag).json).utf8)
    case .int:
      let number = Int64(bitPattern: block.bits(index, assignment))
      guard number.magnitude < 1 << 53 else {
        bytes += Array(EventText.short(Value.int(number).json).utf8)
        return
      }
      if number < 0 { bytes.append(UInt8(ascii: "-")) }
      Self.append(number.magnitude, to: &bytes)
    case .double, .json:
      bytes += Array(EventText.short(block.value(index, assignment, tag).json).utf8)
    }
  }

  /// Texts up to this length, with their quotes, are never cut.
  private static let shortest = EventText.width - 2

  /// Bytes that stand for themselves in JSON and are one character each.
  private static let isPlain: [Bool] = (UInt8.min...UInt8.max).map { byte in
    byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }

  fileprivate static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    var digits: (UInt64, UInt64) = (0, 0)
    withUnsafeMutableBytes(of: &digits) { buffer in
      // A number of 64 bits may have twenty digits; those beyond sixteen are rare, and go the long way.
      guard number < 10_000_000_000_000_000 else {
        bytes += Array(String(number).utf8)
        return
      }
      var place = buffer.count
      var left = number
      repeat {
        place -= 1
        buffer[place] = UInt8(ascii: "0") + UInt8(left % 10)
        left /= 10
      } while left > 0
      bytes.append(contentsOf: buffer[place...])
    }
  }
}

/// What the events of one block have in common, as text.
private final class BlockTexts {
  /// A class, because one is asked for at each event.
  final class Shape {
    let operation: [UInt8]
    /// With a space before it; empty for none.
    let relationship: [UInt8]
    /// ` name=` of each field.
    let fields: [(prefix: [UInt8], tag: ValueTag)]

    init(operation: [UInt8], relationship: [UInt8], fields: [(prefix: [UInt8], tag: ValueTag)]) {
      self.operation = operation
      self.relationship = relationship
      self.fields = fields
    }
  }

  private struct KeyedModel {
    let stored: String
    let model: Model?
    /// `Model[`
    let opening: [UInt8]
    /// What stands before each part of a key.
    let parts: [[UInt8]]

    init(_ stored: String, _ model: Model?) {
      self.stored = stored
      self.model = model
      opening = Array("\(model?.name ?? stored)[".utf8)
      let names = model?.keyFields.map { model?.fields[$0].name ?? "" } ?? []
      parts = names.enumerated().map { index, name in
        names.count == 1 ? [] : Array("\(index > 0 ? " " : "")\(name)=".utf8)
      }
    }
  }

  private let block: BlockContents
  private let description: EventDescription
  /// The models of the block's keys.
  private var models: [KeyedModel] = []
  private var modelOfKey: [Int] = []
  /// By shape and model.
  private var shapes: [Shape?]
  /// `Model[key]` of the records that were asked for, one behind another.
  private var arena: [UInt8] = []
  private var records: [Range<Int>?]

  init(_ block: BlockContents, _ description: EventDescription) {
    self.block = block
    self.description = description
    let count = block.reader.keyCount
    records = [Range<Int>?](repeating: nil, count: count)
    shapes = []
    for key in 0..<count {
      let stored = block.reader.model(ofKey: key)
      // Keys are sorted: those of one model stand together.
      let known = models.last?.stored == stored ? models.count - 1 : models.firstIndex { $0.stored == stored }
      modelOfKey.append(known ?? models.count)
      if known == nil { models.append(KeyedModel(stored, description.model(storedName: stored))) }
    }
    shapes = [Shape?](repeating: nil, count: block.shapeCount * models.count)
  }

  func shape(_ shape: Int, ofKey key: Int) -> Shape {
    let place = shape * models.count + modelOfKey[key]
    if let known = shapes[place] { return known }
    let model = models[modelOfKey[key]].model
    let made = Shape(
      operation: Array(block.operation(ofShape: shape).name.utf8),
      relationship: block.relationship(ofShape: shape).map { Array(" \($0)".utf8) } ?? [],
      fields: block.fields(ofShape: shape).map { field in
        (Array(" \(description.fieldName(field.name, model))=".utf8), field.tag)
      })
    shapes[place] = made
    return made
  }

  func appendRecord(_ key: Int, to bytes: inout [UInt8]) {
    let range: Range<Int>
    if let known = records[key] {
      range = known
    } else {
      let start = arena.count
      let keyed = models[modelOfKey[key]]
      arena += keyed.opening
      if !appendPlain(block.keyBytes(key), keyed) {
        arena += Array(description.keyText(block.reader.record(key).key, keyed.model).utf8)
      }
      arena.append(UInt8(ascii: "]"))
      range = start..<arena.count
      records[key] = range
    }
    arena.withUnsafeBytes { bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[range])) }
  }

  /// Appends a key of plain texts as `KeyWords` has it, from its encoded bytes; false, and nothing appended, for
  /// all others.
  private func appendPlain(_ encoded: UnsafeRawBufferPointer, _ keyed: KeyedModel) -> Bool {
    let start = arena.count
    var index = 0
    for (part, before) in keyed.parts.enumerated() {
      guard index < encoded.count, encoded[index] == 0x02 else { break }
      arena += before
      index += 1
      let first = index
      while index < encoded.count, Self.isPlain[Int(encoded[index])] { index += 1 }
      guard index > first, index < encoded.count, encoded[index] == 0 else { break }
      if encoded[first] == UInt8(ascii: "-") { break }
      arena.append(contentsOf: UnsafeRawBufferPointer(rebasing: encoded[first..<index]))
      index += 1
      if part == keyed.parts.count - 1, index == encoded.count { return true }
    }
    arena.removeSubrange(start...)
    return false
  }

  /// Bytes that no shell and no rule for keys asks to be quoted.
  private static let isPlain: [Bool] = (UInt8.min...UInt8.max).map { byte in
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "_-./".utf8.contains(byte)
    }
  }
}
