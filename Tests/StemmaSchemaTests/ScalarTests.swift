import StemmaSchema
import Testing

@Suite struct ScalarTests {
  private func check(_ scalar: Scalar, valid: [String], invalid: [String]) {
    for text in valid { #expect(scalar.rule(brokenBy: text) == nil, "\(scalar) \(text)") }
    for text in invalid { #expect(scalar.rule(brokenBy: text) != nil, "\(scalar) \(text)") }
  }

  @Test func dates() {
    check(
      .awsDate,
      valid: [
        "1970-01-01", "2024-02-29", "2000-02-29", "0000-01-01", "9999-12-31Z", "1970-01-01-07:00",
        "1970-01-01+05:30:15",
      ],
      invalid: [
        "", "1970-1-1", "2023-02-29", "1900-02-29", "2024-04-31", "2024-13-01", "2024-00-10", "2024-01-00",
        "1970-01-01T00:00:00Z", "1970-01-01z", "19700101", "1970-01-01 ", "1970-01-01+25:00", "१९७०-०१-०१",
      ])
  }

  @Test func times() {
    check(
      .awsTime,
      valid: ["12:30", "12:30Z", "12:30:24-07:00", "23:59:59.999999999", "00:00:00.5+05:30"],
      invalid: [
        "24:00", "12:60", "12:30:60", "12:30:24.", "12:30:24.1234567890", "1:30", "12", "12:30:24.5 ",
      ])
  }

  @Test func datesAndTimes() {
    check(
      .awsDateTime,
      valid: [
        "1970-01-01T12:30:00.000Z", "1970-01-01T12:30Z", "2015-06-30T13:16:30+02:00",
        "1970-01-01T12:30:00-07:00:30",
      ],
      invalid: [
        "1970-01-01T12:30:00", "1970-01-01 12:30:00Z", "1970-01-01", "1970-01-01t12:30:00Z",
        "1970-01-01T12:30:00ZZ",
      ])
  }

  @Test func timesInUTC() {
    func utc(_ text: String) -> String? { DateText(dateTime: text)?.utcText }
    #expect(utc("2015-06-30T13:16:30+02:00") == "2015-06-30T11:16:30Z")
    #expect(utc("2015-06-30T13:16Z") == "2015-06-30T13:16:00Z")
    #expect(utc("2015-06-30T13:16:30.500Z") == "2015-06-30T13:16:30.5Z")
    #expect(utc("2015-06-30T13:16:30.000Z") == "2015-06-30T13:16:30Z")
    #expect(utc("2024-02-29T23:30:00-01:00") == "2024-03-01T00:30:00Z")
    #expect(utc("2024-01-01T00:00:00+00:00:01") == "2023-12-31T23:59:59Z")
    #expect(utc("0000-01-01T00:00:00+00:01") == nil)
    #expect(utc("9999-12-31T23:59:59-00:01") == nil)
    #expect(utc("0000-01-01T00:00:00Z") == "0000-01-01T00:00:00Z")
    #expect(utc("1969-12-31T23:59:59.25Z") == "1969-12-31T23:59:59.25Z")
    #expect(DateText(millisecondsSince1970: 1_435_662_990_050).utcText == "2015-06-30T11:16:30.05Z")
    #expect(DateText(millisecondsSince1970: -1).utcText == "1969-12-31T23:59:59.999Z")
    #expect(DateText(millisecondsSince1970: 0).utcText == "1970-01-01T00:00:00Z")
  }

  /// Every day of four centuries, and of the first and last years, converted to text and back.
  @Test func everyDayIsItself() {
    for day in Array(-719_528 ... -718_000) + Array(-60_000...90_000) + Array(2_931_000...2_932_896) {
      let text = DateText(millisecondsSince1970: Int64(day) * 86_400_000).utcText
      #expect(
        text.flatMap { DateText(dateTime: $0) } == DateText(millisecondsSince1970: Int64(day) * 86_400_000))
    }
  }

  @Test func emailAddresses() {
    check(
      .awsEmail,
      valid: ["name@example.org", "a.b+c@localhost", "é@bücher.example", "x'y@a-b.c"],
      invalid: [
        "", "@example.org", "name@", "a@b@c", ".a@b.c", "a..b@c.d", "a b@c.d", "a@-b.c", "a@b..c", "a@b_c.d",
      ])
  }

  @Test func phoneNumbers() {
    check(
      .awsPhone,
      valid: ["+49 30 123456", "(555) 010-9999", "112", "+1-555-010-9999", "555.010.9999"],
      invalid: ["", "+", "12", "1234567890123456", "55a", "5+5555", "-5555", "555-"])
  }

  @Test func urls() {
    check(
      .awsURL,
      valid: [
        "https://example.org", "http://a.b:8080/c?d=e#f", "mailto:a@b.c", "file:///tmp/x", "s3://b/%20",
      ],
      invalid: [
        "", "example.org", "https://", "://x", "https:", "http://a b", "http://é.org", "http://a/%2", "1a:b",
      ])
  }

  @Test func ipAddresses() {
    check(
      .awsIPAddress,
      valid: [
        "192.0.2.1", "0.0.0.0", "192.0.2.0/24", "192.0.2.0/0", "::", "::1", "1::", "2001:db8::1",
        "1:2:3:4:5:6:7:8", "::ffff:192.0.2.1", "2001:db8::/32", "1:2:3:4:5:6:192.0.2.1", "FE80::1",
      ],
      invalid: [
        "", "192.0.2", "192.0.2.256", "192.0.2.01", "192.0.2.1/33", "192.0.2.1/", "192.0.2.1/a", ":", ":::",
        "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "::g", "::1/129", "1:2:3:4:5:6:7::8:9",
        "::1%eth0",
        "192.0.2.1:1::",
      ])
  }

  @Test func uuidsAreKnownByTheirShape() {
    #expect("01890A5D-AC96-774B-BCCE-B302099A8057".isUUIDShaped)
    #expect(!"01890a5dac96774bbcceb302099a8057".isUUIDShaped)
    #expect(!"01890a5d-ac96-774b-bcce-b302099a805g".isUUIDShaped)
  }
}
