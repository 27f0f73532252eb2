import ArgumentParser
import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode

/// Buffered standard output, and messages on standard error.
enum Output {
  /// Bytes that are not written yet. Commands run on one thread.
  nonisolated(unsafe) private static var buffer: [UInt8] = []
  private static let threshold = 64 << 10
  /// Output that waits longer is written with the next line, so a slow search shows each match
  /// immediately.
  private static let patienceMilliseconds = 50
  nonisolated(unsafe) private static var flushed = Int.min / 2

  /// The consequence of failed output, for error messages.
  nonisolated(unsafe) static var consequence: String?

  /// Whether the reader has closed the pipe and the command continues.
  nonisolated(unsafe) private(set) static var isUnread = false

  /// Continues after the reader closes the pipe and discards further output.
  static func goesOnUnread() { signal(SIGPIPE, SIG_IGN) }

  static let isTerminal = isatty(1) == 1
  static let isErrorTerminal = isatty(2) == 1
  /// Color on a terminal, unless NO_COLOR (no-color.org) is set.
  static let isColoured =
    isTerminal && (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty
    && ProcessInfo.processInfo.environment["TERM"] != "dumb"

  static func line(_ text: String = "") {
    buffer.append(contentsOf: text.utf8)
    buffer.append(10)
    flushIfDue()
  }

  static func line(_ json: JSON) {
    json.append(to: &buffer)
    buffer.append(10)
    flushIfDue()
  }

  private static func flushIfDue() {
    guard buffer.count < threshold else {
      flush()
      return
    }
    if isDue() { flush() }
  }

  /// Whether buffered output should be written. Every line asks, so a coarse clock keeps the cost
  /// negligible.
  private static func isDue() -> Bool {
    var time = timespec()
    #if os(Linux)
      clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    #else
      clock_gettime(CLOCK_MONOTONIC_RAW_APPROX, &time)
    #endif
    let now = time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    if now - flushed < patienceMilliseconds { return false }
    flushed = now
    return true
  }

  /// Writes complete lines that another buffer has gathered, if there are many or they have waited.
  ///
  /// - Returns: whether they were written.
  static func writeIfDue(_ lines: UnsafeRawBufferPointer) -> Bool {
    guard lines.count >= threshold || isDue() else { return false }
    flush()
    write(lines, to: 1)
    return true
  }

  static func bytes(_ bytes: [UInt8]) {
    buffer.append(contentsOf: bytes)
    if buffer.count >= threshold { flush() }
  }

  static func flush() {
    buffer.withUnsafeBytes { write($0, to: 1) }
    buffer.removeAll(keepingCapacity: true)
  }

  /// Whether a line can be written without waiting for a paused reader. The write reports errors of
  /// the descriptor.
  static func takesALine(_ descriptor: Int32) -> Bool {
    var asked = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return poll(&asked, 1, 0) != 0
  }

  static func warning(_ text: String) { error("warning: " + printable(text)) }
  static func warning(_ notice: Notice) { warning(notice.withCommands) }

  static func error(_ text: String) {
    flush()
    Array((text + "\n").utf8).withUnsafeBytes { write($0, to: 2) }
  }

  /// Ends the process with a one-line error that names the object, the cause and the next action.
  static func failure(_ explanation: Explanation) -> Never {
    error("stemma: " + printable(explanation.message, as: .lines))
    Pager.end()
    Foundation.exit(explanation.exitCode.rawValue)
  }

  /// A closed reader ends the process by SIGPIPE, unless that is ignored. A full disk is an
  /// ordinary error.
  private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) {
    var offset = 0
    while offset < bytes.count {
      if descriptor == 1, isUnread { return }
      let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
      let count = System.uninterrupted { Foundation.write(descriptor, rest.baseAddress, rest.count) }
      // A descriptor that accepts no bytes would cause an endless loop.
      if count == 0 { errno = EIO }
      if count <= 0 {
        if errno == EPIPE, descriptor == 1 {
          isUnread = true
          return
        }
        if descriptor == 1 {
          let reason = String(cString: strerror(errno))
          let rest = consequence.map { "; " + $0 } ?? ""
          Array("stemma: cannot write to standard output: \(reason)\(rest)\n".utf8).withUnsafeBytes {
            write($0, to: 2)
          }
        }
        Foundation.exit(ExitCode.inputOutput.rawValue)
      }
      offset += count
    }
  }

  enum Style: String {
    case bold = "1"
    case dim = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"
    case cyan = "36"
  }

  static func styled(_ text: String, _ style: Style) -> String {
    isColoured ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
  }
}

/// Rows of text with aligned columns.
struct TextTable {
  private var rows: [[String]] = []
  /// Columns of numbers, aligned right.
  var numeric: Set<Int> = []

  init(_ header: [String] = [], numeric: Set<Int> = []) {
    self.numeric = numeric
    if !header.isEmpty { rows.append(header) }
  }

  mutating func append(_ row: [String]) { rows.append(row) }

  func write(indent: String = "") {
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in
      rows.map { $0.indices.contains(column) ? displayWidth($0[column]) : 0 }.max() ?? 0
    }
    for row in rows {
      var line = indent
      for (column, cell) in row.enumerated() {
        let padding = String(repeating: " ", count: widths[column] - displayWidth(cell))
        if numeric.contains(column) {
          line += padding + cell
        } else {
          line += column == row.count - 1 ? cell : cell + padding
        }
        if column < row.count - 1 { line += "  " }
      }
      if row.last == "" { while line.last == " " { line.removeLast() } }
      Output.line(line)
    }
  }
}

/// A progress bar on standard error, shown only on a terminal and only after one second.
final class ProgressBar {
  private let label: String
  private let began = Date()
  private var lastDrawn = Date.distantPast
  private var isShown = false

  init(_ label: String) { self.label = label }

  func update(_ done: UInt64, of total: UInt64) {
    guard Output.isErrorTerminal else { return }
    let now = Date()
    guard now.timeIntervalSince(began) > 1, now.timeIntervalSince(lastDrawn) > 0.1 else { return }
    lastDrawn = now
    isShown = true
    let share = total == 0 ? 0 : min(1, Double(done) / Double(total))
    let filled = Int(share * 30)
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 30 - filled)
    FileHandle.standardError.write(
      Data("\r\(label) \(bar) \(Int(share * 100)) %  \(done)/\(total)\u{1B}[K".utf8))
  }

  func finish() {
    if isShown { FileHandle.standardError.write(Data("\r\u{1B}[K".utf8)) }
    isShown = false
  }
}
