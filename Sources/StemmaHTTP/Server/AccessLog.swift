import HTTPTypes
import Hummingbird
import Logging
import NIOConcurrencyHelpers
import NIOCore
import StemmaNode

/// The facts of a request, collected while it runs.
final class RequestRecord: Sendable {
  /// One line of the access log.
  struct Line: Sendable {
    /// The resource: `pull`, `push`, …
    var verb = ""
    var token: String?
    var status = 0
    var partitions = 0
    var events: UInt64 = 0
    var bytesRead: UInt64 = 0
    var received: UInt64 = 0
    var sent: UInt64 = 0
    var seconds = 0.0
  }

  private let line = NIOLockedValueBox(Line())

  func update(_ change: (inout Line) -> Void) { line.withLockedValue { change(&$0) } }
  var current: Line { line.withLockedValue { $0 } }
}

/// The context of a request.
struct ServerContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel
  let record = RequestRecord()
  var grant = Grant.everything
  /// Whether the caller still has the grant. A stream asks before each part.
  var isGranted: @Sendable () async throws -> Bool = { true }

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    channel = source.channel
  }
}

/// Writes one line for each request when its response has been sent, and counts it.
struct AccessLog: RouterMiddleware {
  let metrics: ServerMetrics
  private static let verbs: Set = [
    "node", "schema", "pull", "have", "push", "changes", "digests", "healthz", "metrics", OpenAPI.path,
    "ui", "models", "records", "history", "why", "events", "conflicts", "mutations", "commits", "activity",
    "status", "stats", "diff", "files", "query",
  ]

  /// The first part of the path, without the version.
  private static func resource(of path: String) -> String {
    let parts = path.split(separator: "/")
    return parts.first { $0 != "v1" }.map(String.init) ?? "ui"
  }

  func handle(
    _ request: Request, context: ServerContext, next: (Request, ServerContext) async throws -> Response
  ) async throws -> Response {
    let begun = ContinuousClock.now
    let record = context.record
    let verb = Self.resource(of: request.uri.path)
    // Paths of strangers would become labels without number.
    record.update { $0.verb = Self.verbs.contains(verb) ? verb : "other" }
    var response: Response
    do { response = try await next(request, context) } catch {
      response = try Self.problem(error, context.logger).response(from: request, context: context)
    }
    assert(OpenAPI.describes(response, to: request), "openapi.json has no \(response.status) of \(verb)")
    let status = response.status.code
    let (body, logger, metrics) = (response.body, context.logger, metrics)
    response.body = ResponseBody(contentLength: body.contentLength) { writer in
      let counting = CountingWriter(base: writer, record: record)
      func finish(_ error: (any Error)?) {
        let elapsed = ContinuousClock.now - begun
        record.update {
          $0.status = status
          $0.seconds =
            Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        }
        let line = record.current
        metrics.add(line)
        // A probe each second would hide the exchanges.
        if ["healthz", "metrics"].contains(line.verb) { return }
        logger.info(
          "\(line.verb)",
          metadata: [
            "token": "\(line.token ?? "-")", "status": "\(line.status)", "partitions": "\(line.partitions)",
            "events": "\(line.events)", "received": "\(line.received)", "sent": "\(line.sent)",
            "seconds": "\((line.seconds * 1e6).rounded() / 1e6)",
            "error": "\(error.map { "\($0)" } ?? "-")",
          ])
      }
      do {
        try await body.write(counting)
        finish(nil)
      } catch {
        finish(error)
        throw error
      }
    }
    return response
  }
}

extension AccessLog {
  /// The problem document of an error that no resource has described.
  private static func problem(_ error: any Error, _ logger: Logger) -> Problem {
    switch error {
    case let error as Problem: return error
    case let error as any HTTPResponseError: return Problem(error.status)
    // An error in a body. The rights of the caller are unknown here.
    case let error as NodeError: return Problem(resource: error, isLimited: true)
    case let error as MutationError: return Problem(resource: .mutation(error), isLimited: true)
    default:
      logger.error("a request failed", metadata: ["error": "\(error)"])
      return Problem(.internalServerError)
    }
  }
}

/// Counts the bytes of a response.
private struct CountingWriter: ResponseBodyWriter {
  var base: any ResponseBodyWriter
  let record: RequestRecord

  mutating func write(_ buffer: ByteBuffer) async throws {
    try await base.write(buffer)
    record.update { $0.sent += UInt64(buffer.readableBytes) }
  }

  consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
    try await base.finish(trailingHeaders)
  }
}
