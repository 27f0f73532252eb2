import StemmaEvents
import Testing

@Suite struct ValueTests {
  /// Composed and decomposed letters are different bytes and therefore different values.
  @Test func valuesCompareAsBytes() {
    #expect(Value.string("\u{E9}") != Value.string("e\u{301}"))
    #expect(Value.string("a") != Value.json("a"))
  }
}
