#if THREAD_SANITIZER
  import Foundation

  /// Stands for `Synchronization.Mutex` in builds for ThreadSanitizer, which knows the locks of the system, but not what
  /// orders two threads that wait for a futex: it reports each contended use of that one as a race.
  ///
  /// Unchecked, because the value is only touched between `lock` and `unlock`. That nobody takes a part of it along which
  /// is no value is what the compiler checks in all other builds, by the signature of the one that stands here there.
  package final class SanitizedMutex<Value>: @unchecked Sendable {
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

  typealias Mutex = SanitizedMutex
#endif
