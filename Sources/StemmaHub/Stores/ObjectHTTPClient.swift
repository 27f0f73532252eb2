import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import StemmaEvents
import StemmaReplication

/// Requests to one server that block the calling thread, which must not be one of an event loop.
///
/// A request is sent once. A failure after its connection was made leaves the outcome unknown.
final class ObjectHTTPClient: Sendable {
  struct Request {
    var method: HTTPMethod
    var url: String
    var headers: [(name: String, value: String)] = []
    var body: [UInt8]?
    /// Bytes that a body of a successful answer may have.
    var limit: Int
    /// Bytes for whose transfer time is allowed.
    var expected: Int
  }

  struct Answer: Sendable {
    var status: Int
    var headers: HTTPHeaders
    /// Empty if it is too long.
    var body: [UInt8]
    var isTooLong: Bool
  }

  /// How long a client waits. In tests, it is shorter.
  struct Patience: Sendable {
    /// Until the answer, and between its parts.
    var silence = TimeAmount.seconds(30)
    var connecting = TimeAmount.seconds(5)
    /// Bytes per second. Slower transfers are canceled.
    var slowest: Int64 = 128 << 10
  }

  /// Bytes of an error document.
  private static let longestRefusal = 64 << 10
  private static let connections = 16
  private static let redirects = 5

  private let client: HTTPClient
  private let patience: Patience
  private let counter: RequestCounter

  init(followsRedirects: Bool, _ patience: Patience, _ counter: RequestCounter) {
    self.patience = patience
    self.counter = counter
    var configuration = HTTPClient.Configuration()
    configuration.httpVersion = .http1Only
    configuration.redirectConfiguration =
      followsRedirects ? .follow(max: Self.redirects, allowCycles: false) : .disallow
    configuration.timeout = .init(
      connect: patience.connecting, read: patience.silence, write: patience.silence)
    configuration.connectionPool = .init(
      idleTimeout: .seconds(20), concurrentHTTP1ConnectionsPerHostSoftLimit: Self.connections)
    configuration.connectionPool.retryConnectionEstablishment = false
    client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  deinit {
    // Connections are closed in the background.
    client.shutdown { _ in }
  }

  /// - Parameter name: the address in errors.
  func execute(_ request: Request, _ name: String) throws(ObjectError) -> Answer {
    let limit = request.limit
    let reception = Reception { $0.status.code < 300 ? limit : Self.longestRefusal }
    let bytes = max(request.expected, request.body?.count ?? 0)
    let time = patience.silence + .milliseconds(Int64(bytes) * 1000 / patience.slowest)
    counter.add(bytesOut: request.body?.count ?? 0)
    do {
      let sent = try HTTPClient.Request(
        url: request.url, method: request.method, headers: HTTPHeaders(request.headers.map { ($0, $1) }),
        body: request.body.map { .byteBuffer(ByteBuffer(bytes: $0)) })
      let answer = try client.execute(request: sent, delegate: reception, deadline: .now() + time).wait()
      counter.add(bytesIn: answer.body.count)
      return answer
    } catch let error as Reception.TooLong {
      return Answer(status: error.status, headers: error.headers, body: [], isTooLong: true)
    } catch { throw Self.objectError(error, name) }
  }

  private static func objectError(_ error: any Error, _ name: String) -> ObjectError {
    switch error {
    case let error as HTTPClientError:
      switch error {
      case .invalidURL, .emptyHost, .emptyScheme, .redirectLimitReached, .redirectCycleDetected:
        return .refused("\(name): \(error.shortDescription)")
      case .deadlineExceeded, .readTimeout, .writeTimeout, .connectTimeout:
        return .unknown("\(name): the server does not answer")
      case .remoteConnectionClosed: return .unknown("\(name): the connection was lost")
      default: return .unknown("\(name): \(error.shortDescription)")
      }
    case let error as IOError:
      return .unknown("\(name): \(String(cString: strerror(error.errnoCode)))")
    case HTTPParserError.invalidEOFState: return .unknown("\(name): the connection was lost")
    case is HTTPParserError: return .refused("\(name): the server does not answer with HTTP")
    default: return unnamed("\(error)", name)
    }
  }

  /// Errors of types whose modules are no dependency of this one.
  private static func unnamed(_ text: String, _ name: String) -> ObjectError {
    if text.contains("CERTIFICATE_VERIFY_FAILED") {
      return .refused("\(name): the certificate of the server is not trusted")
    }
    // The cause of a failed connection.
    if let cause = text.firstMatch(of: #/([^:()]+) \(errno: \d+\)/#) {
      return .unknown("\(name): \(cause.1.trimmingCharacters(in: .whitespaces))")
    }
    if text.hasPrefix("NIOConnectionError") { return .unknown("\(name): the name of the server is unknown") }
    return .unknown("\(name): \(ObjectKey.printable(text))")
  }
}

/// Collects an answer up to a limit. Called on one event loop.
private final class Reception: HTTPClientResponseDelegate {
  struct TooLong: Error {
    var status: Int
    var headers: HTTPHeaders
  }

  typealias Response = ObjectHTTPClient.Answer

  private struct State {
    var head: HTTPResponseHead?
    var body: [UInt8] = []
    var limit = 0
  }

  private let state = Mutex(State())
  private let limit: @Sendable (HTTPResponseHead) -> Int

  init(_ limit: @escaping @Sendable (HTTPResponseHead) -> Int) { self.limit = limit }

  func didReceiveHead(task: HTTPClient.Task<Response>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    let limit = limit(head)
    state.withLock { state in
      state.head = head
      state.limit = limit
    }
    let announced = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
    return announced > limit ? tooLong(task, head) : task.eventLoop.makeSucceededVoidFuture()
  }

  func didReceiveBodyPart(task: HTTPClient.Task<Response>, _ part: ByteBuffer) -> EventLoopFuture<Void> {
    let refused = state.withLock { state -> HTTPResponseHead? in
      guard state.body.count + part.readableBytes <= state.limit else { return state.head }
      state.body += part.readableBytesView
      return nil
    }
    return refused.map { tooLong(task, $0) } ?? task.eventLoop.makeSucceededVoidFuture()
  }

  private func tooLong(_ task: HTTPClient.Task<Response>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    task.eventLoop.makeFailedFuture(TooLong(status: Int(head.status.code), headers: head.headers))
  }

  func didFinishRequest(task: HTTPClient.Task<Response>) throws -> Response {
    try state.withLock { state in
      guard let head = state.head else { throw HTTPClientError.remoteConnectionClosed }
      return Response(
        status: Int(head.status.code), headers: head.headers, body: state.body, isTooLong: false)
    }
  }
}
