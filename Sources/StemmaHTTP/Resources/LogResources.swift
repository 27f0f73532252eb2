import Foundation
import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers
import NIOCore
import StemmaEvents
import StemmaHistory
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSchema
import StemmaSync
import StemmaTables

/// The state of the node, its log and its tables as a whole.
struct LogResources: Sendable {
  let pool: NodePool
  let counts: ScopeCounts

  /// The most rows of a query, and those without `limit`.
  private static let mostRows = 100_000
  private static let defaultRows = 1000
  /// The longest time of a query.
  private static let queryTime = Duration.seconds(10)
  /// Length of the lists of `stats`, as on the command line.
  private static let top = 10

  func add(to router: RouterGroup<ServerContext>) {
    router.get("activity") { request, context in
      _ = try ResourceQuery(request)
      let readable = context.grant.rights.readable
      return try await pool.read(for: context) { node in
        ResourceAnswer(try counts.activity(node, within: readable).json(node.description))
      }.response
    }
    router.get("status") { request, context in
      _ = try ResourceQuery(request)
      return try await whole(context) { node in
        let tally = try counts.conflicts(node, within: .everything)
        let known = (open: UInt64(tally.open), dangling: UInt64(tally.dangling))
        return ResourceAnswer(try node.status(counts: known).json)
      }
    }
    router.get("stats") { try await stats($0, $1) }
    router.get("diff") { try await diff($0, $1) }
    router.get("files") { request, context in
      _ = try ResourceQuery(request)
      return try await whole(context) { node in
        ResourceAnswer(.array(try node.logFiles().map { $0.json(withPartitions: false) }))
      }
    }
    router.get("files/{number}") { try await file($0, $1) }
    router.get("query") { try await query($0, $1) }
  }

  /// An answer for callers that may read every partition.
  private func whole(
    _ context: ServerContext, _ body: @escaping @Sendable (Node) throws -> ResourceAnswer
  ) async throws -> Response {
    guard context.grant.rights.readable.isEverything else { throw Problem.forbidden }
    return try await pool.read(for: context, body).response
  }

  /// The form of `stats --json`. Reads the whole log.
  private func stats(_ request: Request, _ context: ServerContext) async throws -> Response {
    let query = try ResourceQuery(request, "model", "partition", "top")
    let top = try query.number("top", default: Self.top, most: 10_000)
    return try await whole(context) { node in
      let filter = try LogFilter(query, in: node, within: .everything)
      let statistics = try node.statistics(top: top, filter)
      var answer = ResourceAnswer(statistics.json)
      try answer.read { if let missing = statistics.missing { throw NodeError.missing(missing) } }
      return answer
    }
  }

  /// The form of `diff --json`: two points in time, or a peer and this node.
  private func diff(_ request: Request, _ context: ServerContext) async throws -> Response {
    let query = try ResourceQuery(request, "from", "to", "peer", "model", "limit", "offset")
    let (limit, offset) = (try query.limit(), try query.offset())
    let readable = context.grant.rights.readable
    let peer = try query.one("peer")
    if peer != nil, !readable.isEverything { throw Problem.forbidden }
    return try await pool.read(for: context) { node in
      let model = try query.one("model").map { try RecordName.model($0, in: node) }
      var (list, number) = (LimitedList(limit), 0)
      func add(_ difference: RecordDifference) throws {
        guard readable.contains(Partition(model: difference.model, key: difference.key)) else { return }
        number += 1
        guard number > offset else { return }
        guard list.append(difference.json(node.description)) else { throw ListIsFull() }
      }
      var answer = ResourceAnswer(.null)
      try ListIsFull.ending({ list.hasMore }) {
        try answer.read {
          if let peer {
            try Self.peer(peer, of: node).forEachDifference(to: node, of: model, add)
          } else {
            let only = model.flatMap(Partition.init(of:))?.description
            let old = try node.pointInTime(try query.required("from"), in: only)
            let new = try query.one("to").map { try node.pointInTime($0, in: only) } ?? .now
            try node.forEachDifference(from: old, to: new, of: model, add)
          }
        }
      }
      answer.json = .array(list.elements)
      if list.hasMore { answer.next = query.address(with: ("offset", "\(offset + limit)")) }
      return answer
    }.response
  }

  /// The form of `inspect --json`, without events.
  private func file(_ request: Request, _ context: ServerContext) async throws -> Response {
    _ = try ResourceQuery(request)
    let number = try context.parameters.require("number")
    return try await whole(context) { node in
      guard let file = try node.logFiles().first(where: { "\($0.number)" == number }) else {
        throw Problem(.notFound)
      }
      let inspection = try FileInspection(
        path: Node.path(Node.path(node.directory, "log"), file.file), ports: node.ports)
      let parts = NIOLockedValueBox<(json: [JSON], isCorrupt: Bool)>(([], false))
      try inspection.parts(InspectionRequest()) { part in
        let json = inspection.json(part, withEvents: false)
        parts.withLockedValue {
          $0.json.append(json)
          $0.isCorrupt = $0.isCorrupt || !part.flaws.isEmpty
        }
      }
      let (json, isCorrupt) = parts.withLockedValue { $0 }
      return ResourceAnswer(
        .object([
          ("file", .string(file.file)), ("format", .string(inspection.format.name)),
          ("bytes", .int(Int64(clamping: inspection.source.size))), ("parts", .array(json)),
          ("corrupt", .bool(isCorrupt)),
        ]))
    }
  }

  /// The form of `query --json`.
  private func query(_ request: Request, _ context: ServerContext) async throws -> Response {
    let query = try ResourceQuery(request, "sql", "limit")
    let sql = try query.required("sql")
    let limit = try query.number("limit", default: Self.defaultRows, most: Self.mostRows)
    return try await whole(context) { node in
      var list = LimitedList(limit)
      var answer = ResourceAnswer(.null)
      do {
        try ListIsFull.ending({ list.hasMore }) {
          try QueryRows.forEach(of: sql, in: node, within: Self.queryTime) { names, values in
            if list.elements.isEmpty { try QueryRows.refuseDuplicates(names) }
            let row = JSON.object(zip(names, values).map { ($0, $1.json) })
            guard list.append(row) else { throw ListIsFull() }
          }
        }
        try answer.read { try node.checkTablesAreWhole() }
      } catch let error as NodeError where Self.isInterruption(error) {
        throw Problem.unusable("the statement ran for more than \(Self.queryTime.components.seconds) s")
      }
      answer.json = .array(list.elements)
      return answer
    }
  }

  /// Whether a query ran for too long.
  private static func isInterruption(_ error: NodeError) -> Bool {
    if case .tables(let error) = error { error.isInterruption } else { false }
  }

  /// The node of a remote in a directory.
  private static func peer(_ name: String, of node: Node) throws -> Node {
    guard let remote = node.metadata.remotes.first(where: { $0.name == name }) else {
      throw NodeError.unknownRemote(name, known: node.metadata.remotes.map(\.name))
    }
    guard PeerAddress(remote.address).isDirectory else {
      throw Problem.unusable("\(name) is no directory; records of peers on other machines are not compared")
    }
    return try Node.open(at: remote.address, Node.OpeningOptions(mode: .read))
  }
}
