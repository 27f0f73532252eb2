import CStemma
import Foundation
import StemmaLog

/// A command line that has the terminal while it runs: a pager, an editor.
///
/// Not Foundation's `Process`: that puts it into a group of its own, which a terminal stops when it reads, and it takes a
/// thread, for which it waits for ever where none can be made.
struct ShellCommand {
  private let process: Int32

  /// From here to `wait` what is typed to interrupt is meant for it, and does not end this process.
  ///
  /// - Parameters:
  ///   - argument: what it finds as `$1`.
  ///   - input: the descriptor that it reads as its standard input.
  init(_ command: String, _ argument: String? = nil, input: Int32 = 0) throws(Refusal) {
    var process: Int32 = 0
    let code = stemma_begin_shell(command, argument, input, &process)
    guard code == 0 else { throw Refusal(text: System.text(of: code)) }
    self.process = process
    for number in [SIGINT, SIGQUIT] { signal(number, SIG_IGN) }
  }

  /// Why it could not be begun.
  struct Refusal: Error { var text: String }

  /// Waits for its end.
  ///
  /// - Returns: its exit code; -1 if a signal ended it.
  func wait() -> Int32 {
    defer { for number in [SIGINT, SIGQUIT] { signal(number, SIG_DFL) } }
    return stemma_end_of_shell(process)
  }
}
