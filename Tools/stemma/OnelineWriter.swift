import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaSchema

/// Writes the lines of `log --oneline` straight from the blocks: the same as `EventText.summary`, without making an
/// event or a String for most of them. What is equal for many events of a block is rendered once.
struct OnelineWriter: ~Copyable {
  private let description: EventDescription
  private let position: (before: [UInt8], after: [UInt8])
  private var line = LineBuffer(capacity: 1 << 17)
  private var blocks: [ObjectIdentifier: BlockTexts] = [:]
  /// The day that was rendered last, up to its `T`.
  private var day: (number: UInt64, bytes: [UInt8]) = (.max, [])

  /// Blocks of which texts are kept: more than a segment has.
  private static let limit = 256

  init(_ node: Node) {
    description = node.description
    position = BlockTexts.style(.yellow)
  }

  mutating func write(_ event: ScannedEvent) {
    append(event)
    if Output.writeIfDue(line.bytes) { line.removeAll() }
  }

  /// Writes what waits.
  mutating func flush() {
    Output.bytes(Array(line.bytes))
    Output.flush()
    line.removeAll()
  }

  private mutating func append(_ event: ScannedEvent) {
    let texts = texts(of: event.block)
    let outline = event.block.outline(event.index)
    if !position.before.isEmpty { line.append(position.before) }
    line.append(UInt8(ascii: "@"))
    line.append(event.position.file)
    line.append(UInt8(ascii: "."))
    line.append(event.position.index)
    if !position.after.isEmpty { line.append(position.after) }
    line.append(UInt8(ascii: " "))
    append(outline.timestamp)
    // " name:"
    line.append(texts.names[outline.origin])
    line.append(outline.sequence)
    let shape = texts.shape(outline)
    line.append(shape.operation)
    texts.appendRecord(outline.key, to: &line)
    if !shape.relationship.isEmpty { line.append(shape.relationship) }
    for place in shape.fields.indices {
      let field = shape.fields[place]
      line.append(field.prefix)
      texts.append(outline.firstAssignment + place, field.tag, to: &line)
    }
    line.append(UInt8(ascii: "\n"))
  }

  private mutating func texts(of block: BlockContents) -> BlockTexts {
    let identifier = ObjectIdentifier(block)
    if let found = blocks[identifier] { return found }
    if blocks.count >= Self.limit { blocks.removeAll(keepingCapacity: true) }
    let made = BlockTexts(block, description)
    blocks[identifier] = made
    return made
  }

  private mutating func append(_ timestamp: Timestamp) {
    let (number, rest) = timestamp.milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
    if number != day.number {
      let text = description.time(Timestamp(milliseconds: number * 86_400_000))
      day = (number, Array(text.utf8.prefix(11)))
    }
    line.append(day.bytes)
    // Beyond the year 9999 there is no text.
    guard day.bytes.count == 11 else { return }
    let seconds = rest / 1000
    line.appendPair(seconds / 3600)
    line.append(UInt8(ascii: ":"))
    line.appendPair(seconds / 60 % 60)
    line.append(UInt8(ascii: ":"))
    line.appendPair(seconds % 60)
    var left = rest % 1000
    if left > 0 { line.append(UInt8(ascii: ".")) }
    var unit: UInt64 = 100
    while left > 0 {
      line.append(UInt8(ascii: "0") + UInt8(left / unit))
      left %= unit
      unit /= 10
    }
    line.append(UInt8(ascii: "Z"))
  }
}

/// What the events of one block have in common, as text. Nothing of it changes; it holds the block, so that what is
/// read in place stays there.
private final class BlockTexts {
  /// The events of one model that have operation, relationship and fields in common.
  final class Shape {
    /// With spaces around it.
    let operation: [UInt8]
    /// With a space before it; empty for none.
    let relationship: [UInt8]
    /// ` name=` of each field.
    let fields: [(prefix: [UInt8], tag: ValueTag)]

    init(_ block: BlockContents, _ shape: Int, _ model: Model?, _ description: EventDescription) {
      let style = BlockTexts.style(.cyan)
      operation =
        [UInt8(ascii: " ")] + style.before + Array(block.operation(ofShape: shape).name.utf8) + style.after
        + [UInt8(ascii: " ")]
      relationship = block.relationship(ofShape: shape).map { Array(" \($0)".utf8) } ?? []
      fields = block.fields(ofShape: shape).map { field in
        (Array(" \(description.fieldName(field.name, model))=".utf8), field.tag)
      }
    }
  }

  private final class KeyedModel {
    let stored: String
    let model: Model?
    /// `Model[`
    let opening: [UInt8]
    /// What stands before each part of a key.
    let parts: [[UInt8]]
    /// By their numbers in the block.
    let shapes: [Shape]

    init(_ stored: String, _ block: BlockContents, _ description: EventDescription) {
      self.stored = stored
      let model = description.model(storedName: stored)
      self.model = model
      opening = Array("\(model?.name ?? stored)[".utf8)
      let names = model?.keyFields.map { model?.fields[$0].name ?? "" } ?? []
      parts = names.enumerated().map { index, name in
        names.count == 1 ? [] : Array("\(index > 0 ? " " : "")\(name)=".utf8)
      }
      shapes = (0..<block.shapeCount).map { Shape(block, $0, model, description) }
    }
  }

  /// ` name:` of each origin.
  let names: [[UInt8]]
  private let block: BlockContents
  private let description: EventDescription
  private let modelOfKey: [KeyedModel]

  init(_ block: BlockContents, _ description: EventDescription) {
    self.block = block
    self.description = description
    names = block.origins.map { Array(" \(description.name(of: $0)):".utf8) }
    var models: [KeyedModel] = []
    modelOfKey = (0..<block.reader.keyCount).map { key in
      let stored = block.reader.model(ofKey: key)
      // Keys are sorted: those of one model stand together.
      if let last = models.last, last.stored == stored { return last }
      if let known = models.first(where: { $0.stored == stored }) { return known }
      models.append(KeyedModel(stored, block, description))
      return models[models.count - 1]
    }
  }

  /// What stands around styled text.
  static func style(_ style: Output.Style) -> (before: [UInt8], after: [UInt8]) {
    let parts = Output.styled("|", style).split(separator: "|", omittingEmptySubsequences: false)
    return (Array(parts[0].utf8), Array(parts[1].utf8))
  }

  func shape(_ outline: BlockContents.Outline) -> Shape { modelOfKey[outline.key].shapes[outline.shape] }

  // MARK: Records

  /// `Model[key]`
  func appendRecord(_ key: Int, to line: inout LineBuffer) {
    let keyed = modelOfKey[key]
    line.append(keyed.opening)
    if !appendPlain(block.keyBytes(key), keyed.parts, to: &line) {
      line.append(description.keyText(block.reader.record(key).key, keyed.model))
    }
    line.append(UInt8(ascii: "]"))
  }

  /// Appends a key of plain texts as `KeyWords` has it, from its encoded bytes; false, and nothing appended, for
  /// all others.
  private func appendPlain(
    _ encoded: UnsafeRawBufferPointer, _ parts: [[UInt8]], to line: inout LineBuffer
  ) -> Bool {
    let start = line.count
    var index = 0
    for (part, before) in parts.enumerated() {
      guard index < encoded.count, encoded[index] == 0x02 else { break }
      if !before.isEmpty { line.append(before) }
      index += 1
      let first = index
      while index < encoded.count, Self.isBare(encoded[index]) { index += 1 }
      guard index > first, index < encoded.count, encoded[index] == 0 else { break }
      if encoded[first] == UInt8(ascii: "-") { break }
      line.append(UnsafeRawBufferPointer(rebasing: encoded[first..<index]))
      index += 1
      if part == parts.count - 1, index == encoded.count { return true }
    }
    line.cut(to: start)
    return false
  }

  /// Whether no shell and no rule for keys asks for quotes around this byte.
  @inline(__always)
  private static func isBare(_ byte: UInt8) -> Bool {
    let lower = byte | 0x20
    return (lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z"))
      || (byte >= UInt8(ascii: "-") && byte <= UInt8(ascii: "9")) || byte == UInt8(ascii: "_")
  }

  // MARK: Values

  /// Texts up to this length, with their quotes, are never cut.
  private static let shortest = EventText.width - 2

  func append(_ assignment: Int, _ tag: ValueTag, to line: inout LineBuffer) {
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

  /// Whether each byte stands for itself in JSON, and is one character.
  @inline(__always)
  private static func isPlain(_ text: UnsafeRawBufferPointer) -> Bool {
    var isPlain = true
    for byte in text {
      isPlain =
        isPlain && byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }
    return isPlain
  }
}
