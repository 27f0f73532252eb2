import Foundation
import Testing

/// Taking files apart from the command line.
@Suite("inspect")
struct InspectCommandTests {
  /// A node with one sealed segment of several blocks and a journal behind it.
  private func open() throws -> Workplace {
    let work = try Shop.open()
    var lines = ""
    for number in 0..<1200 {
      let room = String(repeating: "room \(number * 7919 % 1000) ", count: 12)
      lines +=
        #"{"model":"Visit","key":{"site":"s","number":\#(number)},"fields":{"room":"\#(room)"}}"# + "\n"
    }
    try work.stemma("-C", "shop", "import", "-", "--segment-size", "50000", "--batch", "1200", input: lines)
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red", "--author", "ann")
    return work
  }

  @Test("a whole file, a cut one from a pipe, one block with its events, and what is no log file")
  func shapes() throws {
    let work = try open()
    let path = "shop/log/00000001.segment"
    let whole = try work.stemma("inspect", path, "--verify", "--json").object()
    #expect(whole.members == ["file", "format", "bytes", "parts", "damaged"])
    #expect(whole["damaged"] as? Bool == false)
    let parts = whole.array("parts")
    #expect(
      parts.compactMap { $0.text("part") }.filter { $0 != "block" } == [
        "header", "footer", "filter", "trailer",
      ])
    #expect(try work.stemma("inspect", path, "--ndjson").lines.count == parts.count)

    let one = try work.stemma("inspect", path, "--block", "1", "--events", "--json").object().array("parts")
    #expect(one.count == 1)
    let events = try #require(one.first).array("events")
    #expect(events.count == one.first?.object("facts").number("events"))
    let logged = try work.stemma("-C", "shop", "log", "--reverse", "-n", "1", "--json").array()
    #expect(
      try JSONSerialization.data(withJSONObject: #require(events.first), options: .sortedKeys)
        == JSONSerialization.data(withJSONObject: #require(logged.first), options: .sortedKeys))

    let bytes = try work.bytes(path)
    let cut = try Tool.run(
      Tool.path, ["inspect", "-", "--json"], in: work.path, input: bytes.dropLast(60))
    #expect(cut.status == 1)
    #expect(try cut.object()["damaged"] as? Bool == true)
    #expect(try cut.object().array("parts").contains { $0.text("part") == "block" })

    // The name of a pipe is read like standard input.
    let pipe = try Tool.run(Tool.path, ["inspect", "/dev/stdin", "--json"], in: work.path, input: bytes)
    #expect(try pipe.object()["damaged"] as? Bool == false)
    #expect(try pipe.object()["bytes"] as? Int == bytes.count)

    for name in ["shop/log/00000002.journal", "shop/log/watermark"] {
      #expect(try work.stemma("inspect", name, "--json").object()["damaged"] as? Bool == false)
    }
    try work.write("empty", "")
    let empty = try work.attempt("inspect", "empty")
    #expect(empty.status == 65 && empty.errors.contains("empty is empty"))
    // One that never ends was called empty.
    for device in ["/dev/zero", "/dev/null"] {
      let refused = try work.attempt("inspect", device)
      #expect(refused.status == 65 && refused.errors == "stemma: \(device) is a device, and no file\n")
    }
    for name in ["nofile", "shop/log"] { #expect(try work.attempt("inspect", name).status == 66, "\(name)") }
    #expect(try work.attempt("inspect", path, "--block", "99").status == 66)
    #expect(try work.attempt("inspect", path, "--block", "0").status == 64)
  }

  @Test("a file of another kind is not called damaged: it is said what it is, and what reads it")
  func otherKinds() throws {
    let work = try open()
    #expect(try ConsolePage.shell("gzip -k shop.graphql", in: work.path).status == 0)
    for (name, what, use) in [
      ("shop/tables.sqlite", "an SQLite database", "stemma query"), ("shop/stemma.json", "JSON", "editor"),
      ("shop.graphql.gz", "compressed with gzip", "gzip -dc"), ("shop.graphql", "text", "editor"),
    ] {
      for words in [["inspect", name], ["inspect", name, "--json"]] {
        let other = try Tool.run(Tool.path, words, in: work.path)
        #expect(other.status == 65 && other.output.isEmpty, "\(words): \(other.output)")
        #expect(
          other.errors.contains("\(name) is \(what)") && other.errors.contains(use), "\(other.errors)")
        #expect(!other.errors.contains("damage"))
      }
    }
    // What could be anything may be a file of a log of which nothing is left.
    try Data(repeating: 7, count: 100).write(to: URL(fileURLWithPath: work.file("anything")))
    let unknown = try work.attempt("inspect", "anything")
    #expect(unknown.status == 1 && unknown.output.contains("no known format"), "\(unknown)")
  }

  @Test("a journal names the last event of the file before it, to be pasted; in JSON as all positions there")
  func positions() throws {
    let work = try open()
    let path = "shop/log/00000002.journal"
    #expect(try work.stemma("inspect", path).lines.contains("  after @1.1199"))
    try work.stemma("-C", "shop", "show", "@1.1199")
    let header = try work.stemma("inspect", path, "--json").object().array("parts")[0]
    #expect(header.object("facts").text("after") == "1.1199")
  }

  @Test("a pipe that has a name is read as standard input is")
  func namedPipe() throws {
    let work = try open()
    let path = "shop/log/00000001.segment"
    let whole = try work.stemma("inspect", path).lines.dropFirst()
    let piped = try ConsolePage.shell("cat \(path) | stemma -C shop inspect /dev/stdin", in: work.path)
    #expect(piped.status == 0 && piped.lines.dropFirst() == whole, "\(piped.errors)")
    #expect(piped.errors.isEmpty)
    // Nobody may ever write to it, so that it is waited for is said.
    let named = try ConsolePage.shell(
      "mkfifo fifo && (cat \(path) > fifo & stemma -C shop inspect fifo)", in: work.path)
    #expect(named.status == 0 && named.lines.dropFirst() == whole, "\(named.errors)")
    #expect(named.errors == "fifo is a pipe: it is read until nobody writes to it any more\n")
  }

  @Test("a file that is cut before its header ends is called so")
  func cutBeginning() throws {
    let work = try open()
    let bytes = try work.bytes("shop/log/00000002.journal")
    for name in ["00000002.journal", "other"] {
      try bytes.prefix(5).write(to: URL(fileURLWithPath: work.file(name)))
      let result = try work.attempt("inspect", name)
      #expect(result.status == 1 && result.output.contains("it is cut short: "), "\(result.output)")
    }
  }

  @Test("of a file of which nothing can be told no number is made up")
  func unreadFile() throws {
    let work = try open()
    try Data(work.bytes("shop/log/00000001.segment").prefix(10))
      .write(to: URL(fileURLWithPath: work.file("shop/log/00000001.segment")))
    let listed = try work.attempt("-C", "shop", "segments", "--json")
    let file = try #require(try listed.array().first)
    #expect(file["partitions"] is NSNull && file["blocks"] is NSNull && file.text("damage") != nil)
    let line = try #require(
      try work.attempt("-C", "shop", "segments").lines.first { $0.contains("damaged") })
    #expect(!line.split(separator: " ").dropFirst().contains("0"), "\(line)")
  }

  @Test("a wrong byte is marked, the block is read as it was, and the file is left as it is")
  func wrongByte() throws {
    let work = try open()
    let path = "shop/log/00000001.segment"
    let block = try #require(
      try work.stemma("inspect", path, "--block", "2", "--json").object().array("parts").first)
    var bytes = try work.bytes(path)
    let place = try #require(block.number("offset")) + 100
    let before = bytes[place]
    bytes[place] ^= 0x21
    try bytes.write(to: URL(fileURLWithPath: work.file(path)))
    let result = try work.attempt("inspect", path)
    #expect(result.status == 1)
    #expect(
      result.output.contains(
        "damaged at byte \(place): it is \(hex(before ^ 0x21)); by the checksum it was \(hex(before))"))
    #expect(result.output.contains("\(hex(before ^ 0x21))<"))
    #expect(result.lines.last?.hasSuffix("1 part damaged: block 2") == true)
    #expect(try work.bytes(path) == bytes)
  }

  /// It said "at byte", and showed the beginning of the block, wherever in it the wrong bytes stood; then it took
  /// the longest run of equal bytes for them, which blocks have by themselves.
  @Test("of several wrong bytes it is said between which they stand, and none is pointed at")
  func severalWrongBytes() throws {
    let work = try open()
    let path = "shop/log/00000001.segment"
    let block = try #require(
      try work.stemma("inspect", path, "--block", "2", "--json").object().array("parts").first)
    let start = try #require(block.number("offset"))
    let end = start + (try #require(block.number("bytes"))) - 1
    let whole = try work.bytes(path)
    var zeroed = whole
    for index in start + 200..<start + 240 { zeroed[index] = 0 }
    var mixed = whole
    for index in start + 200..<start + 240 { mixed[index] ^= UInt8(index % 251) | 1 }
    for bytes in [zeroed, mixed] {
      try bytes.write(to: URL(fileURLWithPath: work.file(path)))
      let output = try work.attempt("inspect", path).output
      #expect(output.contains("damaged in bytes \(start)–\(end): the checksum"), "\(output)")
      #expect(!output.contains(" are all the same") && !output.contains("<"), "\(output)")
    }
  }

  @Test("what a checksum holds without, or with, is said only where one was compared")
  func missingAndSurplusBytes() throws {
    let work = try open()
    func output(_ path: String, _ change: (inout Data, Int) -> Void, block: Int) throws -> [String] {
      let part = try #require(
        try work.stemma("inspect", path, "--block", "\(block)", "--json").object().array("parts").first)
      var bytes = try work.bytes(path)
      change(&bytes, try #require(part.number("offset")))
      let name = "changed." + (path.split(separator: ".").last ?? "")
      try bytes.write(to: URL(fileURLWithPath: work.file(name)))
      let result = try work.attempt("inspect", name)
      #expect(result.status == 1)
      return result.lines.filter { $0.hasPrefix("  damaged ") || $0.hasPrefix("  missing") }
    }
    let segment = "shop/log/00000001.segment"
    let journal = "shop/log/00000002.journal"
    var place = 0
    let removed = try output(
      segment,
      {
        $0.remove(at: $1 + 700); place = $1 + 700
      }, block: 2)
    let told = "1 byte missing here; the checksum tells what stood there, and the events are read so"
    #expect(removed.count == 1 && removed[0].hasSuffix(told), "\(removed)")
    // Beside an equal byte it cannot be told which.
    #expect((-1...1).contains { removed[0].hasPrefix("  damaged at byte \(place + $0): ") }, "\(removed)")
    let two = try output(segment, { $0.removeSubrange(($1 + 700)..<($1 + 702)) }, block: 2)
    #expect(two.count == 1 && two[0].hasSuffix(": 2 bytes missing here"), "\(two)")
    let inserted = try output(segment, { $0.insert(7, at: $1 + 700) }, block: 2)
    #expect(
      inserted.count == 1
        && inserted[0].hasSuffix("; without them the checksum holds, and the events are read so"),
      "\(inserted)")
    // Nothing says of the last frame what its header was.
    let header = try output(journal, { $0.removeSubrange(($1 + 20)..<($1 + 25)) }, block: 1)
    #expect(header.count == 1 && header[0].hasSuffix(": 5 bytes missing here"), "\(header)")
    let gone = try output(journal, { $0.removeSubrange($1..<$1 + 32) }, block: 1)
    #expect(gone.count == 1 && gone[0].hasPrefix("  damaged at byte 64: 32 bytes missing here"), "\(gone)")
  }

  /// Its events were lost, unless a peer had them.
  @Test("of a block that lacks one byte `repair` puts the events back, and of a frame")
  func repairOfAMissingByte() throws {
    for (path, place) in [("shop/log/00000001.segment", 3_000), ("shop/log/00000002.journal", 110)] {
      let work = try open()
      // Of the last frame nothing tells how many bytes are missing.
      try work.stemma("-C", "shop", "create", "Team", "id=blue", "name=Blue")
      let export = try work.stemma("-C", "shop", "export").output
      var bytes = try work.bytes(path)
      bytes.remove(at: place)
      try bytes.write(to: URL(fileURLWithPath: work.file(path)))
      #expect(try work.attempt("-C", "shop", "verify").status == 1, "\(path)")
      try work.stemma("-C", "shop", "repair")
      try work.stemma("-C", "shop", "verify")
      #expect(try work.stemma("-C", "shop", "export").output == export, "\(path)")
    }
  }

  /// The footer was called damaged where only the trailer was, and was no footer where it was itself.
  @Test("of a footer and a trailer the one that is damaged is named, and the other one read")
  func damagedEnd() throws {
    let work = try open()
    let path = "shop/log/00000001.segment"
    let whole = try work.stemma("inspect", path, "--json").object().array("parts")
    let before = try work.bytes(path)
    func place(_ name: String) throws -> Int {
      try #require(whole.first { $0.text("part") == name }?.number("offset"))
    }
    for (name, offset, count) in [
      ("trailer", 0, 12), ("trailer", 8, 4), ("trailer", 24, 4), ("trailer", 16, 60), ("footer", 0, 12),
      ("footer", 2, 40),
    ] {
      var bytes = before
      let start = try place(name) + offset
      for index in start..<start + count { bytes[index] = 0x58 }
      try bytes.write(to: URL(fileURLWithPath: work.file(path)))
      let parts = try work.attempt("inspect", path, "--json").object().array("parts")
      let damaged = parts.filter { !$0.array("damage").isEmpty }.map { $0.text("part") ?? "" }
      #expect(damaged == [name], "\(name) \(offset): \(parts)")
      for key in ["part", "offset", "bytes"] {
        #expect(parts.map { "\($0[key] ?? "")" } == whole.map { "\($0[key] ?? "")" }, "\(name) \(offset)")
      }
    }
  }

  /// The footer has the checksums of the blocks: one wrong byte of it called a whole block damaged, and `repair` then
  /// left out its events.
  @Test("a wrong byte of the footer is damage of the footer alone, and `repair` makes a new one")
  func wrongByteOfFooter() throws {
    let work = try open()
    let path = "shop/log/00000001.segment"
    let before = try work.bytes(path)
    let footer = try #require(
      work.stemma("inspect", path, "--json").object().array("parts").first { $0.text("part") == "footer" })
    let (start, count) = (try #require(footer.number("offset")), try #require(footer.number("bytes")))
    let export = try work.stemma("-C", "shop", "export").output
    for offset in stride(from: start, to: start + count, by: max(1, count / 40)) {
      var bytes = before
      bytes[offset] ^= 0x21
      try bytes.write(to: URL(fileURLWithPath: work.file(path)))
      let parts = try work.attempt("inspect", path, "--json").object().array("parts")
      let damaged = parts.filter { !$0.array("damage").isEmpty }.map { $0.text("part") ?? "" }
      #expect(damaged == ["footer"], "\(offset): \(parts)")
    }
    try work.stemma("-C", "shop", "repair")
    try work.stemma("-C", "shop", "verify")
    #expect(try work.stemma("-C", "shop", "export").output == export)
  }

  /// It said that nothing was damaged.
  @Test("a segment that was cut where a block ends, or that stands twice in its file, is damaged")
  func cutOrDoubled() throws {
    let work = try open()
    let bytes = try work.bytes("shop/log/00000001.segment")
    let parts = try work.stemma("inspect", "shop/log/00000001.segment", "--json").object().array("parts")
    let footer = try #require(parts.first { $0.text("part") == "footer" }?.number("offset"))
    for (content, last, what) in [
      (bytes.prefix(footer), "trailer", "missing: the file has no end: it was cut"),
      (bytes + bytes, "other bytes", "stand behind the end of the segment, and begin like another one"),
    ] {
      try Data(content).write(to: URL(fileURLWithPath: work.file("changed")))
      let result = try work.attempt("inspect", "changed")
      #expect(result.status == 1 && result.output.contains(what), "\(result.output)")
      #expect(result.lines.last?.hasSuffix("1 part damaged: \(last)") == true, "\(result.output)")
      let isCut = last == "trailer"
      #expect(result.output.contains("; readable, without a checksum") == isCut)
      #expect(result.lines.last?.contains("can be read, without a checksum;") == isCut)
      let blocks = try work.attempt("inspect", "changed", "--json").object().array("parts").filter {
        $0.text("part") == "block"
      }
      #expect(blocks.allSatisfy { $0["checked"] as? Bool == !isCut })
    }
  }

  /// A node's whole disk could fill, and the file stayed there.
  @Test("of standard input nothing is left behind by a command that is killed")
  func killedWhileReading() throws {
    let work = try open()
    let script = """
      mkdir kept && mkfifo input
      TMPDIR=$PWD/kept stemma inspect - < input & exec 3> input
      head -c 3000000 /dev/zero >&3
      kill -9 $! && wait $!
      ls -A kept | wc -l
      """
    #expect(try ConsolePage.shell(script, in: work.path).lines.last?.contains("0") == true)
  }

  @Test("in JSON it is said among which bytes the wrong ones are, and how many are missing or too many")
  func countsInJSON() throws {
    let work = try open()
    let bytes = try work.bytes("shop/log/00000001.segment")
    for (content, name, count, last) in [
      (bytes.dropFirst(2), "missing", 2, 77), (Data([0, 0, 0]) + bytes, "tooMany", 3, 2),
    ] {
      try content.write(to: URL(fileURLWithPath: work.file("changed")))
      let part = try work.attempt("inspect", "changed", "--json").object().array("parts")[0]
      let flaw = try #require(part.array("damage").first)
      #expect(flaw.number(name) == count && flaw.number("from") == 0 && flaw.number("to") == last)
    }
  }

  @Test("of one block it is said that nothing of it is damaged, and nothing of the others")
  func oneBlock() throws {
    let work = try open()
    for (path, what) in [("00000001.segment", "block"), ("00000002.journal", "frame"), ("watermark", "slot")]
    {
      let last = try #require(try work.stemma("inspect", "shop/log/" + path, "--block", "1").lines.last)
      #expect(last.hasSuffix("nothing of this \(what) is damaged"), "\(last)")
      let other = try work.attempt("inspect", "shop/log/" + path, "--block", "99")
      #expect(other.status == 66 && other.errors.hasSuffix("has no \(what) 99\n"), "\(other.errors)")
    }
  }

  @Test("the frames of a journal are counted as frames, and a watermark has no events to count")
  func unitsOfTheSummary() throws {
    let work = try open()
    let last = { (path: String) in try work.stemma("inspect", path).lines.last }
    #expect(try last("shop/log/00000002.journal") == "1 event in 1 frame can be read; nothing is damaged")
    #expect(try last("shop/log/watermark") == "nothing is damaged")
  }

  @Test("where neither the footer nor the trailer tells where the footer begins, that is said")
  func damagedFooterAndTrailer() throws {
    let work = try open()
    let path = "shop/log/00000001.segment"
    let parts = try work.stemma("inspect", path, "--json").object().array("parts")
    var bytes = try work.bytes(path)
    for name in ["footer", "trailer"] {
      let start = try #require(parts.first { $0.text("part") == name }?.number("offset"))
      for index in start..<start + 40 { bytes[index] = 0x58 }
    }
    try bytes.write(to: URL(fileURLWithPath: work.file(path)))
    let result = try work.attempt("inspect", path)
    #expect(result.output.contains("it cannot be told where the footer begins"), "\(result.output)")
    #expect(result.lines.last?.hasSuffix("2 parts damaged: other bytes, trailer") == true, "\(result.output)")
  }

  private func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }
}
