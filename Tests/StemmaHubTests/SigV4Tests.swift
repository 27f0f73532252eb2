import Foundation
import Servers
import Testing

@testable import StemmaHub

/// The vectors that AWS publishes. Each has a request and the three texts derived from it.
@Suite("Signature Version 4") struct SigV4Tests {
  static let data = ProcessInfo.processInfo.environment["STEMMA_DATA"].flatMap { $0.isEmpty ? nil : $0 }

  static let credentials = AWSCredentials(
    accessKey: "AKIDEXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
  static let scope = SigV4.Scope(time: "20150830T123600Z", region: "us-east-1", service: "service")

  /// The request in a file `.req`.
  private func request(_ text: String) throws -> SigV4.Request {
    let halves = text.split(separator: "\n\n", maxSplits: 1)
    var lines = halves[0].split(separator: "\n").map(String.init)
    let words = lines.removeFirst().split(separator: " ")
    let target = words.dropFirst().dropLast().joined(separator: " ")
    let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var query: [(name: String, value: String)] = []
    for item in parts.dropFirst().joined().split(separator: "&") {
      let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        .map { String($0).removingPercentEncoding ?? "" }
      query.append((pair[0], pair.count == 1 ? "" : pair[1]))
    }
    var headers: [(name: String, value: String)] = []
    for line in lines {
      // An indented line continues the value before.
      if line.first == " " {
        headers[headers.count - 1].value += line
      } else {
        let colon = try #require(line.firstIndex(of: ":"))
        headers.append((String(line[..<colon]), String(line[line.index(after: colon)...])))
      }
    }
    return SigV4.Request(
      method: String(words[0]), path: String(parts[0]), query: query, headers: headers,
      bodyDigest: SigV4.digest(Array((halves.count == 2 ? String(halves[1]) : "").utf8)))
  }

  @Test(
    "all 34 vectors: canonical request, string to sign, and authorization",
    .enabled(if: data != nil, "STEMMA_DATA is not set"))
  func vectors() throws {
    let scratch = try Scratch()
    let tar = Process()
    tar.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    tar.arguments = [
      "tar", "xzf", try #require(Self.data) + "/sigv4/aws4_testsuite.tar.gz", "-C", scratch.path,
    ]
    try tar.run()
    tar.waitUntilExit()
    #expect(tar.terminationStatus == 0)
    let names = try #require(FileManager.default.enumerator(atPath: scratch.path)).compactMap {
      $0 as? String
    }
    .filter { $0.hasSuffix(".req") }
    #expect(names.count == 34)
    for name in names.sorted() {
      func text(_ kind: String) throws -> String {
        try String(contentsOfFile: scratch.file(name.dropLast(3) + kind), encoding: .utf8)
          .replacing("\r\n", with: "\n")
      }
      var request = try request(text("req"))
      // The token of this vector belongs to the credentials. Only the signed request shows it.
      if name.hasSuffix("get-vanilla-with-session-token.req") {
        let signed = try self.request(text("sreq"))
        request.headers += signed.headers.filter { $0.name.lowercased() == "x-amz-security-token" }
      }
      let canonical = SigV4.canonicalRequest(request, normalizesPath: true)
      #expect(try canonical == text("creq"), "\(name)")
      let string = SigV4.stringToSign(canonical, Self.scope)
      #expect(try string == text("sts"), "\(name)")
      let authorization = SigV4.authorization(request, Self.scope, Self.credentials, normalizesPath: true)
      #expect(try authorization == text("authz"), "\(name)")
    }
  }

  @Test("paths of S3 stay as they are, and each byte is encoded once")
  func pathsOfS3() {
    func path(_ path: String) -> Substring {
      SigV4.canonicalRequest(
        SigV4.Request(method: "GET", path: path, headers: [], bodyDigest: ""), normalizesPath: false
      ).split(separator: "\n")[1]
    }
    #expect(path("/bucket//a/./../b") == "/bucket//a/./../b")
    #expect(path("/a b+c%20~ä") == "/a%20b%2Bc%2520~%C3%A4")
    #expect(path("") == "/")
  }

  @Test("times have no separators")
  func times() {
    #expect(SigV4.time(Date(timeIntervalSince1970: 1_440_938_160)) == "20150830T123600Z")
    #expect(SigV4.time(Date(timeIntervalSince1970: 0.9)) == "19700101T000000Z")
  }
}
