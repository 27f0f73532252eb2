import ArgumentParser
import Foundation

/// The options of a measuring command, and its main loop.
package struct MeasureOptions: ParsableArguments {
  @Flag(help: "Print the rows as JSON.") var json = false
  @Flag(help: "A tenth of the events, and most measurements once: about a minute.") var quick = false
  @Flag(help: "Measure memory with five times the events, too.") var long = false
  @Option(help: "Only subjects whose name contains this; those of the library begin with `library-`.")
  var filter: String?
  @Option(help: "How many events (default: 1000000; with --quick 100000).") var events: Int?
  @Option(help: "How often each side is measured (default: 3; with --quick 1); short ones more often.")
  var rounds: Int?
  @Option(help: "The stemma tool, for the rows that run it.") var tool: String?
  @Option(
    help: "Also import this file of mutations (NDJSON, .gz too), with --schema.", completion: .file())
  var data: String?
  @Option(help: "The schema of --data.", completion: .file()) var schema: String?
  @Option(help: "The working directory; files made there are removed afterwards.", completion: .directory)
  var folder: String?

  package init() {}

  package func validate() throws {
    if (data == nil) != (schema == nil) { throw ValidationError("--data and --schema go together.") }
    for path in [data, schema, tool].compactMap(\.self)
    where !FileManager.default.isReadableFile(atPath: path) {
      throw ValidationError("\(path) cannot be read.")
    }
    if let events, events < 1000 { throw ValidationError("--events: 1000 are the fewest that say anything.") }
    if let rounds, rounds < 1 { throw ValidationError("--rounds: each side is measured once at least.") }
  }

  /// Measures the subjects and prints the rows.
  package func measure(_ all: [Subject]) async throws {
    let subjects = all.filter { subject in filter.map { subject.name.contains($0) } ?? true }
    guard !subjects.isEmpty else {
      throw ValidationError(
        "No subject has \(filter ?? "") in its name; there are \(all.map(\.name).joined(separator: ", ")).")
    }
    let bench = try Bench(
      events: events ?? (quick ? 100_000 : 1_000_000), rounds: rounds ?? (quick ? 1 : 3),
      isLong: long, tool: tool, parent: folder ?? NSTemporaryDirectory(),
      own: data.flatMap { data in schema.map { Bench.OwnData(lines: data, schema: $0) } })
    defer { bench.removeFiles() }
    for subject in subjects {
      bench.say(subject.name)
      try await subject.measure(bench)
      if !json { Report.print(bench.takeNewRows()) }
    }
    guard !bench.rows.isEmpty else { throw BenchError("nothing was measured") }
    if json { print(try Report.json(bench.rows)) } else { Report.printSummary(bench.rows) }
  }
}

/// A group of rows that are measured together.
package struct Subject: Sendable {
  package let name: String
  package let measure: @Sendable (Bench) async throws -> Void

  package init(name: String, measure: @escaping @Sendable (Bench) async throws -> Void) {
    self.name = name
    self.measure = measure
  }
}
