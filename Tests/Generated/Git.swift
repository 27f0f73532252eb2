// swift-format-ignore-file
import Stemma

@Table
struct Author {
  let id: String.ID
  var name: String?
  @HasMany("authorId") var commits: Related<Commit>
  @HasMany("authorId") var files: Related<FileAuthor>
}

@Table
@Index("authorId", "committedAt", name: "byAuthor")
struct Commit {
  @Selection struct ID: Hashable {
    let repo: String
    let sha: String.ID
  }
  let id: ID
  var authorId: String.ID
  var authoredAt: Date
  @Column(as: Date.UnixTimeRepresentation.self) var committedAt: Date
  var subject: String?
  var isMerge: Bool
  var parentSha: String.ID?
  @BelongsTo("authorId") var author: Author
  @BelongsTo("repo", "parentSha") var parent: Commit?
}

@Table
@Index("repo", "lastCommitSha", name: "byCommit")
struct File {
  @Selection struct ID: Hashable {
    let partition: String
    let path: String
  }
  let id: ID
  var repo: String
  var mode: String
  var blob: String
  var size: Int?
  var lastAuthorId: String.ID
  var lastCommitSha: String.ID
  var renamedFrom: String?
  @BelongsTo("lastAuthorId") var lastAuthor: Author
  @BelongsTo("repo", "lastCommitSha") var lastCommit: Commit
  @HasMany("partition", "path") var authors: Related<FileAuthor>
}

@Table
@Index("partition", "path", name: "byFile")
@Index("authorId", name: "byAuthor")
struct FileAuthor {
  @Selection struct ID: Hashable {
    let partition: String
    let path: String
    let authorId: String.ID
  }
  let id: ID
  @BelongsTo("partition", "path") var file: File
  @BelongsTo("authorId") var author: Author
}
