import Crypto
import HTTPTypes
import Hummingbird
import NIOCore
import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaReplication
import StemmaSchema

/// Open conflicts, and their resolution.
struct ConflictResources: Sendable {
  let pool: NodePool
  let counts: ScopeCounts
  /// Called after a commit.
  let changed: @Sendable () -> Void

  func add(to router: RouterGroup<ServerContext>) {
    router.get("conflicts") { try await list($0, $1) }
    router.get("conflicts/counts") { try await tally($0, $1) }
    router.get("conflicts/{model}/{key}") { try await ofRecord($0, $1) }
    router.post("conflicts") { try await resolveAll($0, $1) }
    router.post("conflicts/{model}/{key}") { try await resolve($0, $1) }
  }

  /// The form of `conflicts --json`.
  private func list(_ request: Request, _ context: ServerContext) async throws -> Response {
    let query = try ResourceQuery(
      request, "model", "key", "field", "kind", "limit", "offset", "from")
    let (limit, offset) = (try query.limit(), try query.offset())
    let (start, readable) = (try query.one("from"), context.grant.rights.readable)
    return try await pool.read(for: context) { node in
      let filter = try ConflictFilter(query, in: node, within: readable)
      let first = try start.map { try RecordName(path: $0, in: node) }
      var page = ConflictPage(limit: limit, offset: offset, start: start)
      var answer = ResourceAnswer(.null)
      try answer.read {
        try node.conflicts(
          filter, from: first.map { ($0.model.name, $0.key) }, in: offset..<offset + limit + 1
        ) { page.append($0) }
        try node.checkTablesAreWhole()
      }
      answer.json = .array(page.list.elements)
      if page.list.hasMore { answer.next = page.next(query) }
      return answer
    }.response
  }

  /// The form of `conflicts --count --json`.
  private func tally(_ request: Request, _ context: ServerContext) async throws -> Response {
    _ = try ResourceQuery(request)
    let readable = context.grant.rights.readable
    return try await pool.read(for: context) { node in
      var answer = ResourceAnswer(.array(try counts.conflicts(node, within: readable).rows))
      try answer.read { try node.checkTablesAreWhole() }
      return answer
    }.response
  }

  /// The conflicts of one record with the values that they replace.
  private func ofRecord(_ request: Request, _ context: ServerContext) async throws -> Response {
    _ = try ResourceQuery(request)
    let readable = context.grant.rights.readable
    return try await pool.read(for: context) { node in
      let record = try RecordName(context, in: node)
      guard readable.contains(record.partition) else { throw try record.absence(nil) }
      var filter = ConflictFilter(model: record.model)
      filter.key = record.key
      filter.scope = NarrowedScope(readable)
      let life = try node.existingLife(of: record.key, in: record.model)
      var conflicts: [JSON] = []
      var shown: [ConflictDescription] = []
      var answer = ResourceAnswer(.null)
      try answer.read {
        try node.conflicts(filter) { conflict in
          shown.append(conflict)
          conflicts.append(conflict.json(ancestor: try conflict.ancestor(in: life)))
        }
        if let missing = life.missing { throw NodeError.missing(missing) }
      }
      answer.json = .array(conflicts)
      answer.revision = Self.tag(of: shown)
      return answer
    }.response
  }

  // MARK: Resolve

  /// Resolves conflicts of a record in one commit.
  private func resolve(_ request: Request, _ context: ServerContext) async throws -> Response {
    let query = try ResourceQuery(request, "author", "message")
    let ways = try ResolutionWay.all(in: try await request.whole(limit: HTTPLimits.resource, context))
    let message = try CommitMessage(query, context)
    let tag = try request.revisionToMatch
    let readable = context.grant.rights.readable
    let answer = try await pool.write(for: context) { node in
      let record = try RecordName(context, in: node)
      guard readable.contains(record.partition) else { throw try record.absence(nil) }
      let open = try node.conflicts(of: record.key, in: record.model)
      let key = node.schema.json(of: record.key, model: record.model)
      let choices = try ways.map { try $0.choice(record.model, node) }
      let commit = try node.resolve(record.model, key, choices, message) { () throws(NodeError) in
        guard let tag else { return }
        let current = Self.tag(of: try node.conflicts(of: record.key, in: record.model))
        guard tag != current else { return }
        throw .mutation(
          .revisionMismatch(
            model: record.model.name, key: KeyWords.text(record.key, of: record.model), expected: tag,
            current: current))
      }
      let left = try node.conflicts(of: record.key, in: record.model)
      let count = open.count { conflict in !left.contains { $0.isSame(as: conflict) } }
      return ResourceAnswer(resolved: count, commit, node)
    }
    changed()
    return answer.response
  }

  /// Identifies the candidates of a record's conflicts. Names of nodes can change; origins do not.
  private static func tag(of conflicts: [ConflictDescription]) -> String {
    let candidates = conflicts.map { conflict -> JSON in
      let shown = conflict.candidates.map {
        JSON.array([.string("\($0.id.origin):\($0.id.sequence)"), $0.value])
      }
      return .array([
        .string(conflict.kind.rawValue), conflict.field.map { .string($0) } ?? .null, .array(shown),
      ])
    }
    let digest = SHA256.hash(data: Array(JSON.array(candidates).text.utf8))
    return String(digest.hexadecimal.prefix(16))
  }

  /// Resolves all value and delete conflicts.
  private func resolveAll(_ request: Request, _ context: ServerContext) async throws -> Response {
    let query = try ResourceQuery(request, "model", "author", "message")
    let ways = try ResolutionWay.all(in: try await request.whole(limit: HTTPLimits.resource, context))
    guard ways.count == 1 else { throw Problem.unusable("all conflicts are resolved in one way") }
    let (name, message) = (try query.one("model"), try CommitMessage(query, context))
    // The count would show conflicts of other partitions.
    guard context.grant.rights.readable.isEverything else { throw Problem.forbidden }
    let answer = try await pool.write(for: context) { node in
      let model = try name.map { try RecordName.model($0, in: node) }
      let (count, commit) = try node.resolveAll(model, try ways[0].ofAll, message)
      return ResourceAnswer(resolved: count, commit, node)
    }
    changed()
    return answer.response
  }
}

/// A page of conflicts, and the place of the next one. After a value or delete conflict, that is
/// its record and the number of its conflicts so far, so that no earlier conflict is read again.
private struct ConflictPage {
  var list: LimitedList
  private var offset: Int
  /// The record from which `offset` counts, as `MODEL/KEY`.
  private var start: String?

  init(limit: Int, offset: Int, start: String?) {
    (list, self.offset, self.start) = (LimitedList(limit), offset, start)
  }

  mutating func append(_ conflict: ConflictDescription) {
    guard list.append(conflict.json) else { return }
    offset += 1
    guard conflict.kind == .value || conflict.kind == .delete else { return }
    let record = RecordName.path(conflict.model, conflict.key)
    if record != start { (start, offset) = (record, 1) }
  }

  func next(_ query: ResourceQuery) -> String {
    let address = query.address(with: ("offset", "\(offset)"))
    return start.map { query.address(with: ("offset", "\(offset)"), ("from", $0)) } ?? address
  }
}

extension ResourceAnswer {
  fileprivate init(resolved count: Int, _ commit: CommitID?, _ node: Node) {
    self.init(
      .object([
        ("resolved", .int(Int64(count))),
        ("commit", commit.map { .string(node.description.name($0)) } ?? .null),
      ]))
  }
}

/// A resolution: `{"take":…}`, `{"set":…}`, `{"keep":true}`, `{"delete":true}` or
/// `{"unlink":true}`, with `field` and `kind` if the record has several conflicts.
private struct ResolutionWay: Sendable {
  private let name: String
  private let value: JSON
  private var field: String?
  private var kind: ConflictFilter.Kind?

  /// The resolutions of a body: one, or an array.
  static func all(in body: ByteBuffer) throws -> [ResolutionWay] {
    let json: JSON
    do { json = try body.withUnsafeReadableBytes { try JSON.parse($0) } } catch let error as JSONError {
      throw MutationError.notJSON(error)
    }
    guard case .array(let ways) = json else { return [try ResolutionWay(json)] }
    if ways.isEmpty { throw Problem.unusable("the body has no resolution") }
    return try ways.map { try ResolutionWay($0) }
  }

  init(_ json: JSON) throws {
    guard case .object(let members) = json else { throw Problem.unusable("a resolution is an object") }
    var ways: [(name: String, value: JSON)] = []
    for member in members {
      switch (member.name, member.value) {
      case ("field", .string(let name)): field = name
      case ("field", .null): break
      case ("kind", .string(let name)): kind = try ConflictFilter.kind(named: name)
      default: ways.append(member)
      }
    }
    guard ways.count == 1 else {
      throw Problem.unusable("a resolution has one of take, set, keep, delete and unlink")
    }
    (name, value) = ways[0]
  }

  func choice(_ model: Model, _ node: Node) throws -> ConflictChoice {
    // Existence has no declared field.
    let isExistence = field.map { ExistenceName.matches($0, in: model) } ?? false
    return ConflictChoice(
      field: isExistence ? nil : field, kind: isExistence ? .delete : kind, resolution: try resolution(node))
  }

  private func resolution(_ node: Node) throws -> Resolution {
    switch (name, value) {
    case ("take", .int(let number)): return .take(Int(clamping: number))
    case ("take", .string("shown")): return .shown
    case ("take", .string("newest")): return .newest
    case ("take", .string(let event)):
      let ids = node.description.ids(named: event)
      guard ids.count == 1, let id = ids.first else { throw NodeError.inspection(.noSuchEvent(event)) }
      return .takeEvent(id)
    case ("set", let value): return .set(value)
    case ("keep", .bool(true)): return .keep
    case ("delete", .bool(true)): return .delete
    case ("unlink", .bool(true)): return .set(.null)
    default: throw Problem.unusable("`\(name)` is no way to resolve a conflict, or has a wrong value")
    }
  }

  /// The way for all conflicts.
  var ofAll: Resolution {
    get throws {
      switch (name, value) {
      case ("take", .string("shown")): return .shown
      case ("take", .string("newest")): return .newest
      default: throw Problem.unusable("all conflicts are resolved by {\"take\":\"shown\"} or \"newest\"")
      }
    }
  }
}

extension ConflictFilter {
  init(_ query: ResourceQuery, in node: Node, within readable: Scope) throws {
    self.init(model: try query.one("model").map { try RecordName.model($0, in: node) })
    if let form = query.all("key").first {
      guard let model else { throw Problem.unusable("`key` needs `model`") }
      key = try RecordName(model, form, in: node).key
    }
    fields = Set(query.all("field"))
    let names = query.all("kind")
    if !names.isEmpty { kinds = Set(try names.map(Self.kind(named:))) }
    scope = NarrowedScope(readable)
  }

  static func kind(named name: String) throws(Problem) -> Kind {
    guard let kind = Kind(rawValue: name) else {
      throw .unusable(
        "`\(name)` is no kind of conflict; there are \(Kind.allCases.map(\.rawValue).joined(separator: ", "))"
      )
    }
    return kind
  }
}

extension CommitMessage {
  /// The author is that of the request, or the name of the token.
  init(_ query: ResourceQuery, _ context: ServerContext) throws(Problem) {
    self.init(author: try query.one("author") ?? context.grant.name, text: try query.one("message"))
  }
}
