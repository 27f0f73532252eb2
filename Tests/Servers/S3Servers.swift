import Foundation
import StemmaHub
import StemmaReplication

/// A server of S3 with one bucket.
package protocol S3Server: Sendable {
  /// A URL.
  var endpoint: String { get }
  var bucket: String { get }
  var credentials: AWSCredentials { get }
}

extension S3Server {
  package func store(prefix: String = "", credentials: AWSCredentials? = nil) throws -> S3Store {
    try S3Store(
      S3Store.Configuration(
        bucket: bucket, prefix: prefix, endpoint: endpoint, isPathStyle: true,
        credentials: credentials ?? self.credentials))
  }

  /// The address of a hub in the bucket.
  ///
  /// - Parameter port: of a proxy; nil: the server's own.
  package func hubAddress(_ prefix: String, port: Int? = nil) -> String {
    let endpoint = port.map { "http://127.0.0.1:\($0)" } ?? endpoint
    return "s3://\(bucket)/\(prefix)?endpoint=\(endpoint)&region=us-east-1&path-style=yes"
  }

  /// The environment variables with the keys.
  package var environment: [String: String] {
    ["AWS_ACCESS_KEY_ID": credentials.accessKey, "AWS_SECRET_ACCESS_KEY": credentials.secretKey]
  }
}

/// SeaweedFS: a master, three volume servers with two copies of each file, a filer and its S3
/// gateway, which demands signatures.
package final class SeaweedServer: S3Server {
  package let endpoint: String
  package let bucket = "hub"
  package let credentials = AWSCredentials(accessKey: "stemmaAccess", secretKey: "stemmaSecretKey0123")
  private let scratch: Scratch
  private let processes: [ServerProcess]
  private let volumes: [ServerProcess]

  package init() throws {
    let scratch = try Scratch()
    self.scratch = scratch
    let weed = try Programs.ofPeers("weed")
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
  package func killVolume(_ number: Int) { volumes[number].kill() }

  deinit { for process in processes + volumes { process.kill() } }
}

/// moto, a simulation of AWS, with authentication.
package final class MotoServer: S3Server {
  package let endpoint: String
  package let bucket = "hub"
  package let credentials: AWSCredentials
  private let scratch: Scratch
  private let process: ServerProcess

  package init() throws {
    let scratch = try Scratch()
    self.scratch = scratch
    let port = try freePorts(1)[0]
    let endpoint = "http://127.0.0.1:\(port)"
    self.endpoint = endpoint
    process = try ServerProcess(
      try Programs.ofPeers("moto_server"), ["-H", "127.0.0.1", "-p", "\(port)"], in: scratch)
    let probe = try WebStore(endpoint)
    try waitUntil("moto") {
      do { return try probe.get("moto-api/data.json", nil) != nil } catch { return false }
    }
    let setup = try ServerProcess(
      try Programs.ofPeers("python"),
      [
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("moto_setup.py")
          .path, endpoint, bucket,
      ], in: scratch, readsLine: true)
    let keys = setup.firstLine.split(separator: " ").map(String.init)
    guard keys.count == 2 else { throw ServerError(description: setup.logText) }
    credentials = AWSCredentials(accessKey: keys[0], secretKey: keys[1])
    // Authentication is on once a wrong key is refused.
    let stranger = try store(credentials: AWSCredentials(accessKey: "AKIASTRANGER", secretKey: "none"))
    try waitUntil("moto's authentication") {
      do throws(ObjectError) { return try stranger.get("ready", nil) != nil } catch {
        if case .refused = error { return true }
        return false
      }
    }
  }
}
