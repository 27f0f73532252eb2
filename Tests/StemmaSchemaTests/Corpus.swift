import Foundation
import StemmaSchema
import Testing

/// The schemas and oracles in the folder of STEMMA_DATA. Without it, tests that need them are
/// skipped.
enum Corpus {
  static let folder = ProcessInfo.processInfo.environment["STEMMA_DATA"].flatMap { $0.isEmpty ? nil : $0 }
  static let isThere = folder != nil
  static let reason: Comment = "needs STEMMA_DATA, the folder of data sets"

  static let schemas = [
    "amplify-schemas/common-primarykey.graphql", "amplify-schemas/transformerv2.graphql",
    "chinook/schema.graphql", "git-grdb/schema.graphql", "nodes-grdb/schema.graphql",
  ]

  static func text(_ path: String) throws -> String {
    let folder = try #require(folder)
    return try String(contentsOfFile: "\(folder)/\(path)", encoding: .utf8)
  }
}
