import AsyncHTTPClient
import Foundation
import NIOCore
import StemmaEvents
import StemmaNode
import StemmaSync

extension HTTPPeer {
  /// Wakes at each change hint of the server, until the follower stops. A lost stream is opened
  /// again; meanwhile the follower asks at its interval.
  ///
  /// - Parameter peer: the server, with the token of this time.
  package static func watch(_ wake: Wake, _ peer: @escaping @Sendable () throws -> HTTPPeer) {
    Task {
      var failures = 0
      while !wake.isDone {
        do {
          let response = try await peer().changes()
          failures = 0
          // Hints may have been missed before.
          wake.signal(.everything)
          var hints = HintDecoder()
          for try await part in response.body {
            if wake.isDone { return }
            if let news = hints.news(in: part) { wake.signal(news) }
          }
        } catch {
          // The exchanges report why the server cannot be reached.
        }
        let longest = min(60, 0.5 * Double(1 << min(failures, 7)))
        failures += 1
        do { try await Task.sleep(for: .seconds(longest * Double.random(in: 0.5...1))) } catch { return }
      }
    }
  }
}

/// Reads the hints of a stream of server-sent events.
private struct HintDecoder {
  private struct Hint: Decodable {
    var partition: String
    var origin: String
    var sequence: UInt64
  }

  /// Longest line, in bytes.
  private static let limit = 1 << 20
  private static let prefix = Array("data: ".utf8)
  /// A line whose end has not arrived.
  private var rest: [UInt8] = []

  /// Nil: the part has no hint. A hint that cannot be read may concern everything.
  mutating func news(in part: ByteBuffer) -> News? {
    rest += part.readableBytesView
    var heads: [StreamID: SequenceNumber] = [:]
    var lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    rest = Array(lines.removeLast())
    for line in lines where line.starts(with: Self.prefix) {
      let hint: Hint
      do { hint = try JSONDecoder().decode(Hint.self, from: Data(line.dropFirst(Self.prefix.count))) } catch {
        return .everything
      }
      guard let origin = UInt64(hint.origin, radix: 16) else { return .everything }
      let stream = StreamID(partition: Partition(hint.partition), origin: Origin(origin))
      heads[stream] = max(heads[stream] ?? .zero, SequenceNumber(hint.sequence))
    }
    guard rest.count <= Self.limit else {
      rest = []
      return .everything
    }
    return heads.isEmpty ? nil : .heads(heads)
  }
}
