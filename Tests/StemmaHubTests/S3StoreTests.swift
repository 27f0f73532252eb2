import Foundation
import Servers
import StemmaReplication
import Testing

@testable import StemmaHub

extension S3Server {
  /// - Parameter now: the time in signatures.
  func store(now: @escaping @Sendable () -> Date) throws -> S3Store {
    try S3Store(
      S3Store.Configuration(
        bucket: bucket, endpoint: endpoint, isPathStyle: true, credentials: credentials),
      patience: .init(), now: now)
  }
}

/// The store against servers that other people wrote.
@Suite("S3 stores", .enabled(if: Programs.areThere, "STEMMA_PEERS is not set"), .serialized)
struct S3StoreTests {
  /// Requests that must fail, with and without the right keys.
  private func refusals(_ server: some S3Server) throws {
    let store = try server.store(prefix: "refusals")
    #expect(try store.put("a", [1], ifAbsent: true))
    let strangers = [
      AWSCredentials(accessKey: server.credentials.accessKey, secretKey: "WRONGSECRET", sessionToken: nil),
      AWSCredentials(accessKey: "AKIASTRANGER", secretKey: "WRONGSECRET", sessionToken: nil),
    ]
    for stranger in strangers {
      let store = try server.store(prefix: "refusals", credentials: stranger)
      let calls: [() throws -> Void] = [
        { _ = try store.get("a", nil) }, { _ = try store.get("absent", 0..<1) },
        { _ = try store.put("a", [2], ifAbsent: true) }, { _ = try store.put("a", [2], ifAbsent: false) },
        { _ = try store.put("b", [UInt8](repeating: 0, count: 3 << 20), ifAbsent: true) },
        { _ = try store.list("", after: nil) }, { try store.delete("a") },
      ]
      for (number, call) in calls.enumerated() {
        let error = #expect(throws: ObjectError.self, "\(number)") { try call() }
        #expect(error?.isRefused == true, "\(number): \(String(describing: error))")
        #expect(error?.reason.contains("WRONGSECRET") == false)
      }
    }
    #expect(try store.get("a", nil) == [1])
    let other = try S3Store(
      S3Store.Configuration(
        bucket: "no-such-bucket", endpoint: server.endpoint, isPathStyle: true,
        credentials: server.credentials))
    #expect(throws: ObjectError.self) { try other.get("a", nil) }
    #expect(throws: ObjectError.self) { try other.list("", after: nil) }
  }

  /// Stores at different prefixes see nothing of each other.
  private func prefixes(_ server: some S3Server) throws {
    let first = try server.store(prefix: "odd prefix+%ä/x")
    let second = try server.store(prefix: "odd prefix+%ä/xy")
    #expect(try first.put("a", [1], ifAbsent: true))
    #expect(try second.put("a", [2], ifAbsent: true))
    #expect(try first.list("", after: nil).entries.map(\.key) == ["a"])
    #expect(try second.get("a", nil) == [2])
    #expect(try first.get("a", 0..<1) == [1])
  }

  @Test("SeaweedFS with three volume servers and two copies")
  func seaweed() throws {
    let server = try SeaweedServer()
    // Each contended race takes SeaweedFS seconds.
    try StoreConformance(open: { try server.store(prefix: "a/hub") }, manyKeys: 2100, races: 2).run()
    try refusals(server)
    try prefixes(server)
    try lateClock(server)
    try withoutOneVolume(server)
  }

  /// The gateway checks the time of signatures.
  private func lateClock(_ server: SeaweedServer) throws {
    let late = try server.store(now: { Date(timeIntervalSinceNow: -3600) })
    let error = #expect(throws: ObjectError.self) { try late.get("ready", nil) }
    #expect(error?.isRefused == true)
    #expect(error?.reason.contains("RequestTimeTooSkewed") == true)
  }

  /// Objects with a copy elsewhere stay readable, and new ones can be written.
  private func withoutOneVolume(_ server: SeaweedServer) throws {
    let store = try server.store(prefix: "volumes")
    let content = (0..<40).map { UInt8($0) }
    for number in content { #expect(try store.put("before/\(number)", [number], ifAbsent: true)) }
    server.killVolume(1)
    for number in content {
      try waitUntil("object \(number)") {
        do throws(ObjectError) { return try store.get("before/\(number)", nil) == [number] } catch {
          #expect(!error.isRefused, "\(error)")
          return false
        }
      }
    }
    try waitUntil("a write") {
      do throws(ObjectError) { return try store.put("after", [1], ifAbsent: false) } catch {
        #expect(!error.isRefused, "\(error)")
        return false
      }
    }
    #expect(try store.get("after", nil) == [1])
  }

  @Test("moto, with users and policies")
  func moto() throws {
    let server = try MotoServer()
    // moto looks for the object and writes it in two steps: in few of a hundred races, several
    // writers succeed. AWS promises one.
    try StoreConformance(
      open: { try server.store(prefix: "a/hub") }, manyKeys: 1300, races: 5, isAtomic: false
    ).run()
    try refusals(server)
    try prefixes(server)
  }
}
