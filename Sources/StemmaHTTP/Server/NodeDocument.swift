import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import StemmaEvents
import StemmaReplication

/// `GET /v1/node` for programs that are no peers.
struct NodeDocument: Encodable {
  var name: String
  var log: String
  var protocolVersions: [UInt64]
  var schemaDigest: String
  var read: [String]
  var write: [String]
  var scope: [String]
  var isUnfinishedClone: Bool
  /// Milliseconds since 1970.
  var time: UInt64
  var limits: [String: Int]

  init(_ greeting: Greeting, _ grant: Grant) {
    name = greeting.nodeName
    log = greeting.logID.description
    protocolVersions = [Greeting.currentVersion]
    schemaDigest = greeting.schemaDigest.hexadecimal
    read = grant.rights.readable.patterns
    write = grant.rights.writable.patterns
    scope = greeting.scope.patterns
    isUnfinishedClone = greeting.isUnfinished
    time = UInt64(Date().timeIntervalSince1970 * 1000)
    limits = [
      "batchBytes": ReplicationLimits.batch, "messageBytes": ReplicationLimits.message,
      "chunkBytes": ReplicationLimits.chunk, "statementBytes": HTTPLimits.statement,
    ]
  }

  var response: Response {
    get throws { try Response.json(self) }
  }
}

extension Response {
  static func json(_ value: some Encodable) throws -> Response {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let bytes = try encoder.encode(value)
    return Response(
      status: .ok, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }
}
