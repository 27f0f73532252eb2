import Synchronization

/// Tells observers that a commit was made.
final class ChangeFeed: Sendable {
  private let observers = Mutex<[Int: AsyncStream<Void>.Continuation]>([:])
  private let nextNumber = Atomic<Int>(0)

  /// One element now and one after each commit; commits while nobody listens are one element.
  func stream() -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let number = nextNumber.wrappingAdd(1, ordering: .relaxed).newValue
    observers.withLock { $0[number] = continuation }
    continuation.onTermination = { [weak self] _ in
      _ = self?.observers.withLock { $0.removeValue(forKey: number) }
    }
    continuation.yield()
    return stream
  }

  func publish() {
    for continuation in observers.withLock({ Array($0.values) }) { continuation.yield() }
  }
}
