import Foundation
import Logging
import StemmaHTTP
import StemmaNode
import Testing

@testable import Stemma

/// Serves the node of a store in this process while `body` runs.
func serving(_ store: Store, _ body: (URL) async throws -> Void) async throws {
  var configuration = Server.Configuration()
  configuration.port = 0
  let server = try Server(
    NodeOpening(directory: store.directory.path, wait: 5), configuration,
    Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  let (addresses, address) = AsyncStream.makeStream(of: String.self)
  let running = Task {
    defer { address.finish() }
    try await server.run { address.yield($0) }
  }
  defer { running.cancel() }
  for await text in addresses {
    try await body(try #require(URL(string: text)))
    return
  }
  try await running.value
}

extension Store {
  /// A token for the server of this store.
  func token(read: [String] = ["*"], write: [String] = ["*"]) throws -> String {
    var tokens = try AccessTokens(of: directory.path, Ports())
    let secret = try tokens.create(
      "token \(tokens.entries.count)", read: read, write: write, expires: nil, Ports())
    try tokens.save(in: directory.path, Ports())
    return secret
  }
}
