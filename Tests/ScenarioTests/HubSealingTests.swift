import Foundation
import Testing

/// Hubs whose host learns sizes and times only.
@Suite("Sealed hubs") struct HubSealingTests {
  /// Texts that the host must not see: partitions, keys, values and names of nodes.
  private static let secrets = ["SecretTenant", "SecretKey", "SecretTitle", "SecretNode", "SecretField"]

  private let work: Workplace
  private let url: String

  /// A sealed hub with the events of one node.
  init() throws {
    work = try Workplace()
    try work.write(
      "schema.graphql", Peers.schema.replacing("done: Boolean", with: "done: Boolean\n  SecretField: String"))
    url = "file://" + work.file("hub")
    let made = try work.stemma("hub", "init", url, "--key-file", "hub.key")
    #expect(made.errors.contains("hub.key"))
    try work.stemma("init", "a", "--schema", "schema.graphql", "--name", "SecretNode")
    try work.stemma("-C", "a", "remote", "add", "hub", url, "--key-file", "hub.key")
    for id in 1...3 {
      try work.stemma(
        "-C", "a", "upsert", "Task", "tenant=SecretTenant", "id=SecretKey\(id)", "title=SecretTitle\(id)",
        "SecretField=SecretTitle")
    }
    try work.stemma("-C", "a", "push")
  }

  /// The files of a hub.
  private func files(_ hub: String = "hub") throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: work.file(hub)).filter { name in
      var isDirectory: ObjCBool = false
      return FileManager.default.fileExists(atPath: work.file("\(hub)/\(name)"), isDirectory: &isDirectory)
        && !isDirectory.boolValue
    }.sorted()
  }

  private func clone(_ name: String, _ arguments: String...) throws -> Tool.Result {
    try Tool.run(Tool.path, ["clone", url, name, "--name", name] + arguments, in: work.path)
  }

  @Test("no partition, key, value or name is in a byte or file name of the folder")
  func hidesContent() throws {
    let files = try files()
    for folder in ["objects/", "logs/", "heads/", "peers/"] {
      #expect(files.contains { $0.hasPrefix(folder) }, "\(folder)")
    }
    let key = try String(contentsOfFile: work.file("hub.key"), encoding: .utf8)
    for name in files {
      let bytes = try work.bytes("hub/\(name)")
      for secret in Self.secrets + [key.trimmingCharacters(in: .whitespacesAndNewlines)] {
        #expect(bytes.range(of: Data(secret.utf8)) == nil && !name.contains(secret), "\(name): \(secret)")
      }
    }
    let result = try clone("b", "--key-file", "hub.key")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try work.stemma("-C", "a", "digest").output == work.stemma("-C", "b", "digest").output)
    // The same events in a hub that is not sealed are found by the same search.
    try work.stemma("hub", "init", "file://" + work.file("plain"))
    try work.stemma("-C", "a", "push", "file://" + work.file("plain"))
    let plain = try self.files("plain").map { try work.bytes("plain/\($0)") }.reduce(Data(), +)
    #expect(plain.range(of: Data("SecretTenant".utf8)) != nil)
  }

  @Test("a clone without the key, or with another one, is refused")
  func needsKey() throws {
    let without = try clone("b")
    #expect(without.status == 69 && without.errors.contains("--key-file"), "\(without.errors)")
    try work.write("other.key", String(repeating: "0", count: 64) + "\n")
    let other = try clone("b", "--key-file", "other.key")
    #expect([65, 69, 74].contains(other.status), "\(other.status)")
    #expect(other.errors.contains("sealed with another key"), "\(other.errors)")
    try work.write("broken.key", "abc\n")
    let broken = try clone("b", "--key-file", "broken.key")
    #expect(broken.status == 65 && broken.errors.contains("64 hexadecimal digits"), "\(broken.errors)")
    let absent = try clone("b", "--key-file", "absent.key")
    #expect(absent.status != 0 && absent.errors.contains("absent.key"), "\(absent.errors)")
    #expect(!FileManager.default.fileExists(atPath: work.file("b")))
  }

  /// An object and a manifest of a sealed hub and of another one, each with one changed bit.
  @Test(
    "a flipped bit is found and named, and no event of the object is adopted",
    arguments: ["objects/", "logs/"], [true, false])
  func flippedBits(folder: String, isSealed: Bool) throws {
    let hub = isSealed ? "hub" : "plain"
    let (url, key) = ("file://" + work.file(hub), isSealed ? ["--key-file", "hub.key"] : [])
    if !isSealed {
      try work.stemma("hub", "init", url)
      try work.stemma("-C", "a", "remote", "remove", "hub")
      try work.stemma("-C", "a", "remote", "add", "hub", url)
      try work.stemma("-C", "a", "push")
    }
    func clone(_ name: String) throws -> Tool.Result {
      try Tool.run(Tool.path, ["clone", url, name, "--name", name] + key, in: work.path)
    }
    let before = try clone("b")
    #expect(before.status == 0, "\(before.errors)")
    let known = Set(try files(hub))
    try work.stemma("-C", "a", "upsert", "Task", "tenant=SecretTenant", "id=SecretKey4", "title=x")
    try work.stemma("-C", "a", "push")
    let name = try #require(try files(hub).first { $0.hasPrefix(folder) && !known.contains($0) })
    let bytes = try work.bytes("\(hub)/\(name)")
    let digest = try work.stemma("-C", "b", "digest").output
    // Readers need no header or trailer of an object: its manifest has the trailer.
    let ends = isSealed || folder == "logs/" ? [0, bytes.count - 1] : []
    for place in ends + [bytes.count / 4, bytes.count / 2] {
      var changed = bytes
      changed[place] ^= 4
      try changed.write(to: URL(fileURLWithPath: work.file("\(hub)/\(name)")))
      let pulled = try work.attempt("-C", "b", "pull")
      #expect(pulled.status != 0, "byte \(place): \(pulled.output)")
      #expect(pulled.errors.contains(name), "byte \(place): \(pulled.errors)")
      #expect(try work.stemma("-C", "b", "digest").output == digest)
      let cloned = try clone("c")
      #expect(cloned.status != 0 && cloned.errors.contains(name), "byte \(place): \(cloned.errors)")
      try? FileManager.default.removeItem(atPath: work.file("c"))
    }
    try bytes.write(to: URL(fileURLWithPath: work.file("\(hub)/\(name)")))
    try work.stemma("-C", "b", "pull")
    #expect(try work.stemma("-C", "a", "digest").output == work.stemma("-C", "b", "digest").output)
  }
}
