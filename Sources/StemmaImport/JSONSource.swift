import StemmaEvents
import StemmaNode
import StemmaSchema

/// Interprets the JSON values of a source.
protocol RecordForm {
  /// Returns nil for a value that changes nothing.
  mutating func change(_ text: UnsafeRawBufferPointer) throws(MutationError) -> SourceChange?
  /// Warnings about the values read so far, one sentence each.
  var notices: [String] { get }
  /// The tokens at the start of a text that holds its records in one array.
  var arrayOpening: [String] { get }
}

struct SourceChange {
  var mutation: Mutation
  /// Nil if the source is no feed.
  var position: FeedPosition?
}

/// Mutations; with a model also rows of it.
struct MutationRecords: RecordForm {
  private let model: Model?
  private var rows: RowObjects?
  let arrayOpening = ["["]

  init(_ model: Model?, _ schema: Schema, _ columns: ColumnNames) {
    self.model = model
    rows = model.map { RowObjects($0, schema, columns) }
  }

  var notices: [String] {
    rows.map { $0.ignored.isEmpty ? [] : [ColumnNames.notice($0.ignored)] } ?? []
  }

  mutating func change(_ text: UnsafeRawBufferPointer) throws(MutationError) -> SourceChange? {
    let members = try JSON.members(of: text)
    if rows?.isRow(members) == true, let mutation = try rows?.mutation(members) {
      return SourceChange(mutation: mutation)
    }
    return SourceChange(mutation: try Mutation(members: members, defaultModel: model?.name))
  }
}

/// JSON values, one a line, or the elements of one array. `lineNumber` then counts elements.
final class JSONSource: MutationSource {
  private var reader: LineReader
  private let firstLine: Int
  private var form: any RecordForm
  private let keepsText: Bool
  /// Nil until the first byte is read.
  private var isArray: Bool?
  private var isAtEnd = false
  let header: [UInt8] = []

  /// Lines before `firstLine` are not parsed as mutations.
  init(_ path: String, firstLine: Int, _ form: any RecordForm, keepsText: Bool) throws(NodeError) {
    reader = try LineReader(path: path)
    self.firstLine = firstLine
    self.form = form
    self.keepsText = keepsText
  }

  var lineNumber: Int { reader.lineNumber }
  var bytesRead: Int { reader.bytesRead }
  var notices: [String] { form.notices }

  func checkInvariants() { reader.checkInvariants() }

  func next() throws(SourceError) -> SourceItem? {
    while !isAtEnd {
      let number = reader.lineNumber + 1
      let read: SourceItem??
      do throws(NodeError) {
        if isArray == nil { isArray = try reader.consume(form.arrayOpening) }
        if isArray == true {
          read = try reader.nextElement { text throws(NodeError) in item(text, number) }
          if read == nil { try checkTail() }
        } else {
          read = try reader.next { text throws(NodeError) in item(text, number) }
        }
      } catch { throw SourceError(line: number, reason: error) }
      guard let read else {
        isAtEnd = true
        return nil
      }
      if let item = read { return item }
    }
    return nil
  }

  private func item(_ text: UnsafeRawBufferPointer, _ number: Int) -> SourceItem? {
    guard number >= firstLine, isArray == true || text.contains(where: { $0 != 0x20 && $0 != 0x09 }) else {
      return nil
    }
    let mutation: Result<Mutation, MutationError>
    var position: FeedPosition?
    do throws(MutationError) {
      guard let change = try form.change(text) else { return nil }
      mutation = .success(change.mutation)
      position = change.position
    } catch { mutation = .failure(error) }
    // The file of refused lines has one value a line. Line ends inside a value are white space.
    let kept = keepsText ? text.map { $0 == 10 || $0 == 13 ? 0x20 : $0 } : []
    return SourceItem(line: number, lastLine: number, mutation: mutation, text: kept, position: position)
  }

  /// Checks that the array and the text around it are complete.
  private func checkTail() throws(NodeError) {
    let text = Array((form.arrayOpening.joined() + "]").utf8) + (try reader.rest())
    do { _ = try JSON.parse(text) } catch { throw reader.cutShort }
  }
}
