import AsyncHTTPClient
import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import StemmaEvents
import StemmaNode
import StemmaReplication
import StemmaSync

/// How a client reaches servers.
package struct HTTPOptions: Sendable, Hashable, Codable {
  /// The secret of `Authorization: Bearer`; nil: none.
  package var token: String?
  /// A file of certificates, as PEM, that are trusted instead of the system's.
  package var authorities: String?

  package init(token: String? = nil, authorities: String? = nil) {
    self.token = token
    self.authorities = authorities
  }
}

/// Requests to one server. Each returns at once; a task passes the answer on.
package final class HTTPPeer: Sendable {
  /// The document of an error status.
  struct Refusal: Error {
    var status: UInt
    var body: [UInt8]
    var isProblem: Bool
  }

  private struct Key: Hashable {
    var address: String
    var options: HTTPOptions
  }

  /// One client for each server and options, so that exchanges reuse connections.
  private static let peers = Mutex<[Key: HTTPPeer]>([:])

  let address: String
  private let token: String?
  private let client: HTTPClient

  private static let connectTimeout = TimeAmount.seconds(5)
  /// Longest silence. A server that has adopted a long push rebuilds its tables before it answers.
  private static let readTimeout = TimeAmount.seconds(300)
  /// Longest time until the greeting, for which a server needs to read nothing but its tables.
  private static let greetingTimeout = TimeAmount.seconds(30)

  package static func at(_ address: String, _ options: HTTPOptions) throws(NodeError) -> HTTPPeer {
    let key = Key(address: address, options: options)
    if let known = peers.withLock({ $0[key] }) { return known }
    let made = try HTTPPeer(address, options)
    return peers.withLock { peers in
      if let known = peers[key] { return known }
      peers[key] = made
      return made
    }
  }

  private init(_ address: String, _ options: HTTPOptions) throws(NodeError) {
    // An error of the client would show the text.
    if let token = options.token, !token.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) {
      throw .notAPeer(path: address, reason: "the token contains a character that no token has")
    }
    // The client traps at a port beyond 16 bits.
    guard let parts = URLComponents(string: address), parts.host?.isEmpty == false,
      parts.port.map({ (1...65535).contains($0) }) ?? true
    else { throw .notAPeer(path: address, reason: "it is no URL of a server, such as https://HOST:7433") }
    self.address = address
    token = options.token
    var configuration = HTTPClient.Configuration()
    configuration.httpVersion = .http1Only
    configuration.timeout = .init(connect: Self.connectTimeout, read: Self.readTimeout)
    configuration.connectionPool = .init(
      idleTimeout: .seconds(20), concurrentHTTP1ConnectionsPerHostSoftLimit: 8)
    configuration.connectionPool.retryConnectionEstablishment = false
    if let path = options.authorities {
      var tls = TLSConfiguration.makeClientConfiguration()
      do { tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(path)) } catch {
        throw .notAPeer(path: path, reason: "it is no file of certificates")
      }
      configuration.tlsConfiguration = tls
    }
    client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  deinit {
    // Connections are closed in the background.
    client.shutdown { _ in }
  }

  private func request(_ verb: String, _ method: HTTPMethod) -> HTTPClientRequest {
    var request = HTTPClientRequest(url: address + "/v1/" + verb)
    request.method = method
    request.headers.add(name: "accept", value: messagesType)
    if let token { request.headers.add(name: "authorization", value: "Bearer \(token)") }
    return request
  }

  /// The greeting of the node behind the server.
  func greeting(_ interruption: Interruption) throws(NodeError) -> Greeting {
    var decoder = MessageDecoder()
    let answer = execute(request("node", .GET), within: Self.greetingTimeout)
    let number = interruption.add { answer.interrupt() }
    defer { interruption.remove(number) }
    do {
      while let bytes = try answer.take() { decoder.append(bytes.readableBytesView) }
      guard case .greeting(let greeting)? = try decoder.next() else {
        throw NodeError.notAPeer(path: address, reason: "\(Notice.otherProtocol)")
      }
      return greeting
    } catch { throw nodeError(error) }
  }

  func digests(of patterns: [String]) throws(NodeError) -> [Node.PartitionDigest] {
    var components = URLComponents()
    components.queryItems = patterns.map { URLQueryItem(name: "partition", value: $0) }
    // A plus sign would be read as a space.
    let query = (components.percentEncodedQuery ?? "").replacing("+", with: "%2B")
    var request = request("digests?" + query, .GET)
    request.headers.replaceOrAdd(name: "accept", value: "application/json")
    let answer = execute(request)
    var bytes = Data()
    do {
      while let part = try answer.take() {
        guard bytes.count + part.readableBytes <= HTTPLimits.statement else {
          throw NodeError.notAPeer(path: address, reason: "its list of digests is longer than 64 MiB")
        }
        bytes += part.readableBytesView
      }
      return try JSONDecoder().decode([Node.PartitionDigest].self, from: bytes)
    } catch is DecodingError {
      throw .notAPeer(path: address, reason: "its digests cannot be read")
    } catch { throw nodeError(error) }
  }

  /// The stream of change hints.
  func changes() async throws -> HTTPClientResponse {
    let response = try await client.execute(request("changes", .GET), deadline: .distantFuture)
    guard response.status == .ok else { throw HTTPClientError.invalidHeaderFieldValues([]) }
    return response
  }

  func post(_ verb: String, _ body: [UInt8]) -> Handover {
    var request = request(verb, .POST)
    request.headers.add(name: "content-type", value: messagesType)
    request.body = .bytes(ByteBuffer(bytes: body))
    return execute(request)
  }

  /// A request whose body is put into the first queue; the second one has the answer.
  func upload(_ verb: String) -> (body: Handover, answer: Handover) {
    var request = request(verb, .POST)
    request.headers.add(name: "content-type", value: messagesType)
    let body = Handover()
    request.body = .stream(Upload(queue: body), length: .unknown)
    let answer = execute(request)
    return (body, answer)
  }

  /// The answer must have the accepted type.
  private func execute(_ request: HTTPClientRequest, within limit: TimeAmount? = nil) -> Handover {
    let answer = Handover()
    Task { [client] in
      do {
        let response = try await client.execute(
          request, deadline: limit.map { .now() + $0 } ?? .distantFuture)
        let type = response.headers.first(name: "content-type")
        guard response.status == .ok, type == request.headers.first(name: "accept") else {
          let body = try await response.body.collect(upTo: HTTPLimits.problem)
          let isProblem = type == Problem.contentType
          return answer.finish(
            Refusal(
              status: UInt(response.status.code), body: Array(body.readableBytesView), isProblem: isProblem))
        }
        for try await part in response.body {
          guard try await answer.send(part) else { return }
        }
        answer.finish()
      } catch { answer.finish(error) }
    }
    return answer
  }

  /// The error of a request as one of a node.
  func nodeError(_ error: any Error) -> NodeError {
    switch error {
    case let error as NodeError: return error
    case let error as ReplicationError: return .replication(error)
    case let refusal as Refusal: return nodeError(refusal)
    case let error as HTTPClientError where error == .deadlineExceeded:
      return .notAPeer(path: address, reason: "it does not answer")
    case let error as HTTPClientError where error == .remoteConnectionClosed || error == .readTimeout:
      return .replication(.incomplete("\(address): the connection was lost"))
    case HTTPParserError.invalidEOFState:
      return .replication(.incomplete("\(address): the connection was lost"))
    default:
      return .notAPeer(path: address, reason: "it cannot be reached: \(Self.words(error))")
    }
  }

  private static func words(_ error: any Error) -> String {
    if let error = error as? NIOConnectionError {
      if let first = error.connectionErrors.first {
        return (first.error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(first.error)"
      }
      return "its name is unknown"
    }
    if let error = error as? NIOSSLExtraError, error == .failedToValidateHostname {
      return "its certificate is for another host"
    }
    if error is NIOSSLError {
      return "\(error)".contains("CERTIFICATE_VERIFY_FAILED")
        ? "its certificate is not trusted" : "it does not answer with TLS"
    }
    return "\(error)"
  }

  private func nodeError(_ refusal: Refusal) -> NodeError {
    struct Document: Decodable {
      var title: String
      var refusal: String?
    }
    guard refusal.isProblem else {
      return .notAPeer(path: address, reason: "\(Notice.otherProtocol) (status \(refusal.status))")
    }
    let document: Document
    do { document = try JSONDecoder().decode(Document.self, from: Data(refusal.body)) } catch {
      return .notAPeer(path: address, reason: "its answer cannot be read (status \(refusal.status))")
    }
    if refusal.status == 401 { return .unauthenticated(address) }
    if let encoded = document.refusal, let bytes = Data(base64Encoded: encoded) {
      do {
        if case .refusal(let reason) = try SessionMessage(decoding: Array(bytes)) {
          return .replication(.refusedByPeer(reason))
        }
      } catch { return .replication(error) }
    }
    return .notAPeer(path: address, reason: "\(document.title) (status \(refusal.status))")
  }
}

/// The body of a request from a queue.
private struct Upload: AsyncSequence, Sendable {
  struct Iterator: AsyncIteratorProtocol {
    let queue: Handover

    mutating func next() async throws -> ByteBuffer? { try await queue.receive() }
  }

  let queue: Handover

  func makeAsyncIterator() -> Iterator { Iterator(queue: queue) }
}

extension HTTPPeer {
  /// Connects to `http://` and `https://` addresses.
  package static func connector(_ options: @escaping (RemotePeer, Node?) throws(NodeError) -> HTTPOptions)
    -> Connector
  {
    { (remote, node, _) throws(NodeError) in
      try HTTPLink(try HTTPPeer.at(remote.address, try options(remote, node)), Interruption())
    }
  }
}
