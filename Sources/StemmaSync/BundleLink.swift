import StemmaNode
import StemmaReplication

/// A peer that a bundle represents, for a pull.
package final class BundleLink: PeerLink {
  private var bundle: BundleReader
  /// The messages before the chunks that the receiver has not read, the next one last.
  private var pending: [SessionMessage]
  package let greeting: Greeting
  package var sharesMemory: Bool { false }
  package var isOwn: Bool { false }
  package var isRecorded: Bool { true }

  package init(_ bundle: BundleReader) {
    self.bundle = bundle
    greeting = bundle.greeting
    pending = [.greeting(greeting)]
  }

  /// - Throws: `.missingPrerequisites` for a request of a node that lacks them.
  package func send(_ message: SessionMessage) throws(NodeError) {
    guard case .request(let request) = message else { return }
    let missing = MissingPrerequisites(
      bundle.prerequisites, in: request.scope, held: request.versionVector, names: greeting.origins)
    if let missing { throw .missingPrerequisites(bundle: bundle.name, missing) }
    let held = bundle.holding.restricted { request.scope.contains($0) }
    pending.append(.holding(TransferRequest(scope: request.scope, versionVector: held)))
  }

  package func receive() throws(NodeError) -> SessionMessage {
    if let message = pending.popLast() { return message }
    guard let message = try bundle.next() else { throw bundle.fault("nothing follows its end") }
    return message
  }

  package func close(after error: NodeError?) throws(NodeError) -> [Notice] { [] }
}
