import Foundation
import StemmaEvents

/// Events that one of two nodes may lack.
package enum News: Sendable {
  /// The last events of streams. None: nothing is new.
  case heads([StreamID: SequenceNumber])
  /// Any stream may have new events.
  case everything

  /// More streams than this are not distinguished.
  private static let limit = 64

  fileprivate mutating func add(_ other: News) {
    guard case .heads(let more) = other, case .heads(var heads) = self else { return self = .everything }
    heads.merge(more) { max($0, $1) }
    self = heads.count > Self.limit ? .everything : .heads(heads)
  }
}

/// Wakes a thread that waits for news.
///
/// Sendable unchecked: the state is used under the lock of the condition.
package final class Wake: @unchecked Sendable {
  private let condition = NSCondition()
  private var news = News.heads([:])
  private var isSignaled = false
  private var isStopped = false

  package init() {}

  private func change(_ body: () -> Void) {
    condition.lock()
    body()
    condition.broadcast()
    condition.unlock()
  }

  package func signal(_ more: News) {
    change {
      news.add(more)
      isSignaled = true
    }
  }

  package func stop() { change { isStopped = true } }

  package var isDone: Bool {
    condition.lock()
    defer { condition.unlock() }
    return isStopped
  }

  /// Waits for news, and takes them. They are everything at this time.
  package func wait(until end: Date) -> News {
    condition.lock()
    defer { condition.unlock() }
    while !isSignaled, !isStopped, condition.wait(until: end) {}
    defer { (isSignaled, news) = (false, .heads([:])) }
    return isSignaled ? news : .everything
  }

  /// Waits the time in seconds; news do not shorten it.
  package func pause(_ seconds: Double) {
    let end = Date().addingTimeInterval(seconds)
    condition.lock()
    while !isStopped, condition.wait(until: end) {}
    condition.unlock()
  }
}
