import CStemma
import Foundation
import StemmaLog

/// A command line that controls the terminal while it runs, such as a pager or an editor.
///
/// Foundation's `Process` is not suitable. It creates a separate process group, which the terminal
/// stops on a read. It also needs a thread and waits forever if none can be created.
struct ShellCommand {
  private let process: Int32

  /// Starts the command. Until `wait`, interrupts from the keyboard reach it and do not end this
  /// process.
  ///
  /// - Parameters:
  ///   - argument: the value of `$1`.
  ///   - input: the descriptor of its standard input.
  init(_ command: String, _ argument: String? = nil, input: Int32 = 0) throws(Refusal) {
    var process: Int32 = 0
    let code = stemma_begin_shell(command, argument, input, &process)
    guard code == 0 else { throw Refusal(text: System.text(of: code)) }
    self.process = process
    for number in [SIGINT, SIGQUIT] { signal(number, SIG_IGN) }
  }

  /// The reason why it could not be started.
  struct Refusal: Error { var text: String }

  /// Waits for its end.
  ///
  /// - Returns: the exit code; -1 if a signal ended it.
  func wait() -> Int32 {
    defer { for number in [SIGINT, SIGQUIT] { signal(number, SIG_DFL) } }
    return stemma_end_of_shell(process)
  }
}
