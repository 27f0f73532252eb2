import StemmaSimulation
import Testing

@testable import StemmaEvents

@Suite struct NumberTextTests {
  @Test func numbersAreWrittenAsStringsWriteThem() {
    var generator = SplitMix64(seed: 7)
    var numbers: [UInt64] = [0, 9, 10, 99, 100, 1 << 63, .max]
    for shift in 0..<64 { numbers.append(generator.next() >> UInt64(shift)) }
    for number in numbers {
      let signed = Int64(bitPattern: number)
      let small = UInt32(truncatingIfNeeded: number)
      var bytes: [UInt8] = []
      bytes.append(decimal: number)
      bytes.append(UInt8(ascii: " "))
      bytes.append(decimal: signed)
      bytes.append(UInt8(ascii: " "))
      bytes.append(hex: number)
      bytes.append(UInt8(ascii: " "))
      bytes.append(hex: small)
      let (long, short) = (padded(number, 16), padded(UInt64(small), 8))
      #expect(String(decoding: bytes, as: UTF8.self) == "\(number) \(signed) \(long) \(short)")
      #expect(Origin(number).description == long)
    }
  }

  private func padded(_ number: UInt64, _ count: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: count - digits.count) + digits
  }
}
