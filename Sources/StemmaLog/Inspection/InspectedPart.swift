import StemmaEvents

/// A run of bytes of an inspected file: its kind, its content, and its corruption.
package struct InspectedPart: Sendable {
  package enum Kind: String, Sendable {
    case header
    case block
    /// A frame of a journal, with its block.
    case frame
    /// The root of a segment's footer.
    case footer
    /// A page of a segment's footer.
    case page
    case filter
    case trailer
    /// A slot of a watermark.
    case slot
    /// Bytes that belong to no part that could be read.
    case unknown
  }

  package enum Fact: Hashable, Sendable {
    case number(UInt64)
    case text(String)
    case position(Position)
  }

  package var kind: Kind
  /// Bytes from the beginning of the file. A missing slot has the offset that it would have.
  package var offset: UInt64
  package var length: UInt64
  /// Blocks, frames and slots are numbered from 1, in the order of the file.
  package var number: Int?
  /// The position of the first position of its file; nil if that is not known.
  package var base: Position?
  package var facts: [(name: String, value: Fact)] = []
  package var flaws: [InspectedFlaw] = []
  /// The events, if the bytes decode.
  package var block: BlockReader?
  /// Whether a checksum covers the events, and holds.
  package var isChecked = false

  package init(_ kind: Kind, at offset: UInt64, _ length: UInt64, number: Int? = nil) {
    self.kind = kind
    self.offset = offset
    self.length = length
    self.number = number
  }

  package var end: UInt64 { offset + length }

  /// Traps if the number or the events do not fit the kind, or if the part ends behind any file.
  package func checkInvariants() {
    let isCounted = kind == .block || kind == .frame || kind == .slot
    precondition(isCounted == (number != nil), "blocks, frames and slots have a number")
    precondition(block == nil || kind == .block || kind == .frame, "events are in blocks")
    precondition(!offset.addingReportingOverflow(length).overflow, "a part is of a file")
  }

  package mutating func say(_ name: String, _ number: UInt64) { facts.append((name, .number(number))) }
  package mutating func say(_ name: String, _ text: String) { facts.append((name, .text(text))) }
  package mutating func say(_ name: String, _ position: Position) {
    facts.append((name, .position(position)))
  }

  package mutating func complain(_ flaw: Flaw, at place: UInt64? = nil) {
    flaws.append(InspectedFlaw(offset: place ?? offset, flaw: flaw))
  }

  /// The result of `body`; nil if that throws corruption, which is added here.
  mutating func reading<Content>(_ body: () throws(LogError) -> Content) throws(LogError) -> Content? {
    do throws(LogError) { return try body() } catch {
      guard case .corrupt(_, _, let flaw) = error else { throw error }
      complain(flaw)
      return nil
    }
  }

  package mutating func decode(_ bytes: [UInt8]) {
    do throws(EventsError) {
      let reader = try BlockReader(bytes, limit: InspectionLimits.blockStream)
      _ = try reader.values()
      block = reader
    } catch { complain(.block(error)) }
  }

  /// Decodes a block if its checksum holds.
  package mutating func decode(_ bytes: [UInt8], checksum expected: UInt32) {
    let found = bytes.crc32c
    guard found == expected else { return complain(.checksum(expected: expected, found: found)) }
    decode(bytes)
    isChecked = true
  }

  /// Compares the number of decoded events with `count`, which `source` states.
  mutating func checkEvents(_ count: Int, _ source: String) {
    guard let block, block.count != count else { return }
    complain(.disagreement("\(block.count) events, the \(source) says \(count)"))
  }
}

/// Corruption at a place of a file.
package struct InspectedFlaw: Sendable {
  /// Bytes from the beginning of the file.
  package var offset: UInt64
  package var flaw: Flaw
}

package struct InspectionRequest: Sendable {
  /// Only this block, frame or slot; from 1.
  package var block: Int?
  /// Compare digests, which cover whole files.
  package var isComplete: Bool
  /// The log of a journal whose header is corrupt.
  package var log: LogID?

  package init(block: Int? = nil, isComplete: Bool = false, log: LogID? = nil) {
    self.block = block
    self.isComplete = isComplete
    self.log = log
  }

  package func wants(_ number: Int?) -> Bool { block == nil || block == number }
}

package enum InspectionLimits {
  /// Raw bytes of one stream of a block that is decoded.
  package static let blockStream = 64 << 20
  /// Stored bytes of a block that is read.
  package static let part = 128 << 20
  /// The bytes that a search tries as blocks or frames, in sizes of the file.
  static let readings: UInt64 = 16
}
