import ArgumentParser
import Measuring

/// Every claim about speed and size, measured against a baseline that shares no code with the
/// libraries.
///
/// The baselines use the bare C interfaces of SQLite, zlib and the file system. Both sides
/// alternate in one process and must produce the same rows, which is checked. The best run of each
/// side counts. A subject is one file in `Subjects`; `Subject.all` lists them.
@main
struct Benchmark: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "benchmark", abstract: "Measures Stemma beside bare SQLite, zlib and files.",
    subcommands: [Measure.self, Child.self], defaultSubcommand: Measure.self)
}

struct Measure: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure, and print a table.",
    discussion: """
      Times are the wall's; rows that end in `CPU` count processor seconds of all threads, which is what to look \
      at while the machine has other work. STEMMA_DATA names the folder of real data sets; rows that need it are \
      left out without it.
      """)

  @OptionGroup var options: MeasureOptions

  func run() async throws { try await options.measure(Subject.all) }
}

extension Subject {
  /// In execution order: later subjects use the files of earlier ones.
  static let all: [Subject] = [
    Subject(name: "import", measure: measureImport),
    Subject(name: "import-git", measure: measureGitImport),
    Subject(name: "import-file", measure: measureFileImport),
    Subject(name: "parse", measure: measureParsing),
    Subject(name: "commit", measure: measureCommits),
    Subject(name: "rebuild", measure: measureRebuild),
    Subject(name: "read", measure: measureReading),
    Subject(name: "deflate", measure: measureDeflate),
    Subject(name: "size", measure: measureSizes),
    Subject(name: "partitions", measure: measurePartitions),
    Subject(name: "pull", measure: measurePulls),
    Subject(name: "clone", measure: measureClone),
    Subject(name: "open", measure: measureOpening),
    Subject(name: "inspect", measure: measureInspection),
    Subject(name: "conflicts", measure: measureConflicts),
    Subject(name: "views", measure: measureViews),
    Subject(name: "memory", measure: measureMemory),
    Subject(name: "peers-clone", measure: measurePeersClone),
    Subject(name: "peers-pull", measure: measurePeersPull),
    Subject(name: "peers-follow", measure: measurePeersFollowing),
    Subject(name: "peers-commits", measure: measurePeersCommits),
    Subject(name: "peers-nats", measure: measurePeersNATS),
    Subject(name: "hubs", measure: measureHubs),
  ]
}
