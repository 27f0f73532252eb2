import Foundation
import Measuring
import StemmaEvents

/// Parsing the lines of an import as JSON with our reader, with Foundation, and with a C library
/// that builds trees. The other two stop at their own trees.
func measureParsing(_ bench: Bench) throws {
  var text = try BareFiles.contents(try bench.lines(bench.events))
  try measureParsing(bench, "generated", text)
  guard let data = bench.data else {
    return bench.say("STEMMA_DATA is not set: lines of git-grdb are left out")
  }
  text = try BareFiles.gunzip(data + "/git-grdb/mutations.ndjson.gz")
  try measureParsing(bench, "of git-grdb", text)
}

private func measureParsing(_ bench: Bench, _ name: String, _ text: [UInt8]) throws {
  let lines = text.split(separator: UInt8(ascii: "\n"))
  let ours = {
    try Cost.of {
      for line in lines { _ = try line.withUnsafeBytes { try JSON.parse($0) } }
    }
  }
  let foundation = {
    try Cost.of {
      for line in lines { _ = try JSONSerialization.jsonObject(with: Data(line)) }
    }
  }
  let first = try bench.byTurns(ours: ours, baseline: foundation)
  bench.add("lines \(name) read, against JSONSerialization", first, count: lines.count, "lines", .none)

  guard let jansson = Jansson() else { return bench.say("jansson is not installed: its rows are left out") }
  let second = try bench.byTurns(
    ours: ours,
    baseline: {
      try Cost.of {
        for line in lines { try line.withUnsafeBytes { try jansson.read($0) } }
      }
    })
  bench.add("lines \(name) read, against jansson", second, count: lines.count, "lines", .none)
}

/// The C library jansson, if this machine has it. It is not a build dependency of the benchmarks.
private struct Jansson {
  private typealias Load =
    @convention(c) (UnsafeRawPointer?, Int, Int, UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
  private typealias Free = @convention(c) (UnsafeMutableRawPointer?) -> Void

  private let load: Load
  private let free: Free

  init?() {
    guard let library = dlopen("libjansson.so.4", RTLD_NOW), let load = dlsym(library, "json_loadb"),
      let free = dlsym(library, "json_delete")
    else { return nil }
    self.load = unsafeBitCast(load, to: Load.self)
    self.free = unsafeBitCast(free, to: Free.self)
  }

  /// Builds a tree and frees it: a new tree has one owner, whose release deletes it.
  func read(_ line: UnsafeRawBufferPointer) throws {
    // 0x4: any value may be the outermost one.
    guard let tree = load(line.baseAddress, line.count, 0x4, nil) else {
      throw BenchError("jansson refuses a line")
    }
    free(tree)
  }
}
