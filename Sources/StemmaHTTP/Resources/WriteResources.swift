import HTTPTypes
import Hummingbird
import NIOCore
import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaReplication
import StemmaSchema

/// Commits of records, and their undoing.
struct WriteResources: Sendable {
  let pool: NodePool
  /// Called after a commit.
  let changed: @Sendable () -> Void

  func add(to router: RouterGroup<ServerContext>) {
    router.post("mutations") { try await write($0, $1) }
    router.post("commits/{commit}/undo") { try await undo($0, $1) }
  }

  /// Makes one commit of the lines of a body, which have the form of `import`.
  private func write(_ request: Request, _ context: ServerContext) async throws -> Response {
    let query = try ResourceQuery(request, "author", "message")
    let message = try CommitMessage(query, context)
    let revision = try request.revisionToMatch
    let body = try await request.whole(limit: HTTPLimits.resource, context)
    let mutations = try Self.mutations(body)
    if revision != nil, mutations.count != 1 {
      throw Problem.unusable("If-Match is for one mutation, and there are \(mutations.count)")
    }
    let readable = context.grant.rights.readable
    let answer = try await pool.write(for: context) { node in
      let (outcomes, commit) = try node.write(message) { transaction throws(NodeError) in
        var outcomes: [WriteTransaction.Outcome] = []
        for mutation in mutations {
          outcomes.append(try transaction.perform(mutation, ifRevision: revision))
        }
        return (outcomes, transaction.madeCommit)
      }
      let records = try outcomes.map { outcome throws(NodeError) -> JSON in
        let model = try RecordName.model(outcome.model, in: node)
        // A caller that may only write learns no state.
        let isReadable = readable.contains(Partition(model: model, key: outcome.key))
        let revision = isReadable ? try node.state(of: outcome.key, in: model)?.revision : nil
        return .object([
          ("model", .string(model.name)), ("key", node.schema.json(of: outcome.key, model: model)),
          ("changed", .bool(outcome.isChanged)), ("revision", revision.map { .string($0) } ?? .null),
        ])
      }
      let name: JSON = commit.map { .string(node.description.name($0)) } ?? .null
      return ResourceAnswer(.object([("commit", name), ("records", .array(records))]))
    }
    changed()
    return answer.response
  }

  private static func mutations(_ body: ByteBuffer) throws -> [Mutation] {
    var mutations: [Mutation] = []
    for (index, line) in body.readableBytesView.split(separator: UInt8(ascii: "\n")).enumerated() {
      if line.allSatisfy({ [9, 13, 32].contains($0) }) { continue }
      do {
        mutations.append(try Array(line).withUnsafeBytes { try Mutation(line: $0) })
      } catch let error as MutationError {
        throw NodeError.importLine(
          source: "the body", line: index + 1, .mutation(error), resume: nil, earlier: nil)
      }
    }
    if mutations.isEmpty { throw Problem.unusable("the body has no mutation") }
    return mutations
  }

  /// Takes back all events of a commit. The form of `undo --json`, with the new commit.
  private func undo(_ request: Request, _ context: ServerContext) async throws -> Response {
    let query = try ResourceQuery(request, "author", "message", "force")
    let name = try context.parameters.require("commit").percentDecoded
    var message = try CommitMessage(query, context)
    message.text = message.text ?? "undo \(name)"
    let (isForced, note) = (try query.isSet("force"), message)
    let rights = context.grant.rights
    let answer = try await pool.write(for: context) { node in
      let events = try node.commit(named: name)
      guard events.allSatisfy({ rights.readable.contains($0.event.partition) }) else {
        throw NodeError.inspection(.noSuchCommit(name))
      }
      let reversal = try node.undoing(events, isForced: isForced)
      let lost = try node.conflicts(lostBy: events)
      let (count, commit) = try node.write(reversal, note)
      let members: [(name: String, value: JSON)] = [
        ("events", .int(Int64(count))),
        ("changes", .array(reversal.changes.map { $0.json(node.description) })),
        ("commit", commit.map { .string(node.description.name($0)) } ?? .null),
      ]
      return ResourceAnswer(
        .object(members + (lost.isEmpty ? [] : [("conflicts", .array(lost.map(\.json)))])))
    }
    changed()
    return answer.response
  }
}
