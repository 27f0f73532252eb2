import Foundation
import Testing

/// Conventions of this code base that a machine can check.
@Suite("Habits")
struct HabitTests {
  /// The modules. Each may import only those before it.
  static let layers = [
    "CZlib", "CStemma", "StemmaSchema", "StemmaEvents", "StemmaMerge", "StemmaLog", "StemmaTables",
    "StemmaReplication", "StemmaNode", "StemmaImport", "StemmaHistory", "StemmaSync", "StemmaHTTP",
    "StemmaHub",
    "StemmaSimulation", "StemmaMacros",
    "Stemma",
  ]

  /// Pairs that are neighbors in the order above but must not depend on each other.
  static let strangers = [
    ("StemmaLog", "StemmaMerge"), ("StemmaReplication", "StemmaTables"), ("StemmaLog", "StemmaSchema"),
    ("StemmaHistory", "StemmaImport"), ("Stemma", "StemmaImport"),
  ]

  static let root: URL = {
    var directory = URL(fileURLWithPath: #filePath)
    while directory.path != "/",
      !FileManager.default.fileExists(atPath: directory.appendingPathComponent("Package.swift").path)
    {
      directory.deleteLastPathComponent()
    }
    return directory
  }()

  struct SourceFile {
    var path: String
    var module: String
    var lines: [Substring]
  }

  static func files(in folder: String) throws -> [SourceFile] {
    let base = root.appendingPathComponent(folder)
    let paths = try #require(FileManager.default.enumerator(atPath: base.path))
    return try paths.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.sorted().map { path in
      let text = try String(contentsOf: base.appendingPathComponent(path), encoding: .utf8)
      return SourceFile(
        path: "\(folder)/\(path)", module: String(path.prefix { $0 != "/" }),
        lines: text.split(separator: "\n", omittingEmptySubsequences: false))
    }
  }

  /// The imported modules, whatever precedes the keyword.
  static func imports(of lines: [Substring]) -> [String] {
    // Created once, because its creation takes longer than one match.
    let importing = #/^\s*(@\w+(\(\w+\))?\s+|(package|public|internal|fileprivate|private) )*import /#
    return lines.filter { $0.contains(importing) }.map { String($0.split(separator: " ").last ?? "") }
  }

  @Test("an import is seen behind attributes, an access level, and white space")
  func importsAreSeen() {
    let lines: [Substring] = [
      "import NIOCore", "public import NIOCore", "@preconcurrency import NIOCore", "  import NIOCore",
      "@_spi(Loops) @preconcurrency package import NIOCore", "fileprivate import class NIOCore",
    ]
    for line in lines { #expect(Self.imports(of: [line]) == ["NIOCore"], "\(line)") }
    #expect(Self.imports(of: ["// import NIOCore"]) == [])
  }

  @Test("no module imports one that stands above it")
  func importsPointDownwards() throws {
    for file in try Self.files(in: "Sources") {
      guard let own = Self.layers.firstIndex(of: file.module) else {
        Issue.record("\(file.path): the module is not in the list of layers")
        continue
      }
      for imported in Self.imports(of: file.lines) {
        if let layer = Self.layers.firstIndex(of: imported) {
          #expect(layer < own, "\(file.path) imports \(imported)")
        }
        #expect(
          !Self.strangers.contains { $0 == (file.module, imported) }, "\(file.path) imports \(imported)")
      }
    }
  }

  /// A baseline that shares StemmaSchema would repeat its mistakes, and the compared rows would
  /// agree.
  @Test("no baseline of the benchmarks is made of what it is compared with")
  func baselinesAreBare() throws {
    let files = try Self.files(in: "Tools/benchmark/Bare") + Self.files(in: "Tools/measuring")
    #expect(files.count > 8)
    for file in files {
      for imported in Self.imports(of: file.lines) {
        #expect(!Self.layers.contains(imported) || imported == "CZlib", "\(file.path) imports \(imported)")
      }
    }
  }

  @Test("no target depends on one that stands above it")
  func dependenciesPointDownwards() throws {
    let manifest = try String(contentsOf: Self.root.appendingPathComponent("Package.swift"), encoding: .utf8)
    let targets = manifest.matches(of: /module\(\s*"(\w+)"(?:,\s*\[([^\]]*)\])?/)
    #expect(targets.count > 8)
    for target in targets {
      let name = String(target.1)
      let own = try #require(Self.layers.firstIndex(of: name), "\(name) is not in the list of layers")
      for dependency in (target.2 ?? "").matches(of: /"(\w+)"/) {
        let other = String(dependency.1)
        let layer = try #require(Self.layers.firstIndex(of: other), "\(other)")
        #expect(layer < own, "\(name) depends on \(other)")
        #expect(!Self.strangers.contains { $0 == (name, other) }, "\(name) depends on \(other)")
      }
    }
  }

  @Test("the core has no hidden inputs: no clock, no randomness, no files of its own")
  func coreHasNoHiddenInputs() throws {
    let core = ["StemmaSchema", "StemmaEvents", "StemmaMerge", "StemmaLog", "StemmaReplication"]
    let hidden = [
      "Date()", "UUID()", ".random(", "SystemRandomNumberGenerator", "FileManager", "ProcessInfo",
    ]
    // The real clock and the real randomness are in the file of their ports.
    let real = "Sources/StemmaEvents/Clock.swift"
    for file in try Self.files(in: "Sources") where core.contains(file.module) && file.path != real {
      for (index, line) in file.lines.enumerated() where !line.trimmed.hasPrefix("//") {
        for input in hidden where line.contains(input) {
          Issue.record("\(file.path):\(index + 1) uses \(input)")
        }
      }
    }
  }

  @Test("no module names a command of the tool: each interface spells the next step itself")
  func modulesNameNoCommand() throws {
    let command = #/"[^"]*\bstemma [a-z]/#
    for file in try Self.files(in: "Sources") {
      for (index, line) in file.lines.enumerated() where !line.trimmed.hasPrefix("//") {
        if line.contains(command) { Issue.record("\(file.path):\(index + 1) names a command") }
      }
    }
  }

  @Test("sources have no forced results, and no file is too long to have one subject")
  func sourcesAreCalm() throws {
    let forcing = #/\b(try[!?]|as!|fatalError\()/#
    for file in try Self.files(in: "Sources") + Self.files(in: "Tools") {
      #expect(file.lines.count <= 700, "\(file.path) has \(file.lines.count) lines")
      for (index, line) in file.lines.enumerated() where !line.trimmed.hasPrefix("//") {
        if line.contains(forcing) {
          Issue.record("\(file.path):\(index + 1) forces a result")
        }
        for word in ["TODO", "FIXME"] where line.contains(word) {
          Issue.record("\(file.path):\(index + 1) has \(word)")
        }
        if line.contains("@unchecked Sendable") {
          let before = file.lines[max(0, index - 6)...index].joined(separator: "\n")
          #expect(
            before.contains("///") || before.contains("// "), "\(file.path):\(index + 1) gives no reason")
        }
      }
    }
  }

  @Test("the top level holds only what belongs there")
  func topLevelIsTidy() throws {
    let allowed: Set = [
      "Package.swift", "Sources", "Tests", "Tools", "README.md", "LICENSE", "docs", "CHANGELOG.md",
      "Package.resolved",
    ]
    for name in try FileManager.default.contentsOfDirectory(atPath: Self.root.path) {
      #expect(allowed.contains(name) || name.hasPrefix("."), "\(name)")
    }
  }

  @Test("scripts run in bash 3.2, where an empty array counts as unset")
  func scriptsRunInOldShells() throws {
    for name in [
      "bench", "builds", "demo", "documentation", "install", "install-stemma", "package", "test",
    ] {
      let script = try String(contentsOf: Self.root.appendingPathComponent("Tools/" + name), encoding: .utf8)
      for array in script.matches(of: #/(?m)^ *(\w+)=\(\)/#).map(\.1) {
        let careful = script.replacing("${\(array)[@]+\"${\(array)[@]}\"}", with: "")
        // Guarded by a check that the array is not empty.
        let guarded = script.contains("if [ ${#\(array)[@]} -gt 0 ]")
        #expect(guarded || !careful.contains("\"${\(array)[@]}\""), "\(name): \(array)")
      }
    }
  }

  /// The package description from the manifest, with additional variables.
  private func description(with variables: [String: String]) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    // In a separate directory, because the test run may lock the build directory.
    let place = FileManager.default.temporaryDirectory.appendingPathComponent("manifest-\(UUID())")
    defer { do { try FileManager.default.removeItem(at: place) } catch {} }
    process.arguments = ["swift", "package", "--scratch-path", place.path, "dump-package"]
    process.currentDirectoryURL = Self.root
    let others = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("STEMMA_") }
    process.environment = others.merging(variables) { $1 }
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    return text
  }

  @Test("the package has no flags that prevent a dependency on it, except for its own tests")
  func hasNoUnsafeFlags() throws {
    #expect(try !description(with: [:]).contains("unsafeFlags"))
    #expect(try description(with: ["STEMMA_OPTIMIZED": "1"]).contains("unsafeFlags"))
  }

  @Test("the tool depends on no macro")
  func toolIsLean() throws {
    let manifest = try String(contentsOf: Self.root.appendingPathComponent("Package.swift"), encoding: .utf8)
    let start = try #require(manifest.range(of: "name: \"StemmaTool\""))
    let target = manifest[start.lowerBound...].prefix(300)
    #expect(!target.contains("StemmaMacros"))
    #expect(!target.contains("\"Stemma\""))
  }

  @Test("what an app links that imports the library is on this list, and no network stack is")
  func libraryIsLean() throws {
    let manifest = try String(contentsOf: Self.root.appendingPathComponent("Package.swift"), encoding: .utf8)
    var needed: [String: [String]] = [:]
    for target in manifest.matches(of: /module\(\s*"(\w+)"(?:,\s*\[([^\]]*)\])?/) {
      needed[String(target.1)] = (target.2 ?? "").split(separator: ",").map {
        $0.trimmingCharacters(in: .init(charactersIn: " \n\""))
      }
    }
    var linked: Set<String> = []
    var open = ["Stemma"]
    while let name = open.popLast() {
      if linked.insert(name).inserted { open += needed[name] ?? [] }
    }
    #expect(linked.subtracting(Self.layers) == ["grdb", "sqlite", "crypto", "lifecycle"])
    #expect(!linked.contains("StemmaSimulation"))
    for file in try Self.files(in: "Sources") where linked.contains(file.module) {
      for imported in Self.imports(of: file.lines) {
        for word in ["Network", "NIO", "HTTP"] where imported.contains(word) {
          Issue.record("\(file.path) imports \(imported)")
        }
      }
    }
  }

  @Test("the table of faults names tests that are there")
  func faultsHaveTests() throws {
    let page = try String(contentsOf: Self.root.appendingPathComponent("docs/TESTING.md"), encoding: .utf8)
    let tests = try Self.files(in: "Tests").map { $0.lines.joined(separator: "\n") }.joined(separator: "\n")
    var names = 0
    for row in page.split(separator: "\n") where row.hasPrefix("| ") {
      let cells = row.split(separator: "|")
      for match in cells[1].matches(of: #/`(\w+)`/#) {
        names += 1
        #expect(tests.contains("func \(match.1)("), "\(match.1)")
      }
    }
    #expect(names > 30)
  }

  @Test("each guarantee names tests that are there")
  func guaranteesHaveTests() throws {
    let page = try String(
      contentsOf: Self.root.appendingPathComponent("docs/GUARANTEES.md"), encoding: .utf8)
    let tests = try Self.files(in: "Tests").map { $0.lines.joined(separator: "\n") }.joined(separator: "\n")
    var names = 0
    for promise in page.components(separatedBy: "\n\n") where promise.hasPrefix("**G") {
      let list = try #require(promise.components(separatedBy: "\nTests: ").dropFirst().first, "\(promise)")
      for match in list.matches(of: #/`(\w+)`/#) {
        names += 1
        #expect(tests.contains("func \(match.1)("), "\(match.1)")
      }
    }
    #expect(names > 30)
  }

  @Test("the architecture page names every module")
  func architectureIsComplete() throws {
    let page = try String(
      contentsOf: Self.root.appendingPathComponent("docs/ARCHITECTURE.md"), encoding: .utf8)
    for module in Set(try Self.files(in: "Sources").map(\.module)) {
      #expect(page.contains(module), "\(module)")
    }
  }
}

extension Substring {
  fileprivate var trimmed: Substring { drop { $0 == " " } }
}
