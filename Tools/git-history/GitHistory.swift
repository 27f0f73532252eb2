import ArgumentParser
import Foundation
import StemmaEvents

@main
struct GitHistory: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "git-history",
    abstract: "Prints the history of a git repository as mutations, one JSON object a line.",
    discussion: """
      Follows the first parents from the first commit to HEAD. Each commit is compared with its first \
      parent; an exact rename is a deletion and a creation with renamedFrom. `stemma init --schema` takes \
      what --schema prints, `stemma import` the rest.
      """)

  @Argument(help: "A directory in the repository.")
  var repository = "."

  @Option(help: "The name of the repository in keys; its directory's name if absent.")
  var repo: String?

  @Flag(help: "Print the schema (GraphQL SDL) and nothing else.")
  var schema = false

  func run() throws {
    do {
      if schema {
        try FileHandle.standardOutput.write(contentsOf: Data(HistorySchema.sdl.utf8))
      } else {
        try printHistory()
      }
    } catch let error as GitHistoryError {
      try FileHandle.standardError.write(contentsOf: Data("git-history: \(error)\n".utf8))
      throw ExitCode(error.exitCode)
    }
  }

  private func printHistory() throws {
    let find = try GitProcess(
      in: repository, ["rev-parse", "--path-format=absolute", "--git-common-dir"], quiet: true)
    let place = try find.rest()
    // `env` exits with 127 if git is not installed.
    guard try find.finish(accepting: { $0 != 127 }) == 0 else {
      throw GitHistoryError.notARepository(repository)
    }
    // A repository without commits is not an error.
    let head = try GitProcess(in: repository, ["rev-parse", "--verify", "-q", "HEAD"], quiet: true)
    _ = try head.rest()
    guard try head.finish(accepting: { _ in true }) == 0 else { return }

    var log = try CommitLog(of: repository)
    let sizes = try BlobSizes(of: repository)
    var replay = HistoryReplay(repo: repo ?? Self.name(ofGitDirectory: place))
    var bytes: [UInt8] = []
    while let commit = try log.next() {
      for mutation in try replay.mutations(of: commit, sizes: sizes.sizes) { mutation.append(to: &bytes) }
      if bytes.count >= 1 << 16 { try flush(&bytes) }
    }
    try sizes.finish()
    try flush(&bytes)
  }

  private func flush(_ bytes: inout [UInt8]) throws {
    try FileHandle.standardOutput.write(contentsOf: Data(bytes))
    bytes.removeAll(keepingCapacity: true)
  }

  /// `/a/b/.git` and `/a/b.git` are both `b`.
  private static func name(ofGitDirectory path: String) -> String {
    let parts = path.split(whereSeparator: { $0 == "/" || $0 == "\n" })
    let last = parts.last ?? "repository"
    if last == ".git", parts.count > 1 { return String(parts[parts.count - 2]) }
    return last.hasSuffix(".git") && last != ".git" ? String(last.dropLast(4)) : String(last)
  }
}
