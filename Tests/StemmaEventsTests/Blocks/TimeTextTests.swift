import Testing

@testable import StemmaEvents

@Suite struct TimeTextTests {
  private func read(_ text: String, _ form: TimeText) -> TimeText.Reading? {
    Array(text.utf8).withUnsafeBytes { form.read($0) }
  }

  private func print(_ reading: TimeText.Reading, _ form: TimeText) -> String? {
    var bytes = [UInt8](repeating: 0, count: form.count)
    let isPrinted = bytes.withUnsafeMutableBufferPointer { bytes in
      bytes.baseAddress.map { form.write(reading, to: $0) } ?? false
    }
    return isPrinted ? String(decoding: bytes, as: UTF8.self) : nil
  }

  @Test func knownTimesHaveTheirNumbers() {
    #expect(read("1970-01-01T00:00:00Z", .seconds) == .init(number: 0))
    #expect(read("2010-11-10T12:00:00Z", .seconds) == .init(number: 1_289_390_400))
    #expect(read("2010-11-10T12:00:00.007Z", .milliseconds) == .init(number: 1_289_390_400_007))
    #expect(read("2000-03-01", .days) == .init(number: 11_017))
    #expect(read("0000-01-01", .days) == .init(number: TimeText.fourDigitYears.lowerBound))
    #expect(read("9999-12-31", .days) == .init(number: TimeText.fourDigitYears.upperBound))
    #expect(
      read("2015-07-03T06:19:35+02:00", .offset) == .init(number: 1_435_897_175, minutes: 120))
  }

  @Test func everyDayOfFourDigitYearsPrintsAsItWasRead() {
    // The day after each, through all leap year rules.
    var previous = ""
    for day in stride(
      from: TimeText.fourDigitYears.lowerBound, through: TimeText.fourDigitYears.upperBound, by: 13)
    {
      let text = print(.init(number: day), .days) ?? ""
      #expect(read(text, .days) == .init(number: day))
      #expect(previous.hasBytes(before: text))
      previous = text
    }
    #expect(print(.init(number: TimeText.fourDigitYears.lowerBound - 1), .days) == nil)
    #expect(print(.init(number: TimeText.fourDigitYears.upperBound + 1), .days) == nil)
  }

  @Test func whatIsReadPrintsAgain() {
    for (text, form) in [
      ("1969-12-31T23:59:59Z", TimeText.seconds), ("0000-01-01T00:00:00Z", .seconds),
      ("1969-12-31T23:59:59.999Z", .milliseconds), ("9999-12-31T23:59:59.999Z", .milliseconds),
      ("2015-07-03T06:19:35-11:30", .offset), ("2015-07-03T06:19:35+00:00", .offset),
      ("0000-01-01T00:00:00+99:59", .offset), ("9999-12-31T23:59:59-99:59", .offset),
      ("2024-02-29", .days),
    ] {
      #expect(read(text, form).flatMap { print($0, form) } == text)
    }
  }

  @Test func textsThatWouldNotComeBackAreNotRead() {
    for (text, form) in [
      ("2023-02-29", TimeText.days), ("2023-13-01", .days), ("2023-00-01", .days), ("2023-01-32", .days),
      ("2023-01-00", .days), ("2023/01/01", .days), ("20230-1-01", .days),
      ("2023-01-01T24:00:00Z", .seconds), ("2023-01-01T00:60:00Z", .seconds),
      ("2023-01-01T00:00:60Z", .seconds), ("2023-01-01t00:00:00Z", .seconds),
      ("2023-01-01T00:00:00z", .seconds), ("2015-07-03T06:19:35-00:00", .offset),
      ("2015-07-03T06:19:35+02:60", .offset), ("2015-07-03T06:19:35.0000", .milliseconds),
    ] {
      #expect(read(text, form) == nil, "\(text)")
    }
  }

  @Test func numbersWithoutATextAreRefused() {
    for number in [Int64.min, Int64.max, -62_167_219_201, 253_402_300_800] {
      #expect(print(.init(number: number), .seconds) == nil)
    }
    for minutes in [Int64.min, -6000, 6000, .max] {
      #expect(print(.init(number: 0, minutes: minutes), .offset) == nil)
    }
  }
}
