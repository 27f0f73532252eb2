import Foundation
import NIOCore
import NIOHTTP1
import StemmaReplication

/// Objects in a bucket of S3, or of another store with its protocol.
///
/// `put` with `ifAbsent` sends `If-None-Match: *`. A store that ignores this header replaces the
/// object and answers like one that honors it: a single call cannot detect that.
///
/// Lists are in the order of bytes. SeaweedFS orders by path component: `a/b` precedes `a-b`. A
/// list of several pages with keys like these is refused, and `list` after one of them may miss
/// others.
package final class S3Store: CountedStore {
  package struct Configuration: Sendable, Hashable {
    package var bucket: String
    /// Precedes all keys, without a slash at its end.
    package var prefix: String
    /// The URL of the service; nil: the one of AWS for the region.
    package var endpoint: String?
    package var region: String
    /// Whether the bucket is in the path of URLs; otherwise it is a part of their host.
    package var isPathStyle: Bool
    package var credentials: AWSCredentials

    package init(
      bucket: String, prefix: String = "", endpoint: String? = nil, region: String = "us-east-1",
      isPathStyle: Bool, credentials: AWSCredentials
    ) {
      self.bucket = bucket
      self.prefix = prefix
      self.endpoint = endpoint
      self.region = region
      self.isPathStyle = isPathStyle
      self.credentials = credentials
    }
  }

  package let name: String
  private let configuration: Configuration
  private let server: ServerURL
  /// Precedes all keys in the path of URLs.
  private let root: String
  /// Precedes all keys in the bucket: the prefix and a slash, or nothing.
  private let keyPrefix: String
  private let client: ObjectHTTPClient
  private let counter = RequestCounter()
  private let now: @Sendable () -> Date

  private static let longestList = 16 << 20
  private static let service = "s3"

  package convenience init(_ configuration: Configuration) throws(ObjectError) {
    try self.init(configuration, patience: .init(), now: { Date() })
  }

  /// - Parameter now: the time in signatures.
  init(
    _ configuration: Configuration, patience: ObjectHTTPClient.Patience, now: @escaping @Sendable () -> Date
  ) throws(ObjectError) {
    let bucket = configuration.bucket
    guard bucket.wholeMatch(of: #/[A-Za-z0-9][A-Za-z0-9._-]{1,254}/#) != nil else {
      throw .refused("\"\(ObjectKey.printable(bucket))\" is no name of a bucket")
    }
    guard configuration.region.wholeMatch(of: #/[A-Za-z0-9_-]{1,64}/#) != nil else {
      throw .refused("\"\(ObjectKey.printable(configuration.region))\" is no name of a region")
    }
    guard configuration.credentials.isPrintable else {
      throw .refused("the credentials for bucket \(bucket) contain a character that no key has")
    }
    let components = configuration.prefix.split(separator: "/", omittingEmptySubsequences: false)
    guard configuration.prefix.isEmpty || !components.contains(where: { ["", ".", ".."].contains($0) })
    else {
      let prefix = ObjectKey.printable(configuration.prefix)
      throw .refused("bucket \(bucket): the prefix \"\(prefix)\" has an empty component, \".\" or \"..\"")
    }
    self.configuration = configuration
    self.now = now
    let isOfAWS = configuration.endpoint == nil
    let region = configuration.region
    var server = try ServerURL(
      configuration.endpoint ?? "https://s3.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")")
    // Certificates of AWS cover one label in front of the host.
    if configuration.isPathStyle || (isOfAWS && bucket.contains(".")) {
      root = server.path + "/" + bucket
    } else {
      server.host = bucket + "." + server.host
      root = server.path
    }
    self.server = server
    keyPrefix = configuration.prefix.isEmpty ? "" : configuration.prefix + "/"
    name = "s3://" + bucket + (configuration.prefix.isEmpty ? "" : "/" + configuration.prefix)
    client = ObjectHTTPClient(followsRedirects: false, patience, counter)
  }

  package var requestCount: RequestCount { counter.count }

  // MARK: Requests

  private struct Call {
    var method: HTTPMethod
    /// nil: the bucket.
    var key: String?
    var query: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []
    var body: [UInt8]?
    /// Bytes of the answer.
    var limit = 1 << 20
    var expected = 0
  }

  private func address(_ key: String?) -> String { key.map { "\(name)/\($0)" } ?? name }

  private func execute(_ call: Call) throws(ObjectError) -> ObjectHTTPClient.Answer {
    let path = root + "/" + (call.key.map { keyPrefix + $0 } ?? "")
    let time = SigV4.time(now())
    let digest = SigV4.digest(call.body ?? [])
    var headers = call.headers
    headers += [
      ("host", server.authority), ("x-amz-content-sha256", digest), ("x-amz-date", time),
    ]
    if let token = configuration.credentials.sessionToken { headers.append(("x-amz-security-token", token)) }
    let authorization = SigV4.authorization(
      SigV4.Request(
        method: call.method.rawValue, path: path, query: call.query, headers: headers, bodyDigest: digest),
      SigV4.Scope(time: time, region: configuration.region, service: Self.service),
      configuration.credentials, normalizesPath: false)
    headers.append(("authorization", authorization))
    return try client.execute(
      ObjectHTTPClient.Request(
        method: call.method, url: server.url(path, query: SigV4.canonicalQuery(call.query)),
        headers: headers, body: call.body, limit: call.limit, expected: call.expected),
      address(call.key))
  }

  // MARK: Reading

  package func get(_ key: String, _ range: Range<UInt64>?) throws(ObjectError) -> [UInt8]? {
    try ObjectKey.check(key, in: name)
    counter.add(\.reads)
    let request = ReadRequest(range: range)
    let answer = try execute(
      Call(
        method: .GET, key: key, headers: request.header.map { [("range", $0)] } ?? [], limit: request.limit,
        expected: request.expected))
    if let bytes = try request.bytes(answer, address(key)) { return bytes }
    if isAbsence(answer) { return nil }
    let failure = failure(answer, address(key))
    guard case .refused(let reason) = failure, S3Refusal(answer.body).code == "AccessDenied" else {
      throw failure
    }
    throw .refused("\(reason). Without the permission s3:ListBucket, a missing object is also answered so.")
  }

  /// Pages have up to 1000 keys.
  package func list(_ prefix: String, after last: String?) throws(ObjectError) -> ObjectPage {
    try ObjectKey.check(prefix: prefix, in: name)
    var start = last.map { keyPrefix + $0 }
    while true {
      counter.add(\.lists)
      var query = [
        (name: "list-type", value: "2"), ("encoding-type", "url"), ("prefix", keyPrefix + prefix),
      ]
      if let start { query.append((name: "start-after", value: start)) }
      let answer = try execute(
        Call(method: .GET, query: query, limit: Self.longestList, expected: Self.longestList))
      guard answer.status == 200, !answer.isTooLong else { throw failure(answer, name) }
      let list: S3List
      do { list = try S3List(answer.body) } catch {
        throw .refused("\(name): the server did not send a list of objects")
      }
      let page = try page(list, prefix, after: start)
      if !page.entries.isEmpty || page.isLast { return page }
      // All keys of the page belong to others.
      start = list.objects.map(\.key).max { ObjectKey.precedes($0, $1) }
    }
  }

  /// The keys of this store. Other programs may have written others below the prefix.
  private func page(_ list: S3List, _ prefix: String, after start: String?) throws(ObjectError) -> ObjectPage
  {
    var entries: [ObjectPage.Entry] = []
    for object in list.objects {
      guard object.key.hasPrefix(keyPrefix + prefix),
        start.map({ ObjectKey.precedes($0, object.key) }) ?? true
      else {
        throw .refused("\(name): the list has a key of another prefix, or is not in the order of bytes")
      }
      let key = String(object.key.dropFirst(keyPrefix.count))
      if ObjectKey.isValid(key) { entries.append(.init(key: key, tag: object.tag)) }
    }
    if list.objects.isEmpty, list.isTruncated {
      throw .refused("\(name): the list is empty, and more is announced")
    }
    entries.sort { ObjectKey.precedes($0.key, $1.key) }
    return ObjectPage(entries: entries, isLast: !list.isTruncated)
  }

  // MARK: Writing

  package func put(_ key: String, _ bytes: [UInt8], ifAbsent: Bool) throws(ObjectError) -> Bool {
    try ObjectKey.check(key, in: name)
    counter.add(\.writes)
    let answer = try execute(
      Call(
        method: .PUT, key: key, headers: ifAbsent ? [("if-none-match", "*")] : [], body: bytes,
        expected: bytes.count))
    switch answer.status {
    case 200, 201, 204: return true
    case 412 where ifAbsent: return false
    default: throw failure(answer, address(key), isConditional: ifAbsent)
    }
  }

  package func delete(_ key: String) throws(ObjectError) {
    try ObjectKey.check(key, in: name)
    counter.add(\.deletions)
    let answer = try execute(Call(method: .DELETE, key: key))
    guard answer.status == 200 || answer.status == 204 || isAbsence(answer) else {
      throw failure(answer, address(key))
    }
  }

  // MARK: Errors

  /// Codes of client errors (4xx) after which the same request may succeed.
  private static let transient: Set = [
    "RequestTimeout", "IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch", "SlowDown",
    "OperationAborted", "ConditionalRequestConflict",
  ]

  /// Whether an object is missing, and not its bucket.
  private func isAbsence(_ answer: ObjectHTTPClient.Answer) -> Bool {
    guard answer.status == 404 else { return false }
    return ["", "NoSuchKey", "NotFound"].contains(S3Refusal(answer.body).code)
  }

  private func failure(_ answer: ObjectHTTPClient.Answer, _ address: String, isConditional: Bool = false)
    -> ObjectError
  {
    let refusal = S3Refusal(answer.body)
    let words = [refusal.code, refusal.message].filter { !$0.isEmpty }.joined(separator: ": ")
    let reason = configuration.credentials.redacted(
      "\(address): status \(answer.status)" + (words.isEmpty ? "" : " (\(words))"))
    if refusal.code == "RequestTimeTooSkewed" {
      let date = answer.headers.first(name: "date").map { " of the server, \(ObjectKey.printable($0))" } ?? ""
      return .refused("\(reason). The clock of this machine differs from that\(date). Set the clock.")
    }
    if let region = answer.headers.first(name: "x-amz-bucket-region"), region != configuration.region,
      answer.status == 301 || refusal.code == "AuthorizationHeaderMalformed"
    {
      return .refused("\(reason). The bucket is in the region \(ObjectKey.printable(region)).")
    }
    if isConditional, answer.status == 501 || refusal.code == "NotImplemented" {
      return .refused("\(reason). The store has no conditional writes (If-None-Match).")
    }
    if answer.isTooLong, answer.status < 300 { return .refused("\(address): the answer is too long") }
    switch answer.status {
    case 501: return .refused(reason)
    case 408, 409, 425, 429, 500...599: return .unknown(reason)
    default: return Self.transient.contains(refusal.code) ? .unknown(reason) : .refused(reason)
    }
  }
}
