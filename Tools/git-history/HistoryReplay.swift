import Crypto
import StemmaEvents

/// Turns commits into mutations. Its memory grows with the newest tree, not with the history.
struct HistoryReplay {
  private struct FileState {
    var mode: String
    var blob: String
    var size: Int64?
    var lastAuthor: String
    /// Sorted.
    var authors: [String]
  }

  private let repo: String
  /// By the bytes of the path.
  private var files: [[UInt8]: FileState] = [:]
  /// Author id → name.
  private var authors: [String: String] = [:]
  private var commits: Set<String> = []

  init(repo: String) { self.repo = repo }

  /// The mutations of one commit. `sizes` returns the sizes of blobs.
  mutating func mutations(
    of commit: HistoricCommit, sizes: ([String]) throws -> [Int64?]
  ) throws -> [Mutation] {
    let time = commit.committedAt
    let author = Self.authorID(commit.authorEmail)
    var mutations: [Mutation] = []
    let authorKey: Members = [("id", .string(author))]
    let name: Members = [("name", .string(commit.authorName))]
    switch authors.updateValue(commit.authorName, forKey: author) {
    case nil:
      mutations.append(
        Mutation(operation: .create, model: "Author", key: authorKey, fields: name, time: time))
    case commit.authorName?: break
    default:
      mutations.append(
        Mutation(operation: .update, model: "Author", key: authorKey, fields: name, time: time))
    }
    mutations += commitMutations(commit, author: author)
    // Removals come before additions at the same path.
    for change in commit.changes {
      switch change.kind {
      case .deleted: mutations += remove(change.path, time: time)
      case .renamed(let old): mutations += remove(old, time: time)
      case .added, .changed: break
      }
    }
    let written = commit.changes.filter { if case .deleted = $0.kind { false } else { true } }
    let blobs = written.filter { $0.mode != Self.submodule }.map(\.blob)
    let known = Dictionary(zip(blobs, try sizes(blobs)), uniquingKeysWith: { first, _ in first })
    for change in written {
      mutations += write(change, size: known[change.blob] ?? nil, commit, author: author)
    }
    return mutations
  }

  private static let submodule = "160000"

  /// The first 16 hexadecimal digits of the SHA-256 of the e-mail, so that no address is published.
  static func authorID(_ email: [UInt8]) -> String {
    SHA256.hash(data: email).prefix(8).map { byte in
      let digits = String(byte, radix: 16)
      return byte < 16 ? "0" + digits : digits
    }.joined()
  }

  private mutating func commitMutations(_ commit: HistoricCommit, author: String) -> [Mutation] {
    let key: Members = [("repo", .string(repo)), ("sha", .string(commit.sha))]
    let fields: Members = [
      ("authorId", .string(author)), ("authoredAt", .string(commit.authoredAt)),
      ("committedAt", .int(commit.committedAt)), ("subject", .string(commit.subject)),
      ("isMerge", .bool(commit.parents.count > 1)),
    ]
    var mutations = [
      Mutation(operation: .create, model: "Commit", key: key, fields: fields, time: commit.committedAt)
    ]
    if let parent = commit.parents.first, commits.contains(parent) {
      let target = JSON.object([("repo", .string(repo)), ("sha", .string(parent))])
      mutations.append(
        Mutation(
          operation: .link, model: "Commit", key: key, fields: [("parent", target)], time: commit.committedAt)
      )
    }
    commits.insert(commit.sha)
    return mutations
  }

  private mutating func remove(_ path: [UInt8], time: Int64) -> [Mutation] {
    guard let state = files.removeValue(forKey: path) else { return [] }
    var mutations = state.authors.map { join(.unlink, path, author: $0, time: time) }
    mutations.append(Mutation(operation: .delete, model: "File", key: Self.key(path), time: time))
    return mutations
  }

  private mutating func write(
    _ change: TreeChange, size: Int64?, _ commit: HistoricCommit, author: String
  ) -> [Mutation] {
    let time = commit.committedAt
    let key = Self.key(change.path)
    guard let old = files[change.path] else {
      var fields: Members = [
        ("repo", .string(repo)), ("mode", .string(change.mode)), ("blob", .string(change.blob)),
      ]
      if let size { fields.append(("size", .int(size))) }
      fields.append(("lastAuthorId", .string(author)))
      fields.append(("lastCommitSha", .string(commit.sha)))
      if case .renamed(let source) = change.kind {
        fields.append(("renamedFrom", .string(Self.text(source))))
      }
      files[change.path] = FileState(
        mode: change.mode, blob: change.blob, size: size, lastAuthor: author, authors: [author])
      return [
        Mutation(operation: .create, model: "File", key: key, fields: fields, time: time),
        join(.link, change.path, author: author, time: time),
      ]
    }
    var fields: Members = []
    if old.mode != change.mode { fields.append(("mode", .string(change.mode))) }
    if old.blob != change.blob { fields.append(("blob", .string(change.blob))) }
    if old.size != size { fields.append(("size", size.map(JSON.int) ?? .null)) }
    if old.lastAuthor != author { fields.append(("lastAuthorId", .string(author))) }
    fields.append(("lastCommitSha", .string(commit.sha)))
    var mutations = [Mutation(operation: .update, model: "File", key: key, fields: fields, time: time)]
    var known = old.authors
    if !known.contains(author) {
      known = (known + [author]).sorted()
      mutations.append(join(.link, change.path, author: author, time: time))
    }
    files[change.path] = FileState(
      mode: change.mode, blob: change.blob, size: size, lastAuthor: author, authors: known)
    return mutations
  }

  /// Creates or deletes the row that links an author to a file.
  private func join(
    _ operation: Mutation.Operation, _ path: [UInt8], author: String, time: Int64
  ) -> Mutation {
    let file = Self.key(path)
    return Mutation(
      operation: operation, model: "FileAuthor", key: file + [("authorId", .string(author))],
      fields: [("file", .object(file)), ("author", .object([("id", .string(author))]))], time: time)
  }

  private static func key(_ path: [UInt8]) -> Members {
    let top = path.firstIndex(of: UInt8(ascii: "/")).map { text(Array(path[..<$0])) } ?? "."
    return [("partition", .string(top)), ("path", .string(text(path)))]
  }

  /// A path as text. Git's paths are bytes. A path that is not UTF-8 has its bytes above 7F and its
  /// `%` written as `%XX`.
  static func text(_ path: [UInt8]) -> String {
    if let text = String(validating: path, as: UTF8.self) { return text }
    return path.reduce(into: "") { text, byte in
      if byte < 0x80, byte != UInt8(ascii: "%") {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        text += "%" + digits
      }
    }
  }
}
