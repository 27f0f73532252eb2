import Foundation
import Testing

/// A package outside of this repository, which depends on it by path, with the README's program in it.
///
/// It builds everything from the beginning, which takes minutes; so it runs where STEMMA_OUTSIDE names a directory for its
/// products, as `Tools/test` does. Not the one that the tests are built in: `swift test` keeps that locked.
@Suite("A package that depends on this one")
struct OutsidePackageTests {
  private static let products = ProcessInfo.processInfo.environment["STEMMA_OUTSIDE"]
  private static let root = URL(fileURLWithPath: #filePath).appendingPathComponent("../../..")
    .standardizedFileURL

  @Test(
    "the README's Swift builds there and prints what the README says",
    .enabled(if: products != nil, "STEMMA_OUTSIDE is not set"))
  func readme() throws {
    let products = try #require(Self.products)
    let package = FileManager.default.temporaryDirectory.appendingPathComponent("outside-\(UUID())")
    defer { do { try FileManager.default.removeItem(at: package) } catch {} }
    let sources = package.appendingPathComponent("Sources/teams")
    try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
    try program().write(to: sources.appendingPathComponent("main.swift"), atomically: true, encoding: .utf8)
    try """
    // swift-tools-version:6.2
    import PackageDescription

    let package = Package(
      name: "outside", platforms: [.macOS(.v15)],
      dependencies: [.package(name: "stemma", path: "\(Self.root.path)")],
      targets: [.executableTarget(name: "teams", dependencies: [.product(name: "Stemma", package: "stemma")])])
    """.write(to: package.appendingPathComponent("Package.swift"), atomically: true, encoding: .utf8)
    // The same versions as here, so that nothing is looked up.
    try FileManager.default.copyItem(
      at: Self.root.appendingPathComponent("Package.resolved"),
      to: package.appendingPathComponent("Package.resolved"))
    let options = [
      "--package-path", package.path, "--scratch-path", products, "--disable-automatic-resolution",
      "--disable-index-store", "-debug-info-format", "none",
    ]
    // How tests are compiled, as nobody has to wait for it here; without them it is built as by anybody.
    let flags = ProcessInfo.processInfo.environment["STEMMA_OUTSIDE_FLAGS"] ?? ""
    let whole = flags.split(separator: " ").map(String.init)
    let build = try run(["swift", "build", "--product", "teams"] + options + whole, in: package)
    try #require(build.status == 0, "\(build.output.suffix(2000))")
    let program = try run(["\(products)/debug/teams"], in: package)
    #expect(program.output == "Tim B.: Go Frontend!\n[nil]\n")
  }

  private func program() throws -> String {
    let page = try String(contentsOf: Self.root.appendingPathComponent("README.md"), encoding: .utf8)
    let start = try #require(page.range(of: "```swift\n"))
    let end = try #require(page[start.upperBound...].range(of: "```"))
    return String(page[start.upperBound..<end.lowerBound])
  }

  private func run(_ words: [String], in directory: URL) throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = words
    process.currentDirectoryURL = directory
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }
}
