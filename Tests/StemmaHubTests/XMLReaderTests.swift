import Testing

@testable import StemmaHub

@Suite("XML of S3") struct XMLReaderTests {
  private func parts(_ text: String) throws -> [XMLReader.Part] {
    var parts: [XMLReader.Part] = []
    try XMLReader.read(Array(text.utf8)) { parts.append($0) }
    return parts
  }

  @Test("elements, text, entities, and what is skipped")
  func elements() throws {
    #expect(
      try parts("<?xml version='1.0'?><!-- <x> --><s:a b='c'>d&amp;&#65;&#x42;&lt;<e/><![CDATA[<&]]></s:a >")
        == [
          .start("a"), .text("d&AB<"), .start("e"), .end("e"), .text("<&"), .end("a"),
        ])
  }

  @Test(
    "malformed documents",
    arguments: [
      "<a>", "</a>", "<a></b>", "<a", "<a>&x;</a>", "<a>&amp</a>", "<!DOCTYPE a><a/>", "<a><!-- </a>",
      "<></>",
      "<a>&#xD800;</a>", "<a>&#99999999999;</a>", "<?xml <a/>",
    ])
  func malformed(_ text: String) {
    #expect(throws: XMLReader.Malformed.self) { try parts(text) }
  }

  @Test("nesting is limited")
  func nesting() throws {
    let deep = { (count: Int) in
      String(repeating: "<a>", count: count) + String(repeating: "</a>", count: count)
    }
    #expect(try parts(deep(32)).count == 64)
    #expect(throws: XMLReader.Malformed.self) { try parts(deep(33)) }
  }

  @Test("no prefix of a list is a list")
  func prefixes() throws {
    let text = """
      <ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
      <Contents><Key>a%2Fb+c</Key><ETag>&quot;t&quot;</ETag></Contents></ListBucketResult>
      """
    let bytes = Array(text.utf8)
    let list = try S3List(bytes)
    #expect(list.isTruncated)
    #expect(list.objects == [S3List.Object(key: "a/b c", tag: "t")])
    for length in 0..<bytes.count {
      #expect(throws: XMLReader.Malformed.self) { try S3List(Array(bytes[..<length])) }
    }
  }
}
