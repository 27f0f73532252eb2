import Foundation
import StemmaSimulation
import Testing

@testable import Stemma

/// The library's own parser and printer of UUIDs, compared with Foundation's.
@Suite("Text of UUIDs")
struct UUIDTextTests {
  private func read(_ text: String) -> UUID? {
    var text = text
    return text.withUTF8 { UUIDText.uuid(of: $0) }
  }

  @Test("is as Foundation's, in lower case; either case is read")
  func likeFoundation() {
    var chance = SplitMix64(seed: 5)
    for _ in 0..<500 {
      let (a, b) = (chance.next(), chance.next())
      let bytes = (0..<8).map { UInt8(truncatingIfNeeded: a >> (8 * $0)) }
      let more = (0..<8).map { UInt8(truncatingIfNeeded: b >> (8 * $0)) }
      let uuid = (bytes + more).withUnsafeBytes { UUID(uuid: $0.load(as: uuid_t.self)) }
      #expect(UUIDText.text(of: uuid) == uuid.uuidString.lowercased())
      #expect(read(uuid.uuidString) == uuid)
      #expect(read(uuid.uuidString.lowercased()) == uuid)
    }
  }

  @Test("nothing else is read: each byte at each place is a digit or refused")
  func refused() {
    let text = Array("01234567-89ab-cdef-ABCD-EF0123456789".utf8)
    for place in text.indices {
      for byte in UInt8.min...UInt8.max {
        var changed = text
        changed[place] = byte
        let digits = Array("0123456789abcdefABCDEF".utf8)
        let isDash = [8, 13, 18, 23].contains(place)
        let isValid = isDash ? byte == 45 : digits.contains(byte)
        let found = changed.withUnsafeBufferPointer { UUIDText.uuid(of: $0) }
        #expect((found != nil) == isValid, "\(byte) at \(place)")
      }
    }
    #expect(read("") == nil)
    #expect(read("01234567-89ab-cdef-abcd-ef012345678") == nil)
    #expect(read("01234567-89ab-cdef-abcd-ef01234567890") == nil)
  }
}
