import ArgumentParser
import Foundation

/// Every claim about speed and size, measured beside a baseline that shares no code with the libraries.
///
/// The baselines are written against the bare C interfaces of SQLite, zlib and the file system, run in the same
/// process by turns with what they are compared with, and end in the same rows, which is checked. Of each side the
/// best run counts. A subject is one file in `Subjects`; `Subject.all` lists them.
@main
struct Benchmark: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "benchmark", abstract: "Measures Stemma beside bare SQLite, zlib and files.",
    subcommands: [Measure.self, Peak.self], defaultSubcommand: Measure.self)
}

struct Measure: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure, and print a table.",
    discussion: """
      Times are the wall's; rows that end in `CPU` count processor seconds of all threads, which is what to look \
      at while the machine has other work. STEMMA_DATA names the folder of real data sets; rows that need it are \
      left out without it.
      """)

  @Flag(help: "Print the rows as JSON.") var json = false
  @Flag(help: "A tenth of the events, and each measurement once: about a minute.") var quick = false
  @Flag(help: "Measure memory with five times the events, too.") var long = false
  @Option(help: "Only subjects whose name contains this.") var filter: String?
  @Option(help: "How many events (default: 1000000; with --quick 100000).") var events: Int?
  @Option(help: "How often each side is measured (default: 3; with --quick 1).") var rounds: Int?
  @Option(help: "The stemma tool, for the rows that run it.") var tool: String?
  @Option(help: "Where to work; what is made there is removed afterwards.", completion: .directory)
  var folder: String?

  func run() throws {
    let bench = try Bench(
      events: events ?? (quick ? 100_000 : 1_000_000), rounds: max(1, rounds ?? (quick ? 1 : 3)),
      isLong: long, tool: tool, parent: folder ?? NSTemporaryDirectory())
    defer { bench.removeFiles() }
    let subjects = Subject.all.filter { subject in filter.map { subject.name.contains($0) } ?? true }
    guard !subjects.isEmpty else {
      throw ValidationError(
        "no subject is called so; there are \(Subject.all.map(\.name).joined(separator: ", "))")
    }
    for subject in subjects {
      bench.say(subject.name)
      try subject.measure(bench)
      if !json { Report.print(bench.takeNewRows()) }
    }
    if json { print(try Report.json(bench.rows)) }
    if !json { Report.printSummary(bench.rows) }
  }
}

/// Some rows that are measured together.
struct Subject: Sendable {
  let name: String
  let measure: @Sendable (Bench) throws -> Void

  /// In the order in which they run; the first ones make what the later ones use.
  static let all: [Subject] = [
    Subject(name: "import", measure: measureImport),
    Subject(name: "import-git", measure: measureGitImport),
    Subject(name: "commit", measure: measureCommits),
    Subject(name: "rebuild", measure: measureRebuild),
    Subject(name: "read", measure: measureReading),
    Subject(name: "size", measure: measureSizes),
    Subject(name: "pull", measure: measurePulls),
    Subject(name: "clone", measure: measureClone),
    Subject(name: "open", measure: measureOpening),
    Subject(name: "memory", measure: measureMemory),
  ]
}
