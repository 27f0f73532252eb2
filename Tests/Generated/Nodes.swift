// swift-format-ignore-file
import Stemma

@Table
struct Doc {
  @Selection struct ID: Hashable {
    let episode: String.ID
    let path: String
  }
  let id: ID
  var mode: String
  var blob: String
  @Column(as: String.ID?.self) var lastAuthorId: String?
  @Column(as: String.ID?.self) var lastCommitSha: String?
}
