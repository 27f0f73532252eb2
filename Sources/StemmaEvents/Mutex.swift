#if THREAD_SANITIZER
  import Foundation

  /// The mutex of all modules in builds for ThreadSanitizer. The sanitizer knows the locks of the
  /// system, but not futexes. It reports each contended use of `Synchronization.Mutex` as a race.
  ///
  /// Unchecked, because only code between `lock` and `unlock` uses the value. In all other builds,
  /// the compiler checks that no part of it escapes.
  package final class Mutex<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    package init(_ value: consuming sending Value) { self.value = value }

    package func withLock<Result, Failure: Error>(
      _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
      lock.lock()
      defer { lock.unlock() }
      return try body(&value)
    }
  }
#else
  import Synchronization

  package typealias Mutex<Value: ~Copyable> = Synchronization.Mutex<Value>
#endif
