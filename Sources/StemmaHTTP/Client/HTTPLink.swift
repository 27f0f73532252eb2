import AsyncHTTPClient
import Foundation
import HTTPTypes
import NIOCore
import StemmaNode
import StemmaReplication
import StemmaSync

/// A peer that a server represents (`Server`). Each transfer is one request: the server keeps no
/// state between two of them, and the greeting begins each one.
final class HTTPLink: PeerLink {
  private let server: HTTPPeer
  let greeting: Greeting
  var sharesMemory: Bool { false }
  var isOwn: Bool { false }

  /// The frames of the next request's body.
  private var body: [UInt8] = []
  private var ownGreeting: [UInt8] = []
  /// The acknowledgment for the peer, which the next request or the end of the session sends.
  private var pendingStatement: SessionMessage?
  private var scope: NarrowedScope?
  private var offer: SessionMessage?
  /// The answers of the last request.
  private var decoder = MessageDecoder()
  private var download: Handover?
  private var upload: (body: Handover, answer: Handover)?
  private var greets = false
  private let interruption: Interruption
  /// The numbers of the requests in the interruption.
  private var interruptible: [Int] = []

  init(_ server: HTTPPeer, _ interruption: Interruption) throws(NodeError) {
    self.server = server
    self.interruption = interruption
    greeting = try server.greeting(interruption)
  }

  deinit { interruptible.forEach(interruption.remove) }

  func send(_ message: SessionMessage) throws(NodeError) {
    switch message {
    case .greeting:
      ownGreeting = MessageFraming.frame(message)
      greets = true
    case .request(let request):
      scope = request.scope
      begin(server.post("pull", ownGreeting + statement() + MessageFraming.frame(message)))
    case .offer:
      offer = message
      begin(server.post("have", ownGreeting + statement() + MessageFraming.frame(message)))
    case .acknowledgement(let held):
      // The next request carries it, or the end of the session.
      guard let scope else { return }
      pendingStatement = .holding(TransferRequest(scope: scope, versionVector: held))
    case .holding:
      let (body, answer) = server.upload("push")
      upload = (body, answer)
      interruptible.append(interruption.add { body.interrupt() })
      begin(answer)
      try put(ownGreeting + (offer.map(MessageFraming.frame) ?? []) + MessageFraming.frame(message))
    case .chunk: try put(MessageFraming.frame(message))
    case .end:
      try put(MessageFraming.frame(message))
      upload?.body.finish()
    case .hello, .refusal: break
    }
  }

  private func statement() -> [UInt8] {
    defer { pendingStatement = nil }
    return pendingStatement.map(MessageFraming.frame) ?? []
  }

  private func begin(_ answer: Handover) {
    interruptible.append(interruption.add { answer.interrupt() })
    decoder = MessageDecoder()
    download = answer
  }

  private func put(_ bytes: [UInt8]) throws(NodeError) {
    guard let upload else { return }
    // An ended upload has an answer with the reason, which `receive` throws.
    _ = upload.body.put(ByteBuffer(bytes: bytes))
  }

  func receive() throws(NodeError) -> SessionMessage {
    if greets {
      greets = false
      return .greeting(greeting)
    }
    do {
      while true {
        if let message = try decoder.next() { return message }
        guard let bytes = try download?.take() else {
          throw NodeError.replication(.incomplete("\(server.address) ended its answer early"))
        }
        decoder.append(bytes.readableBytesView)
      }
    } catch { throw server.nodeError(error) }
  }

  func digests(of patterns: [String]) throws(NodeError) -> [Node.PartitionDigest] {
    try server.digests(of: patterns)
  }

  func close(after error: NodeError?) throws(NodeError) -> [Notice] {
    upload?.body.finish(error.map { _ in CancellationError() })
    if error != nil {
      download?.cancel()
      return []
    }
    guard pendingStatement != nil else { return [] }
    let answer = server.post("have", ownGreeting + statement())
    begin(answer)
    do { while try answer.take() != nil {} } catch { throw server.nodeError(error) }
    return []
  }
}
