import Foundation
import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers
import NIOCore
import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaReplication
import StemmaSchema

/// The log: lists of events, single events, and a stream of new ones.
struct EventResources: Sendable {
  let pool: NodePool
  let changes: Changes

  /// The events of one look at the log that a stream sends at once.
  private static let burst = 1000

  func add(to router: RouterGroup<ServerContext>) {
    router.get("events") { request, context in
      let query = try ResourceQuery(
        request, "model", "key", "partition", "origin", "author", "op", "field", "grep", "commit", "since",
        "until", "limit", "after")
      let isStream = request.headers[.accept]?.contains("text/event-stream") ?? false
      return isStream ? try await stream(request, context, query) : try await list(context, query)
    }
    router.get("events/{event}") { request, context in
      let query = try ResourceQuery(request, "partition")
      let partition = try query.one("partition")
      let name = try context.parameters.require("event").percentDecoded
      let readable = context.grant.rights.readable
      return try await pool.read(for: context) { node in
        let noted = try node.event(named: name, partition: partition)
        guard readable.contains(noted.event.partition) else {
          throw NodeError.inspection(.noSuchEvent(name, partition: partition))
        }
        let report = try EventReport(noted, in: node)
        let json = report.json(node.description, withPlaces: readable.isEverything)
        var answer = ResourceAnswer(RecordResources.shown(json, context))
        try answer.read { if let missing = report.missing { throw NodeError.missing(missing) } }
        return answer
      }.response
    }
  }

  /// The form of `log --json`, newest first.
  private func list(_ context: ServerContext, _ query: ResourceQuery) async throws -> Response {
    if try query.one("after") != nil { throw Problem.unusable("`after` is for `Accept: text/event-stream`") }
    let limit = try query.limit()
    let readable = context.grant.rights.readable
    return try await pool.read(for: context) { node in
      let filter = try LogFilter(query, in: node, within: readable)
      let description = node.description
      var list = LimitedList(limit)
      var last: Position?
      var answer = ResourceAnswer(.null)
      try answer.read {
        try node.forEachEvent(filter, newestFirst: true) { stored, message in
          guard list.append(RecordResources.shown(description.json(stored, message), context)) else {
            return false
          }
          last = stored.position
          return true
        }
      }
      answer.json = .array(list.elements)
      if list.hasMore, let before = last?.previous {
        answer.next = query.address(with: ("until", "@\(before)"))
      }
      return answer
    }.response
  }

  // MARK: Streams

  /// Server-sent events: each new event that passes the filter, in order.
  private func stream(
    _ request: Request, _ context: ServerContext, _ query: ResourceQuery
  ) async throws -> Response {
    let readable = context.grant.rights.readable
    let last = try HTTPField.Name("Last-Event-ID").flatMap { request.headers[$0] } ?? query.one("after")
    let (filter, start) = try await pool.read(for: context) { node in
      if try query.one("since") != nil || query.one("until") != nil {
        throw Problem.unusable("a stream has no `since` and `until`; `after` is the last known position")
      }
      let filter = try LogFilter(query, in: node, within: readable)
      guard let last else { return (filter, node.durableEnd) }
      // The position of an event's JSON has no `@`.
      guard let position = Position(last) ?? Position("@" + last) else {
        throw Problem.unusable("`\(last)` is no position such as @5718")
      }
      return (filter, min(position.next, node.durableEnd))
    }
    let place = NIOLockedValueBox(start)
    return changes.stream(request, context) { wake, writer in
      // The first one opens the stream; comments keep it open.
      if wake.isComment { try await writer.write(wake) }
      while true {
        let (text, end, isWhole) = try await next(filter, place.withLockedValue { $0 }, context)
        place.withLockedValue { $0 = end }
        if !text.isEmpty { try await writer.write(ByteBuffer(string: text)) }
        if isWhole { break }
      }
    }
  }

  /// The next events from a position on, and whether they are all.
  private func next(
    _ filter: LogFilter, _ position: Position, _ context: ServerContext
  ) async throws -> (text: String, end: Position, isWhole: Bool) {
    try await pool.read(for: context) { node in
      let end = node.durableEnd
      guard position < end else { return ("", max(position, end), true) }
      var wanted = filter
      wanted.since = .position(position)
      let description = node.description
      var (text, count, next) = ("", 0, end)
      do throws(NodeError) {
        try node.forEachEvent(wanted, newestFirst: false) { stored, message in
          guard stored.position < end else { return false }
          if count == Self.burst {
            next = stored.position
            return false
          }
          let json = RecordResources.shown(description.json(stored, message), context)
          text += "id: @\(stored.position)\nevent: event\ndata: \(json.text)\n\n"
          count += 1
          return true
        }
      } catch {
        // A stream goes on around corruption; other resources report it.
        guard case .missing = error else { throw error }
      }
      return (text, next, next == end)
    }
  }
}

extension ByteBuffer {
  /// Whether a hint is a comment, without a change.
  fileprivate var isComment: Bool { readableBytesView.first == UInt8(ascii: ":") }
}

extension LogFilter {
  /// The filter of a request; names are those of `stemma log`.
  init(_ query: ResourceQuery, in node: Node, within readable: Scope) throws {
    self.init()
    texts = query.all("grep")
    authors = Set(query.all("author"))
    for name in query.all("model") {
      let model = try RecordName.model(name, in: node)
      models.append(model)
      modelNames.insert(model.storedName)
    }
    if let form = try query.one("key") {
      guard let model else { throw Problem.unusable("`key` needs one `model`") }
      key = try RecordName(model, form, in: node).key
    }
    for name in query.all("field") {
      let names = try Self.storedNames(ofField: name, of: models, in: node, within: readable)
      guard !names.isEmpty else {
        let known = (models.isEmpty ? node.schema.models : models).flatMap { $0.fields.map(\.name) }
        throw NodeError.mutation(
          .unknownField(model: models.map(\.name).joined(separator: ", "), field: name, known: known))
      }
      fields.formUnion(names)
    }
    let patterns = query.all("partition")
    scope = NarrowedScope(patterns.isEmpty ? .everything : try node.scope(patterns), readable)
    for name in query.all("origin") {
      let named = node.metadata.origins(named: name)
      // A limited token learns no names.
      guard !named.isEmpty || !readable.isEverything else {
        throw Problem.unusable("no node named `\(name)` has written here")
      }
      origins = (origins ?? []).union(named)
    }
    for name in query.all("commit") { commits = (commits ?? []).union(node.description.commits(named: name)) }
    for name in query.all("op") {
      guard let operation = EventOperation.allCases.first(where: { $0.name == name }) else {
        throw Problem.unusable(
          "`\(name)` is no operation; there are \(EventOperation.allCases.map(\.name).joined(separator: ", "))"
        )
      }
      operations = (operations ?? []).union([operation])
    }
    let only = onlyPartition(patterns)
    since = try query.one("since").map { try node.pointInTime($0, in: only) }
    until = try query.one("until").map { try node.pointInTime($0, toTheEnd: true, in: only) }
  }
}
