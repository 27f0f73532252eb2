import Crypto
import Foundation
import StemmaReplication
import StemmaSimulation
import Testing

@testable import StemmaHub

@Suite("Sealed stores") struct SealedStoreTests {
  private static let key = SymmetricKey(data: [UInt8](repeating: 7, count: 32))
  private static let content = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 7) }
  private static let object = "objects/" + String(repeating: "ab", count: 32)

  @Test("whole objects and ranges are read back", arguments: [object, "logs/1/2", "heads/3", "peers/4"])
  func readBack(name: String) throws {
    let store = SealedStore(SimulatedStore(seed: 1, .init()), key: Self.key)
    #expect(try store.get(name, nil) == nil)
    for length in [0, 1, 65_535, 65_536, 65_537, 200_000] {
      let bytes = Array(Self.content.prefix(length))
      _ = try store.put(name, bytes, ifAbsent: false)
      #expect(try store.get(name, nil) == bytes)
      for range in [0..<1, 65_530..<65_540, 131_072..<131_073, 100_000..<300_000] as [Range<Int>] {
        let expected = Array(bytes[min(range.lowerBound, length)..<min(range.upperBound, length)])
        #expect(
          try store.get(name, UInt64(range.lowerBound)..<UInt64(range.upperBound)) == expected,
          "\(length), \(range)")
      }
    }
  }

  @Test("the host sees neither names of segments nor content")
  func secrecy() throws {
    let host = SimulatedStore(seed: 1, .init())
    let store = SealedStore(host, key: Self.key)
    let secret = Array("tenant=acme and its title".utf8)
    for name in [Self.object, "logs/1/2", "peers/4"] { _ = try store.put(name, secret, ifAbsent: false) }
    for (name, bytes) in host.objects {
      #expect(name != Self.object)
      #expect(bytes.firstRange(of: Array("acme".utf8)) == nil)
    }
    // Equal contents of two names, or of one name twice, look different.
    _ = try store.put("logs/1/3", secret, ifAbsent: false)
    #expect(host.objects["logs/1/2"] != host.objects["logs/1/3"])
    let before = host.objects["peers/4"]
    _ = try store.put("peers/4", secret, ifAbsent: false)
    #expect(host.objects["peers/4"] != before)
  }

  @Test("each changed bit, another key, and an object in the place of another are refused by name")
  func tampering() throws {
    let host = SimulatedStore(seed: 1, .init())
    let store = SealedStore(host, key: Self.key)
    for name in [Self.object, "logs/1/2"] {
      _ = try store.put(name, Array(Self.content.prefix(100)), ifAbsent: false)
    }
    let other = SealedStore(host, key: SymmetricKey(size: .bits256))
    #expect(throws: ObjectError.self) { try other.get("logs/1/2", nil) }
    for (name, stored) in host.objects {
      let shown = name.hasPrefix("objects/") ? Self.object : name
      for index in stored.indices {
        var changed = stored
        changed[index] ^= 1
        _ = try host.put(name, changed, ifAbsent: false)
        #expect {
          try store.get(shown, nil)
        } throws: {
          ($0 as? ObjectError)?.reason.contains(shown) == true
        }
      }
      _ = try host.put(name, stored, ifAbsent: false)
    }
    _ = try host.put("logs/1/3", host.objects["logs/1/2"] ?? [], ifAbsent: false)
    #expect(throws: ObjectError.self) { try store.get("logs/1/3", nil) }
  }

  @Test("a file of a key has 64 hexadecimal digits, and is made once")
  func keyFiles() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    defer { do { try FileManager.default.removeItem(atPath: path) } catch { print("\(error)") } }
    #expect(try HubKey.make(path))
    let key = try HubKey.read(path)
    #expect(try !HubKey.make(path))
    #expect(try HubKey.read(path) == key)
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    for text in ["", "00", String(repeating: "0", count: 63), String(repeating: "x", count: 64)] {
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))
      #expect(throws: (any Error).self) { try HubKey.read(path) }
    }
  }
}

@Suite("The doctor of hubs") struct HubDoctorTests {
  private static let options = Hub.Options(
    pause: { _ in }, now: { 1 }, makeLogID: { .init(5) }, parallelCalls: 1)

  @Test("a store that keeps its promises is accepted, also a busy one", arguments: [0, 20])
  func accepted(rate: Int) {
    var faults = SimulatedStore.Faults()
    faults.busy = rate
    faults.lateList = rate
    let findings = HubDoctor(SimulatedStore(seed: 3, faults), Self.options).examine()
    #expect(findings.filter { $0.failure != nil }.map(\.requirement) == [])
    #expect(findings.count == 7)
  }

  /// Breaks one promise.
  private final class BrokenStore: ObjectStore {
    enum Promise: CaseIterable { case condition, ranges, absence, lists, tags, bytes }

    let store = SimulatedStore(seed: 1, .init())
    let broken: Promise

    init(_ broken: Promise) { self.broken = broken }

    var name: String { "broken" }

    func get(_ key: String, _ range: Range<UInt64>?) throws(ObjectError) -> [UInt8]? {
      let found = try store.get(key, broken == .ranges ? nil : range)
      if broken == .absence { return found ?? [] }
      return broken == .bytes ? found.map { $0.reversed() } : found
    }

    func put(_ key: String, _ bytes: [UInt8], ifAbsent: Bool) throws(ObjectError) -> Bool {
      try store.put(key, bytes, ifAbsent: broken == .condition ? false : ifAbsent)
    }

    func list(_ prefix: String, after last: String?) throws(ObjectError) -> ObjectPage {
      var page = try store.list(prefix, after: last)
      if broken == .lists { page.entries = [] }
      if broken == .tags { for index in page.entries.indices { page.entries[index].tag = "same" } }
      return page
    }

    func delete(_ key: String) throws(ObjectError) { try store.delete(key) }
  }

  @Test("a store that breaks one promise is refused", arguments: BrokenStore.Promise.allCases)
  private func refused(broken: BrokenStore.Promise) {
    let findings = HubDoctor(BrokenStore(broken), Self.options).examine()
    #expect(findings.contains { $0.failure != nil }, "\(broken)")
  }
}

@Suite("Addresses of hubs") struct HubAddressTests {
  @Test(
    "an address is read back",
    arguments: [
      "s3://bucket/prefix", "file:///a/b", "https://www.example.org/shop",
      "s3://b?endpoint=http://localhost:8333&region=eu-1&profile=x&path-style=yes&key-file=/k",
    ])
  func readBack(text: String) throws { #expect(try HubAddress(text).text == text) }

  @Test("odd characters in values survive")
  func oddCharacters() throws {
    var address = try HubAddress("file:///x")
    address.keyFile = "/a b&c=d?é+%"
    #expect(try HubAddress(address.text) == address)
  }

  @Test(
    "unknown parameters are refused", arguments: ["s3://b?secret=1", "s3://b?endpoint", "s3://b?region="])
  func unknown(text: String) { #expect(throws: (any Error).self) { try HubAddress(text) } }
}
