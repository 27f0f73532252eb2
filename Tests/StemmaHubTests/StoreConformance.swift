import Foundation
import StemmaEvents
import StemmaReplication
import Testing

@testable import StemmaHub

/// The behavior that all stores share.
struct StoreConformance {
  /// An empty store that can be written; two for the same place act as two processes.
  var open: () throws -> any CountedStore
  /// Enough for more than one page, if the store has pages.
  var manyKeys = 40
  /// Each race has 16 writers.
  var races = 4
  /// False: several of the racing writers may succeed, and the last one remains.
  var isAtomic = true

  /// All permitted characters, and components that look special.
  static let oddKeys = [
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", "..a", "a..", "...", "-", "_",
    "a.b-c_d", "odd/.hidden", "odd/-/_", "odd/deep/er/and/deeper/index.html",
  ]

  func run() throws {
    try reading()
    try ranges()
    try writing()
    try tags()
    try order()
    try pages()
    try deleting()
    try keys()
    try largeObject()
    try race()
    try counting()
  }

  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  func reading() throws {
    let store = try open()
    #expect(try store.get("reading/a", nil) == nil)
    #expect(try store.get("reading/a", 0..<4) == nil)
    #expect(try store.get("reading/a", 2..<2) == nil)
    #expect(try store.put("reading/a", bytes("content"), ifAbsent: false))
    #expect(try store.get("reading/a", nil) == bytes("content"))
    // A folder in between is no object.
    #expect(try store.get("reading", nil) == nil)
    #expect(try open().get("reading/a", nil) == bytes("content"))
    #expect(try store.put("reading/empty", [], ifAbsent: true))
    #expect(try store.get("reading/empty", nil) == [])
    #expect(try store.get("reading/empty", 0..<1) == [])
  }

  func ranges() throws {
    let store = try open()
    #expect(try store.put("ranges", bytes("0123456789"), ifAbsent: false))
    try Self.ranges(of: store, "ranges")
  }

  /// The object is `0123456789`.
  static func ranges(of store: any CountedStore, _ key: String) throws {
    let expected: [(Range<UInt64>, String)] = [
      (0..<10, "0123456789"), (0..<1, "0"), (3..<7, "3456"), (9..<10, "9"), (8..<12, "89"),
      (0..<4096, "0123456789"),
      (10..<11, ""), (10..<20, ""), (1000..<2000, ""), (5..<5, ""), (0..<0, ""), (5..<UInt64.max, "56789"),
      (UInt64.max - 1..<UInt64.max, ""), (UInt64.max..<UInt64.max, ""),
    ]
    for (range, text) in expected {
      #expect(try store.get(key, range) == Array(text.utf8), "\(range)")
    }
  }

  func writing() throws {
    let store = try open()
    #expect(try store.put("writing/a", bytes("first"), ifAbsent: true))
    #expect(try !store.put("writing/a", bytes("second"), ifAbsent: true))
    #expect(try store.get("writing/a", nil) == bytes("first"))
    // Not even the same content is written twice.
    #expect(try !store.put("writing/a", bytes("first"), ifAbsent: true))
    #expect(try store.put("writing/a", bytes("third, longer"), ifAbsent: false))
    #expect(try store.get("writing/a", nil) == bytes("third, longer"))
    #expect(try store.put("writing/a", bytes("4"), ifAbsent: false))
    #expect(try store.get("writing/a", nil) == bytes("4"))
  }

  func tags() throws {
    let store = try open()
    func tag() throws -> String? {
      try store.list("tags/", after: nil).entries.first { $0.key == "tags/a" }?.tag
    }
    #expect(try store.put("tags/a", bytes("one"), ifAbsent: false))
    let first = try #require(try tag())
    #expect(try tag() == first)
    #expect(try store.put("tags/a", bytes("two"), ifAbsent: false))
    let second = try #require(try tag())
    #expect(second != first)
    #expect(try !store.put("tags/a", bytes("three"), ifAbsent: true))
    #expect(try tag() == second)
  }

  private func all(_ store: any CountedStore, _ prefix: String, after: String? = nil) throws -> [String] {
    var keys: [String] = []
    var last = after
    while true {
      let page = try store.list(prefix, after: last)
      keys += page.entries.map(\.key)
      if page.isLast { return keys }
      last = try #require(page.entries.last?.key)
    }
  }

  func order() throws {
    let store = try open()
    let keys = [
      "order/B", "order/_", "order/a", "order/a-b", "order/a.b", "order/aa", "order/b/c", "order/b/d",
    ]
    for key in keys.reversed() { #expect(try store.put(key, bytes(key), ifAbsent: true)) }
    #expect(try all(store, "order/") == keys)
    #expect(try all(store, "order/a") == ["order/a", "order/a-b", "order/a.b", "order/aa"])
    #expect(try all(store, "order/b/") == ["order/b/c", "order/b/d"])
    #expect(try all(store, "order/b/d") == ["order/b/d"])
    #expect(try all(store, "order/c") == [])
    #expect(try all(store, "absent/") == [])
    #expect(try all(store, "order/", after: "order/a.b") == ["order/aa", "order/b/c", "order/b/d"])
    // The last key need not exist.
    #expect(
      try all(store, "order/", after: "order/a.a") == ["order/a.b", "order/aa", "order/b/c", "order/b/d"])
    #expect(try all(store, "order/", after: "order/b/d") == [])
    #expect(try all(store, "order/", after: "zzz") == [])
    #expect(try all(store, "").contains("order/b/c"))
    for entry in try store.list("order/", after: nil).entries { #expect(!entry.tag.isEmpty) }
  }

  func pages() throws {
    let store = try open()
    let keys = (0..<manyKeys).map { "pages/" + String(String($0 + 100_000).dropFirst()) }
    let failures = Mutex<[String]>([])
    inThreads(8) { thread in
      for index in stride(from: thread, to: keys.count, by: 8) {
        do { _ = try store.put(keys[index], [1], ifAbsent: true) } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    #expect(failures.withLock { $0 } == [])
    // A list directly after the writes has them.
    #expect(try all(store, "pages/") == keys)
    let middle = keys.count / 2
    #expect(try all(store, "pages/", after: keys[middle]) == Array(keys[(middle + 1)...]))
  }

  func deleting() throws {
    let store = try open()
    #expect(try store.put("deleting/a/b", bytes("x"), ifAbsent: true))
    try store.delete("deleting/a/b")
    #expect(try store.get("deleting/a/b", nil) == nil)
    #expect(try all(store, "deleting/") == [])
    try store.delete("deleting/a/b")
    try store.delete("never/there")
    #expect(try store.put("deleting/a/b", bytes("y"), ifAbsent: true))
    #expect(try store.get("deleting/a/b", nil) == bytes("y"))
    // The folder of other keys is no object.
    try store.delete("deleting/a")
    #expect(try store.get("deleting/a/b", nil) == bytes("y"))
  }

  func keys() throws {
    let store = try open()
    for key in Self.oddKeys { #expect(try store.put(key, bytes(key), ifAbsent: true), "\(key)") }
    for key in Self.oddKeys { #expect(try store.get(key, nil) == bytes(key), "\(key)") }
    let listed = Set(try all(store, ""))
    #expect(listed.isSuperset(of: Self.oddKeys), "\(Set(Self.oddKeys).subtracting(listed))")
    for key in Self.oddKeys { try store.delete(key) }
    let longest = String(repeating: "k", count: 255)
    #expect(try store.put("long/" + longest, [1], ifAbsent: true))
    #expect(try all(store, "long/") == ["long/" + longest])
    for key in [
      "", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a b", "a+b", "a%2e", "ä", "a\0b", "a\\b",
      "a?b",
      "a#b", ".tmp-1", "a/.tmp-1", longest + "k",
    ] {
      #expect(throws: ObjectError.self, "\(key)") { try store.get(key, nil) }
      #expect(throws: ObjectError.self, "\(key)") { try store.put(key, [], ifAbsent: false) }
      #expect(throws: ObjectError.self, "\(key)") { try store.delete(key) }
    }
    #expect(throws: ObjectError.self) { try store.list("../", after: nil) }
  }

  func largeObject() throws {
    let store = try open()
    var state: UInt32 = 1
    let content = (0..<5 << 20).map { _ in
      state = state &* 1_664_525 &+ 1_013_904_223
      return UInt8(state >> 24)
    }
    #expect(try store.put("large", content, ifAbsent: true))
    // Comparisons outside of the macro, which would print all bytes.
    let isSame = try store.get("large", nil) == content
    #expect(isSame)
    for range in [0..<1, 4_194_303..<4_194_305, 5_242_879..<5_242_880, 1_000_000..<3_000_000] {
      let part = try store.get("large", UInt64(range.lowerBound)..<UInt64(range.upperBound))
      let isPart = part == Array(content[range])
      #expect(isPart, "\(range)")
    }
    let second = try store.put("large", content, ifAbsent: true)
    #expect(!second)
  }

  /// Of 16 writers that act as processes of their own, one succeeds, and all read its bytes.
  func race() throws {
    for race in 0..<races {
      let stores = try (0..<4).map { _ in try open() }
      let successes = Mutex<[Int]>([])
      let failures = Mutex<[ObjectError]>([])
      inThreads(16) { thread in
        do throws(ObjectError) {
          if try stores[thread % 4].put("race/\(race)", [UInt8(thread)], ifAbsent: true) {
            successes.withLock { $0.append(thread) }
          }
        } catch { failures.withLock { $0.append(error) } }
      }
      #expect(failures.withLock { $0 } == [])
      let winners = successes.withLock { $0 }
      if isAtomic { #expect(winners.count == 1) }
      for store in stores {
        let content = try store.get("race/\(race)", nil)
        #expect(winners.contains { content == [UInt8($0)] }, "\(winners)")
      }
    }
    #expect(try all(open(), "race/").count == races)
  }

  func counting() throws {
    let store = try open()
    let before = store.requestCount
    #expect(try store.put("counting", bytes("12345"), ifAbsent: true))
    #expect(try store.get("counting", 1..<4)?.count == 3)
    #expect(try store.get("counting/absent", nil) == nil)
    _ = try store.list("counting", after: nil)
    try store.delete("counting")
    let after = store.requestCount
    #expect(after.writes == before.writes + 1)
    #expect(after.reads == before.reads + 2)
    #expect(after.lists == before.lists + 1)
    #expect(after.deletions == before.deletions + 1)
    #expect(after.total == before.total + 5)
    #expect(after.bytesOut == before.bytesOut + 5)
    #expect(after.bytesIn >= before.bytesIn + 3)
  }
}

/// Calls the function in threads that start at once, and waits for all of them.
func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let start = DispatchSemaphore(value: 0)
  let ends = DispatchGroup()
  for number in 0..<count {
    ends.enter()
    Thread {
      start.wait()
      body(number)
      ends.leave()
    }.start()
  }
  for _ in 0..<count { start.signal() }
  ends.wait()
}
