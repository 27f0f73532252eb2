import Foundation
import Testing

/// Facilities of the machine for fault tests on real processes. Tests without their facility are
/// skipped with a message.
enum Machine {
  private static let paths = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(
    separator: ":")

  private static func program(_ name: String) -> String? {
    paths.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// The path of strace, which counts system calls and makes them fail.
  static let strace: String? = {
    guard let path = program("strace") else {
      print("skipped: strace is not there, so nothing fails at a chosen system call")
      return nil
    }
    // A container may forbid it.
    let isAllowed = (try? Tool.run(path, ["-o", "/dev/null", "/bin/true"], in: "/"))?.status == 0
    if !isAllowed { print("skipped: strace may not trace here, so nothing fails at a chosen system call") }
    return isAllowed ? path : nil
  }()

  /// The C compiler.
  static let compiler: String? = {
    let path = program("cc")
    if path == nil { print("skipped: there is no C compiler, so no read or write is a short one") }
    return path
  }()

  /// Whether the tool can run as other users that own no files but can reach the test directories.
  static let canBeOthers: Bool = {
    let isAllowed =
      getuid() == 0 && program("setpriv") != nil && program("prlimit") != nil
      && (try? Tool.run(
        "/usr/bin/env",
        [
          "setpriv", "--reuid=64000", "--regid=64000", "--clear-groups", "/bin/sh", "-c",
          "cd \"$0\" && exec \"$1\" --version", NSTemporaryDirectory(), Tool.path,
        ], in: "/"))?.status == 0
    if !isAllowed {
      print("skipped: no other user can run the tool here, so none lacks a permission")
    }
    return isAllowed
  }()

  /// Whether file systems can be mounted.
  static let canMount: Bool = {
    let isAllowed =
      program("mount") != nil && getuid() == 0
      && (try? Tool.run("/bin/sh", ["-c", "unshare -m mount -t tmpfs tmpfs /mnt"], in: "/"))?.status == 0
    if !isAllowed { print("skipped: no file system can be mounted here, so no disk is full or read-only") }
    return isAllowed
  }()

  /// Whether file systems can be created in files and mounted.
  static let canMakeDisks: Bool = {
    let image = NSTemporaryDirectory() + "/stemma-disk-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: image) }
    let isAllowed =
      canMount && (try? makeDisk(at: image, size: 1 << 20)) != nil
      && (try? Tool.run("/bin/sh", ["-c", "unshare -m mount -o loop '\(image)' /mnt"], in: "/"))?.status == 0
    if !isAllowed {
      print("skipped: no file system can be made in a file here, so no disk loses what it took")
    }
    return isAllowed
  }()

  /// Makes a sparse file with an empty file system that has no journal of its own. The file has
  /// room for the metadata. Blocks are as large as pages, so most lost writes are complete data
  /// pages.
  static func makeDisk(at path: String, size: UInt64) throws {
    try Data(count: 256 << 10).write(to: URL(fileURLWithPath: path))
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    try file.truncate(atOffset: size)
    try file.close()
    let options = ["-O", "^has_journal", "-N", "64", "-b", "4096", "-E", "nodiscard"]
    let result = try Tool.run("/usr/bin/env", ["mkfs.ext4", "-q", "-F"] + options + [path], in: "/")
    guard result.status == 0 else { throw Mount.MountError(text: result.errors) }
  }
}

/// A file system mounted in a test directory, and unmounted with this value.
final class Mount {
  let path: String

  /// `arguments` of mount(8), without the directory, which is created.
  init(at path: String, _ arguments: [String]) throws {
    self.path = path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try mount(arguments)
  }

  func mount(_ arguments: [String]) throws {
    let result = try Tool.run("/usr/bin/env", ["mount"] + arguments + [path], in: "/")
    guard result.status == 0 else { throw MountError(text: result.errors) }
  }

  struct MountError: Error { var text: String }

  // A failure cannot be handled here. The next removal of the directory reports it.
  deinit { _ = try? Tool.run("/usr/bin/env", ["umount", "-l", path], in: "/") }
}

/// A small node and its events, for tests that run hundreds of commands.
enum Rows {
  static let schema = """
    type Row @model {
      tenant: ID! @primaryKey(sortKeyFields: ["n"])
      n: Int!
      text: String!
    }

    """

  static func line(_ tenant: String, _ number: Int, _ text: String) -> String {
    #"{"op":"create","model":"Row","key":{"tenant":"\#(tenant)","n":\#(number)},"fields":{"text":"\#(text)"}}"#
      + "\n"
  }

  /// Creates of `count` records of three tenants.
  static func lines(_ count: Int) -> String {
    (0..<count).map { line("t\($0 % 3)", $0, "text \($0 &* 7919 % 10007) of number \($0)") }.joined()
  }
}

extension Workplace {
  /// A node `name` without records.
  func rows(_ name: String) throws {
    if !FileManager.default.fileExists(atPath: file("rows.graphql")) {
      try write("rows.graphql", Rows.schema)
    }
    try stemma("init", name, "--schema", "rows.graphql", "--name", name)
  }

  func events(_ name: String) throws -> Int {
    try stemma("-C", name, "status", "--json").object().number("events") ?? -1
  }

  func export(_ name: String) throws -> String { try stemma("-C", name, "export").output }
}

extension Tool.Result {
  /// The line to resume with, from the refusal of a repeated import.
  var lineToGoOnWith: Int? { errors.firstMatch(of: /--from-line (\d+)/).flatMap { Int($0.1) } }

  /// The last line that an import reported as durable.
  var durableLine: Int {
    errors.split(separator: "\n").compactMap { line in
      line.hasPrefix("durable through line ") ? Int(line.dropFirst("durable through line ".count)) : nil
    }.last ?? 0
  }
}
