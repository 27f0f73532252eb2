import Foundation
import NIOCore

/// A bounded queue between a thread that blocks and a task.
///
/// Either side may end it: the producer with `finish`, the consumer with `cancel`. Memory is
/// limited to `limit` bytes and one element.
///
/// Sendable unchecked: the state is used under the lock of the condition, on which threads wait. A
/// task must not block, so it waits with a continuation.
final class Handover: @unchecked Sendable {
  private enum Step<Result> {
    case done(Result)
    case wait
  }

  private static let limit = 4 << 20
  private let condition = NSCondition()
  private var buffers: [ByteBuffer] = []
  private var bytes = 0
  private var isFinished = false
  private var failure: (any Error)?
  private var isCancelled = false
  /// Counts calls of `wake`.
  private var changes = 0
  private var waiting: CheckedContinuation<Void, Never>?

  private func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
    condition.lock()
    defer { condition.unlock() }
    return try body()
  }

  /// Wakes both sides. The caller holds the lock.
  private func wake() {
    changes += 1
    condition.broadcast()
    waiting?.resume()
    waiting = nil
  }

  func finish(_ failure: (any Error)? = nil) {
    locked {
      guard !isFinished else { return }
      isFinished = true
      self.failure = failure
      wake()
    }
  }

  func cancel() {
    locked {
      isCancelled = true
      buffers = []
      wake()
    }
  }

  /// Ends it for both sides. The consumer gets an error, even before remaining elements.
  func interrupt() {
    finish(CancellationError())
    cancel()
  }

  private func tryToPut(_ buffer: ByteBuffer) -> Step<Bool> {
    if isCancelled { return .done(false) }
    guard bytes < Self.limit else { return .wait }
    buffers.append(buffer)
    bytes += buffer.readableBytes
    wake()
    return .done(true)
  }

  private func tryToTake() throws -> Step<ByteBuffer?> {
    if !buffers.isEmpty {
      let buffer = buffers.removeFirst()
      bytes -= buffer.readableBytes
      wake()
      return .done(buffer)
    }
    guard isFinished || isCancelled else { return .wait }
    if let failure { throw failure }
    return .done(nil)
  }

  // MARK: On a thread

  /// Adds an element; blocks while the queue is full. Returns false if the consumer has ended it.
  func put(_ buffer: ByteBuffer) -> Bool {
    locked {
      while true {
        if case .done(let result) = tryToPut(buffer) { return result }
        condition.wait()
      }
    }
  }

  /// The next element; blocks until there is one. Nil: the producer has finished.
  ///
  /// - Throws: the failure of the producer, after the last element.
  func take() throws -> ByteBuffer? {
    try locked {
      while true {
        if case .done(let result) = try tryToTake() { return result }
        condition.wait()
      }
    }
  }

  // MARK: In a task

  private func suspended<Result>(_ step: () throws -> Step<Result>) async throws -> Result {
    while true {
      let seen: Int
      switch try locked({ (try step(), changes) }) {
      case (.done(let result), _): return result
      case (.wait, let count): seen = count
      }
      await withCheckedContinuation { continuation in
        locked {
          // A change since the step may have made it possible.
          if changes == seen { waiting = continuation } else { continuation.resume() }
        }
      }
    }
  }

  /// As `put`, suspends while the queue is full.
  func send(_ buffer: ByteBuffer) async throws -> Bool { try await suspended { tryToPut(buffer) } }

  /// As `take`, suspends until there is an element.
  func receive() async throws -> ByteBuffer? { try await suspended { try tryToTake() } }
}
