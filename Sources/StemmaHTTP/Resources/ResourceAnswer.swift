import HTTPTypes
import Hummingbird
import NIOCore
import StemmaEvents
import StemmaNode
import StemmaReplication
import StemmaTables

/// The result of a read: JSON in the form of a command's `--json`.
struct ResourceAnswer: Sendable {
  var json: JSON
  /// The address of the rest of a list.
  var next: String?
  /// The revision of a record.
  var revision: String?
  /// A sentence about events that corruption hides; the answer lacks them.
  var missing: String?

  init(_ json: JSON, next: String? = nil, revision: String? = nil) {
    (self.json, self.next, self.revision) = (json, next, revision)
  }

  /// Reads, and notes events that corruption hides.
  mutating func read(_ body: () throws -> Void) throws {
    do { try body() } catch let error as NodeError {
      guard case .missing = error else { throw error }
      missing = Explanations.text(of: error).description
    }
  }

  var response: Response {
    var bytes: [UInt8] = []
    json.append(to: &bytes)
    var headers: HTTPFields = [.contentType: "application/json", .cacheControl: "no-store"]
    if let revision { headers[.eTag] = "\"\(revision)\"" }
    if let next, let name = HTTPField.Name("Link") { headers[name] = "<\(next)>; rel=\"next\"" }
    // Header fields are one line of ASCII (RFC 9110, 5.5).
    if let missing, let name = HTTPField.Name("Stemma-Missing-Events") {
      headers[name] = String(
        missing.unicodeScalars.filter { $0.isASCII && $0.value >= 32 }.map(Character.init))
    }
    return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }
}

/// A list with at most `limit` elements, and whether there are more.
struct LimitedList {
  let limit: Int
  private(set) var elements: [JSON] = []
  private(set) var hasMore = false

  init(_ limit: Int) { self.limit = limit }

  /// Returns false when the list is full.
  mutating func append(_ element: @autoclosure () -> JSON) -> Bool {
    guard elements.count < limit else {
      hasMore = true
      return false
    }
    elements.append(element())
    return true
  }
}

/// Ends a read when its list is full.
struct ListIsFull: Error {
  /// Runs a read that this error may end, in the form in which the node passes it on.
  static func ending(_ isFull: () -> Bool, _ read: () throws -> Void) throws {
    do { try read() } catch { if !isFull() { throw error } }
  }
}

extension NodePool {
  /// Reads with a node that shows all durable events.
  func read<Result: Sendable>(
    for context: ServerContext, _ body: @escaping @Sendable (Node) throws -> Result
  ) async throws -> Result {
    try await use(writes: false, for: context) { node in
      _ = try node.refreshLog()
      return try body(node)
    }
  }

  /// Writes with the rights of the caller.
  func write<Result: Sendable>(
    for context: ServerContext, _ body: @escaping @Sendable (Node) throws -> Result
  ) async throws -> Result {
    let writable = context.grant.rights.writable
    return try await use(writes: true, for: context) { node in
      node.writable = writable
      defer { node.writable = .everything }
      return try body(node)
    }
  }

  private func use<Result: Sendable>(
    writes: Bool, for context: ServerContext, _ body: @escaping @Sendable (Node) throws -> Result
  ) async throws -> Result {
    let isLimited = context.grant.rights.isLimited
    do {
      let lease = try await take(writes: writes, for: context.grant.name)
      do {
        let result = try await run { try body(lease.node) }
        giveBack(lease)
        return result
      } catch {
        // Errors of the request leave the node as it was.
        giveBack(lease, isReusable: Self.isOfRequest(error))
        throw error
      }
    } catch let error as NodeError {
      throw Problem(resource: error, isLimited: isLimited)
    } catch let error as MutationError {
      throw Problem(resource: .mutation(error), isLimited: isLimited)
    }
  }

  /// Whether the node is as usable as before.
  private static func isOfRequest(_ error: any Error) -> Bool {
    switch error {
    case is Problem, is MutationError: true
    case NodeError.mutation, NodeError.inspection, NodeError.malformedInput: true
    default: false
    }
  }
}
