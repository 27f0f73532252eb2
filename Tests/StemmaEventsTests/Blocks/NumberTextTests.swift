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

  /// Small blocks use separate tables. Covers both sides of the limit, alternately.
  @Test func piecesOfEachSizeAreInflatedToWhatTheyWere() throws {
    var generator = SplitMix64(seed: 9)
    let deflater = Deflater(level: 6)
    let limit = Deflater.smallPiece
    for count in [256, limit - 1, 3 * limit, limit, limit + 1, 300, limit] {
      // Repeats over the longest possible distance.
      let half = (0..<count / 2).map { _ in UInt8(truncatingIfNeeded: generator.next()) & 63 }
      let input = half + [7] + half
      var output: [UInt8] = [1, 2, 3]
      #expect(deflater.append(input, to: &output).isDeflated)
      let memory = output.withUnsafeBytes {
        inflated(UnsafeRawBufferPointer(rebasing: $0[3...]), count: input.count, strictly: true)
      }
      #expect(try Array(#require(memory).bytes) == input)
    }
  }
}
