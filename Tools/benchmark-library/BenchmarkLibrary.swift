import ArgumentParser
import Measuring

/// Every claim about the speed of the Swift library, measured against handwritten loops over
/// SQLite's C interface, the tool's import, and GRDB's records.
///
/// It is a separate program, because every dependent of the library compiles its macros too.
@main
struct BenchmarkLibrary: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "benchmark-library", abstract: "Measures Stemma's Swift library beside bare SQLite and GRDB."
  )

  @OptionGroup var options: MeasureOptions

  func run() async throws {
    try await options.measure([
      Subject(name: "library-fetch", measure: measureFetch),
      Subject(name: "library-find", measure: measureFind),
      Subject(name: "library-insert", measure: measureInsert),
      Subject(name: "library-relaxed", measure: measureRelaxedInserts),
    ])
  }
}
