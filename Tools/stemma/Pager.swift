import Foundation
import StemmaNode

/// Shows what a command prints on a terminal page by page: with STEMMA_PAGER, else PAGER, else `less -FRX`.
///
/// `cat` or an empty text turn it off. When the pager ends, so does the command.
enum Pager {
  nonisolated(unsafe) private static var process: Process?

  /// Leads standard output into a pager, on a terminal. Everything that is printed after comes there.
  static func begin() {
    guard Output.isTerminal, process == nil else { return }
    let environment = ProcessInfo.processInfo.environment
    let command = environment["STEMMA_PAGER"] ?? environment["PAGER"] ?? "less -FRX"
    guard !command.isEmpty, command != "cat" else { return }
    // Colour is decided by the terminal that is there now.
    _ = Output.isColoured
    let pipe = Pipe()
    let pager = Process()
    pager.executableURL = URL(fileURLWithPath: "/bin/sh")
    pager.arguments = ["-c", command]
    pager.standardInput = pipe.fileHandleForReading
    do { try pager.run() } catch {
      Output.warning("cannot start the pager `\(command)`: \(error.localizedDescription)")
      return
    }
    dup2(pipe.fileHandleForWriting.fileDescriptor, 1)
    do {
      try pipe.fileHandleForWriting.close()
      try pipe.fileHandleForReading.close()
    } catch { Output.warning("\(error)") }
    process = pager
  }

  /// Waits until the reader has seen everything.
  static func end() {
    guard let process else { return }
    self.process = nil
    close(1)
    process.waitUntilExit()
  }
}
