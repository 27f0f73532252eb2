import ArgumentParser
import Foundation

/// What a command that measures is told, and how it goes about it.
package struct MeasureOptions: ParsableArguments {
  @Flag(help: "Print the rows as JSON.") var json = false
  @Flag(help: "A tenth of the events, and each measurement once: about a minute.") var quick = false
  @Flag(help: "Measure memory with five times the events, too.") var long = false
  @Option(help: "Only subjects whose name contains this.") var filter: String?
  @Option(help: "How many events (default: 1000000; with --quick 100000).") var events: Int?
  @Option(help: "How often each side is measured (default: 3; with --quick 1).") var rounds: Int?
  @Option(help: "The stemma tool, for the rows that run it.") var tool: String?
  @Option(
    help: "Also import this file of mutations (NDJSON, .gz too), with --schema.", completion: .file())
  var data: String?
  @Option(help: "The schema of --data.", completion: .file()) var schema: String?
  @Option(help: "Where to work; what is made there is removed afterwards.", completion: .directory)
  var folder: String?

  package init() {}

  package func validate() throws {
    if (data == nil) != (schema == nil) { throw ValidationError("--data and --schema go together.") }
  }

  /// Measures, and prints what comes out.
  package func measure(_ all: [Subject]) async throws {
    let bench = try Bench(
      events: events ?? (quick ? 100_000 : 1_000_000), rounds: max(1, rounds ?? (quick ? 1 : 3)),
      isLong: long, tool: tool, parent: folder ?? NSTemporaryDirectory(),
      own: data.flatMap { data in schema.map { Bench.OwnData(lines: data, schema: $0) } })
    defer { bench.removeFiles() }
    let subjects = all.filter { subject in filter.map { subject.name.contains($0) } ?? true }
    guard !subjects.isEmpty else {
      throw ValidationError(
        "no subject is called so; there are \(all.map(\.name).joined(separator: ", "))")
    }
    for subject in subjects {
      bench.say(subject.name)
      try await subject.measure(bench)
      if !json { Report.print(bench.takeNewRows()) }
    }
    if json { print(try Report.json(bench.rows)) }
    if !json { Report.printSummary(bench.rows) }
  }
}

/// Some rows that are measured together.
package struct Subject: Sendable {
  package let name: String
  package let measure: @Sendable (Bench) async throws -> Void

  package init(name: String, measure: @escaping @Sendable (Bench) async throws -> Void) {
    self.name = name
    self.measure = measure
  }
}
