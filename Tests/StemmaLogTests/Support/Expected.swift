import StemmaEvents
import StemmaLog

/// The naive order of (partition, model, key), then position.
func sortedByKey(_ events: [StoredEvent]) -> [StoredEvent] {
  events.sorted { a, b in
    let (keyA, keyB) = (RecordKey(a.event), RecordKey(b.event))
    return keyA == keyB ? a.position < b.position : keyA < keyB
  }
}

let testLog = LogID(0x0123_4567_89ab_cdef)

func hex(_ bytes: [UInt8]) -> String {
  let digits = Array("0123456789abcdef")
  return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
}
