import ArgumentParser
import Foundation
import Measuring

/// The resources that a command used.
struct ChildCost: Codable {
  /// The largest resident set, in MB.
  var peak = Double.infinity
  /// Seconds of processor time, in user and system mode.
  var cpu = Double.infinity
  var wall = Double.infinity

  /// Runs a command through `Child`.
  static func of(_ tool: String, _ arguments: [String]) throws -> ChildCost {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
    process.arguments = ["child", tool] + arguments
    process.standardOutput = output
    try process.run()
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw BenchError("`stemma \(arguments.joined(separator: " "))` failed")
    }
    return try JSONDecoder().decode(ChildCost.self, from: text)
  }

  /// The best of several runs.
  static func best(of rounds: Int, _ tool: String, _ arguments: [String]) throws -> ChildCost {
    var best = ChildCost()
    for _ in 0..<rounds {
      let cost = try of(tool, arguments)
      best.peak = min(best.peak, cost.peak)
      best.cpu = min(best.cpu, cost.cpu)
      best.wall = min(best.wall, cost.wall)
    }
    return best
  }
}

/// Runs a command, discards its output through a pipe, and prints a `ChildCost`.
///
/// It is a separate process because a child starts with the peak memory of its parent.
struct Child: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run a command and print what it took.", shouldDisplay: false)

  @Argument(parsing: .captureForPassthrough) var command: [String]

  func run() throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw BenchError("cannot make a pipe") }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    for end in ends { posix_spawn_file_actions_addclose(&actions, end) }
    var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    let began = Cost.wallSeconds()
    var child = pid_t()
    guard posix_spawn(&child, command[0], &actions, nil, words, environ) == 0 else {
      throw BenchError("cannot run \(command[0])")
    }
    close(ends[1])
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    while read(ends[0], &bytes, bytes.count) > 0 {}
    var status: Int32 = 0
    var usage = rusage()
    guard wait4(child, &status, 0, &usage) == child, status == 0 else {
      throw BenchError("\(command.joined(separator: " ")) failed")
    }
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    var cost = ChildCost()
    cost.wall = Cost.wallSeconds() - began
    cost.cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime)
    #if os(Linux)
      cost.peak = Double(usage.ru_maxrss) * 1024 / 1e6
    #else
      cost.peak = Double(usage.ru_maxrss) / 1e6
    #endif
    print(String(decoding: try JSONEncoder().encode(cost), as: UTF8.self))
  }
}
