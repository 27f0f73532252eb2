import AsyncHTTPClient
import NIOCore
import StemmaNode
import StemmaSync

extension HTTPPeer {
  /// Wakes at each change hint of the server, until the follower stops. A lost stream is opened
  /// again; meanwhile the follower asks at its interval.
  package func watch(_ wake: Wake) {
    Task { [self] in
      var failures = 0
      while !wake.isDone {
        do {
          let response = try await changes()
          failures = 0
          // Hints may have been missed before.
          wake.signal()
          for try await part in response.body {
            if wake.isDone { return }
            if part.readableBytesView.starts(with: Self.hint) { wake.signal() }
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

  private static let hint = Array("event: change".utf8)
}
