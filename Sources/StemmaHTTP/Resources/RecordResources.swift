import HTTPTypes
import Hummingbird
import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaReplication
import StemmaSchema
import StemmaTables

/// Records: their present and past state, their history, and the reasons for what is shown.
struct RecordResources: Sendable {
  let pool: NodePool

  func add(to router: RouterGroup<ServerContext>) {
    router.get("models") { request, context in
      _ = try ResourceQuery(request)
      return try await pool.read(for: context) { ResourceAnswer(Self.json($0.schema)) }.response
    }
    router.get("records/{model}") { try await list($0, $1) }
    router.get("records/{model}/{key}") { try await get($0, $1) }
    router.get("history/{model}/{key}") { request, context in
      _ = try ResourceQuery(request)
      return try await life(context) { life, node in
        .array(try life.steps(node).reversed().map { Self.shown($0.json(node.description), context) })
      }
    }
    router.get("why/{model}/{key}") { request, context in
      _ = try ResourceQuery(request)
      return try await life(context) { life, node in
        try RecordExplanation(life, in: node).json(node.schema)
      }
    }
  }

  /// The form of `list --json`.
  private func list(_ request: Request, _ context: ServerContext) async throws -> Response {
    let query = try ResourceQuery(request, "where", "order", "limit", "offset", "asOf")
    let (limit, offset, asOf) = (try query.limit(), try query.offset(), try query.one("asOf"))
    let readable = NarrowedScope(context.grant.rights.readable)
    let name = try context.parameters.require("model").percentDecoded
    return try await pool.read(for: context) { node in
      let model = try RecordName.model(name, in: node)
      var listing = Listing(model.name, limit: limit + 1, offset: offset)
      listing.conditions = try query.all("where").map {
        try Self.condition($0, of: model, node.schema)
      }
      listing.order = query.all("order").map { name in
        name.hasPrefix("-")
          ? Listing.Order(String(name.dropFirst()), isDescending: true) : Listing.Order(name)
      }
      let pointInTime = try asOf.map {
        try node.pointInTime($0, in: Partition(of: model)?.description)
      }
      var list = LimitedList(limit)
      var answer = ResourceAnswer(.null)
      try answer.read {
        try node.withTables(asOf: pointInTime ?? .now, of: model) {
          try $0.list(listing, within: readable) { _ = list.append($0) }
        }
        if pointInTime == nil { try node.checkTablesAreWhole() }
      }
      answer.json = .array(list.elements)
      if list.hasMore { answer.next = query.address(with: ("offset", "\(offset + limit)")) }
      return answer
    }.response
  }

  /// The form of `get --json`. The revision is the entity tag.
  private func get(_ request: Request, _ context: ServerContext) async throws -> Response {
    let query = try ResourceQuery(request, "asOf")
    let asOf = try query.one("asOf")
    let answer = try await pool.read(for: context) { node in
      let record = try RecordName(context, in: node)
      var row: JSON?
      var answer = ResourceAnswer(.null)
      if context.grant.rights.readable.contains(record.partition) {
        try answer.read {
          if let asOf {
            let pointInTime = try node.pointInTime(asOf, in: record.partition.description)
            row = try node.row(record.model, record.key, asOf: pointInTime)
          } else {
            row = try node.row(record.model, record.key, including: [])
            try node.checkTablesAreWhole(for: (record.key, record.model))
          }
        }
      }
      guard let row else { throw try record.absence(answer.missing) }
      answer.json = row
      if asOf == nil, case .string(let revision)? = row["revision"] { answer.revision = revision }
      return answer
    }
    if let revision = answer.revision, request.headers[.ifNoneMatch] == "\"\(revision)\"" {
      return Response(status: .notModified, headers: [.eTag: "\"\(revision)\""])
    }
    return answer.response
  }

  /// An answer from the life of a record that the caller may read.
  private func life(
    _ context: ServerContext, _ body: @escaping @Sendable (RecordLife, Node) throws -> JSON
  ) async throws -> Response {
    try await pool.read(for: context) { node in
      let record = try RecordName(context, in: node)
      guard context.grant.rights.readable.contains(record.partition) else { throw try record.absence(nil) }
      let life = try node.existingLife(of: record.key, in: record.model)
      var answer = ResourceAnswer(try body(life, node))
      try answer.read { if let missing = life.missing { throw NodeError.missing(missing) } }
      return answer
    }.response
  }

  /// An event without a cause in a partition that the caller may not read.
  static func shown(_ event: JSON, _ context: ServerContext) -> JSON {
    let readable = context.grant.rights.readable
    guard !readable.isEverything, case .object(let members) = event,
      case .string(let partition)? = event["cause"]?["partition"], !readable.contains(Partition(partition))
    else { return event }
    return .object(members.filter { $0.name != "cause" })
  }
}

extension RecordName {
  /// The error for a record that does not exist, or that the caller may not see.
  func absence(_ missing: String?) throws -> any Error {
    if let missing { return Problem.unreadable(missing) }
    return NodeError.mutation(.notFound(model: model.name, key: KeyWords.text(key, of: model)))
  }
}

extension RecordResources {
  /// A condition such as `pages>100`.
  private static func condition(
    _ text: String, of model: Model, _ schema: Schema
  ) throws(NodeError) -> Listing.Condition {
    guard let (name, comparison, value) = Listing.Condition.parts(of: text) else {
      throw .mutation(.wrongShape("`\(text)` is not field=value, or with !=, <, <=, >, >=, ^= or ~="))
    }
    guard let field = model.field(named: name) else {
      throw .mutation(.unknownField(model: model.name, field: name, known: model.fields.map(\.name)))
    }
    if comparison == .beginsWith || comparison == .contains {
      return Listing.Condition(field.name, comparison, .string(value))
    }
    do {
      return Listing.Condition(
        field.name, comparison, try schema.value(text: value, for: field, of: model.name))
    } catch { throw .mutation(.value(error)) }
  }

  /// The models with their keys, fields and relationships.
  private static func json(_ schema: Schema) -> JSON {
    .array(
      schema.models.map { model in
        .object([
          ("name", .string(model.name)), ("table", .string(model.tableName)),
          ("key", .array(model.keyFields.map { .string(model.fields[$0].name) })),
          (
            "fields",
            .array(
              model.fields.enumerated().map { index, field in
                .object([
                  ("name", .string(field.name)), ("type", .string(SDL.typeText(field.type))),
                  ("isRequired", .bool(field.isRequired)), ("isKey", .bool(model.isKeyField(index))),
                ])
              })
          ),
          (
            "relationships",
            .array(
              model.relationships.map {
                .object([
                  ("name", .string($0.name)), ("kind", .string("\($0.kind)")), ("target", .string($0.target)),
                ])
              })
          ),
        ])
      })
  }
}
