import Foundation
import StemmaHub
import StemmaReplication

/// nginx with the files of a folder.
package final class NginxServer: Sendable {
  /// A request, as nginx has logged it.
  package struct Request: Sendable {
    package var method: String
    package var path: String
    package var status: Int
    /// Sent bytes of the body.
    package var bytes: Int
  }

  package let endpoint: String
  private let scratch: Scratch
  private let process: ServerProcess

  package static var isInstalled: Bool {
    if Programs.installed("nginx") == nil { print("skipped: nginx is not installed") }
    return Programs.installed("nginx") != nil
  }

  /// - Parameter hasRanges: whether it answers requests for ranges with ranges.
  package init(_ folder: String, hasRanges: Bool = true) throws {
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
      http { log_format short '$request_method $uri $status $body_bytes_sent'; \(folders)
        access_log \(scratch.file("requests")) short; \(hasRanges ? "" : "max_ranges 0;")
        server { listen 127.0.0.1:\(port); root \(folder); } }
      """)
    guard let nginx = Programs.installed("nginx") else {
      throw ServerError(description: "nginx is not installed")
    }
    process = try ServerProcess(nginx, ["-p", scratch.path, "-c", scratch.file("nginx.conf")], in: scratch)
    let probe = try WebStore(endpoint)
    try waitUntil("nginx") {
      do {
        _ = try probe.get("ready", nil)
        return true
      } catch { return false }
    }
  }

  /// The requests since the start of the server, in their order.
  package func requests() throws -> [Request] {
    try String(contentsOfFile: scratch.file("requests"), encoding: .utf8).split(separator: "\n")
      .compactMap { line in
        let words = line.split(separator: " ")
        guard words.count == 4, let status = Int(words[2]), let bytes = Int(words[3]) else { return nil }
        return Request(method: String(words[0]), path: String(words[1]), status: status, bytes: bytes)
      }
  }
}
