import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaSchema

/// Writes the lines of `log --oneline` directly from the blocks. The output equals
/// `EventText.summary`, but most lines create neither an event nor a String. Text that many events
/// of a block share is rendered once.
struct OnelineWriter: ~Copyable {
  private let description: EventDescription
  private let position: (before: [UInt8], after: [UInt8])
  private var line = LineBuffer(capacity: 1 << 17)
  private var blocks: [ObjectIdentifier: Kept] = [:]
  /// Rendered days up to their `T`, each in the slot of its number modulo the count. Nodes that
  /// wrote at the same time alternate between days.
  private var days = [(number: UInt64, bytes: [UInt8])](repeating: (.max, []), count: 64)

  /// The maximum number of blocks whose texts are kept. A segment has fewer.
  private static let limit = 256

  init(_ node: Node) {
    description = node.description
    position = BlockTexts.style(.yellow)
  }

  mutating func write(_ event: ScannedEvent) {
    append(event)
    if Output.writeIfDue(line.bytes) { line.removeAll() }
  }

  /// Writes the buffered lines.
  mutating func flush() {
    Output.bytes(Array(line.bytes))
    Output.flush()
    line.removeAll()
  }

  private mutating func append(_ event: ScannedEvent) {
    let kept = kept(event.block)
    let outline = event.block.outline(event.index)
    if !position.before.isEmpty { line.append(position.before) }
    line.append(UInt8(ascii: "@"))
    line.append(event.position.rawValue)
    if !position.after.isEmpty { line.append(position.after) }
    line.append(UInt8(ascii: " "))
    append(outline.timestamp)
    kept.texts.append(outline, to: &line)
  }

  /// Wraps the texts so that a dictionary can hold them.
  private final class Kept {
    let texts: BlockTexts

    init(_ texts: consuming BlockTexts) { self.texts = texts }
  }

  private mutating func kept(_ block: BlockContents) -> Kept {
    let identifier = ObjectIdentifier(block)
    if let found = blocks[identifier] { return found }
    if blocks.count >= Self.limit { blocks.removeAll(keepingCapacity: true) }
    let made = Kept(BlockTexts(block, description))
    blocks[identifier] = made
    return made
  }

  private mutating func append(_ timestamp: Timestamp) {
    let (number, rest) = timestamp.milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
    let place = Int(number % UInt64(days.count))
    if number != days[place].number {
      let text = description.time(Timestamp(milliseconds: number * 86_400_000))
      days[place] = (number, Array(text.utf8.prefix(11)))
    }
    line.append(days[place].bytes)
    // Times after the year 9999 have no text.
    guard days[place].bytes.count == 11 else { return }
    let seconds = rest / 1000
    line.appendPair(seconds / 3600)
    line.append(UInt8(ascii: ":"))
    line.appendPair(seconds / 60 % 60)
    line.append(UInt8(ascii: ":"))
    line.appendPair(seconds % 60)
    let milliseconds = rest % 1000
    if milliseconds > 0 {
      line.append(UInt8(ascii: "."))
      line.append(UInt8(ascii: "0") + UInt8(milliseconds / 100))
      line.appendPair(milliseconds % 100)
    }
    line.append(UInt8(ascii: "Z"))
  }
}

/// The text that the events of one block share. It is immutable and retains the block, so values
/// read in place remain valid.
///
/// It is a structure because each access to a mutable class property checks exclusivity. All texts
/// are adjacent in one pool, and all tables hold plain numbers. Nested arrays would count
/// references at every word.
private struct BlockTexts: ~Copyable {
  /// A text in the pool.
  typealias Batch = LineBuffer.Batch

  struct Field {
    /// ` name=`
    var prefix: Batch
    var tag: ValueTag
  }

  /// The events of one model that share operation, relationship and fields.
  struct Shape {
    /// ` operation Model[`
    var opening: Batch
    /// `]` and the relationship.
    var closing: Batch
    /// A range in `fields`.
    var fields: Range<Int32>
  }

  struct KeyedModel {
    /// The text before each part of a key, as a range in `parts`.
    var parts: Range<Int32>
    /// Its first shape. The others follow by their numbers in the block.
    var shapes: Int32
  }

  private let block: BlockContents
  private let description: EventDescription
  private var pool = LineBuffer(capacity: 1 << 10)
  /// ` name:` of each origin.
  private var names: [Batch] = []
  private var modelOfKey: [Int32] = []
  private var models: [KeyedModel] = []
  private var parts: [Batch] = []
  private var shapes: [Shape] = []
  private var fields: [Field] = []
  /// Indexed like `models`.
  private var storedNames: [String] = []
  private var schemaModels: [Model?] = []

  init(_ block: BlockContents, _ description: EventDescription) {
    self.block = block
    self.description = description
    for origin in block.origins { names.append(add(" \(printable(description.name(of: origin))):")) }
    for key in 0..<block.reader.keyCount {
      let stored = block.reader.model(ofKey: key)
      // Keys are sorted, so keys of one model are adjacent.
      var place = storedNames.count - 1
      if storedNames.last != stored {
        place = storedNames.firstIndex(of: stored) ?? storedNames.count
        if place == storedNames.count { addModel(stored) }
      }
      modelOfKey.append(Int32(place))
    }
  }

  private mutating func addModel(_ stored: String) {
    let model = description.model(storedName: stored)
    storedNames.append(stored)
    schemaModels.append(model)
    let keyNames = model?.keyFields.map { model?.fields[$0].name ?? "" } ?? []
    let firstPart = Int32(parts.count)
    for (index, name) in keyNames.enumerated() {
      parts.append(add(keyNames.count == 1 ? "" : "\(index > 0 ? " " : "")\(name)="))
    }
    models.append(KeyedModel(parts: firstPart..<Int32(parts.count), shapes: Int32(shapes.count)))
    for shape in 0..<block.shapeCount {
      let firstField = Int32(fields.count)
      for field in block.fields(ofShape: shape) {
        let name = printable(description.word(forField: field.name, model))
        fields.append(Field(prefix: add(" \(name)="), tag: field.tag))
      }
      let operation = Output.styled(block.operation(ofShape: shape).name, .cyan)
      shapes.append(
        Shape(
          opening: add(" \(operation) \(printable(model?.name ?? stored))["),
          closing: add("]" + printable(block.relationship(ofShape: shape).map { " \($0)" } ?? "")),
          fields: firstField..<Int32(fields.count)))
    }
  }

  private mutating func add(_ text: String) -> Batch { pool.add(text) }

  /// The codes around styled text.
  static func style(_ style: Output.Style) -> (before: [UInt8], after: [UInt8]) {
    let parts = Output.styled("|", style).split(separator: "|", omittingEmptySubsequences: false)
    return (Array(parts[0].utf8), Array(parts[1].utf8))
  }

  /// Appends everything after the time.
  func append(_ outline: BlockContents.Outline, to line: inout LineBuffer) {
    line.append(names[outline.origin], of: pool)
    line.append(outline.sequence)
    let number = Int(modelOfKey[outline.key])
    let model = models[number]
    let shape = shapes[Int(model.shapes) + outline.shape]
    line.append(shape.opening, of: pool)
    if !appendPlain(block.keyBytes(outline.key), model.parts, to: &line) {
      line.append(description.keyText(block.reader.record(outline.key).key, schemaModels[number]))
    }
    line.append(shape.closing, of: pool)
    var assignment = outline.firstAssignment
    for place in shape.fields {
      let field = fields[Int(place)]
      line.append(field.prefix, of: pool)
      append(assignment, field.tag, to: &line)
      assignment += 1
    }
    line.append(UInt8(ascii: "\n"))
  }

  // MARK: Keys

  /// Appends a key of plain texts in the form of `KeyWords`, from its encoded bytes. For any other
  /// key it returns false and appends nothing.
  private func appendPlain(
    _ encoded: UnsafeRawBufferPointer, _ parts: Range<Int32>, to line: inout LineBuffer
  ) -> Bool {
    let start = line.count
    var index = 0
    for part in parts {
      guard index < encoded.count, encoded[index] == 0x02 else { break }
      line.append(self.parts[Int(part)], of: pool)
      index += 1
      let first = index
      guard let end = Self.end(of: encoded, from: first) else { break }
      index = end
      guard index > first, encoded[first] != UInt8(ascii: "-") else { break }
      let text = UnsafeRawBufferPointer(rebasing: encoded[first..<index])
      guard Self.isBare(text) else { break }
      line.append(text)
      index += 1
      if part == parts.upperBound - 1, index == encoded.count { return true }
    }
    line.cut(to: start)
    return false
  }

  /// The position of the zero byte that ends a text.
  private static func end(of encoded: UnsafeRawBufferPointer, from first: Int) -> Int? {
    guard first < encoded.count, let start = encoded.baseAddress,
      let zero = memchr(start + first, 0, encoded.count - first)
    else { return nil }
    return UnsafeRawPointer(zero) - start
  }

  /// Whether neither the shell nor the key syntax requires quotes around a text. Branch-free, so
  /// that the compiler vectorizes it.
  @inline(__always)
  private static func isBare(_ text: UnsafeRawBufferPointer) -> Bool {
    var others: UInt8 = 0
    for byte in text {
      let isLetter = (byte | 0x20) &- UInt8(ascii: "a") < 26
      // `-`, `.`, `/` and the digits.
      let isNumeric = byte &- UInt8(ascii: "-") < 13
      others |= isLetter || isNumeric || byte == UInt8(ascii: "_") ? 0 : 1
    }
    return others == 0
  }

  // MARK: Values

  /// Texts up to this length, with their quotes, are never cut.
  private static let shortest = EventText.width - 2

  private func append(_ assignment: Int, _ tag: ValueTag, to line: inout LineBuffer) {
    switch tag {
    case .null: line.append("null")
    case .bool: line.append(block.bits(assignment) != 0 ? "true" : "false")
    case .string:
      let text = block.text(assignment)
      guard text.count <= Self.shortest, Self.isPlain(text) else {
        return appendLong(assignment, tag, to: &line)
      }
      line.append(UInt8(ascii: "\""))
      line.append(text)
      line.append(UInt8(ascii: "\""))
    case .int:
      let number = Int64(bitPattern: block.bits(assignment))
      guard number.magnitude < 1 << 53 else { return appendLong(assignment, tag, to: &line) }
      if number < 0 { line.append(UInt8(ascii: "-")) }
      line.append(number.magnitude)
    case .double, .json: appendLong(assignment, tag, to: &line)
    }
  }

  private func appendLong(_ assignment: Int, _ tag: ValueTag, to line: inout LineBuffer) {
    line.append(EventText.short(block.value(assignment, tag).json))
  }

  /// Whether each byte is one character that JSON does not escape.
  @inline(__always)
  private static func isPlain(_ text: UnsafeRawBufferPointer) -> Bool {
    var others: UInt8 = 0
    for byte in text {
      let isSpecial = byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
      others |= byte &- 0x20 < 0x5F && !isSpecial ? 0 : 1
    }
    return others == 0
  }
}
