import Foundation
import StemmaEvents
import StemmaNode
import Testing

@testable import Stemma

enum Priority: Int, ColumnValue { case low = 1, high = 3 }
enum Colour: String, CaseIterable, KeyValue { case red = "RED", green = "GREEN" }
struct Address: Codable, Hashable { var street: String, number: Int? }

/// A column of every type.
@Table struct Specimen: Equatable {
  let id: Int
  var text: String
  var number: Int
  var small: Int32
  var byte: UInt8
  var wide: Int64
  var real: Double
  var single: Float
  var flag: Bool
  var day: Date
  @Column(as: Date.UnixTimeRepresentation.self) var second: Date
  @Column(as: Date.DayRepresentation?.self) var date: Date?
  var uuid: UUID
  var data: Data
  var amount: Decimal
  var link: URL
  var priority: Priority
  var colour: Colour
  var tags: [String]
  var marks: [Int?]?
  var uuids: [UUID]
  @Column(as: Address.JSONRepresentation.self) var address: Address
  @Column(as: Address?.JSONRepresentation.self) var home: Address?
  @Column(as: String.AWSEmail.self) var email: String
  @Column(as: String.AWSTime?.self) var time: String?
  @Column(as: String.AWSJSON.self) var json: String

  static let example = Draft(
    id: 1, text: "é / \"x\"", number: -9_007_199_254_740_993, small: -5, byte: 255, wide: .min, real: 0.1,
    single: 0.1, flag: true,
    day: Date(timeIntervalSince1970: 1_435_662_990.5), second: Date(timeIntervalSince1970: 1_435_662_990),
    date: Date(timeIntervalSince1970: 1_435_622_400),
    uuid: UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)), data: Data([0, 255]),
    amount: Decimal(sign: .minus, exponent: -2, significand: 314), link: URL(filePath: "/a b"),
    priority: .high,
    colour: .green, tags: ["a", "b"], marks: [1, nil], uuids: [],
    address: Address(street: "S", number: 7), home: nil, email: "name@example.org",
    time: "23:59", json: "{\"b\":1.0,\"a\":[]}")
}

@Suite("Column types")
struct ValueTests {
  @Test("each type is written, shown and read back as the same value, rebuilt too, and by the tool")
  func roundTrip() async throws {
    let witness = try await Witness(Specimen.self)
    let store = witness.store
    let specimen = try await store.insert(Specimen.example)
    #expect(Specimen.Draft(specimen).text == Specimen.example.text)
    try await witness.expectRows(
      ##"""
      specimens id=1 text="é / \"x\"" number="-9007199254740993" small=-5 byte=255 wide="-9223372036854775808" \##
      real=0.1 single=0.10000000149011612 flag=1 day="2015-06-30T11:16:30.5Z" second=1435662990 date="2015-06-30" \##
      uuid=#1 data="AP8=" amount="-3.14" link="file:///a%20b" priority=3 colour="GREEN" tags="[\"a\",\"b\"]" \##
      marks="[1,null]" uuids="[]" address="{\"number\":7,\"street\":\"S\"}" email="name@example.org" time="23:59" \##
      json="{\"a\":[],\"b\":1.0}"
      """##)
    #expect(try await store.find(Specimen.self, 1) == specimen)
    try await witness.rebuild()
    #expect(try await store.find(Specimen.self, 1) == specimen)
    #expect(try await Specimen.all.fetchAll(store) == [specimen])
    let exported = try await store.writer.access { node in
      var lines = ""
      try node.export([]) { lines += String(decoding: $0, as: UTF8.self) }
      return lines
    }
    #expect(
      exported == ##"""
        {"model":"Specimen","key":{"id":1},"fields":{"text":"é / \"x\"","number":"-9007199254740993","small":-5,\##
        "byte":255,"wide":"-9223372036854775808","real":0.1,"single":0.10000000149011612,"flag":true,\##
        "day":"2015-06-30T11:16:30.5Z","second":1435662990,"date":"2015-06-30",\##
        "uuid":"01020304-0506-0708-090a-0b0c0d0e0f10","data":"AP8=","amount":"-3.14","link":"file:///a%20b",\##
        "priority":3,"colour":"GREEN","tags":["a","b"],"marks":[1,null],"uuids":[],\##
        "address":"{\"number\":7,\"street\":\"S\"}","home":null,"email":"name@example.org","time":"23:59",\##
        "json":"{\"a\":[],\"b\":1.0}"}}

        """##)
  }

  @Test("what another program spelled otherwise reads the same, and is no difference when it is saved")
  func otherSpellings() async throws {
    let witness = try await Witness(Specimen.self)
    let specimen = try await witness.store.insert(Specimen.example)
    let fields: [(String, JSON)] = [
      ("day", .string("2015-06-30T13:16:30.500+02:00")), ("amount", .string("-3.140")),
      ("uuid", .string("01020304-0506-0708-090A-0B0C0D0E0F10")),
      ("address", .string(#"{"street":"S","number":7}"#)),
    ]
    try await witness.store.writer.access { node in
      try node.write { write throws(NodeError) in
        _ = try write.perform(
          Mutation(.update, model: "Specimen", key: .int(1), fields: fields.map { (name: $0.0, value: $0.1) })
        )
      }
    }
    var read = try await witness.store.find(Specimen.self, 1)
    #expect(read == specimen)
    read.small = 6
    try await witness.expect {
      try await witness.store.update(read)
    } appends: {
      """
      update Specimen 1 small=6
      """
    }
  }

  @Test("a value that its field does not take is refused, with model, record, field and rule")
  func refusedValues() async throws {
    let witness = try await Witness(Specimen.self)
    var draft = Specimen.example
    draft.email = "nobody"
    try await witness.expect {
      await #expect(
        throws: StoreError.invalid(
          model: "Specimen", key: "1", field: "email", value: "\"nobody\"",
          rule: "an email address is written like name@example.org")
      ) {
        try await witness.store.insert(draft)
      }
    } appends: {
      ""
    }
    draft = Specimen.example
    draft.json = "{"
    await #expect(throws: StoreError.self) { try await witness.store.insert(draft) }
  }

  /// The field for which a change is refused.
  private func refusedField(_ change: () async throws -> Void) async -> String? {
    do {
      try await change()
      return nil
    } catch StoreError.invalid(_, _, let field, _, _) { return field } catch { return "\(error)" }
  }

  @Test("numbers and dates that no column can show again are refused, and nothing is written")
  func unreadableValues() async throws {
    let witness = try await Witness(Specimen.self, Measured.self)
    let store = witness.store
    let specimen = try await store.insert(Specimen.example)
    let never = Date(timeIntervalSince1970: .nan)
    let far = Date(timeIntervalSince1970: .infinity)
    let changes: [(field: String, change: @Sendable (inout Specimen) -> Void)] = [
      ("amount", { $0.amount = .nan }), ("real", { $0.real = .nan }), ("real", { $0.real = .infinity }),
      ("real", { $0.real = -.infinity }), ("single", { $0.single = .nan }),
      ("single", { $0.single = -.infinity }),
      ("day", { $0.day = never }), ("day", { $0.day = far }), ("second", { $0.second = never }),
      ("second", { $0.second = far }), ("date", { $0.date = never }), ("date", { $0.date = far }),
    ]
    try await witness.expect {
      for (field, change) in changes {
        var changed = specimen
        change(&changed)
        let (row, draft) = (changed, Specimen.Draft(changed))
        #expect(await refusedField { try await store.update(row) } == field)
        #expect(await refusedField { try await store.upsert(draft) } == field)
        let other = Specimen.Draft(changed, id: 2)
        #expect(await refusedField { try await store.insert(other) } == field)
      }
      for draft in [Measured.Draft(id: .nan), Measured.Draft(id: .infinity)] {
        #expect(await refusedField { try await store.insert(draft) } == "id")
      }
      for prices in [[Decimal.nan], [1, .nan, nil]] {
        #expect(
          await refusedField { try await store.insert(Measured.Draft(id: 1, prices: prices)) } == "prices")
      }
      let ratios = Measured.Draft(id: 1, ratios: [nil, .infinity])
      #expect(await refusedField { try await store.insert(ratios) } == "ratios")
      let spare = Measured.Draft(id: 1, spare: .nan)
      #expect(await refusedField { try await store.insert(spare) } == "spare")
    } appends: {
      ""
    }
    #expect(try await Specimen.all.fetchAll(store) == [specimen])
  }

  @Test("what is no number is equal to nothing and among nothing, null included, as in Swift")
  func comparedNaN() async throws {
    let store = try await Store.temporary(models: Measured.self)
    try await store.insert(Measured.Draft(id: 1, spare: nil))
    try await store.insert(Measured.Draft(id: 2, spare: 2))
    #expect(try await Measured.where { $0.spare == .nan }.fetchCount(store) == 0)
    #expect(try await Measured.where { $0.spare != .nan }.fetchCount(store) == 2)
    #expect(try await Measured.where { $0.spare.in([.nan, 2]) }.fetchAll(store).map(\.id) == [2])
    #expect(try await Measured.where { !$0.spare.in([.nan, 2]) }.fetchAll(store).map(\.id) == [1])
    #expect(try await Measured.where { $0.id == .nan }.fetchCount(store) == 0)
    #expect(try await Measured.where { $0.id != .nan }.fetchCount(store) == 2)
    #expect(try await Measured.where { $0.id < .nan || $0.id >= .nan }.fetchCount(store) == 0)
    #expect(try await Measured.where { $0.id < .infinity }.fetchCount(store) == 2)
    #expect(try await Measured.find(.nan).fetchAll(store).isEmpty)
  }

  @Test("a case that this program does not know is kept, and reading it says which it is")
  func unknownCases() async throws {
    let witness = try await Witness(Specimen.self)
    try await witness.store.insert(Specimen.example)
    try await witness.store.writer.access { node in
      try node.write { write throws(NodeError) in
        _ = try write.perform(
          Mutation(.update, model: "Specimen", key: .int(1), fields: [(name: "priority", value: .int(2))]))
      }
    }
    await #expect(throws: StoreError.unreadable(table: "specimens", column: "priority", value: "2")) {
      try await witness.store.find(Specimen.self, 1)
    }
  }

  @Test("a date that cannot be stored is reported with its value, and errors say the same everywhere")
  func impossibleDate() async throws {
    let store = try await Store.temporary(models: Specimen.self)
    var draft = Specimen.example
    draft.day = Date(timeIntervalSince1970: -1e12)
    do {
      _ = try await store.insert(draft)
      Issue.record("a date before the year 0 was stored")
    } catch let error as StoreError {
      #expect(
        error.description.contains("Specimen.day of 1: \"-1000000000000.0 seconds since 1970\" is wrong"),
        "\(error)")
      #expect(error.localizedDescription == error.description)
    }
  }

  @Test("a record that is printed says of its store only whether there is one")
  func printed() async throws {
    let store = try await Store.temporary(models: Leveled.self)
    let leveled = try await store.insert(Leveled.Draft(level: .high))
    #expect("\(leveled)".hasSuffix("_record: from a store)"))
    #expect("\(Leveled(level: .low))".hasSuffix("_record: new)"))
    var dumped = ""
    dump(leveled, to: &dumped)
    #expect(!dumped.contains("loaded"))
  }
}

@Table private struct Leveled {
  enum Level: String, KeyValue, CaseIterable { case low, high }
  @Column(primaryKey: true) let level: Level
}

@Table private struct Measured {
  let id: Double
  var prices: [Decimal?] = []
  var ratios: [Double?] = []
  var spare: Decimal?
}

extension Specimen.Draft {
  fileprivate init(_ row: Specimen, id: Int) {
    self.init(row)
    self.id = id
  }
}
