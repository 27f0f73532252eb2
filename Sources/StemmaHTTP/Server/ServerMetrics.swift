import NIOConcurrencyHelpers

/// Counters of a server in the text format of Prometheus. No label names a partition.
final class ServerMetrics: Sendable {
  private struct Request: Hashable, Comparable {
    var verb: String
    var status: Int

    static func < (a: Request, b: Request) -> Bool { (a.verb, a.status) < (b.verb, b.status) }
  }

  private struct Counters {
    var requests: [Request: UInt64] = [:]
    var seconds = 0.0
    var sent: UInt64 = 0
    var received: UInt64 = 0
    var read: UInt64 = 0
    var shipped: UInt64 = 0
    var adopted: UInt64 = 0
    var streams = 0
  }

  private let counters = NIOLockedValueBox(Counters())

  func add(_ line: RequestRecord.Line) {
    counters.withLockedValue { counters in
      counters.requests[Request(verb: line.verb, status: line.status), default: 0] += 1
      counters.seconds += line.seconds
      counters.sent += line.sent
      counters.received += line.received
      counters.read += line.bytesRead
      if line.verb == "push" { counters.adopted += line.events } else { counters.shipped += line.events }
    }
  }

  func addStream(_ count: Int) { counters.withLockedValue { $0.streams += count } }

  var text: String {
    let counters = counters.withLockedValue { $0 }
    var lines = ["# TYPE stemma_requests_total counter"]
    for (request, count) in counters.requests.sorted(by: { $0.key < $1.key }) {
      lines.append("stemma_requests_total{verb=\"\(request.verb)\",status=\"\(request.status)\"} \(count)")
    }
    func add(_ name: String, _ type: String, _ value: some CustomStringConvertible) {
      lines += ["# TYPE \(name) \(type)", "\(name) \(value)"]
    }
    add("stemma_request_seconds_total", "counter", counters.seconds)
    add("stemma_sent_bytes_total", "counter", counters.sent)
    add("stemma_received_bytes_total", "counter", counters.received)
    add("stemma_log_read_bytes_total", "counter", counters.read)
    add("stemma_shipped_events_total", "counter", counters.shipped)
    add("stemma_adopted_events_total", "counter", counters.adopted)
    add("stemma_change_streams", "gauge", counters.streams)
    return lines.joined(separator: "\n") + "\n"
  }
}
