import StemmaEvents
import StemmaNode

/// Rows of text as in RFC 4180: cells between delimiters; lines end with LF or CRLF. A cell with a
/// delimiter, a quote (duplicate) or a line end is quoted. An unquoted empty cell is null and `""`
/// is the empty text, so that written rows are read back unchanged.
package enum CSV {
  /// The dialect of a file.
  package struct Dialect: Sendable {
    /// The byte between cells; neither a quote nor a line end.
    package var delimiter = UInt8(ascii: ",")
    /// Whether the first row names the fields. Otherwise the cells are the fields in schema order;
    /// with `--map` the columns are named 1, 2, 3.
    package var hasHeader = true
    /// Unquoted cells that are null.
    package var nulls: [[UInt8]] = [[]]
    package var encoding = Encoding.utf8
    package init() {}
  }

  package enum Encoding: String, CaseIterable, Sendable {
    case utf8, latin1
  }

  /// One row with an LF as its end. A nil cell is null.
  package static func line(_ cells: [String?]) -> [UInt8] {
    let quoted = cells.map { cell in
      guard let cell else { return "" }
      let isPlain = !cell.isEmpty && !cell.utf8.contains { [0x22, 0x2C, 0x0A, 0x0D].contains($0) }
      return isPlain ? cell : "\"" + cell.replacing("\"", with: "\"\"") + "\""
    }
    return Array((quoted.joined(separator: ",") + "\n").utf8)
  }

  struct Row {
    /// The first and the last line of the row.
    var line: Int
    var lastLine: Int
    /// The concatenated bytes of the cells; `ends` holds the end of each.
    var bytes: [UInt8] = []
    var ends: [Int] = []
    var isQuoted: [Bool] = []
    /// The row as in the file, without its line end.
    var text: [UInt8] = []
    /// A syntax error of this row.
    var flaw: String?

    /// Nil if the bytes are not valid text.
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

  /// Reads rows. Memory is bounded by the longest row, which may have as many bytes as a line.
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

    /// The next row; nil at the end. Skips empty lines.
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

    /// Reads one line, which completes the row unless a quote is open at its end.
    private func read(_ line: UnsafeRawBufferPointer, _ row: inout Row, _ state: inout State) {
      if state == .quoted {
        row.text.append(10)
        row.bytes.append(10)
      }
      var line = line
      row.text.append(contentsOf: line)
      // The `\r` belongs to the row only inside quotes, which is known only at the end of the line.
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
