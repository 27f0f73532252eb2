import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle
import StemmaNode
import UnixSignals

/// Serves a node over HTTP until the process receives SIGTERM or SIGINT.
package struct Server: Sendable {
  package struct Configuration: Sendable {
    package var host = "127.0.0.1"
    /// 0: any free port.
    package var port = Self.port
    /// The files of a certificate chain and its key, as PEM. SIGHUP reads them again.
    package var certificate: (chain: String, key: String)?
    /// Whether `/` is a page that shows the node in a browser.
    package var hasPage = false
    /// A token of this server alone, with all rights; nil: none.
    package var secret: String?

    package static let port = 7433

    package init() {}
  }

  /// Longest time for requests in progress after SIGTERM.
  private static let grace = Duration.seconds(10)

  private let opening: NodeOpening
  private let configuration: Configuration
  private let logger: Logger
  private let certificate: Certificate?

  /// - Throws: `.unforeseen` if the certificate is unusable.
  package init(
    _ opening: NodeOpening, _ configuration: Configuration, _ logger: Logger
  ) throws(NodeError) {
    self.opening = opening
    self.configuration = configuration
    self.logger = logger
    do {
      certificate = try configuration.certificate.map { try Certificate(certificate: $0.chain, key: $0.key) }
    } catch {
      throw .unforeseen(
        "\(configuration.certificate?.chain ?? ""): the certificate or its key is unusable: \(error)")
    }
  }

  /// Whether other machines could reach the node without a certificate or without tokens.
  package static func isExposed(
    _ opening: NodeOpening, _ configuration: Configuration
  ) throws(NodeError) -> Bool {
    if Loopback.hosts.contains(configuration.host) { return false }
    if configuration.certificate == nil { return true }
    return try !AccessTokens(of: opening.directory, opening.ports).areRequired
  }

  /// - Parameter running: called with the address when the server accepts connections.
  package func run(_ running: @escaping @Sendable (String) -> Void) async throws {
    let pool = NodePool(opening)
    let metrics = ServerMetrics()
    let hints = ChangeHints()
    let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let router = Router(context: ServerContext.self)
    router.add(middleware: AccessLog(metrics: metrics))
    router.get("healthz") { _, _ in "ok\n" }
    router.get("v1/\(OpenAPI.path)") { _, _ in OpenAPI.response }
    if configuration.hasPage { PageFiles.add(to: router) }
    let access = Authentication(
      directory: opening.directory, ports: opening.ports, pool: pool, secret: configuration.secret,
      isOnLoopback: Loopback.hosts.contains(configuration.host))
    let resources = router.group().add(middleware: SameOrigin())
      .add(middleware: access)
    resources.get("metrics") { _, context in
      guard context.grant.rights.readable.isEverything else { throw Problem.forbidden }
      return Response(
        status: .ok, headers: [.contentType: "text/plain; version=0.0.4"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: metrics.text)))
    }
    let version = resources.group("v1")
    Exchanges(pool: pool) { wake.yield() }.add(to: version)
    let changes = Changes(hints: hints, metrics: metrics)
    changes.add(to: version)
    Inspections(pool: pool).add(to: version)
    RecordResources(pool: pool).add(to: version)
    EventResources(pool: pool, changes: changes).add(to: version)
    let counts = ScopeCounts()
    ConflictResources(pool: pool, counts: counts) { wake.yield() }.add(to: version)
    WriteResources(pool: pool) { wake.yield() }.add(to: version)
    LogResources(pool: pool, counts: counts).add(to: version)

    let http = HTTP1Channel.Configuration(
      additionalChannelHandlers: [EarlyClose()], idleTimeout: HTTPLimits.idle,
      httpDecoderConfiguration: .init(
        maxHeaderFieldSize: HTTPLimits.headerField, maxHeaderListSize: HTTPLimits.headerList,
        maxHeaderFieldCount: HTTPLimits.headerFields))
    let (certificate, host) = (certificate, configuration.host)
    let builder = HTTPServerBuilder { responder in
      ServerConnection(
        base: HTTP1Channel(responder: responder, configuration: http), certificate: certificate)
    }
    let application = Application(
      router: router, server: builder,
      configuration: .init(
        address: .hostname(host, port: configuration.port), serverName: nil, backlog: 1024,
        availableConnectionsDelegate: .maximum(HTTPLimits.connections, logger: logger)),
      onServerRunning: { channel in
        let port = channel.localAddress?.port ?? 0
        running(
          "\(certificate == nil ? "http" : "https")://\(host.contains(":") ? "[\(host)]" : host):\(port)")
      }, logger: logger)
    // The first view shows counts, which take a second for 50,000 conflicts.
    if configuration.hasPage { counts.prepare(pool) }
    let watch = LogWatch(opening: opening, pool: pool, hints: hints, wakes: wakes)
    var group = ServiceGroupConfiguration(
      services: [
        .init(service: application, successTerminationBehavior: .gracefullyShutdownGroup),
        .init(service: watch),
        .init(service: CertificateReload(certificate: certificate, logger: logger)),
      ], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    group.maximumGracefulShutdownDuration = Self.grace
    try await ServiceGroup(configuration: group).run()
  }
}

/// Reads the certificate again at SIGHUP.
private struct CertificateReload: Service {
  let certificate: Certificate?
  let logger: Logger

  func run() async throws {
    for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
      do {
        try certificate?.reload()
        logger.notice("the certificate was read again")
      } catch {
        logger.error("the certificate cannot be used; the old one stays", metadata: ["error": "\(error)"])
      }
    }
  }
}
