import Foundation
import StemmaLog
import StemmaNode

/// Shows output on a terminal page by page, with STEMMA_PAGER, else PAGER, else `less -FRX`.
///
/// `cat` or an empty value disables it. A missing program also disables it. The command ends with
/// the pager.
enum Pager {
  nonisolated(unsafe) private static var process: ShellCommand?

  /// Redirects standard output into a pager if it is a terminal.
  static func begin() {
    guard Output.isTerminal, process == nil else { return }
    let environment = ProcessInfo.processInfo.environment
    let wish = environment["STEMMA_PAGER"] ?? environment["PAGER"]
    let command = wish ?? "less -FRX"
    guard !command.isEmpty, command != "cat" else { return }
    if let program = missingProgram(command, environment["PATH"] ?? "/usr/bin:/bin") {
      if wish != nil { Output.warning("there is no pager `\(program)`") }
      return
    }
    // Decides about color before the redirection.
    _ = Output.isColoured
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else {
      Output.warning("cannot start the pager `\(command)`: \(System.text(of: errno))")
      return
    }
    // Otherwise the pager would inherit the write end and never see the end of its input.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    do throws(ShellCommand.Refusal) {
      process = try ShellCommand(command, input: ends[0])
      dup2(ends[1], 1)
    } catch { Output.warning("cannot start the pager `\(command)`: \(error.text)") }
    for end in ends { close(end) }
  }

  /// The program of a command line, if it does not exist. Also nil if only a shell can decide.
  private static func missingProgram(_ command: String, _ path: String) -> String? {
    let first = command.split(separator: " ").first.map(String.init) ?? ""
    let isPlain = first.utf8.allSatisfy { byte in
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
        || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) || "-_./".utf8.contains(byte)
    }
    guard isPlain, !first.isEmpty else { return nil }
    let places =
      first.contains("/") ? [first] : path.split(separator: ":").map { $0 + "/" + first }
    return places.contains { access($0, X_OK) == 0 } ? nil : first
  }

  /// Waits until the user has closed the pager.
  static func end() {
    guard let process else { return }
    self.process = nil
    close(1)
    _ = process.wait()
  }
}
