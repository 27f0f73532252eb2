import StemmaEvents
import StemmaReplication

/// The requests of a store since it was opened. Failed requests count too.
package struct RequestCount: Hashable, Sendable {
  package var reads = 0
  package var writes = 0
  package var lists = 0
  package var deletions = 0
  /// Bytes of received bodies, without headers.
  package var bytesIn: UInt64 = 0
  /// Bytes of sent bodies, without headers.
  package var bytesOut: UInt64 = 0

  package init() {}

  package var total: Int { reads + writes + lists + deletions }
}

/// A store that counts its requests.
package protocol CountedStore: ObjectStore {
  var requestCount: RequestCount { get }
}

/// Counts from several threads.
final class RequestCounter: Sendable {
  private let counted = Mutex(RequestCount())

  var count: RequestCount { counted.withLock { $0 } }

  func add(_ kind: WritableKeyPath<RequestCount, Int> & Sendable) {
    counted.withLock { $0[keyPath: kind] += 1 }
  }

  func add(bytesIn: Int = 0, bytesOut: Int = 0) {
    counted.withLock { count in
      count.bytesIn &+= UInt64(bytesIn)
      count.bytesOut &+= UInt64(bytesOut)
    }
  }
}
