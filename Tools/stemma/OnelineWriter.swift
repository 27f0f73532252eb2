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
  /// The last second that was rendered, without a fraction.
  private var second: (number: UInt64, bytes: [UInt8]) = (.max, [])

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
    for (place, field) in shape.fields.enumerated() {
      bytes += field.prefix
      append(block, index, place, field.tag, to: &bytes)
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
    let milliseconds = timestamp.milliseconds
    let (number, rest) = milliseconds.quotientAndRemainder(dividingBy: 1000)
    if number != second.number {
      let text = text.description.time(Timestamp(milliseconds: number * 1000))
      second = (number, Array(text.utf8.dropLast(text.hasSuffix("Z") ? 1 : 0)))
    }
    bytes += second.bytes
    guard second.bytes.count > 1 else { return }
    if rest > 0 {
      bytes.append(UInt8(ascii: "."))
      var left = rest
      var unit: UInt64 = 100
      while left > 0 {
        bytes.append(UInt8(ascii: "0") + UInt8(left / unit))
        left %= unit
        unit /= 10
      }
    }
    bytes.append(UInt8(ascii: "Z"))
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
    case .null: bytes += Array("null".utf8)
    case .bool: bytes += Array((block.bits(index, assignment) != 0 ? "true" : "false").utf8)
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
  struct Shape {
    var operation: [UInt8]
    /// With a space before it; empty for none.
    var relationship: [UInt8]
    /// ` name=` of each field.
    var fields: [(prefix: [UInt8], tag: ValueTag)]
  }

  private let block: BlockContents
  private let description: EventDescription
  /// The models of the block's keys: the stored name, and the model if the schema knows it.
  private var models: [(stored: String, model: Model?)] = []
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
      if known == nil { models.append((stored, description.model(storedName: stored))) }
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
      let (stored, model) = models[modelOfKey[key]]
      arena += Array((model?.name ?? stored).utf8)
      arena.append(UInt8(ascii: "["))
      if !appendPlain(block.keyBytes(key), model) {
        arena += Array(description.keyText(block.reader.record(key).key, model).utf8)
      }
      arena.append(UInt8(ascii: "]"))
      range = start..<arena.count
      records[key] = range
    }
    bytes += arena[range]
  }

  /// Appends a key of plain texts as `KeyWords` has it, from its encoded bytes; false, and nothing appended, for
  /// all others.
  private func appendPlain(_ encoded: UnsafeRawBufferPointer, _ model: Model?) -> Bool {
    guard let model else { return false }
    let start = arena.count
    var index = 0
    for (part, field) in model.keyFields.enumerated() {
      guard index < encoded.count, encoded[index] == 0x02 else { break }
      if part > 0 { arena.append(UInt8(ascii: " ")) }
      if model.keyFields.count > 1 {
        arena += Array(model.fields[field].name.utf8)
        arena.append(UInt8(ascii: "="))
      }
      index += 1
      let first = index
      while index < encoded.count, Self.isPlain[Int(encoded[index])] { index += 1 }
      guard index > first, index < encoded.count, encoded[index] == 0 else { break }
      if encoded[first] == UInt8(ascii: "-") { break }
      arena.append(contentsOf: encoded[first..<index])
      index += 1
      if part == model.keyFields.count - 1, index == encoded.count { return true }
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
