import Testing

/// The folders of a module are its rooms. These conventions keep them apart.
@Suite("Rooms")
struct RoomTests {
  // MARK: Folders

  /// Uses of one folder's types in another that would close a cycle, by module. Remove a pair when
  /// its use is gone; add none.
  static let permittedUses: [String: [(user: String, used: String)]] = [
    "Stemma": [
      ("Models", "Statements"), ("Models", "Store"), ("Models", "Values"), ("Statements", "Relationships"),
      ("Statements", "Store"), ("Store", "Relationships"), ("Values", "Store"),
    ],
    "StemmaReplication": [(".", "Scopes")],
  ]

  /// The place where a folder uses a type of another folder.
  private struct Use {
    var file: String
    var type: String
  }

  /// The uses between the folders of one module: by user, then by the folder that declares the type.
  /// Files outside of the folders form the folder `.`. Types that several folders declare are ignored.
  private static func uses(between files: [HabitTests.SourceFile]) -> [String: [String: Use]] {
    var homes: [Substring: Set<String>] = [:]
    var exported: Set<Substring> = []
    let sources = files.map { (file: $0, folder: folder(of: $0), code: code(of: $0.lines)) }
    for (_, folder, code) in sources {
      for (name, isNested) in declarations(in: code) {
        homes[name, default: []].insert(folder)
        if !isNested { exported.insert(name) }
      }
    }
    var uses: [String: [String: Use]] = [:]
    for (file, folder, code) in sources {
      for word in code.flatMap(words) where exported.contains(word) {
        guard let home = homes[word], home.count == 1, let used = home.first, used != folder else { continue }
        uses[folder, default: [:]][used] = Use(file: file.path, type: String(word))
      }
    }
    return uses
  }

  @Test("the folders of a module form no cycle")
  func foldersFormNoCycle() throws {
    let modules = Dictionary(grouping: try HabitTests.files(in: "Sources"), by: \.module)
    for (module, files) in modules {
      var uses = Self.uses(between: files)
      let permitted = Self.permittedUses[module] ?? []
      for (user, used) in permitted {
        let closes = Self.path(from: used, to: user, uses) != nil
        #expect(uses[user]?[used] != nil && closes, "\(module): \(user) -> \(used) needs no permission")
      }
      for (user, used) in permitted { uses[user]?[used] = nil }
      for (user, others) in uses.sorted(by: { $0.key < $1.key }) {
        for (used, use) in others.sorted(by: { $0.key < $1.key }) {
          guard let back = Self.path(from: used, to: user, uses) else { continue }
          let way = ([user, used] + back).joined(separator: " -> ")
          Issue.record("\(module): \(way); \(use.file) uses \(use.type) of \(used)")
        }
      }
    }
  }

  /// The folders on the way from one folder to another, without the first; nil if there is no way.
  private static func path(from: String, to: String, _ uses: [String: [String: Use]]) -> [String]? {
    var seen: Set = [from]
    var open: [(folder: String, way: [String])] = [(from, [])]
    while !open.isEmpty {
      let (folder, way) = open.removeFirst()
      if folder == to { return way }
      for next in (uses[folder] ?? [:]).keys.sorted() where seen.insert(next).inserted {
        open.append((next, way + [next]))
      }
    }
    return nil
  }

  private static func folder(of file: HabitTests.SourceFile) -> String {
    let parts = file.path.split(separator: "/")
    return parts.count > 3 ? String(parts[2]) : "."
  }

  // MARK: Types

  /// The files that may declare or extend one type.
  static let filesOfType = 6

  /// Types with more files, and how many they have. Lower a figure when files are joined; add none.
  static let spreadTypes = [
    "Log": 19, "Node": 18, "RecordState": 12, "Schema": 9, "SchemaReader": 7, "Store": 12,
    "TableDeclaration": 12,
    "TableLayout": 7, "TablesReader": 10,
  ]

  @Test("no type is declared and extended in more than six files")
  func typesAreTogether() throws {
    var declared: Set<Substring> = []
    var files: [Substring: Set<String>] = [:]
    for file in try HabitTests.files(in: "Sources") {
      for line in Self.code(of: file.lines) where line.first?.isWhitespace == false {
        let words = Self.words(line)
        guard let place = words.firstIndex(where: { Self.keywords.contains($0) || $0 == "extension" }),
          place + 1 < words.count, !words.contains("import")
        else { continue }
        // `extension A.B` extends `B`.
        let isMember = words.count > place + 2 && line.contains("\(words[place + 1]).\(words[place + 2])")
        if isMember { continue }
        if words[place] != "extension" { declared.insert(words[place + 1]) }
        files[words[place + 1], default: []].insert(file.path)
      }
    }
    for (type, found) in files where declared.contains(type) {
      let limit = Self.spreadTypes[String(type)]
      #expect(found.count <= limit ?? Self.filesOfType, "\(type) is in \(found.count) files")
      if let limit {
        #expect(found.count == limit && limit > Self.filesOfType, "\(type) is in \(found.count) files only")
      }
    }
  }

  // MARK: Words

  private static let keywords: Set<Substring> = ["struct", "class", "enum", "protocol", "actor", "typealias"]

  /// The lines without the contents of strings and without comments.
  static func code(of lines: [Substring]) -> [Substring] {
    var isInText = false
    return lines.map { line in
      if line.contains("\"\"\"") {
        isInText.toggle()
        return ""
      }
      return isInText ? "" : code(of: line)
    }
  }

  private static func code(of line: Substring) -> Substring {
    guard line.utf8.contains(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "/") }) else {
      return line
    }
    var kept: [UInt8] = []
    var (isQuoted, isEscaped) = (false, false)
    for byte in line.utf8 {
      if isQuoted {
        if byte == UInt8(ascii: "\""), !isEscaped { isQuoted = false }
        isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        continue
      }
      if byte == UInt8(ascii: "/"), kept.last == byte {
        kept.removeLast()
        break
      }
      if byte == UInt8(ascii: "\"") { isQuoted = true }
      kept.append(byte)
    }
    return Substring(String(decoding: kept, as: UTF8.self))
  }

  static func words(_ line: Substring) -> [Substring] {
    line.split { !($0.isLetter || $0.isNumber || $0 == "_") }
  }

  /// The names of declared types.
  private static func declarations(in code: [Substring]) -> [(name: Substring, isNested: Bool)] {
    code.compactMap { line in
      let words = words(line)
      guard let place = words.firstIndex(where: keywords.contains), place + 1 < words.count,
        !words.contains("import"), !["func", "var", "let"].contains(words[place + 1])
      else { return nil }
      return (words[place + 1], line.first?.isWhitespace == true)
    }
  }

  @Test("comments and strings hold no code")
  func codeIsFound() {
    let lines: [Substring] = [
      "let a = \"Log \\\" Log\" + b // Log", "/// Log", "x(\"\"\"", "Log", "\"\"\")", "struct C { // \"",
    ]
    #expect(Self.code(of: lines).flatMap(Self.words) == ["let", "a", "b", "struct", "C"])
  }
}
