import Crypto
import Foundation

/// Signatures of requests to AWS, Signature Version 4.
///
/// Three texts are derived from a request, each from the one before:
///
/// 1. The canonical request: method, path, query, headers and body digest in one spelling.
/// 2. The string to sign: algorithm, time, scope (day, region, service), digest of the first text.
/// 3. The signature: an HMAC of that string. Its key is derived from the secret and the scope.
///
/// Source: "Create a signed AWS API request" in the AWS Identity and Access Management guide.
package enum SigV4 {
  package struct Request: Sendable {
    package var method: String
    /// Without percent encoding.
    package var path: String
    /// Names and values, without percent encoding.
    package var query: [(name: String, value: String)]
    /// The headers to sign, with repeated ones in their order.
    package var headers: [(name: String, value: String)]
    /// The SHA-256 of the body in lower case hexadecimal digits.
    package var bodyDigest: String

    package init(
      method: String, path: String, query: [(name: String, value: String)] = [],
      headers: [(name: String, value: String)], bodyDigest: String
    ) {
      self.method = method
      self.path = path
      self.query = query
      self.headers = headers
      self.bodyDigest = bodyDigest
    }
  }

  /// When and where a signature is valid.
  package struct Scope: Sendable {
    /// Seconds in UTC: `20150830T123600Z`.
    package var time: String
    package var region: String
    package var service: String

    package init(time: String, region: String, service: String) {
      self.time = time
      self.region = region
      self.service = service
    }

    var day: Substring { time.prefix(8) }
    var text: String { "\(day)/\(region)/\(service)/aws4_request" }
  }

  private static let algorithm = "AWS4-HMAC-SHA256"

  /// The time of a scope: `20150830T123600Z`.
  package static func time(_ date: Date) -> String {
    date.formatted(
      .iso8601.year().month().day().dateSeparator(.omitted).time(includingFractionalSeconds: false)
        .timeSeparator(.omitted)) + "Z"
  }

  package static func digest(_ bytes: some DataProtocol) -> String { hexadecimal(SHA256.hash(data: bytes)) }

  /// - Parameter normalizesPath: resolves `.`, `..` and repeated slashes. S3 does not do that,
  ///   because they can be parts of a key; all other services do.
  package static func canonicalRequest(_ request: Request, normalizesPath: Bool) -> String {
    let path = normalizesPath ? normalized(request.path) : request.path
    let headers = canonicalHeaders(request.headers)
    return [
      request.method, encoded(path.isEmpty ? "/" : path, keepsSlashes: true),
      canonicalQuery(request.query), headers.map { "\($0.name):\($0.value)\n" }.joined(),
      headers.map(\.name).joined(separator: ";"), request.bodyDigest,
    ].joined(separator: "\n")
  }

  package static func stringToSign(_ canonicalRequest: String, _ scope: Scope) -> String {
    [algorithm, scope.time, scope.text, digest(Array(canonicalRequest.utf8))].joined(separator: "\n")
  }

  /// The value of the header `authorization`.
  package static func authorization(
    _ request: Request, _ scope: Scope, _ credentials: AWSCredentials, normalizesPath: Bool
  ) -> String {
    let text = stringToSign(canonicalRequest(request, normalizesPath: normalizesPath), scope)
    let names = canonicalHeaders(request.headers).map(\.name).joined(separator: ";")
    let signature = hexadecimal(code(text, key(scope, credentials.secretKey)))
    return "\(algorithm) Credential=\(credentials.accessKey)/\(scope.text), SignedHeaders=\(names), "
      + "Signature=\(signature)"
  }

  /// The query in its canonical order, which is valid in a URL too.
  package static func canonicalQuery(_ query: [(name: String, value: String)]) -> String {
    query.map { (encoded($0.name), encoded($0.value)) }
      .sorted { ObjectKey.precedes($0.0, $1.0) || ($0.0 == $1.0 && ObjectKey.precedes($0.1, $1.1)) }
      .map { "\($0)=\($1)" }.joined(separator: "&")
  }

  /// Percent encoding of all bytes but `A-Z a-z 0-9 - . _ ~`.
  package static func encoded(_ text: String, keepsSlashes: Bool = false) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        bytes.append(byte)
      case UInt8(ascii: "/") where keepsSlashes: bytes.append(byte)
      default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func normalized(_ path: String) -> String {
    var components: [Substring] = []
    for component in path.split(separator: "/") where component != "." {
      if component == ".." { _ = components.popLast() } else { components.append(component) }
    }
    let joined = "/" + components.joined(separator: "/")
    return path.hasSuffix("/") && joined != "/" ? joined + "/" : joined
  }

  /// Names in lower case, sorted. Values of one name are joined, and runs of spaces shortened.
  private static func canonicalHeaders(_ headers: [(name: String, value: String)])
    -> [(name: String, value: String)]
  {
    var values: [String: [String]] = [:]
    for header in headers {
      let value = header.value.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      values[header.name.lowercased(), default: []].append(value)
    }
    return values.map { ($0.key, $0.value.joined(separator: ",")) }
      .sorted { ObjectKey.precedes($0.name, $1.name) }
  }

  private static func key(_ scope: Scope, _ secret: String) -> SymmetricKey {
    var key = SymmetricKey(data: Array("AWS4\(secret)".utf8))
    for part in [String(scope.day), scope.region, scope.service, "aws4_request"] {
      key = SymmetricKey(data: code(part, key))
    }
    return key
  }

  private static func code(_ text: String, _ key: SymmetricKey) -> HMAC<SHA256>.MAC {
    HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key)
  }

  private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in
      let text = String(byte, radix: 16)
      return text.count == 1 ? "0" + text : text
    }.joined()
  }
}
