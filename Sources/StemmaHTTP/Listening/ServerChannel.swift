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

/// Closes a connection after a response with `Connection: close`. The rest of the request is
/// discarded up to a limit, so that the client can read the response.
final class EarlyClose: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private static let patience = TimeAmount.seconds(2)
  private var closesAtEnd = false
  private var isClosing = false
  private var discarded = 0

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard isClosing else { return context.fireChannelRead(data) }
    if case .body(let part) = unwrapInboundIn(data) {
      discarded += part.readableBytes
      if discarded > HTTPLimits.discarded { context.close(promise: nil) }
    } else {
      context.close(promise: nil)
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(let head) where head.headerFields[.connection] == "close": closesAtEnd = true
    case .end where closesAtEnd:
      isClosing = true
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      context.write(data, promise: promise)
      context.flush()
      context.eventLoop.scheduleTask(in: Self.patience) { bound.value.close(promise: nil) }
      return
    default: break
    }
    context.write(data, promise: promise)
  }
}
