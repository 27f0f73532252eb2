import Foundation
import Servers
import StemmaReplication
import Testing

@testable import StemmaHub

@Suite("Stores on web servers") struct WebStoreTests {
  /// A folder with objects and an index.
  private func site() throws -> Scratch {
    let scratch = try Scratch()
    let store = FolderStore(scratch.path)
    for (key, text) in [
      ("ranges", "0123456789"), ("empty", ""), ("logs/a/1", "one"), ("logs/b/1", "two"),
      ("index", "ranges\tr\n"),
      ("logs/index", "logs/b/1\ttagB\nlogs/a/1\ttagA\n"),
    ] { #expect(try store.put("hub/" + key, Array(text.utf8), ifAbsent: true)) }
    return scratch
  }

  private func reads(_ store: WebStore) throws {
    try StoreConformance.ranges(of: store, "ranges")
    #expect(try store.get("ranges", nil) == Array("0123456789".utf8))
    #expect(try store.get("empty", nil) == [])
    #expect(try store.get("empty", 0..<1) == [])
    #expect(try store.get("absent", nil) == nil)
    #expect(try store.get("absent/too", 0..<1) == nil)
    let page = try store.list("logs/", after: nil)
    #expect(page.entries == [.init(key: "logs/a/1", tag: "tagA"), .init(key: "logs/b/1", tag: "tagB")])
    #expect(page.isLast)
    #expect(try store.list("logs/", after: "logs/a/1").entries.map(\.key) == ["logs/b/1"])
    #expect(try store.list("", after: nil).entries.map(\.key) == ["ranges"])
    #expect(try store.list("absent/", after: nil).entries == [])
    for write in [true, false] {
      let error = #expect(throws: ObjectError.self) { _ = try store.put("a", [1], ifAbsent: write) }
      #expect(error?.isRefused == true)
    }
    #expect(throws: ObjectError.self) { try store.delete("ranges") }
    let count = store.requestCount
    #expect(count.writes == 0 && count.deletions == 0 && count.lists == 4 && count.reads > 15)
  }

  @Test("nginx", .enabled(if: NginxServer.isInstalled, "nginx is not installed"))
  func nginx() throws {
    let site = try site()
    let server = try NginxServer(site.path)
    try withExtendedLifetime(server) { try reads(WebStore(server.endpoint + "/hub/")) }
  }

  @Test("a server with ranges", .enabled(if: StubServer.isPossible, "python3 is not installed"))
  func stub() throws {
    let server = try StubServer()
    let site = try site()
    let folder = FolderStore(site.path)
    let writer = try server.store()
    for key in try folder.list("", after: nil).entries.map(\.key) {
      _ = try writer.put(key, try #require(try folder.get(key, nil)), ifAbsent: true)
    }
    try withExtendedLifetime(server) { try reads(WebStore(server.endpoint + "/bucket/hub")) }
  }

  @Test("statuses and indexes", .enabled(if: StubServer.isPossible, "python3 is not installed"))
  func refusals() throws {
    let server = try StubServer()
    let store = try WebStore(server.endpoint + "/bucket", patience: .short)
    for (key, isRefused) in [
      ("status-403", true), ("status-401", true), ("status-400", true), ("status-500", false),
      ("status-503", false), ("status-429", false), ("status-408", false), ("no-answer", false),
      ("half-body", false), ("half-chunk", false), ("silent", false), ("garbage", true), ("huge", true),
    ] {
      let error = #expect(throws: ObjectError.self, "\(key)") { try store.get(key, nil) }
      #expect(error?.isRefused == isRefused, "\(key): \(String(describing: error))")
    }
    #expect(try store.get("status-404", nil) == nil)
    #expect(try store.get("status-410", nil) == nil)
    for key in ["whole", "shifted", "unnamed", "longer", "shorter", "endless", "huge"] {
      let error = #expect(throws: ObjectError.self, "\(key)") { try store.get(key, 0..<4) }
      #expect(error?.isRefused == true, "\(key): \(String(describing: error))")
    }
    let writer = try server.store()
    for (folder, text) in [
      ("a", "no tab\n"), ("b", "b/x\ty\tz\n"), ("c", "other/x\ttag\n"), ("d", "d/../x\ttag\n"),
    ] {
      #expect(try writer.put(folder + "/index", Array(text.utf8), ifAbsent: true))
      let error = #expect(throws: ObjectError.self, "\(text)") { try store.list(folder + "/", after: nil) }
      #expect(error?.isRefused == true)
    }
    withExtendedLifetime(server) {}
  }
}
