import Foundation

/// A commit of the first-parent history, and the difference between its tree and its first
/// parent's.
struct HistoricCommit {
  var sha: String
  /// The changes are relative to the first one.
  var parents: [String]
  var authorEmail: [UInt8]
  var authorName: String
  /// RFC 3339, with the author's own offset.
  var authoredAt: String
  /// Seconds since 1970.
  var committedAt: Int64
  var subject: String
  var changes: [TreeChange] = []
}

/// One line of `git log --raw`.
struct TreeChange {
  enum Kind { case added, changed, deleted, renamed(from: [UInt8]) }

  var kind: Kind
  var path: [UInt8]
  /// Of the new side, in octal.
  var mode: String
  var blob: String
}

/// Reads `git log --raw -z`: items that end with NUL. A commit is an item that begins with 01,
/// followed by the other fields of the format in order. A change is `:mode mode blob blob status`
/// and one path, or two paths for a rename. Git puts a line feed before the first change of a
/// commit and an empty item after the last.
struct CommitLog {
  private static let format = "%x01%H%x00%P%x00%ae%x00%an%x00%aI%x00%at%x00%ct%x00%s"
  private let git: GitProcess
  /// The first item of the next commit.
  private var header: [UInt8]?

  /// Explicit options override the user's configuration where it could change git's output. Only
  /// exact renames (100 %) are detected.
  init(of repository: String) throws {
    git = try GitProcess(
      in: repository,
      [
        "-c", "log.showSignature=false", "-c", "diff.ignoreSubmodules=none", "-c", "diff.orderFile=/dev/null",
        "-c", "core.quotePath=false", "log", "--first-parent", "--reverse", "--root", "-m", "--raw", "-z",
        "--no-abbrev", "-M100%", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none",
        "--no-relative", "--encoding=UTF-8", "--no-notes", "--no-decorate", "--format=\(Self.format)", "HEAD",
        "--",
      ])
    header = try git.item(endingWith: 0)
  }

  mutating func next() throws -> HistoricCommit? {
    guard let first = header else {
      try git.finish()
      return nil
    }
    guard first.first == 1 else { throw GitHistoryError.unexpectedOutput(text(first)) }
    let sha = text(Array(first.dropFirst()))
    let parents = text(try field()).split(separator: " ").map(String.init)
    let email = try field()
    let name = text(try field())
    let authored = text(try field())
    let authoredSeconds = try number(field())
    let committed = try number(field())
    var commit = HistoricCommit(
      sha: sha, parents: parents, authorEmail: email, authorName: name,
      authoredAt: Self.dateTime(authored, seconds: authoredSeconds), committedAt: committed,
      subject: text(try field()))
    header = nil
    while let item = try git.item(endingWith: 0) {
      if item.isEmpty { continue }
      if item.first == 1 {
        header = item
        break
      }
      commit.changes.append(try change(item))
    }
    return commit
  }

  private func change(_ item: [UInt8]) throws -> TreeChange {
    let fields = text(item).drop { $0 == "\n" }.split(separator: " ").map(String.init)
    guard fields.count == 5, fields[0].hasPrefix(":"), let status = fields[4].first else {
      throw GitHistoryError.unexpectedOutput(text(item))
    }
    let path = try field()
    func made(_ kind: TreeChange.Kind, _ path: [UInt8]) -> TreeChange {
      TreeChange(kind: kind, path: path, mode: fields[1], blob: fields[3])
    }
    switch status {
    case "A": return made(.added, path)
    case "M", "T": return made(.changed, path)
    case "D": return made(.deleted, path)
    case "R": return made(.renamed(from: path), try field())
    default: throw GitHistoryError.unexpectedOutput(text(item))
    }
  }

  private func field() throws -> [UInt8] {
    guard let item = try git.item(endingWith: 0) else {
      throw GitHistoryError.unexpectedOutput("an end in the middle of a commit")
    }
    return item
  }

  private func number(_ bytes: [UInt8]) throws -> Int64 {
    guard let number = Int64(text(bytes)) else { throw GitHistoryError.unexpectedOutput(text(bytes)) }
    return number
  }

  /// Bytes that are not UTF-8 become U+FFFD. Paths are not converted here.
  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  /// Git's text, if it is an RFC 3339 time. Some commits have offsets such as +51:30 or years of
  /// five digits. They get the instant in UTC, within the years 0001 … 9999.
  static func dateTime(_ text: String, seconds: Int64) -> String {
    let shape = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-](0\d|1[0-4]):[0-5]\d)/
    if text.wholeMatch(of: shape) != nil { return text }
    let bounded = max(-62_135_596_800, min(253_402_300_799, seconds))
    return Date(timeIntervalSince1970: TimeInterval(bounded)).formatted(.iso8601)
  }
}
