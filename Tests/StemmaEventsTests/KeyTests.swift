import StemmaEvents
import StemmaSchema
import Testing

@Suite struct KeyTests {
  /// Parts in ascending order within each kind.
  private static let strings = [
    "", "\u{0}", "\u{0}\u{0}", "\u{0}a", "\u{1}", "A", "a", "a\u{0}", "a\u{0}b", "a\u{1}",
    "aa", "e\u{301}", "z", "\u{E9}", "\u{FFFF}", "😀",
  ]
  private static let integers: [Int64] = [
    .min, .min + 1, -(1 << 32), -65536, -257, -256, -255, -2, -1, 0, 1, 2, 255, 256,
    257, 65535, 65536, 1 << 53, .max - 1, .max,
  ]
  private static let doubles: [Double] = [
    -.greatestFiniteMagnitude, -1.5, -1, -.leastNonzeroMagnitude, 0,
    .leastNonzeroMagnitude, 1, 1.5, .greatestFiniteMagnitude,
  ]

  private static var kinds: [[KeyPart]] {
    [
      strings.map(KeyPart.string), integers.map(KeyPart.int), doubles.map(KeyPart.double),
      [.bool(false), .bool(true)],
    ]
  }

  /// Byte order is key order, part by part, whatever follows.
  @Test func theOrderOfBytesIsTheOrderOfKeys() {
    for parts in Self.kinds {
      for (lower, a) in parts.enumerated() {
        for (upper, b) in parts.enumerated() {
          #expect((Key(a) < Key(b)) == (lower < upper))
          // The second part decides only if the first parts are equal.
          for (x, y) in [(KeyPart.int(9), KeyPart.int(-9)), (.string("z"), .string(""))] {
            #expect((Key(a, x) < Key(b, y)) == (lower < upper))
          }
        }
      }
    }
  }

  /// The encoding is injective: different tuples have different bytes, and each can be decoded.
  @Test func everyKeyIsReadBackAndNoTwoAreEqual() throws {
    let parts = Self.kinds.flatMap(\.self)
    var seen: Set<[UInt8]> = []
    for a in parts {
      #expect(try Key(encoded: Key(a).bytes).parts == [a])
      #expect(seen.insert(Key(a).bytes).inserted)
      for b in parts {
        let key = Key(a, b)
        #expect(try Key(encoded: key.bytes).parts == [a, b])
        #expect(seen.insert(key.bytes).inserted)
      }
    }
  }

  /// A composed and a decomposed letter are two keys, as they are two rows in SQLite.
  @Test func keysCompareAsBytes() {
    #expect(Key(.string("\u{E9}")) != Key(.string("e\u{301}")))
    #expect(KeyPart.string("\u{E9}") != KeyPart.string("e\u{301}"))
  }

  /// Every byte string of up to three bytes is refused, or is the only encoding of its value.
  @Test func onlyCanonicalEncodingsAreTaken() {
    func check(_ bytes: [UInt8]) {
      do {
        let key = try Key(encoded: bytes)
        #expect(Key(key.parts).bytes == bytes)
      } catch {}
    }
    check([])
    for a in UInt8.min...UInt8.max {
      check([a])
      for b in UInt8.min...UInt8.max {
        check([a, b])
        for c in [UInt8(0), 1, 2, 0x14, 0x15, 0x7F, 0x80, 0xC3, 0xFF] { check([a, b, c]) }
      }
    }
    #expect(throws: EventsError.self) { try Key(encoded: []) }
    #expect(throws: EventsError.self) { try Key(encoded: [0x15, 0]) }
    #expect(throws: EventsError.self) { try Key(encoded: [0x13, 0xFF]) }
    #expect(throws: EventsError.self) { try Key(encoded: [0x02, 0xFF, 0]) }
    #expect(throws: EventsError.self) { try Key(encoded: [0x21, 0x80, 0, 0]) }
    for (bits, isRead) in [(UInt64(0), true), (1 << 63, false), (Double.nan.bitPattern, false)] {
      let stored = bits >> 63 == 1 ? ~bits : bits | 1 << 63
      let bytes =
        [0x21] + stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: stored >> UInt64($0)) }
      if isRead {
        #expect(throws: Never.self) { try Key(encoded: bytes) }
      } else {
        #expect(throws: EventsError.self) { try Key(encoded: bytes) }
      }
    }
  }
}

@Suite struct PartitionRuleTests {
  private func partition(_ fields: String, _ key: Key, _ directive: String = "") throws -> String {
    let schema = try SDL.read("type Order @model \(directive) { \(fields) }").schema
    return Partition(model: try #require(schema.model(named: "Order")), key: key).description
  }

  @Test func theFirstPartOfACompositeKeyNamesThePartition() throws {
    let fields = "tenant: String! @primaryKey(sortKeyFields: [\"n\"])  n: Int!"
    #expect(try partition(fields, Key(.string("acme"), .int(1))) == "tenant=acme")
    #expect(try partition(fields, Key(.string("acme"), .int(1)), "@partition(fields: [])") == "Order")
    #expect(
      try partition(fields, Key(.string("acme"), .int(1)), "@partition(fields: [\"tenant\", \"n\"])")
        == "tenant=acme,n=1")
    #expect(try partition(fields, Key(.string("%,=*?[!]é/"), .int(1))) == "tenant=%25%2C%3D%2A%3F%5B%21]é/")
  }

  @Test func aKeyOfOnePartOrAMintedFirstPartIsOnePartition() throws {
    #expect(try partition("n: Int! @primaryKey", Key(.int(1))) == "Order")
    #expect(try partition("x: Int", Key(.string("a"))) == "Order")
    #expect(
      try partition("id: ID! @primaryKey(sortKeyFields: [\"n\"])  n: Int!", Key(.string("a"), .int(1)))
        == "Order")
    // The log contains the stored name, so a rename does not move records.
    #expect(try partition("n: Int! @primaryKey", Key(.int(1)), "@mapsTo(name: \"Purchase\")") == "Purchase")
    let renamed = "owner: String! @primaryKey(sortKeyFields: [\"n\"]) @mapsTo(name: \"tenant\")  n: Int!"
    #expect(try partition(renamed, Key(.string("a"), .int(1))) == "tenant=a")
  }

  /// Records of all models with the same first field and value share a partition, by design.
  @Test func aNumberAndItsDigitsShareAPartition() throws {
    let number = "t: Int! @primaryKey(sortKeyFields: [\"n\"])  n: Int!"
    let text = "t: String! @primaryKey(sortKeyFields: [\"n\"])  n: Int!"
    #expect(try partition(number, Key(.int(5), .int(1))) == (try partition(text, Key(.string("5"), .int(1)))))
  }
}
