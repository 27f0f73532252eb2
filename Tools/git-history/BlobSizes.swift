/// Asks one running `git cat-file` for sizes.
struct BlobSizes {
  /// Requests written before a reply is read: few enough that neither pipe fills up.
  private static let batch = 200
  private let git: GitProcess

  init(of repository: String) throws {
    git = try GitProcess(in: repository, ["cat-file", "--batch-check=%(objectsize)"], takesInput: true)
  }

  /// One size per object, in order. Nil for an object that this copy of the repository lacks.
  func sizes(of blobs: [String]) throws -> [Int64?] {
    var sizes: [Int64?] = []
    for start in stride(from: 0, to: blobs.count, by: Self.batch) {
      let asked = blobs[start..<min(start + Self.batch, blobs.count)]
      try git.write(asked.flatMap { Array($0.utf8) + [10] })
      for blob in asked {
        guard let answer = try git.item(endingWith: 10) else {
          throw GitHistoryError.unexpectedOutput("no size of \(blob)")
        }
        sizes.append(Int64(String(decoding: answer, as: UTF8.self)))
      }
    }
    return sizes
  }

  func finish() throws { try git.finish() }
}
