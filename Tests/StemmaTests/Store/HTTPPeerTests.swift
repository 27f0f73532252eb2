import Foundation
import Stemma
import StemmaHTTP
import Testing

/// Accepts one connection, and never answers.
private final class SilentServer {
  private let listener: Int32
  private var connection: Int32?
  let url: URL

  init() throws {
    #if canImport(Darwin)
      let listener = socket(AF_INET, SOCK_STREAM, 0)
    #else
      let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, size) == 0 && listen(listener, 1) == 0 && getsockname(listener, $0, &size) == 0
      }
    }
    try #require(isListening)
    self.listener = listener
    url = try #require(URL(string: "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"))
  }

  /// Blocks until there is one.
  func waitForConnection() throws {
    let accepted = accept(listener, nil, nil)
    try #require(accepted >= 0)
    connection = accepted
  }

  deinit {
    close(listener)
    if let connection { close(connection) }
  }
}

@Suite("Stores and a server")
struct HTTPPeerTests {
  @Test("a token gives access, a wrong one is an error that does not show it")
  func tokens() async throws {
    let here = try await Store.temporary(models: Reminder.self)
    let there = try await Store.temporary(models: Reminder.self)
    try await here.insert(Reminder.Draft(title: "Rest"))
    try await there.insert(Reminder.Draft(title: "Sleep"))
    let token = try there.token()
    try await serving(there) { url in
      let report = try await here.sync(with: .http(url, token: token))
      #expect([report.pulled?.events, report.pushed?.events] == [1, 1])
      #expect(try await Reminder.all.fetchCount(there) == 2)
      for (wrong, code) in [
        ("stm_secret", ErrorCode.notPermitted), ("stm_secret\n", .unreachable), ("stm_sécret", .unreachable),
      ] {
        let peer = SyncPeer.http(url, token: wrong)
        var texts = ["\(peer)", String(reflecting: peer), peer.name]
        dump(peer, to: &texts[0])
        do {
          try await here.sync(with: peer)
          Issue.record("\(wrong) gave access")
        } catch let error as StoreError {
          texts += ["\(error)", String(reflecting: error), error.localizedDescription]
          if case .failed(code, _) = error {} else { Issue.record("\(error)") }
        }
        for text in texts { #expect(!text.contains("cret"), "\(text)") }
      }
    }
  }

  @Test("commits on either side arrive at the other by observation")
  func continuous() async throws {
    let here = try await Store.temporary(models: Reminder.self)
    let there = try await Store.temporary(models: Reminder.self)
    let token = try there.token()
    try await serving(there) { url in
      let sync = here.keepInSync(with: .http(url, token: token))
      let running = Task { try await sync.run() }
      var statuses = sync.statuses.makeAsyncIterator()
      let first = try #require(await statuses.next())
      if case .synced = first.state {} else { Issue.record("\(first)") }
      var (hereRows, thereRows) = (
        here.observe(Reminder.all.order { $0.title }).makeAsyncIterator(),
        there.observe(Reminder.all.order { $0.title }).makeAsyncIterator()
      )
      #expect(try await hereRows.next()?.isEmpty == true)
      #expect(try await thereRows.next()?.isEmpty == true)
      try await here.insert(Reminder.Draft(title: "a"))
      #expect(try await thereRows.next()?.map(\.title) == ["a"])
      #expect(try await hereRows.next()?.map(\.title) == ["a"])
      try await there.insert(Reminder.Draft(title: "b"))
      #expect(try await hereRows.next()?.map(\.title) == ["a", "b"])
      running.cancel()
      try await running.value
    }
  }

  @Test("a cancelled task ends its exchange with a silent server at once", .timeLimit(.minutes(10)))
  func cancelled() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let silent = try SilentServer()
    let peer = SyncPeer.http(silent.url)
    let task = Task { try await store.sync(with: peer) }
    try silent.waitForConnection()
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test("an address without a server, and one that is none, are errors that name it, without its secrets")
  func unreachable() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    for (text, shown) in [
      ("http://ana:secret@127.0.0.1:9/?key=secret#secret", "http://127.0.0.1:9"),
      ("http://[::1]:9/", "http://[::1]:9"), ("file:///tmp", "file:///tmp"),
    ] {
      let peer = SyncPeer.http(try #require(URL(string: text)))
      #expect(peer.name == shown)
      do {
        try await store.sync(with: peer)
        Issue.record("\(text) was reached")
      } catch StoreError.failed(let code, let what) {
        #expect(code == .unreachable && what.hasPrefix("\(shown): ") && !what.contains("secret"), "\(what)")
      }
    }
  }
}
