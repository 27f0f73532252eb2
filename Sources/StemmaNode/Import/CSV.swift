import StemmaEvents

/// Rows of text, as RFC 4180 has them: cells with a delimiter between; lines end with LF or CRLF. A cell is in quotes
/// where it holds the delimiter, a quote (doubled) or the end of a line. Here a cell without quotes and without text is
/// null, and `""` is the empty text, so that what is written is read as it was.
package enum CSV {
  /// How the rows of a file are written.
  package struct Dialect: Sendable {
    /// Between cells; neither a quote nor the end of a line.
    package var delimiter = UInt8(ascii: ",")
    /// Whether the first row names the fields. Without it the cells are the fields in the order of the schema; with
    /// `--map` the columns are called 1, 2, 3.
    package var hasHeader = true
    /// Cells without quotes that are null.
    package var nulls: [[UInt8]] = [[]]
    package var encoding = Encoding.utf8
    package init() {}
  }

  package enum Encoding: String, CaseIterable, Sendable {
    case utf8, latin1
  }

  /// One row with its end, which is LF. Nil stands for null.
  package static func line(_ cells: [String?]) -> [UInt8] {
    let quoted = cells.map { cell in
      guard let cell else { return "" }
      let isPlain = !cell.isEmpty && !cell.utf8.contains { [0x22, 0x2C, 0x0A, 0x0D].contains($0) }
      return isPlain ? cell : "\"" + cell.replacing("\"", with: "\"\"") + "\""
    }
    return Array((quoted.joined(separator: ",") + "\n").utf8)
  }

  struct Row {
    /// The line that it begins with, and the one that it ends with.
    var line: Int
    var lastLine: Int
    /// The cells' bytes one after the other; `ends` has the end of each.
    var bytes: [UInt8] = []
    var ends: [Int] = []
    var isQuoted: [Bool] = []
    /// As the file has it, without its end.
    var text: [UInt8] = []
    /// The mistake of the row by itself, if it has one.
    var flaw: String?

    /// Nil for bytes that are no text.
    func cell(_ index: Int, _ encoding: Encoding) -> String? {
      switch encoding {
      case .utf8: return String(validating: bytes(index), as: UTF8.self)
      case .latin1:
        // The first 256 code points of Unicode are those of ISO 8859-1.
        var text = String.UnicodeScalarView()
        for byte in bytes(index) { text.append(Unicode.Scalar(byte)) }
        return String(text)
      }
    }
    func isNull(_ index: Int, _ nulls: [[UInt8]]) -> Bool {
      !isQuoted[index] && nulls.contains { bytes(index).elementsEqual($0) }
    }
    private func bytes(_ index: Int) -> ArraySlice<UInt8> {
      bytes[(index == 0 ? 0 : ends[index - 1])..<ends[index]]
    }
  }

  /// Reads rows; memory is bounded by the longest one, which may have as many bytes as a line.
  final class Reader {
    private enum State { case start, plain, quoted, closed }

    private var lines: LineReader
    private let delimiter: UInt8

    init(_ path: String, _ delimiter: UInt8) throws(NodeError) {
      lines = try LineReader(path: path)
      lines.keepsReturns = true
      self.delimiter = delimiter
    }

    var lineNumber: Int { lines.lineNumber }
    var bytesRead: Int { lines.bytesRead }

    func checkInvariants() { lines.checkInvariants() }

    /// The next row; nil at the end. Lines without anything are passed over.
    func next() throws(SourceError) -> Row? {
      var row = Row(line: 0, lastLine: 0)
      var state = State.start
      while true {
        let number = lines.lineNumber + 1
        if state != .quoted { row.line = number }
        let isEmpty: Bool?
        do throws(NodeError) {
          isEmpty = try lines.next { line throws(NodeError) -> Bool in
            if state != .quoted, line.isEmpty || (line.count == 1 && line[0] == 13) { return true }
            guard row.text.count + line.count < LineReader.limit else {
              throw .lineTooLong(source: "", line: row.line, limit: LineReader.limit)
            }
            read(line, &row, &state)
            return false
          }
        } catch { throw SourceError(line: row.line, reason: error) }
        switch isEmpty {
        case nil:
          guard state == .quoted else { return nil }
          throw SourceError(
            line: row.line,
            reason: .malformedInput(
              source: "", what: "a quote that begins in this row is never closed; close it"))
        case true?: continue
        case false?: break
        }
        row.lastLine = number
        if state != .quoted { return row }
      }
    }

    /// Reads one line of a row, all of it unless a quote is open at its end.
    private func read(_ line: UnsafeRawBufferPointer, _ row: inout Row, _ state: inout State) {
      if state == .quoted {
        row.text.append(10)
        row.bytes.append(10)
      }
      var line = line
      row.text.append(contentsOf: line)
      // The end of the line belongs to the row only inside of quotes; whether it does is known at its end.
      let endsWithReturn = line.last == 13
      if endsWithReturn { line = UnsafeRawBufferPointer(rebasing: line.dropLast()) }
      for byte in line {
        switch state {
        case .start, .plain:
          if byte == delimiter {
            end(&row, &state)
          } else if byte == 0x22, state == .start {
            state = .quoted
          } else {
            row.bytes.append(byte)
            state = .plain
          }
        case .quoted:
          if byte == 0x22 { state = .closed } else { row.bytes.append(byte) }
        case .closed:
          if byte == 0x22 {
            row.bytes.append(0x22)
            state = .quoted
          } else if byte == delimiter {
            end(&row, &state, isQuoted: true)
          } else {
            row.flaw = "text follows a closing quote; double the quotes inside of a cell"
            row.bytes.append(byte)
          }
        }
      }
      if state == .quoted {
        if endsWithReturn { row.bytes.append(13) }
      } else {
        if endsWithReturn { row.text.removeLast() }
        end(&row, &state, isQuoted: state == .closed)
      }
    }

    private func end(_ row: inout Row, _ state: inout State, isQuoted: Bool = false) {
      row.ends.append(row.bytes.count)
      row.isQuoted.append(isQuoted)
      state = .start
    }
  }
}
