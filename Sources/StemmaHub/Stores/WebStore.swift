import Foundation
import NIOHTTP1
import StemmaReplication

/// Objects on a web server, which can only be read.
///
/// Keys are paths below the URL. Web servers have no common form of lists: `list` reads the file
/// `index` at the prefix, which the publisher writes. It has one line for each object: its key, a
/// tab, and its tag.
package final class WebStore: CountedStore {
  package let name: String
  private let server: ServerURL
  private let client: ObjectHTTPClient
  private let counter = RequestCounter()

  /// The file with the list of a prefix.
  package static let index = "index"
  private static let longestList = 16 << 20

  package convenience init(_ url: String) throws(ObjectError) { try self.init(url, patience: .init()) }

  init(_ url: String, patience: ObjectHTTPClient.Patience) throws(ObjectError) {
    server = try ServerURL(url)
    name = server.url(server.path)
    client = ObjectHTTPClient(followsRedirects: true, patience, counter)
  }

  package var requestCount: RequestCount { counter.count }

  package func get(_ key: String, _ range: Range<UInt64>?) throws(ObjectError) -> [UInt8]? {
    try ObjectKey.check(key, in: name)
    counter.add(\.reads)
    let request = ReadRequest(range: range)
    return try read(key, request, limit: request.limit, expected: request.expected)
  }

  private func read(_ key: String, _ request: ReadRequest, limit: Int, expected: Int) throws(ObjectError)
    -> [UInt8]?
  {
    let address = "\(name)/\(key)"
    // A compressed body would have other ranges.
    var headers = [(name: "accept-encoding", value: "identity")]
    if let range = request.header { headers.append((name: "range", value: range)) }
    let answer = try client.execute(
      ObjectHTTPClient.Request(
        method: .GET, url: server.url("\(server.path)/\(key)"), headers: headers, limit: limit,
        expected: expected),
      address)
    if answer.status == 404 || answer.status == 410 { return nil }
    if answer.isTooLong, request.range == nil, answer.status < 300 {
      throw .refused("\(address): the file is too long")
    }
    if let bytes = try request.bytes(answer, address) { return bytes }
    let reason = "\(address): status \(answer.status)"
    switch answer.status {
    case 408, 425, 429, 500...599: throw .unknown(reason)
    default: throw .refused(reason)
    }
  }

  package func list(_ prefix: String, after last: String?) throws(ObjectError) -> ObjectPage {
    try ObjectKey.check(prefix: prefix, in: name)
    counter.add(\.lists)
    let key = prefix + Self.index
    let bytes = try read(
      key, ReadRequest(range: nil), limit: Self.longestList, expected: Self.longestList)
    var entries: [ObjectPage.Entry] = []
    for line in (bytes ?? []).split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) {
      let parts = line.split(separator: 0x09, omittingEmptySubsequences: false)
      let entry = ObjectPage.Entry(
        key: String(decoding: parts[0], as: UTF8.self),
        tag: String(decoding: parts.count == 2 ? parts[1] : [], as: UTF8.self))
      guard parts.count == 2, ObjectKey.isValid(entry.key), entry.key.hasPrefix(prefix) else {
        throw .refused("\(name)/\(key): \"\(ObjectKey.printable(entry.key))\" is no line of an index")
      }
      if last.map({ ObjectKey.precedes($0, entry.key) }) ?? true { entries.append(entry) }
    }
    entries.sort { ObjectKey.precedes($0.key, $1.key) }
    return ObjectPage(entries: entries, isLast: true)
  }

  package func put(_ key: String, _ bytes: [UInt8], ifAbsent: Bool) throws(ObjectError) -> Bool {
    throw .refused("\(name): a web site cannot be written")
  }

  package func delete(_ key: String) throws(ObjectError) {
    throw .refused("\(name): a web site cannot be written")
  }
}
