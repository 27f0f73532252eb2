import Foundation
import Testing

/// Inspection of files from the command line.
@Suite("inspect")
struct InspectCommandTests {
  /// A node with one segment of several blocks, followed by a journal.
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
    #expect(whole.members == ["file", "format", "bytes", "parts", "corrupt"])
    #expect(whole["corrupt"] as? Bool == false)
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
    #expect(try cut.object()["corrupt"] as? Bool == true)
    #expect(try cut.object().array("parts").contains { $0.text("part") == "block" })

    // The path of a pipe is read like standard input.
    let pipe = try Tool.run(Tool.path, ["inspect", "/dev/stdin", "--json"], in: work.path, input: bytes)
    #expect(try pipe.object()["corrupt"] as? Bool == false)
    #expect(try pipe.object()["bytes"] as? Int == bytes.count)

    for name in ["shop/log/00000002.journal", "shop/log/watermark"] {
      #expect(try work.stemma("inspect", name, "--json").object()["corrupt"] as? Bool == false)
    }
    try work.write("empty", "")
    let empty = try work.attempt("inspect", "empty")
    #expect(empty.status == 65 && empty.errors.contains("empty is empty"))
    // Devices may be endless.
    for device in ["/dev/zero", "/dev/null"] {
      let refused = try work.attempt("inspect", device)
      #expect(refused.status == 65 && refused.errors == "stemma: \(device) is a device, and no file\n")
    }
    for name in ["nofile", "shop/log"] { #expect(try work.attempt("inspect", name).status == 66, "\(name)") }
    #expect(try work.attempt("inspect", path, "--block", "99").status == 66)
    #expect(try work.attempt("inspect", path, "--block", "0").status == 64)
  }

  @Test("a file of another kind is not called corrupt: it is said what it is, and what reads it")
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
        #expect(!other.errors.contains("corruption"))
      }
    }
    // Unrecognizable bytes may be a completely corrupt log file.
    try Data(repeating: 7, count: 100).write(to: URL(fileURLWithPath: work.file("anything")))
    let unknown = try work.attempt("inspect", "anything")
    #expect(unknown.status == 1 && unknown.output.contains("no known format"), "\(unknown)")
  }

  @Test("a journal names the last event of the file before it, to be pasted; in JSON as all positions there")
  func positions() throws {
    let work = try open()
    let path = "shop/log/00000002.journal"
    #expect(try work.stemma("inspect", path).lines.contains("  base @1201"))
    try work.stemma("-C", "shop", "show", "@1200")
    let header = try work.stemma("inspect", path, "--json").object().array("parts")[0]
    #expect(header.object("facts").text("base") == "1201")
  }

  @Test("a pipe that has a name is read as standard input is")
  func namedPipe() throws {
    let work = try open()
    let path = "shop/log/00000001.segment"
    let whole = try work.stemma("inspect", path).lines.dropFirst()
    let piped = try ConsolePage.shell("cat \(path) | stemma -C shop inspect /dev/stdin", in: work.path)
    #expect(piped.status == 0 && piped.lines.dropFirst() == whole, "\(piped.errors)")
    #expect(piped.errors.isEmpty)
    // A named pipe may never get a writer, so the tool prints that it waits.
    let named = try ConsolePage.shell(
      "mkfifo fifo && (cat \(path) > fifo & stemma -C shop inspect fifo)", in: work.path)
    #expect(named.status == 0 && named.lines.dropFirst() == whole, "\(named.errors)")
    #expect(named.errors == "fifo is a pipe: it is read until its last writer closes it\n")
  }

  @Test("a file that is cut before its header ends is called so")
  func cutBeginning() throws {
    let work = try open()
    let bytes = try work.bytes("shop/log/00000002.journal")
    try bytes.prefix(5).write(to: URL(fileURLWithPath: work.file("00000002.journal")))
    let result = try work.attempt("inspect", "00000002.journal")
    #expect(result.status == 1 && result.output.contains("it is cut short: "), "\(result.output)")
  }

  @Test("no number is made up for an unreadable file")
  func unreadFile() throws {
    let work = try open()
    try Data(work.bytes("shop/log/00000001.segment").prefix(10))
      .write(to: URL(fileURLWithPath: work.file("shop/log/00000001.segment")))
    let listed = try work.attempt("-C", "shop", "segments", "--json")
    let file = try #require(try listed.array().first)
    #expect(file["partitions"] is NSNull && file["blocks"] is NSNull && file.text("corruption") != nil)
    let line = try #require(
      try work.attempt("-C", "shop", "segments").lines.first { $0.contains("corrupt") })
    #expect(!line.split(separator: " ").dropFirst().contains("0"), "\(line)")
  }

  @Test("corruption is reported at the part that has it, the rest is shown, and the file is left as it is")
  func corruptParts() throws {
    let work = try open()
    let path = "shop/log/00000001.segment"
    let whole = try work.stemma("inspect", path, "--json").object().array("parts")
    let before = try work.bytes(path)
    for (name, number) in [("header", nil), ("block", 2), ("footer", nil)] as [(String, Int?)] {
      let part = try #require(whole.first { $0.text("part") == name && $0.number("number") == number })
      let start = try #require(part.number("offset"))
      for count in [1, 12] {
        var bytes = before
        for index in start + 20..<start + 20 + count { bytes[index] ^= 0x21 }
        try bytes.write(to: URL(fileURLWithPath: work.file(path)))
        let result = try work.attempt("inspect", path)
        #expect(
          result.status == 1 && result.output.contains("corrupt at byte \(start): the checksum"), "\(name)")
        let word = name + (number.map { " \($0)" } ?? "")
        #expect(result.lines.last?.hasSuffix("1 part corrupt: \(word)") == true, "\(result.output)")
        let parts = try work.attempt("inspect", path, "--json").object().array("parts")
        for key in ["part", "offset", "bytes"] {
          #expect(parts.map { "\($0[key] ?? "")" } == whole.map { "\($0[key] ?? "")" }, "\(name)")
        }
        let corrupt = try #require(parts.first { !$0.array("corruption").isEmpty }).array("corruption")
        #expect(corrupt.map(\.members) == [["offset", "what"]] && corrupt[0].number("offset") == start)
        let blocks = parts.filter { $0.text("part") == "block" && $0.array("corruption").isEmpty }
        #expect(blocks.allSatisfy { $0["checked"] as? Bool == (name != "footer") }, "\(name)")
        #expect(try work.bytes(path) == bytes)
      }
    }
  }

  @Test("the blocks of a segment with a corrupt trailer are shown without a checksum")
  func corruptTrailer() throws {
    let work = try open()
    let path = "shop/log/00000001.segment"
    let parts = try work.stemma("inspect", path, "--json").object().array("parts")
    let trailer = try #require(parts.last?.number("offset"))
    var bytes = try work.bytes(path)
    bytes[trailer + 20] ^= 0x21
    try bytes.write(to: URL(fileURLWithPath: work.file(path)))
    let result = try work.attempt("inspect", path)
    #expect(result.output.contains("corrupt at byte \(trailer): the checksum"), "\(result.output)")
    #expect(
      result.lines.last?.contains("1,200 events in \(parts.count - 4) blocks can be read, without") == true)
    #expect(result.lines.last?.hasSuffix("2 parts corrupt: other bytes, trailer") == true, "\(result.output)")
  }

  @Test("the frames of a journal with a corrupt header are read by the log of the node around it")
  func corruptJournalHeader() throws {
    let work = try open()
    let path = "shop/log/00000002.journal"
    var bytes = try work.bytes(path)
    for index in 18..<28 { bytes[index] ^= 0x21 }
    try bytes.write(to: URL(fileURLWithPath: work.file(path)))
    let parts = try work.attempt("inspect", path, "--json").object().array("parts")
    #expect(parts.map { $0.text("part") } == ["header", "frame"])
    #expect(
      parts.map { $0.array("corruption").isEmpty } == [false, true] && parts[1]["checked"] as? Bool == true)
  }

  @Test("a segment that was cut where a block ends, or that stands twice in its file, is corrupt")
  func cutOrDuplicate() throws {
    let work = try open()
    let bytes = try work.bytes("shop/log/00000001.segment")
    let parts = try work.stemma("inspect", "shop/log/00000001.segment", "--json").object().array("parts")
    let footer = try #require(parts.first { $0.text("part") == "footer" }?.number("offset"))
    for (content, last, isCut) in [
      (bytes.prefix(footer), "trailer", true), (bytes + bytes, "trailer", false),
    ] {
      try Data(content).write(to: URL(fileURLWithPath: work.file("changed")))
      let result = try work.attempt("inspect", "changed")
      #expect(
        result.status == 1 && result.lines.last?.hasSuffix(" corrupt: \(last)") == isCut, "\(result.output)")
      #expect(result.output.contains("missing: the file was cut") == isCut, "\(result.output)")
      #expect(result.output.contains("; readable, without a checksum"))
      let blocks = try work.attempt("inspect", "changed", "--json").object().array("parts").filter {
        $0.text("part") == "block"
      }
      #expect(blocks.count >= parts.count - 4 && blocks.allSatisfy { $0["checked"] as? Bool == false })
    }
  }

  /// A temporary file must not remain, since it could fill the disk.
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

  @Test("of one block it is said that nothing of it is corrupt, and nothing of the others")
  func oneBlock() throws {
    let work = try open()
    for (path, what) in [("00000001.segment", "block"), ("00000002.journal", "frame"), ("watermark", "slot")]
    {
      let last = try #require(try work.stemma("inspect", "shop/log/" + path, "--block", "1").lines.last)
      #expect(last.hasSuffix("nothing of this \(what) is corrupt"), "\(last)")
      let other = try work.attempt("inspect", "shop/log/" + path, "--block", "99")
      #expect(other.status == 66 && other.errors.hasSuffix("has no \(what) 99\n"), "\(other.errors)")
    }
  }

  @Test("the frames of a journal are counted as frames, and a watermark has no events to count")
  func unitsOfTheSummary() throws {
    let work = try open()
    let last = { (path: String) in try work.stemma("inspect", path).lines.last }
    #expect(try last("shop/log/00000002.journal") == "1 event in 1 frame can be read; nothing is corrupt")
    #expect(try last("shop/log/watermark") == "nothing is corrupt")
  }
}
