import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTPTypes
import NIOSSL

/// The certificate and key of a server, which can be read again while it runs.
final class Certificate: Sendable {
  private let paths: (certificate: String, key: String)
  private let current: NIOLockedValueBox<NIOSSLContext>

  init(certificate: String, key: String) throws {
    paths = (certificate, key)
    current = NIOLockedValueBox(try Self.context(paths))
  }

  var context: NIOSSLContext { current.withLockedValue { $0 } }

  /// Connections from now on use the new certificate. The old one stays if the new is unusable.
  func reload() throws {
    let context = try Self.context(paths)
    current.withLockedValue { $0 = context }
  }

  private static func context(_ paths: (certificate: String, key: String)) throws -> NIOSSLContext {
    let chain = try NIOSSLCertificate.fromPEMFile(paths.certificate).map {
      NIOSSLCertificateSource.certificate($0)
    }
    let key = try NIOSSLPrivateKey(file: paths.key, format: .pem)
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain, privateKey: .privateKey(key))
    configuration.minimumTLSVersion = .tlsv12
    return try NIOSSLContext(configuration: configuration)
  }
}

/// A connection with the limits of this server.
struct ServerConnection<Base: ServerChildChannel>: ServerChildChannel {
  let base: Base
  let certificate: Certificate?

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
    channel.eventLoop.makeCompletedFuture {
      guard let certificate else { return }
      try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: certificate.context))
    }.flatMap { base.setup(channel: channel, logger: logger) }
  }

  func handle(value: Base.Value, logger: Logger) async { await base.handle(value: value, logger: logger) }
}

/// Ends requests that go on after their response: the rest is discarded up to a limit, so that the
/// client can read the response, and then the connection is closed.
///
/// After `Connection: close` it is closed in any case. Otherwise a request that ends within the
/// limit leaves the connection open.
final class EarlyClose: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private static let patience = TimeAmount.seconds(2)
  /// Whether the client still sends the current request.
  private var isArriving = false
  private var closesAtEnd = false
  /// Set from the end of a response to the end of its request, and before the connection is closed.
  private var deadline: Scheduled<Void>?
  private var isClosing: Bool { closesAtEnd && deadline != nil }
  private var discarded = 0

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head: isArriving = true
    case .body(let part):
      guard deadline != nil else { break }
      discarded += part.readableBytes
      if discarded > HTTPLimits.discarded { return context.close(promise: nil) }
    case .end:
      isArriving = false
      if isClosing { return context.close(promise: nil) }
      deadline?.cancel()
      deadline = nil
    }
    if !isClosing { context.fireChannelRead(data) }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    context.write(data, promise: promise)
    switch unwrapOutboundIn(data) {
    case .head(let head) where head.headerFields[.connection] == "close": closesAtEnd = true
    case .end where closesAtEnd || isArriving:
      discarded = 0
      context.flush()
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      deadline = context.eventLoop.scheduleTask(in: Self.patience) { bound.value.close(promise: nil) }
    default: break
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    context.fireChannelInactive()
  }
}
