import StemmaEvents
import Testing

@testable import Stemma

/// A connection that is cut at one call. Later calls fail, too.
private final class CutEnd: Transport {
  struct Cut: Error, CustomStringConvertible { let description = "the cable was cut" }

  private let end: PipeEnd
  private let remaining: Mutex<Int>

  init(_ end: PipeEnd, after calls: Int) {
    self.end = end
    remaining = Mutex(calls)
  }

  private func count() throws {
    try remaining.withLock { remaining in
      if remaining == 0 { throw Cut() }
      remaining -= 1
    }
  }

  func send(_ bytes: [UInt8]) async throws {
    try count()
    try await end.send(bytes)
  }

  func receive() async throws -> [UInt8] {
    try count()
    return try await end.receive()
  }

  func close() async throws { try await end.close() }
}

/// A connection to a peer that is silent, and that ignores cancellation.
private struct SilentEnd: Transport {
  let isAsked: AsyncStream<Void>.Continuation
  let end: AsyncStream<Void>

  func send(_ bytes: [UInt8]) async throws {}

  func receive() async throws -> [UInt8] {
    isAsked.yield()
    await Task { for await _ in end {} }.value
    return []
  }

  func close() async throws {}
}

@Suite("Stores joined by a transport")
struct TransportTests {
  private func titles(_ store: Store) async throws -> [String] {
    try await Reminder.all.order { $0.title }.fetchAll(store).map(\.title)
  }

  @Test("both sides get the events of the other, and observations show them")
  func joined() async throws {
    let here = try await Store.temporary(models: Reminder.self)
    let there = try await Store.temporary(models: Reminder.self)
    try await here.insert(Reminder.Draft(title: "Rest"))
    try await there.insert(Reminder.Draft(title: "Sleep"))
    var rows = there.observe(Reminder.all.order { $0.title }).makeAsyncIterator()
    #expect(try await rows.next()?.map(\.title) == ["Sleep"])
    let (end, other) = PipeEnd.pair()
    async let answered: Void = there.answer(other)
    let report = try await here.sync(with: .transport("there") { end })
    try await answered
    #expect([report.pulled?.events, report.pushed?.events] == [1, 1])
    #expect(try await titles(here) == ["Rest", "Sleep"])
    #expect(try await rows.next()?.map(\.title) == ["Rest", "Sleep"])
  }

  @Test("a cut at any call leaves whole commits, and the next sync transfers the rest")
  func cut() async throws {
    let here = try await Store.temporary(models: Reminder.self)
    let there = try await Store.temporary(models: Reminder.self)
    var calls = 0
    while true {
      for store in [here, there] {
        try await store.write { tx in
          try tx.insert(Reminder.Draft(title: "one"))
          try tx.insert(Reminder.Draft(title: "two"))
        }
      }
      let (count, isOpener) = (calls / 2, calls % 2 == 0)
      let (end, other) = PipeEnd.pair()
      let cut = CutEnd(isOpener ? end : other, after: count)
      let answering = Task {
        if isOpener { try await there.answer(other) } else { try await there.answer(cut) }
      }
      var isComplete = false
      do {
        try await here.sync(
          with: .transport("there") {
            if isOpener { cut } else { end }
          })
        isComplete = true
      } catch StoreError.failed(_, let what) {
        let reason = isOpener ? "(the cable was cut)" : "closed the connection"
        #expect(what.contains(reason), "\(calls): \(what)")
      }
      let answer = await answering.result
      for store in [here, there] {
        #expect(try await titles(store).count.isMultiple(of: 2), "\(calls)")
        try await store.writer.access { try $0.checkInvariants() }
      }
      let (retryEnd, retryOther) = PipeEnd.pair()
      async let answered: Void = there.answer(retryOther)
      try await here.sync(with: .transport("there") { retryEnd })
      try await answered
      #expect(try await titles(here) == titles(there), "\(calls)")
      if isComplete, case .success = answer { break }
      calls += 1
    }
    #expect(calls > 10)
  }

  @Test("a transport that cannot be opened is a failure that names the peer")
  func notOpened() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let failure = StoreError.failed(.unreachable, "attic: it cannot be reached: the cable was cut")
    await #expect(throws: failure) {
      try await store.sync(with: .transport("attic") { throw CutEnd.Cut() })
    }
  }

  @Test(
    "a cancelled task ends its session at once, at either side", .timeLimit(.minutes(10)),
    arguments: [true, false])
  func cancelled(isOpener: Bool) async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let (asked, isAsked) = AsyncStream.makeStream(of: Void.self)
    let (end, ending) = AsyncStream.makeStream(of: Void.self)
    let silent = SilentEnd(isAsked: isAsked, end: end)
    let task = Task {
      if isOpener {
        try await store.sync(with: .transport("there") { silent })
      } else {
        try await store.answer(silent)
      }
    }
    for await _ in asked { break }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    ending.finish()
  }

  @Test("a store that is closed or read-only answers nothing")
  func refused() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let reader = try await Store(at: store.directory, options: .init(isReadOnly: true), models: Reminder.self)
    await #expect(throws: StoreError.readOnly) { try await reader.answer(PipeEnd.pair().0) }
    await #expect(throws: StoreError.readOnly) { try await reader.keepInSync().run() }
    await store.close()
    await #expect(throws: StoreError.closed) { try await store.answer(PipeEnd.pair().0) }
    await #expect(throws: StoreError.closed) { try await store.keepInSync().run() }
  }
}
