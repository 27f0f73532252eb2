import ArgumentParser
import Foundation
import Measuring

/// Peak memory (the largest resident set) of the tool's commands on a large node.
func measureMemory(_ bench: Bench) throws {
  guard let tool = bench.tool else { return bench.say("no --tool: memory is left out") }
  let first = try measureMemory(bench, tool, bench.events)
  for (command, peak) in first {
    bench.add(
      "memory of \(command), \(bench.events) events", ours: peak, baseline: 150, "MB", .atMost(1))
  }
  guard bench.isLong else { return }
  let second = try measureMemory(bench, tool, bench.events * 5)
  for ((command, peak), (_, before)) in zip(second, first) {
    bench.add(
      "memory of \(command), \(bench.events * 5) events", ours: peak, baseline: before, "MB", .atMost(1.2))
  }
}

private func measureMemory(
  _ bench: Bench, _ tool: String, _ events: Int
) throws -> [(command: String, peak: Double)] {
  let node = try bench.node(events)
  let target = try bench.fresh("child")
  defer { do { _ = try bench.fresh("child") } catch {} }
  return try [
    ("rebuild", ["rebuild", "-C", node]), ("verify", ["verify", "-C", node]),
    ("clone", ["clone", node, target]), ("export", ["export", "-C", node]),
  ].map { command, arguments in (command, try peak(of: tool, arguments)) }
}

/// Runs a command through `Peak`, and gives its peak memory in MB.
private func peak(of tool: String, _ arguments: [String]) throws -> Double {
  let process = Process()
  let output = Pipe()
  process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
  process.arguments = ["peak", tool] + arguments
  process.standardOutput = output
  try process.run()
  let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  process.waitUntilExit()
  guard process.terminationStatus == 0,
    let peak = Double(text.trimmingCharacters(in: .whitespacesAndNewlines))
  else { throw BenchError("`stemma \(arguments.joined(separator: " "))` failed") }
  return peak
}

/// Runs a command, its output thrown away, and prints its peak memory in MB.
///
/// A process of its own, because a child begins with the peak of the process that it was spawned from.
struct Peak: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run a command and print its largest resident set in MB.", shouldDisplay: false)

  @Argument(parsing: .captureForPassthrough) var command: [String]

  func run() throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    var child = pid_t()
    guard posix_spawn(&child, command[0], &actions, nil, words, environ) == 0 else {
      throw BenchError("cannot run \(command[0])")
    }
    var status: Int32 = 0
    var usage = rusage()
    guard wait4(child, &status, 0, &usage) == child, status == 0 else {
      throw BenchError("\(command.joined(separator: " ")) failed")
    }
    #if os(Linux)
      print(Double(usage.ru_maxrss) * 1024 / 1e6)
    #else
      print(Double(usage.ru_maxrss) / 1e6)
    #endif
  }
}
