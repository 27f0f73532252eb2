import ArgumentParser

/// The suites that take too long for a debug test run. Each prints `N passed, N failed` and exits
/// with 1 if a case failed.
@main
struct Simulate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Runs Stemma's exhaustive and randomised suites.",
    subcommands: [Laws.self, Faults.self, HubSchedules.self])
}
