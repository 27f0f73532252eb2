import Foundation
import Testing

/// How pages and comments are written: short sentences whose subject is a noun, in lines that fit.
@Suite("Prose")
struct ProseTests {
  /// Words in a sentence.
  static let longest = 30
  /// Characters in a line of a page or comment, except tables, code and links.
  static let widest = 100
  /// Words that begin a sentence without naming its subject.
  static let openers: Set<Substring> = [
    "Who", "Whoever", "Whom", "What", "Whatever", "Nobody", "Somebody", "Whose", "Such", "Nor", "Neither",
  ]

  /// A paragraph, and the number of its first line.
  struct Paragraph {
    var line: Int
    var text: String
  }

  static func pages() throws -> [URL] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: HabitTests.root.path)
    return names.filter { name in
      name.hasSuffix(".md") && !name.hasPrefix(".build") && !name.hasPrefix(".git/")
        && !name.hasPrefix("Tests/")
    }.map { HabitTests.root.appendingPathComponent($0) }
  }

  /// Text outside of code blocks and tables.
  static func paragraphs(ofPage lines: [Substring]) -> [Paragraph] {
    var isCode = false
    return paragraphs(
      lines.map { line in
        let body = line.drop { $0 == " " }
        if body.hasPrefix("```") {
          isCode.toggle()
          return nil
        }
        return isCode || ["|", "$ ", "<", "#"].contains(where: body.hasPrefix) || line.hasPrefix("    ")
          ? nil : body
      })
  }

  /// Text of comments, without indented examples.
  static func paragraphs(ofSource lines: [Substring]) -> [Paragraph] {
    paragraphs(
      lines.map { line in
        let body = line.drop { $0 == " " }
        guard body.hasPrefix("//") else { return nil }
        let text = body.drop { $0 == "/" }
        return text.hasPrefix("     ") ? nil : text.drop { $0 == " " }
      })
  }

  /// Joins lines. A missing or empty line, or a new item of a list, ends a paragraph.
  private static func paragraphs(_ lines: [Substring?]) -> [Paragraph] {
    var found: [Paragraph] = []
    var isOpen = false
    for (index, line) in lines.enumerated() {
      guard let line, !line.isEmpty else {
        isOpen = false
        continue
      }
      let beginsItem = line.hasPrefix("- ") || line.hasPrefix("* ") || line.prefixMatch(of: #/\d+\. /#) != nil
      if isOpen, !beginsItem {
        found[found.count - 1].text += " " + line
      } else {
        found.append(Paragraph(line: index + 1, text: String(line)))
      }
      isOpen = true
    }
    return found
  }

  static func sentences(_ text: String) -> [String] {
    // Code and the targets of links are one word.
    let plain = text.replacing(#/`[^`]*`/#, with: "code").replacing(#/\]\([^)]*\)/#, with: "]")
    var found: [String] = []
    var words: [Substring] = []
    for word in plain.split(separator: " ") {
      if let last = words.last, let end = last.last, ".!?:;".contains(end), let first = word.first,
        first.isUppercase || "\"(“".contains(first)
      {
        found.append(words.joined(separator: " "))
        words = []
      }
      words.append(word)
    }
    if !words.isEmpty { found.append(words.joined(separator: " ")) }
    return found.map { $0.trimmingCharacters(in: .init(charactersIn: "-* >")) }
  }

  @Test("code is one word, and a sentence ends where the next one begins")
  func sentencesAreSeparated() {
    #expect(
      Self.sentences("One `a b. C d` two. Three: four; Five.") == ["One code two.", "Three: four;", "Five."])
    let lines: [Substring] = ["# Title", "One", "two.", "- item", "", "```", "code", "```", "| a | b |"]
    #expect(Self.paragraphs(ofPage: lines).map(\.text) == ["One two.", "- item"])
    #expect(
      Self.paragraphs(ofSource: ["  /// One", "  /// two.", "let a = 1", "//     example"]).map(\.text) == [
        "One two."
      ])
  }

  @Test("sentences of pages and comments are short, and begin with their subject")
  func sentencesAreClear() throws {
    var texts = try Self.pages().map { page in
      (page.path, Self.paragraphs(ofPage: try Self.lines(page)))
    }
    for folder in ["Sources", "Tools", "Tests"] {
      texts += try HabitTests.files(in: folder).map { ($0.path, Self.paragraphs(ofSource: $0.lines)) }
    }
    #expect(texts.count > 300)
    for (path, paragraphs) in texts {
      for paragraph in paragraphs {
        for sentence in Self.sentences(paragraph.text) {
          let words = sentence.split(separator: " ")
          #expect(words.count <= Self.longest, "\(path):\(paragraph.line): \(sentence)")
          if let first = words.first {
            #expect(!Self.openers.contains(first), "\(path):\(paragraph.line): \(sentence)")
          }
        }
      }
    }
  }

  @Test("lines of pages and comments fit into a window")
  func linesFit() throws {
    for page in try Self.pages() {
      var isCode = false
      for (index, line) in try Self.lines(page).enumerated() {
        if line.hasPrefix("```") { isCode.toggle() }
        if isCode || line.hasPrefix("|") || line.contains("](") { continue }
        #expect(line.count <= Self.widest, "\(page.path):\(index + 1)")
      }
    }
    for file in try HabitTests.files(in: "Sources") + HabitTests.files(in: "Tools") {
      for (index, line) in file.lines.enumerated() {
        let comment = line.drop { $0 == " " }
        // Indented text is an example or a table.
        let isIndented = comment.drop { $0 == "/" }.hasPrefix("     ")
        if !comment.hasPrefix("//") || isIndented { continue }
        #expect(line.count <= Self.widest, "\(file.path):\(index + 1)")
      }
    }
  }

  private static func lines(_ page: URL) throws -> [Substring] {
    try String(contentsOf: page, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
  }
}
