import ArgumentParser
import Measuring

/// What is claimed about the speed of the Swift library, beside hand-written loops over SQLite's C interface, the
/// tool's import, and GRDB's records.
///
/// A program of its own, because whatever depends on the library compiles its macros too.
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
    ])
  }
}
