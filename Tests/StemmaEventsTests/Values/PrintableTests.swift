import StemmaEvents
import Testing

@Suite struct PrintableTests {
  @Test func plainTextStaysAsItIs() {
    for text in [
      "", "plain ~", "Gwendal Roué", "日本語 👩‍👩‍👧", #"C:\new"#, "\u{A0}\u{2027}\u{202F}\u{2065}\u{206A}",
    ] {
      #expect(printable(text) == text)
      #expect(printable(text, as: .lines) == text)
      #expect(printable(text, as: .json) == text)
    }
  }

  @Test func whatATerminalObeysIsSpelled() {
    #expect(printable("a\tb\r\nc") == #"a\tb\r\nc"#)
    #expect(printable("\u{0}\u{1B}[31mé\u{7F}") == #"\u{0}\u{1b}[31mé\u{7f}"#)
    #expect(printable("\u{80}\u{9F}") == #"\u{80}\u{9f}"#)
    #expect(
      printable("\u{2028}\u{2029}\u{202A}\u{202E}\u{2066}\u{2069}")
        == #"\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}"#)
  }

  @Test func endsOfLinesStayInTextThatHasSeveral() {
    #expect(printable("one\ntwo\u{1B}[m\r\n", as: .lines) == "one\ntwo" + #"\u{1b}[m\r"# + "\n")
  }

  /// The text remains JSON with the same value.
  @Test func inJSONItIsSpelledAsJSON() throws {
    let value = JSON.string("\u{1B}\u{7F}\u{9B}\u{202E}")
    let text = printable(value.text, as: .json)
    #expect(text == #""\u001b\u007f\u009b\u202e""#)
    #expect(try JSON.parse(Array(text.utf8)) == value)
  }
}
