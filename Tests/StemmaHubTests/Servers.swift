import Foundation
import StemmaReplication
import Testing

@testable import StemmaHub

/// The programs of `Tools/peers`. Without STEMMA_PEERS, tests that need them are skipped.
enum Peers {
  static let folder = ProcessInfo.processInfo.environment["STEMMA_PEERS"].flatMap { $0.isEmpty ? nil : $0 }

  static let reason: Comment = "needs STEMMA_PEERS, the folder that Tools/peers prints"

  static var areThere: Bool {
    if folder == nil { print("skipped: STEMMA_PEERS does not name the folder that Tools/peers prints") }
    return folder != nil
  }

  static func program(_ name: String) throws -> String { try #require(folder) + "/bin/" + name }

  /// The first program of this name in the path, or in the folders of servers.
  static func installed(_ name: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
    return (path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"])
      .map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}

/// A folder that is removed with the object.
final class Scratch: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "/stemma-hub-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { path + "/" + name }

  func folder(_ name: String) throws -> String {
    try FileManager.default.createDirectory(atPath: file(name), withIntermediateDirectories: true)
    return file(name)
  }

  func write(_ name: String, _ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: file(name)))
  }
}

/// A server that is killed at the end of this object, or of this process.
final class ServerProcess: @unchecked Sendable {
  // Unchecked, because Process is not Sendable. Tests of one server do not run in parallel.
  private let process = Process()
  private let input = Pipe()
  private let log: String
  /// The first line of the output, if it was awaited.
  private(set) var firstLine = ""

  /// A shell kills the server when its input ends, which it does even if this process crashes.
  private static let guarding = #""$@" </dev/null & server=$!; read -r line; kill -9 $server"#

  init(_ program: String, _ arguments: [String], in scratch: Scratch, readsLine: Bool = false) throws {
    log = scratch.file("log-\(UUID().uuidString)")
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", Self.guarding, "server", program] + arguments
    process.currentDirectoryURL = URL(fileURLWithPath: scratch.path)
    var variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("AWS_") }
    variables["HOME"] = scratch.path
    variables["TMPDIR"] = scratch.path
    process.environment = variables
    process.standardInput = input
    try Data().write(to: URL(fileURLWithPath: log))
    let errors = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
    process.standardError = errors
    let output = Pipe()
    process.standardOutput = readsLine ? output : errors
    try process.run()
    guard readsLine else { return }
    var text = Data()
    while !text.contains(UInt8(ascii: "\n")) {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      text += more
    }
    firstLine = String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }

  deinit { kill() }

  /// Returns when the server has ended.
  func kill() {
    guard process.isRunning else { return }
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  var logText: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
}

/// Ports of this machine that no program listens on.
func freePorts(_ count: Int) throws -> [Int] {
  var descriptors: [Int32] = []
  defer { descriptors.forEach { close($0) } }
  return try (0..<count).map { _ in
    #if canImport(Darwin)
      let kind = SOCK_STREAM
    #else
      let kind = Int32(SOCK_STREAM.rawValue)
    #endif
    let descriptor = socket(AF_INET, kind, 0)
    descriptors.append(descriptor)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let port = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer -> UInt16? in
        guard bind(descriptor, pointer, length) == 0, getsockname(descriptor, pointer, &length) == 0
        else { return nil }
        return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { $0.pointee.sin_port }
      }
    }
    return Int(UInt16(bigEndian: try #require(port)))
  }
}

/// Repeats a check until it holds.
func waitUntil(
  _ subject: String, within seconds: Double = 90, _ isReady: () throws -> Bool
) throws {
  let deadline = Date(timeIntervalSinceNow: seconds)
  while try !isReady() {
    guard Date() < deadline else {
      Issue.record("\(subject) is not ready after \(seconds) seconds")
      throw ObjectError.unknown(subject)
    }
    usleep(100_000)
  }
}

/// A server of S3 with one bucket.
protocol S3Server: Sendable {
  /// A URL.
  var endpoint: String { get }
  var bucket: String { get }
  var credentials: AWSCredentials { get }
}

extension S3Server {
  func store(
    prefix: String = "", credentials: AWSCredentials? = nil, now: @escaping @Sendable () -> Date = { Date() }
  ) throws -> S3Store {
    try S3Store(
      S3Store.Configuration(
        bucket: bucket, prefix: prefix, endpoint: endpoint, isPathStyle: true,
        credentials: credentials ?? self.credentials), patience: .init(), now: now)
  }
}

/// SeaweedFS: a master, three volume servers with two copies of each file, a filer and its S3
/// gateway, which demands signatures.
final class SeaweedServer: S3Server {
  let endpoint: String
  let bucket = "hub"
  let credentials = AWSCredentials(accessKey: "stemmaAccess", secretKey: "stemmaSecretKey0123")
  private let scratch: Scratch
  private let processes: [ServerProcess]
  private let volumes: [ServerProcess]

  init() throws {
    let scratch = try Scratch()
    self.scratch = scratch
    let weed = try Peers.program("weed")
    let ports = try freePorts(12)
    let master = "127.0.0.1:\(ports[0]).\(ports[1])"
    let filer = "127.0.0.1:\(ports[2]).\(ports[3])"
    endpoint = "http://127.0.0.1:\(ports[4])"
    try scratch.write(
      "s3.json",
      """
      {"identities": [{"name": "stemma", "actions": ["Admin", "Read", "List", "Write"], "credentials":
        [{"accessKey": "\(credentials.accessKey)", "secretKey": "\(credentials.secretKey)"}]}]}
      """)
    func start(_ command: String, _ port: Int, _ arguments: [String]) throws -> ServerProcess {
      try ServerProcess(
        weed, [command, "-port=\(ports[port])", "-port.grpc=\(ports[port + 1])"] + arguments, in: scratch)
    }
    let address = ["-ip=127.0.0.1"]
    // 001: a second copy on another server of the same rack.
    let masterProcess = try start(
      "master", 0,
      address + [
        "-mdir=\(scratch.folder("master"))", "-peers=none", "-defaultReplication=001", "-telemetry=false",
        "-volumeSizeLimitMB=64",
      ])
    volumes = try (0..<3).map { number in
      try start(
        "volume", 6 + 2 * number,
        address + [
          "-dir=\(scratch.folder("volume\(number)"))", "-master=\(master)", "-max=8", "-rack=r",
          "-preStopSeconds=0", "-minFreeSpace=1",
        ])
    }
    let filerProcess = try start(
      "filer", 2,
      address + [
        "-master=\(master)", "-defaultStoreDir=\(scratch.folder("filer"))",
        "-localSocket=\(scratch.file("filer.sock"))",
      ])
    let gateway = try start(
      "s3", 4,
      [
        "-ip.bind=127.0.0.1", "-filer=\(filer)", "-config=\(scratch.file("s3.json"))",
        "-localSocket=\(scratch.file("s3.sock"))", "-port.iceberg=0", "-port.lance=0", "-iam=false",
      ])
    processes = [masterProcess, filerProcess, gateway]
    // The gateway creates the bucket. Writes fail until the volumes have two copies.
    let store = try store()
    try waitUntil("SeaweedFS") {
      do { return try store.put("ready", [1], ifAbsent: false) } catch { return false }
    }
  }

  /// Kills one of the three volume servers. One copy of each file is left.
  func killVolume(_ number: Int) { volumes[number].kill() }

  deinit { for process in processes + volumes { process.kill() } }
}

/// moto, a simulation of AWS, with authentication.
final class MotoServer: S3Server {
  let endpoint: String
  let bucket = "hub"
  let credentials: AWSCredentials
  private let scratch: Scratch
  private let process: ServerProcess

  init() throws {
    let scratch = try Scratch()
    self.scratch = scratch
    let port = try freePorts(1)[0]
    let endpoint = "http://127.0.0.1:\(port)"
    self.endpoint = endpoint
    process = try ServerProcess(
      try Peers.program("moto_server"), ["-H", "127.0.0.1", "-p", "\(port)"], in: scratch)
    let probe = try WebStore(endpoint)
    try waitUntil("moto") {
      do { return try probe.get("moto-api/data.json", nil) != nil } catch { return false }
    }
    let setup = try ServerProcess(
      try Peers.program("python"),
      [
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("moto_setup.py")
          .path, endpoint, bucket,
      ], in: scratch, readsLine: true)
    let keys = setup.firstLine.split(separator: " ").map(String.init)
    try #require(keys.count == 2, "\(setup.logText)")
    credentials = AWSCredentials(accessKey: keys[0], secretKey: keys[1])
    // Authentication is on once a wrong key is refused.
    let stranger = try store(credentials: AWSCredentials(accessKey: "AKIASTRANGER", secretKey: "none"))
    try waitUntil("moto's authentication") {
      do throws(ObjectError) { return try stranger.get("ready", nil) != nil } catch {
        return error.isRefused
      }
    }
  }
}

/// The server of `stub_server.py`.
final class StubServer: Sendable {
  let endpoint: String
  private let scratch: Scratch
  private let process: ServerProcess

  static var isPossible: Bool {
    if Peers.installed("python3") == nil { print("skipped: python3 is not in the path") }
    return Peers.installed("python3") != nil
  }

  init() throws {
    scratch = try Scratch()
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("stub_server.py").path
    process = try ServerProcess(
      try #require(Peers.installed("python3")), [script], in: scratch, readsLine: true)
    endpoint = "http://127.0.0.1:\(process.firstLine)"
    try #require(Int(process.firstLine) != nil, "\(process.logText)")
  }
}

/// nginx with the files of a folder.
final class NginxServer: Sendable {
  let endpoint: String
  private let scratch: Scratch
  private let process: ServerProcess

  static var isInstalled: Bool {
    if Peers.installed("nginx") == nil { print("skipped: nginx is not installed") }
    return Peers.installed("nginx") != nil
  }

  init(_ folder: String) throws {
    let scratch = try Scratch()
    self.scratch = scratch
    let port = try freePorts(1)[0]
    endpoint = "http://127.0.0.1:\(port)"
    let user = getuid() == 0 ? "user root;" : ""
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map { "\($0)_temp_path \(scratch.path)/\($0);" }.joined(separator: " ")
    try scratch.write(
      "nginx.conf",
      """
      daemon off; master_process off; \(user) pid \(scratch.path)/pid; error_log stderr;
      events {}
      http { access_log off; \(folders)
        server { listen 127.0.0.1:\(port); root \(folder); } }
      """)
    process = try ServerProcess(
      try #require(Peers.installed("nginx")), ["-p", scratch.path, "-c", scratch.file("nginx.conf")],
      in: scratch)
    let probe = try WebStore(endpoint)
    try waitUntil("nginx") {
      do {
        _ = try probe.get("ready", nil)
        return true
      } catch { return false }
    }
  }
}
