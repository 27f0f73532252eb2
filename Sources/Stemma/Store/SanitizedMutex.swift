#if THREAD_SANITIZER
  import StemmaLog

  /// In the place of the one of `Synchronization`, wherever this module says `Mutex`.
  typealias Mutex = SanitizedMutex
#endif
