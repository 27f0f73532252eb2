import Foundation
import Testing

/// The README's program in a separate package that depends on this repository by path.
/// `build_outside` of `Tools/builds` builds it, and STEMMA_OUTSIDE names the executable. The test
/// does not build it: `swift test` locks the build directory, and a build elsewhere would take
/// minutes.
@Suite("A package that depends on this one")
struct OutsidePackageTests {
  private static let program = ProcessInfo.processInfo.environment["STEMMA_OUTSIDE"]

  @Test(
    "the README's Swift prints there what the README says",
    .enabled(if: program != nil, "STEMMA_OUTSIDE is not set"))
  func readme() throws {
    // It creates a store in its working directory.
    let place = FileManager.default.temporaryDirectory.appendingPathComponent("outside-\(UUID())")
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    defer { do { try FileManager.default.removeItem(at: place) } catch {} }
    let process = Process()
    process.currentDirectoryURL = place
    process.executableURL = URL(fileURLWithPath: try #require(Self.program))
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    #expect(text == "Tim B.: Go Frontend!\n[nil]\n")
  }

  @Test(
    "the library links no network stack", .enabled(if: program != nil, "STEMMA_OUTSIDE is not set"))
  func links() throws {
    let list = try #require(Self.program) + ".product/Objects.LinkFileList"
    let objects = try String(contentsOfFile: list, encoding: .utf8)
    let modules = Set(objects.matches(of: #/([^\/\n]+)\.build\//#).map { String($0.1) })
    #expect(modules.isSuperset(of: ["teams", "Stemma", "StemmaNode", "GRDB"]), "\(modules.sorted())")
    let network = modules.filter { name in
      ["NIO", "CNIO", "HTTP", "AsyncHTTP", "Hummingbird", "StemmaHTTP", "StemmaHub"]
        .contains { name.hasPrefix($0) }
    }
    #expect(network.isEmpty, "\(network.sorted())")
  }
}
