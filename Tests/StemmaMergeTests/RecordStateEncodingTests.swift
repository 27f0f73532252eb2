import StemmaEvents
import StemmaMerge
import StemmaSchema
import StemmaSimulation
import Testing

@Suite struct RecordStateEncodingTests {
  /// Covers every part of the format: two origins, a conflict, an unknown field, and a latest
  /// timestamp without a sibling.
  private func rich() throws -> RecordState {
    var record = Record()
    let create = record.add(
      0x0102, .create, ["a": .string("x"), "b": .double(0.5), "unknown": .json("[1]")], at: 1000)
    let x = record.add(0x0102, .update, ["a": .int(-7)], seen: [create], at: 900_000)
    let y = record.add(0x0102, .update, ["a": .string("y")], seen: [x], at: 2000)
    record.add(
      0xff, .update, ["a": .bool(true), "updatedAt": .string("2024-01-01T00:00:00Z")], seen: [create],
      at: 3000)
    record.add(0xff, .delete, seen: [create], at: 4000)
    record.add(0x0102, .link, ["r1": .string("p"), "r2": .string("q")], seen: [y], at: 5000)
    return try record.state()
  }

  private func hex(_ bytes: [UInt8]) -> String {
    bytes.map { byte in
      let digits = String(byte, radix: 16)
      return digits.utf8.count == 1 ? "0" + digits : digits
    }.joined()
  }

  @Test func goldenBytes() throws {
    let state = try rich()
    let head =
      "0200000000000000ff0200000000000001020405010102f02e00020002d00f00080301ef2e00090103d00f000b0004f02e00"
      + "0107756e6b6e6f776e06030000020303000602000202050001"
    let (b, unknown) = ("0102043fe0000000000000", "060206035b315d")
    let whole =
      "070000020003050179" + b + "03040501700404050171"
      + "05000514323032342d30312d30315430303a30303a30305a" + unknown
    #expect(hex(state.encoded(automerge, omitsShown: false)) == "61" + head + whole + "a0f73600")
    #expect(
      hex(state.encoded(automerge, omitsShown: true)) == "71" + head + "03000002" + b + unknown + "a0f73600")
  }

  @Test func roundTripWithColumns() throws {
    let state = try rich()
    let short = state.encoded(automerge, omitsShown: true)
    var asked: [Int] = []
    let restored = try RecordState(decoding: short, automerge) { field in
      asked.append(field)
      return state.value(ofField: field, automerge)
    }
    #expect(restored == state)
    // Not `b`: its column is text, but the value is a number.
    #expect(asked.map { automerge.fields[$0] } == ["a", "createdAt", "r1", "r2", "updatedAt"])
  }

  /// The layout of the checksum, and its coverage of the complete state.
  @Test func sealedStateIsTheStateThatWasSealedOrRefused() throws {
    let state = try rich()
    let key = Key(.string("k"))
    let short = state.encoded(automerge, omitsShown: true)
    var covered = key.bytes
    var values: [Int: Value] = [:]
    for (field, name) in automerge.fields.enumerated() {
      let value = state.value(ofField: field, automerge)
      guard name != "b", !value.isNull else { continue }
      values[field] = value
      guard case .string(let text) = value else { throw Missing() }
      covered += [0, 0, 0, 0, 0, 0, 0, UInt8(field * 8 + 4), 0, 0, 0, 0, 0, 0, 0, UInt8(text.utf8.count)]
      covered += Array(text.utf8)
    }
    let crc = CRC32C.of(covered + short)
    let sealed = state.sealed(automerge, omitsShown: true, key.bytes)
    #expect(sealed == short + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: crc >> $0) })
    func read(_ bytes: [UInt8], _ key: Key, _ values: [Int: Value]) throws -> RecordState {
      try bytes.withUnsafeBytes { try RecordState(sealed: $0, key, automerge) { values[$0] ?? .null } }
    }
    #expect(try read(sealed, key, values) == state)
    #expect(throws: MergeError.self) { try read(sealed, Key(.string("l")), values) }
    for (field, value) in values {
      var others = values
      for other in [.null, .string("other"), .int(1), .json(value.json.text)] as [Value] {
        others[field] = other
        #expect(throws: MergeError.self) { try read(sealed, key, others) }
      }
    }
    for length in sealed.indices {
      #expect(throws: MergeError.self) { try read(Array(sealed[..<length]), key, values) }
    }
    for place in 0..<sealed.count * 8 {
      var corrupt = sealed
      corrupt[place / 8] ^= 1 << UInt8(place % 8)
      #expect(throws: MergeError.self) { try read(corrupt, key, values) }
    }
  }

  private struct Missing: Error {}

  @Test func emptyState() throws {
    let bytes = RecordState().encoded(automerge, omitsShown: true)
    #expect(bytes == [0x11, 0, 0, 0, 0, 0, 0])
    #expect(try RecordState(decoding: bytes, automerge) == RecordState())
  }

  /// One create and a few updates by one origin, months apart.
  @Test func stateOfATypicalRecordIsShort() throws {
    var record = Record()
    let create = record.add(1, .create, ["a": .string("x"), "b": .string("y")])
    #expect(try record.state().encoded(automerge, omitsShown: true).count <= 27)
    let update = record.add(1, .update, ["a": .string("z")], seen: [create], at: 1_702_000_000_000)
    record.add(1, .update, ["a": .string("w")], seen: [update], at: 1_710_000_000_000)
    #expect(try record.state().encoded(automerge, omitsShown: true).count <= 40)
  }

  /// Corrupt bytes are refused or decode to another state. They never trap, and accepted bytes are
  /// canonical.
  @Test func everyCutAndEveryFlippedBitIsRefusedOrCanonical() throws {
    for state in [try rich(), try RecordState.fold([Event](), automerge)] {
      let bytes = state.encoded(automerge, omitsShown: false)
      for length in 0..<bytes.count {
        #expect(throws: MergeError.self) { try RecordState(decoding: Array(bytes[..<length]), automerge) }
      }
      #expect(throws: MergeError.self) { try RecordState(decoding: bytes + [0], automerge) }
      var taken = 0
      for index in bytes.indices {
        for bit in 0..<8 {
          var corrupt = bytes
          corrupt[index] ^= 1 << UInt8(bit)
          do throws(MergeError) {
            let state = try RecordState(decoding: corrupt, automerge)
            taken += 1
            let omits = corrupt[0] & 0x10 != 0
            if !omits { #expect(state.encoded(automerge, omitsShown: false) == corrupt) }
          } catch {
            continue
          }
        }
      }
      #expect(taken < bytes.count * 8)
    }
  }

  @Test func randomBytesAreRefused() throws {
    var random = SplitMix64(seed: 5)
    var taken = 0
    for _ in 0..<20_000 {
      var bytes = (0..<random.below(40)).map { _ in UInt8(truncatingIfNeeded: random.next() & random.next()) }
      if !bytes.isEmpty { bytes[0] = [0x01, 0x11, 0x21, 0x41, 0x61][random.below(5)] }
      do throws(MergeError) {
        _ = try RecordState(decoding: bytes, automerge)
        taken += 1
      } catch {
        continue
      }
    }
    #expect(taken < 20_000)
  }

  @Test func hostileCountsAllocateNothing() {
    // A context, writes and names that claim 2^63 elements.
    let huge: [UInt8] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]
    for head in [[0x01], [0x01, 0x00], [0x41, 0x00, 0x00], [0x01, 0, 0, 0, 0], [0x01, 0, 0, 0, 0, 0]]
      as [[UInt8]]
    {
      #expect(throws: MergeError.self) { try RecordState(decoding: head + huge, automerge) }
    }
  }

  @Test func otherFormatIsRefused() {
    #expect(throws: MergeError.malformed("state", "an unknown format")) {
      try RecordState(decoding: [0x12, 0, 0, 0, 0, 0, 0], automerge)
    }
  }
}
