/// The models of the mutations that this tool prints.
enum HistorySchema {
  static let sdl = """
    type Author @model {
      id: ID! @primaryKey
      name: String
      commits: [Commit] @hasMany(indexName: "byAuthor", fields: ["id"])
      files: [FileAuthor] @hasMany(indexName: "byAuthor", fields: ["id"])
    }

    type Commit @model {
      repo: String! @primaryKey(sortKeyFields: ["sha"])
      sha: ID!
      subject: String
      isMerge: Boolean!
      authoredAt: AWSDateTime!
      committedAt: AWSTimestamp!
      authorId: ID! @index(name: "byAuthor", sortKeyFields: ["committedAt"])
      parentSha: ID
      author: Author! @belongsTo(fields: ["authorId"])
      parent: Commit @belongsTo(fields: ["repo", "parentSha"])
    }

    type File @model {
      partition: String! @primaryKey(sortKeyFields: ["path"])
      path: String!
      mode: String!
      blob: String!
      size: Int
      renamedFrom: String
      repo: String! @index(name: "byCommit", sortKeyFields: ["lastCommitSha"])
      lastCommitSha: ID!
      lastAuthorId: ID!
      lastCommit: Commit! @belongsTo(fields: ["repo", "lastCommitSha"])
      lastAuthor: Author! @belongsTo(fields: ["lastAuthorId"])
      authors: [FileAuthor] @hasMany(indexName: "byFile", fields: ["partition", "path"])
    }

    type FileAuthor @model {
      partition: String! @primaryKey(sortKeyFields: ["path", "authorId"]) @index(name: "byFile", sortKeyFields: ["path"])
      path: String!
      authorId: ID! @index(name: "byAuthor")
      file: File! @belongsTo(fields: ["partition", "path"])
      author: Author! @belongsTo(fields: ["authorId"])
    }

    """
}
