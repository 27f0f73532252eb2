import Foundation
import Stemma
import StemmaHub
import StemmaReplication
import Testing

@Suite("Stores and a hub")
struct HubPeerTests {
  @Test("two stores agree through a folder, once or all the time")
  func folder() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hub-\(UUID().uuidString)")
    defer { do { try FileManager.default.removeItem(at: folder) } catch { print("\(error)") } }
    let hub = SyncPeer.hub("file://" + folder.path)
    let here = try await Store.temporary(models: Reminder.self)
    let there = try await Store.temporary(models: Reminder.self)
    try await here.insert(Reminder.Draft(title: "Rest"))
    // There is no hub yet.
    do {
      try await here.sync(with: hub)
      Issue.record("there is no hub")
    } catch StoreError.failed(let code, _) { #expect(code == .unreachable) }
    let address = try HubAddress("file://" + folder.path)
    _ = try HubDescription.make(in: try address.open().store, .ordinary(), key: nil)

    #expect(try await here.sync(with: hub).pushed?.events == 1)
    #expect(try await there.sync(with: hub).pulled?.events == 1)
    #expect(try await Reminder.all.fetchCount(there) == 1)
    #expect(try await there.sync(with: hub).pushed?.events == 0)

    let sync = here.keepInSync(with: hub)
    let running = Task { try await sync.run() }
    try await here.insert(Reminder.Draft(title: "Sleep"))
    let deadline = Date().addingTimeInterval(60)
    while try await Reminder.all.fetchCount(there) < 2, Date() < deadline {
      try await there.sync(with: hub)
    }
    #expect(try await Reminder.all.fetchCount(there) == 2)
    running.cancel()
    _ = await running.result
  }
}
