import CStemma
import Dispatch
import Synchronization

// Where a thread cannot be made (the user has as many as may be, or memory is short), Foundation's `Thread` says nothing,
// so that whoever waits for it waits for ever, and libdispatch sleeps and tries again for as long. So threads are made here.

extension System {
  /// How many processors this process may use.
  static var processors: Int { Int(stemma_processors()) }

  /// Runs `body` on a thread of its own.
  ///
  /// - Parameter path: what it works on, for the words of the error.
  /// - Throws: `.system` if no thread can be made; `body` is let go then, and never run.
  package static func beginThread(
    for path: String, _ body: @escaping @Sendable () -> Void
  ) throws(LogError) {
    let code = begin(body)
    if code != 0 { throw .system(path: path, operation: threadCreation, errno: code) }
  }

  /// The name of the call, as errors have it.
  static let threadCreation = "pthread_create"

  fileprivate static func begin(_ body: @escaping @Sendable () -> Void) -> Int32 {
    let context = Unmanaged.passRetained(ThreadBody(body))
    let code = stemma_begin_thread(
      { context in
        if let context { Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, context.toOpaque())
    if code != 0 { context.release() }
    return code
  }
}

private final class ThreadBody: Sendable {
  let run: @Sendable () -> Void

  init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

/// Threads that run what is to be done ahead, in the order in which it came. They are made when there is more of it than
/// others have time for, and stay.
///
/// Nothing that is added here is promised to be run: there may be no thread, and those that there are may be busy for long.
package final class ThreadPool: Sendable {
  /// As many as there are processors.
  package static let shared = ThreadPool(limit: System.processors) { System.begin($0) == 0 }

  private struct State {
    var waiting: [DoneAhead] = []
    var threads = 0
    var busy = 0
  }

  /// How many threads there are at most.
  package let limit: Int
  private let begin: @Sendable (@escaping @Sendable () -> Void) -> Bool
  private let state = Mutex(State())
  private let added = DispatchSemaphore(value: 0)

  /// `begin`: runs what it is given on a new thread; false if there is none. The next one who adds something asks again.
  package init(limit: Int, begin: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool) {
    self.limit = limit
    self.begin = begin
  }

  func add(_ work: DoneAhead) {
    let isTaken = state.withLock { state in
      let idle = state.threads - state.busy
      if state.waiting.count >= idle, state.threads < limit, begin({ [self] in serve() }) {
        state.threads += 1
      }
      // Without a thread they would wait here as long as the process lives.
      guard state.threads > 0 else { return false }
      state.waiting.append(work)
      return true
    }
    if isTaken { added.signal() }
  }

  private func serve() {
    while true {
      added.wait()
      let work = state.withLock { state in
        state.busy += 1
        return state.waiting.removeFirst()
      }
      work.run()
      state.withLock { $0.busy -= 1 }
    }
  }

  /// Traps if there are more threads than may be, or something waits for none. For tests, on any thread.
  package func checkInvariants() {
    state.withLock { state in
      precondition((0...limit).contains(state.threads), "no more threads are made than may be")
      precondition((0...state.threads).contains(state.busy), "only a thread is busy")
      precondition(state.waiting.isEmpty || state.threads > 0, "nothing waits for a thread that is not there")
    }
  }
}
