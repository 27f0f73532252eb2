import Foundation
import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers
import NIOCore
import ServiceLifecycle
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication

/// Names partitions with new events to the streams of `GET /v1/changes`. A hint carries no data.
/// With all hints lost, only latency changes.
final class ChangeHints: Sendable {
  private struct Subscriber {
    let readable: Scope
    let continuation: AsyncStream<ByteBuffer>.Continuation
  }

  private struct State {
    var subscribers: [Int: Subscriber] = [:]
    var next = 0
  }

  private let state = NIOLockedValueBox(State())
  /// Hints that wait for a slow reader. At one more, its stream is ended: it opens another, and
  /// then asks for everything.
  private static let waiting = 16

  func subscribe(_ readable: Scope) -> (id: Int, stream: AsyncStream<ByteBuffer>) {
    let (stream, continuation) = AsyncStream.makeStream(
      of: ByteBuffer.self, bufferingPolicy: .bufferingOldest(Self.waiting))
    let id = state.withLockedValue { state in
      state.next += 1
      state.subscribers[state.next] = Subscriber(readable: readable, continuation: continuation)
      return state.next
    }
    continuation.yield(ByteBuffer(string: ": open\n\n"))
    return (id, stream)
  }

  func unsubscribe(_ id: Int) {
    state.withLockedValue { $0.subscribers.removeValue(forKey: id) }?.continuation.finish()
  }

  func publish(_ heads: [StreamID: SequenceNumber]) {
    let subscribers = state.withLockedValue { Array($0.subscribers.values) }
    for subscriber in subscribers {
      var text = ""
      for (stream, sequence) in heads where subscriber.readable.contains(stream.partition) {
        let data = JSON.object([
          ("partition", .string(stream.partition.description)),
          ("origin", .string(stream.origin.description)),
          ("sequence", .int(Int64(clamping: sequence.rawValue))),
        ])
        text += "event: change\ndata: \(data.text)\n\n"
      }
      guard !text.isEmpty else { continue }
      if case .dropped = subscriber.continuation.yield(ByteBuffer(string: text)) {
        subscriber.continuation.finish()
      }
    }
  }

  /// A comment keeps proxies and clients from closing an idle stream.
  func beat() {
    let beat = ByteBuffer(string: ": \n\n")
    for subscriber in state.withLockedValue({ Array($0.subscribers.values) }) {
      subscriber.continuation.yield(beat)
    }
  }
}

/// Watches the log for events of any process and publishes hints.
struct LogWatch: Service {
  let opening: NodeOpening
  let pool: NodePool
  let hints: ChangeHints
  /// Wakes the watch before its next look.
  let wakes: AsyncStream<Void>

  private static let interval = Duration.milliseconds(50)
  private static let beatInterval = Duration.seconds(15)

  func run() async throws {
    let state = WatchedLog(opening)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for await _ in wakes.cancelOnGracefulShutdown() { try await look(state) }
      }
      group.addTask {
        try await cancelWhenGracefulShutdown {
          while !Task.isCancelled {
            do { try await Task.sleep(for: Self.interval) } catch { return }
            try await look(state)
          }
        }
      }
      group.addTask {
        await cancelWhenGracefulShutdown {
          while !Task.isCancelled {
            do { try await Task.sleep(for: Self.beatInterval) } catch { return }
            hints.beat()
          }
        }
      }
      try await group.next()
      group.cancelAll()
    }
  }

  private func look(_ log: WatchedLog) async throws {
    let heads = try await pool.run { log.newHeads() }
    if !heads.isEmpty { hints.publish(heads) }
  }
}

/// The events that were appended since the last look.
private final class WatchedLog: Sendable {
  private struct State { var node: WatchedNode? }

  /// Sendable unchecked: it is used under the lock.
  private final class WatchedNode: @unchecked Sendable {
    let node: Node
    var position: Position

    init(_ node: Node) {
      self.node = node
      position = node.durableEnd
    }
  }

  private let opening: NodeOpening
  private let state = NIOLockedValueBox(State())

  init(_ opening: NodeOpening) {
    self.opening = opening
    _ = newHeads()
  }

  /// A log that cannot be read now is read at the next look; the requests report the reason.
  func newHeads() -> [StreamID: SequenceNumber] {
    state.withLockedValue { state in
      do {
        guard let watched = state.node else {
          state.node = WatchedNode(try opening.open(.read))
          return [:]
        }
        guard try watched.node.refreshLog() else { return [:] }
        let (heads, end) = try watched.node.heads(from: watched.position)
        watched.position = end
        return heads
      } catch {
        state.node = nil
        return [:]
      }
    }
  }
}

struct Changes: Sendable {
  let hints: ChangeHints
  let metrics: ServerMetrics

  func add(to router: RouterGroup<ServerContext>) {
    router.get("changes") { request, context in
      stream(request, context) { hint, writer in try await writer.write(hint) }
    }
  }

  /// An endless answer of server-sent events, until the client closes it or loses its grant.
  ///
  /// - Parameter write: called with each hint of a readable partition and each comment. The first
  ///   comment comes at once.
  func stream(
    _ request: Request, _ context: ServerContext,
    _ write: @escaping @Sendable (ByteBuffer, inout any ResponseBodyWriter) async throws -> Void
  ) -> Response {
    Response(
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
      body: ResponseBody { writer in
        let (id, stream) = hints.subscribe(context.grant.rights.readable)
        metrics.addStream(1)
        defer {
          hints.unsubscribe(id)
          metrics.addStream(-1)
        }
        try await request.body.consumeWithInboundCloseHandler { _ in
          for await hint in stream.cancelOnGracefulShutdown() {
            guard try await context.isGranted() else { break }
            try await write(hint, &writer)
          }
        } onInboundClosed: {
          hints.unsubscribe(id)
        }
        try await writer.finish(nil)
      })
  }
}
