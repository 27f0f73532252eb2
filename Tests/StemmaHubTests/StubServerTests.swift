import Foundation
import NIOCore
import Servers
import StemmaReplication
import Testing

@testable import StemmaHub

extension ObjectHTTPClient.Patience {
  static let short = Self(silence: .milliseconds(700), slowest: 1 << 30)
}

extension StubServer {
  static let credentials = AWSCredentials(
    accessKey: "AKIDEXAMPLE", secretKey: "SECRETKEY", sessionToken: "SESSIONTOKEN")

  func store() throws -> S3Store {
    try S3Store(
      S3Store.Configuration(
        bucket: "bucket", endpoint: endpoint, isPathStyle: true, credentials: Self.credentials),
      patience: .short, now: { Date() })
  }
}

/// Each failure of a server, and what the store makes of it.
@Suite("S3 stores with failing servers", .enabled(if: StubServer.isPossible, "python3 is not installed"))
struct StubServerTests {
  /// A server for each test. It lives as long as the test.
  private let server: StubServer

  init() throws { server = try StubServer() }

  private enum Outcome: Equatable, CustomStringConvertible {
    case value(String)
    case refused, unknown

    var description: String {
      switch self {
      case .value(let text): text
      case .refused: "refused"
      case .unknown: "unknown"
      }
    }
  }

  private func outcome(_ body: () throws -> String) -> Outcome {
    do { return .value(try body()) } catch let error as ObjectError {
      #expect(!error.reason.contains("SECRETKEY") && !error.reason.contains("SESSIONTOKEN"), "\(error)")
      #expect(!error.reason.contains("\n"))
      return error.isRefused ? .refused : .unknown
    } catch { return .value("\(error)") }
  }

  private func get(_ store: S3Store, _ key: String, _ range: Range<UInt64>? = nil) -> Outcome {
    outcome { try store.get(key, range).map { String(decoding: $0, as: UTF8.self) } ?? "nil" }
  }

  private func put(_ store: S3Store, _ key: String, ifAbsent: Bool = true) -> Outcome {
    outcome { "\(try store.put(key, [1, 2], ifAbsent: ifAbsent))" }
  }

  private func delete(_ store: S3Store, _ key: String) -> Outcome {
    outcome {
      try store.delete(key)
      return "deleted"
    }
  }

  @Test("statuses")
  func statuses() throws {
    let store = try server.store()
    // Status and code, then the outcomes of get, put if absent, put, delete.
    let table: [(String, [Outcome])] = [
      ("200", [.value(""), .value("true"), .value("true"), .value("deleted")]),
      ("204", [.refused, .value("true"), .value("true"), .value("deleted")]),
      ("404", [.value("nil"), .refused, .refused, .value("deleted")]),
      ("404-NoSuchKey", [.value("nil"), .refused, .refused, .value("deleted")]),
      ("404-NoSuchBucket", [.refused, .refused, .refused, .refused]),
      ("412-PreconditionFailed", [.refused, .value("false"), .refused, .refused]),
      ("409", [.unknown, .unknown, .unknown, .unknown]),
      ("409-ConditionalRequestConflict", [.unknown, .unknown, .unknown, .unknown]),
      ("500-InternalError", [.unknown, .unknown, .unknown, .unknown]),
      ("502", [.unknown, .unknown, .unknown, .unknown]),
      ("503-SlowDown", [.unknown, .unknown, .unknown, .unknown]),
      ("504", [.unknown, .unknown, .unknown, .unknown]), ("429", [.unknown, .unknown, .unknown, .unknown]),
      ("408", [.unknown, .unknown, .unknown, .unknown]),
      ("400-RequestTimeout", [.unknown, .unknown, .unknown, .unknown]),
      ("400-BadDigest", [.unknown, .unknown, .unknown, .unknown]),
      ("400-InvalidRequest", [.refused, .refused, .refused, .refused]),
      ("400-NotImplemented", [.refused, .refused, .refused, .refused]),
      ("501-NotImplemented", [.refused, .refused, .refused, .refused]),
      ("403-AccessDenied", [.refused, .refused, .refused, .refused]),
      ("403", [.refused, .refused, .refused, .refused]),
      ("401", [.refused, .refused, .refused, .refused]),
      ("400-ExpiredToken", [.refused, .refused, .refused, .refused]),
      ("301-PermanentRedirect", [.refused, .refused, .refused, .refused]),
      ("307-TemporaryRedirect", [.refused, .refused, .refused, .refused]),
    ]
    for (status, expected) in table {
      let key = "status-" + status
      #expect(
        [get(store, key), put(store, key), put(store, key, ifAbsent: false), delete(store, key)] == expected,
        "\(status)")
    }
    #expect(get(store, "page-404") == .value("nil"))
    #expect(get(store, "redirect") == .refused)
    #expect(put(store, "region") == .refused)
    #expect(get(store, "endless-error") == .refused)
    #expect(get(store, "status-416-InvalidRange", 5..<6) == .value(""))
    #expect(get(store, "status-416-InvalidRange") == .refused)
  }

  @Test("reasons name the cause")
  func reasons() throws {
    let store = try server.store()
    func reason(_ key: String, ifAbsent: Bool = true) -> String {
      do { return "\(try store.put(key, [1], ifAbsent: ifAbsent))" } catch { return error.reason }
    }
    #expect(reason("status-403-AccessDenied").contains("AccessDenied"))
    #expect(reason("status-403-AccessDenied").contains("a message"))
    for key in ["status-501-NotImplemented", "status-501", "status-400-NotImplemented"] {
      #expect(reason(key).contains("If-None-Match"))
      #expect(!reason(key, ifAbsent: false).contains("If-None-Match"))
    }
    #expect(reason("region").contains("eu-west-3"))
    do { _ = try store.get("status-403-AccessDenied", nil) } catch {
      #expect(error.reason.contains("s3:ListBucket"))
    }
    let skew = reason("status-403-RequestTimeTooSkewed")
    #expect(skew.contains("clock") && skew.contains("1994"))
    // The server repeats all headers of the request.
    #expect(get(store, "echo") == .refused)
    #expect(reason("echo").contains("AccessDenied"))
  }

  @Test("ranges that a server ignores, or mistakes")
  func ranges() throws {
    let store = try server.store()
    for key in ["whole", "shifted", "unnamed", "longer", "shorter", "endless", "huge"] {
      #expect(get(store, key, 0..<4) == .refused, "\(key)")
    }
    #expect(get(store, "whole", 4..<5) == .refused)
    // A whole object was wanted.
    #expect(get(store, "whole") == .value("0123456789"))
    #expect(get(store, "shifted") == .refused)
    #expect(get(store, "huge") == .refused)
  }

  @Test("lost answers leave the outcome unknown, and the write may have happened")
  func lostAnswers() throws {
    let store = try server.store()
    for key in ["no-answer", "half-head", "reset", "silent"] {
      #expect(get(store, key) == .unknown, "\(key)")
      #expect(put(store, key) == .unknown, "\(key)")
      #expect(delete(store, key) == .unknown, "\(key)")
    }
    for key in ["half-body", "half-chunk", "drip"] { #expect(get(store, key) == .unknown, "\(key)") }
    for key in ["garbage"] { #expect(get(store, key) == .refused, "\(key)") }
    // The store works on after all of that.
    #expect(put(store, "object") == .value("true"))
    #expect(put(store, "object") == .value("false"))
    #expect(put(store, "object", ifAbsent: false) == .value("true"))
  }

  /// A call cannot notice this. The hub's probe with two writers does.
  @Test("a store that ignores If-None-Match looks like one that succeeds")
  func ignoredCondition() throws {
    let store = try server.store()
    #expect(put(store, "unconditional") == .value("true"))
    #expect(put(store, "unconditional") == .value("true"))
  }

  @Test("a server that is gone, and a name without a server")
  func absentServers() throws {
    let port = try freePorts(1)[0]
    for endpoint in ["http://127.0.0.1:\(port)", "http://no-such-host.invalid"] {
      let store = try S3Store(
        S3Store.Configuration(
          bucket: "bucket", endpoint: endpoint, isPathStyle: true, credentials: StubServer.credentials))
      #expect(get(store, "a") == .unknown)
      #expect(put(store, "a") == .unknown)
    }
    // A server without TLS.
    let plain = server.endpoint.replacing("http:", with: "https:")
    let store = try S3Store(
      S3Store.Configuration(
        bucket: "bucket", endpoint: plain, isPathStyle: true, credentials: StubServer.credentials),
      patience: .short, now: { Date() })
    #expect(get(store, "a") == .unknown)
  }

  @Test("lists")
  func lists() throws {
    let store = try server.store()
    func list(_ prefix: String, after last: String? = nil) -> Outcome {
      outcome { try store.list(prefix, after: last).entries.map(\.key).joined(separator: " ") }
    }
    // The second key has a character that no key of this project has.
    #expect(list("plain/") == .value("plain/a"))
    #expect(list("encoded/") == .value("encoded/ab"))
    #expect(list("unsorted/") == .value("unsorted/a-x unsorted/a/x unsorted/b"))
    #expect(list("foreign/") == .value("foreign/z"))
    #expect(list("backward/") == .value("backward/b"))
    #expect(list("backward/", after: "backward/b") == .refused)
    #expect(list("nothing/") == .value(""))
    for prefix in ["other/", "stuck/", "cut/", "entity/", "page/", "huge/", "denied/"] {
      #expect(list(prefix) == .refused, "\(prefix)")
    }
    #expect(list("busy/") == .unknown)
    let tag = try store.list("plain/", after: nil).entries.first?.tag
    #expect(tag == "t&plain/a")
  }
}
