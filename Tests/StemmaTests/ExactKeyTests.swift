import Foundation
import Testing

@testable import Stemma

enum Timed {
  @Table struct Sample {
    @Column(primaryKey: true) let at: Date
    var value: Int
  }
  @Table struct Remark {
    let id: Int
    var sampleAt: Date?
    @BelongsTo("sampleAt") var sample: Sample?
  }
  /// The same model, with keys that hold every stored value.
  @Table(model: "Sample") struct Exact {
    @Column(primaryKey: true) let at: String.AWSDateTime
    var value: Int
  }
  @Table(model: "Remark") struct AnyRemark {
    let id: Int
    @Column(as: String.AWSDateTime?.self) var sampleAt: String?
  }
  @Table struct Page {
    @Column(primaryKey: true) let url: URL
    var title: String
  }
  @Table(model: "Page") struct AnyPage {
    @Column(primaryKey: true) let url: String.AWSURL
    var title: String
  }
  @Table struct Tagged {
    let id: String.ID
    var name: String
  }
}

/// A key that a Swift type cannot represent is refused when it is read, because a converted key
/// would be a different one.
@Suite("Keys that are exactly what is stored")
struct ExactKeyTests {
  @Test(
    "a Date has no fraction of a millisecond, so a key with one is unreadable; String.AWSDateTime holds it")
  func dates() async throws {
    let exact = try await Store.temporary(models: Timed.Exact.self)
    let whole = try await exact.insert(Timed.Exact.Draft(at: "2024-02-29T12:00:00.250+02:00", value: 1))
    let fine = try await exact.insert(Timed.Exact.Draft(at: "2024-02-29T12:00:00.123456Z", value: 2))
    #expect(whole.at == "2024-02-29T10:00:00.25Z" && fine.at == "2024-02-29T12:00:00.123456Z")
    // Every spelling finds the record.
    #expect(
      try await exact.get(Timed.Exact.self, byIdentifier: "2024-02-29T10:00:00.250000Z")?.value == 1)
    let dates = try await Store(at: exact.directory, models: Timed.Sample.self)
    let at = Date(timeIntervalSince1970: 1_709_200_800.25)
    #expect(try await dates.find(Timed.Sample.self, at).value == 1)
    await #expect(
      throws: StoreError.unreadable(table: "samples", column: "at", value: "\"2024-02-29T12:00:00.123456Z\"")
    ) {
      try await Timed.Sample.where { $0.value == 2 }.fetchAll(dates)
    }
  }

  @Test("a reference that a Date cannot hold is unreadable, and never leads nowhere")
  func references() async throws {
    let store = try await Store.temporary(models: Timed.Sample.self, Timed.Remark.self)
    let remark = try await store.insert(Timed.Remark.Draft(id: 1, sampleAt: Date(timeIntervalSince1970: 0.5)))
    #expect(try await remark.sample == nil)
    let exact = try await Store(at: store.directory, models: Timed.Exact.self, Timed.AnyRemark.self)
    try await Timed.AnyRemark.find(1).update { $0.sampleAt = "2024-02-29T12:00:00.123456Z" }.execute(exact)
    await #expect(throws: StoreError.self) { try await store.find(Timed.Remark.self, 1) }
  }

  @Test("a URL that Foundation spells otherwise is unreadable as a URL; String.AWSURL holds it")
  func urls() async throws {
    let store = try await Store.temporary(models: Timed.AnyPage.self)
    try await store.insert(Timed.AnyPage.Draft(url: "https://example.org/a", title: "a"))
    try await store.insert(Timed.AnyPage.Draft(url: "https://user@@example.org/", title: "b"))
    try await store.insert(Timed.AnyPage.Draft(url: "https://example.org:port/", title: "c"))
    let urls = try await Store(at: store.directory, models: Timed.Page.self)
    let url = try #require(URL(string: "https://example.org/a"))
    #expect(try await urls.find(Timed.Page.self, url).title == "a")
    for title in ["b", "c"] {
      await #expect(throws: StoreError.self) {
        try await Timed.Page.where { $0.title == title }.fetchAll(urls)
      }
    }
    #expect(try await Timed.AnyPage.select { $0.title }.fetchAll(store) == ["a", "c", "b"])
  }

  @Test("an id that is a UUID is found whatever the case of its letters")
  func ids() async throws {
    let store = try await Store.temporary(models: Timed.Tagged.self)
    let id = "01890A5D-AC96-774B-BCCE-B302099A8057"
    let tagged = try await store.insert(Timed.Tagged.Draft(id: String.ID(id), name: "a"))
    #expect(tagged.id.description == id.lowercased())
    #expect(try await store.get(Timed.Tagged.self, byIdentifier: String.ID(id))?.name == "a")
    #expect(try await store.write { try $0.get(Timed.Tagged.self, byIdentifier: String.ID(id)) }?.name == "a")
    try await store.write { try $0.delete(Timed.Tagged.self, String.ID(id)) }
    #expect(try await Timed.Tagged.all.fetchCount(store) == 0)
  }
}
