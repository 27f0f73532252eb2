import StemmaEvents

// Inspection: a reading that goes on. Everything else in this module stops at the first byte that is not as
// it was written; here a file is taken apart as far as its bytes allow, and what is wrong is said beside what
// is there. Nothing is written, nothing is held but one part at a time (and of a segment its footer), and
// whatever the bytes are, reading them ends.

/// A run of bytes of a file: what it is, what it says, and what is wrong with it.
package struct InspectedPart: Sendable {
  package enum Kind: String, Sendable {
    case header
    case block
    /// A frame of a journal, with its block.
    case frame
    case footer
    case filter
    case trailer
    /// Of a watermark.
    case slot
    /// Bytes that belong to nothing that could be read.
    case unknown
  }

  package enum Fact: Hashable, Sendable {
    case number(UInt64)
    case text(String)
    case position(Position)
  }

  package var kind: Kind
  /// Bytes from the beginning of the file. Of a block or a slot that is not there any more: where it would be, or 0.
  package var offset: UInt64
  package var length: UInt64
  /// Of blocks, frames and slots: from 1, in the order of the file.
  package var number: Int?
  /// The file number in the positions of its events; 0 where they have none.
  package var place: UInt64 = 0
  package var facts: [(name: String, value: Fact)] = []
  package var flaws: [InspectedFlaw] = []
  /// The events, if the bytes decode; of a block with one wrong byte, as it was before.
  package var block: BlockReader?
  /// Of blocks: whether a checksum says that it is what was written.
  package var isChecked = false

  package init(_ kind: Kind, at offset: UInt64, _ length: UInt64, number: Int? = nil) {
    self.kind = kind
    self.offset = offset
    self.length = length
    self.number = number
  }

  /// Traps if it has no number and is of a kind that is counted, or has one and can be none of these, if events are in
  /// what holds none, or if it ends behind what a file can have. In debug builds when it is told.
  package func checkInvariants() {
    let isCounted = kind == .block || kind == .frame || kind == .slot
    precondition(number != nil || !isCounted, "blocks, frames and slots have a number")
    precondition(number.map { $0 > 0 && (isCounted || kind == .unknown) } ?? true, "only these have, from 1")
    precondition(block == nil || kind == .block || kind == .frame || kind == .unknown, "events are in blocks")
    precondition(!offset.addingReportingOverflow(length).overflow, "a part is of a file")
  }

  /// Who is told of parts, told only of such as hold together.
  package static func checking(_ body: @escaping (Self) -> Void) -> (Self) -> Void {
    { part in
      assert(holds(part.checkInvariants))
      body(part)
    }
  }

  package mutating func say(_ name: String, _ number: UInt64) { facts.append((name, .number(number))) }
  package mutating func say(_ name: String, _ text: String) { facts.append((name, .text(text))) }
  package mutating func say(_ name: String, _ position: Position) {
    facts.append((name, .position(position)))
  }

  package mutating func complain(_ flaw: Flaw, at place: UInt64? = nil, byte: WrongByte? = nil) {
    flaws.append(InspectedFlaw(offset: byte?.offset ?? place ?? offset, flaw: flaw, byte: byte))
  }

  /// Takes in the content of a block; bytes whose checksum holds and that do not decode are a flaw too.
  package mutating func decode(_ bytes: [UInt8]) {
    switch BlockReader.inspecting(bytes) {
    case .success(let reader): block = reader
    case .failure(let error): complain(.block(error))
    }
  }
}

extension BlockReader {
  /// Reads a block, its values too.
  static func inspecting(_ bytes: [UInt8]) -> Result<BlockReader, EventsError> {
    Result { () throws(EventsError) -> BlockReader in
      let reader = try BlockReader(bytes, limit: InspectionLimits.blockStream)
      _ = try reader.values()
      return reader
    }
  }

  /// nil: the bytes are no block.
  init?(inspecting bytes: [UInt8]) {
    guard case .success(let reader) = Self.inspecting(bytes) else { return nil }
    self = reader
  }
}

/// Something that is wrong at a place of a file.
package struct InspectedFlaw: Sendable {
  /// Bytes from the beginning of the file: of the wrong byte where that is known, else of the part.
  package var offset: UInt64
  package var flaw: Flaw
  package var byte: WrongByte?
  /// Where it cannot be told which bytes are wrong: among which of the file they are.
  package var range: Range<UInt64>?
}

/// The one byte in which a part differs from what its checksum was made of.
package struct WrongByte: Hashable, Sendable {
  /// Bytes from the beginning of the file.
  package var offset: UInt64
  package var found: UInt8
  package var expected: UInt8

  package init(offset: UInt64, found: UInt8, expected: UInt8) {
    self.offset = offset
    self.found = found
    self.expected = expected
  }
}

/// What is asked of a file.
package struct InspectionRequest: Sendable {
  /// Only this block, frame or slot; from 1.
  package var block: Int?
  /// Compare, too, what needs the whole content: digests, hashes of streams, key filter.
  package var isComplete: Bool
  /// Of which log and number a journal is, if its header does not tell.
  var journal: (log: LogID, number: UInt64)?

  package init(block: Int? = nil, isComplete: Bool = false) {
    self.block = block
    self.isComplete = isComplete
  }

  package func wants(_ number: Int?) -> Bool { block == nil || block == number }
}

package enum InspectionLimits {
  /// Raw bytes of one stream of a block, above which its content is not shown.
  package static let blockStream = 64 << 20
  /// Stored bytes of a part, above which it is not read.
  package static let part = 128 << 20
  /// Bytes missing or too many before a frame, above which it is not found.
  package static let shift = 1 << 16
  /// How many times as many bytes as a journal has are read at most to look for frames in it.
  package static let readings: UInt64 = 16
}

/// A file that is looked at.
package struct InspectedFile: Sendable {
  package let path: String
  package let size: UInt64
  let file: any File

  package init(path: String, fileSystem: any FileSystem) throws(LogError) {
    let file = try fileSystem.open(path, .read)
    self.path = path
    self.file = file
    size = try file.size()
  }

  /// One that is open.
  init(path: String, file: any File, size: UInt64) {
    self.path = path
    self.file = file
    self.size = size
  }

  /// The bytes that are there, at most `count`.
  package func bytes(at offset: UInt64, count: Int) throws(LogError) -> [UInt8] {
    guard offset < size, count > 0 else { return [] }
    return try file.read(at: offset, count: Int(min(UInt64(count), size - offset)))
  }

  /// Where `pattern` stands first in `range` at a place that `isWanted`; nil if nowhere. Reads the file piece
  /// by piece, each once.
  package func first(
    _ pattern: [UInt8], in range: Range<UInt64>,
    where isWanted: (UInt64) throws(LogError) -> Bool = { (_) throws(LogError) in true }
  ) throws(LogError) -> UInt64? {
    var offset = range.lowerBound
    let overlap = pattern.count - 1
    while offset + UInt64(overlap) < range.upperBound {
      let count = Int(min(UInt64(LogLimits.scanChunk), range.upperBound - offset))
      let bytes = try bytes(at: offset, count: count)
      var index = 0
      while let found = bytes.firstIndex(of: pattern, from: index) {
        if try isWanted(offset + UInt64(found)) { return offset + UInt64(found) }
        index = found + 1
      }
      if bytes.count <= overlap { return nil }
      offset += UInt64(bytes.count - overlap)
    }
    return nil
  }
}

extension [UInt8] {
  fileprivate func firstIndex(of pattern: [UInt8], from start: Int) -> Int? {
    withUnsafeBytes { bytes in
      pattern.withUnsafeBytes { pattern in
        var index = start
        while index + pattern.count <= bytes.count {
          if bytes[index] == pattern[0],
            (1..<pattern.count).allSatisfy({ bytes[index + $0] == pattern[$0] })
          {
            return index
          }
          index += 1
        }
        return nil
      }
    }
  }
}
