import Foundation
import Testing

/// The README's program, in a package outside of this repository that depends on it by path: `build_outside` of `Tools/builds`
/// makes it, and STEMMA_OUTSIDE names what came of it. Not made here: `swift test` keeps the place locked in which tests are
/// built, and elsewhere all would be built from the beginning, which takes minutes.
@Suite("A package that depends on this one")
struct OutsidePackageTests {
  private static let program = ProcessInfo.processInfo.environment["STEMMA_OUTSIDE"]

  @Test(
    "the README's Swift prints there what the README says",
    .enabled(if: program != nil, "STEMMA_OUTSIDE is not set"))
  func readme() throws {
    // It makes a store where it is run.
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
}
