import CZlib
import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode

/// Reads a file or standard input line by line. Detects gzip by its bytes and inflates it.
///
/// Memory is bounded by the longest allowed line; a longer one is an error as soon as it passes the
/// limit. The last line needs no line end. Empty lines are returned.
package struct LineReader: ~Copyable {
  /// The longest line in bytes: the longest text with each byte escaped, plus 1 MiB.
  package static let limit = 2 * Limits.value + (1 << 20)

  private let descriptor: Int32
  private let name: String
  private let closes: Bool
  private var inflater: GzipInflater?
  private var started = false
  private var ended = false
  /// Whether a byte order mark was looked for.
  private var isMetadataChecked = false
  private var buffer: [UInt8] = []
  /// The start of the next line, and the offset up to which no line end was found.
  private var start = 0
  private var searched = 0
  private var chunk = [UInt8](repeating: 0, count: 256 << 10)
  /// Compressed bytes that are read and not yet inflated.
  private var compressed: ArraySlice<UInt8> = []
  /// The number of compressed bytes to inflate at once. They can expand a thousandfold.
  private static let inflated = 1 << 10
  /// The most bytes that one read or inflation adds.
  private static let slack = 2 << 20

  /// Whether lines keep a `\r` at their end.
  package var keepsReturns = false
  /// The number of the line that `next` returned last; the first is 1.
  package private(set) var lineNumber = 0
  /// Bytes read from the file, before decompression.
  package private(set) var bytesRead = 0

  /// Opens a file; `-` is standard input.
  package init(path: String) throws(NodeError) {
    if path == "-" {
      (descriptor, name, closes) = (0, "standard input", false)
    } else {
      let opened = open(path, O_RDONLY | O_CLOEXEC)
      guard opened >= 0 else { throw .cannotRead(path: path, errno: errno) }
      // `open` accepts a directory; only `read` would fail.
      var status = stat()
      guard fstat(opened, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
        close(opened)
        throw .cannotRead(path: path, errno: EISDIR)
      }
      (descriptor, name, closes) = (opened, path, true)
    }
  }

  /// Whether reading the path may block, as with a pipe.
  package static func isStream(path: String) -> Bool {
    var status = stat()
    guard (path == "-" ? fstat(0, &status) : stat(path, &status)) == 0 else { return false }
    return status.st_mode & S_IFMT != S_IFREG
  }

  /// Copies a source that can be read only once into a new file.
  static func copy(_ path: String, to target: String) throws(NodeError) {
    let reader = try LineReader(path: path)
    let opened = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard opened >= 0 else { throw .log(.system(path: target, operation: "open", errno: errno)) }
    let copy = FileHandle(fileDescriptor: opened, closeOnDealloc: true)
    var chunk = [UInt8](repeating: 0, count: 256 << 10)
    while true {
      let count = System.uninterrupted {
        chunk.withUnsafeMutableBytes { read(reader.descriptor, $0.baseAddress, $0.count) }
      }
      guard count >= 0 else { throw .cannotRead(path: reader.name, errno: errno) }
      if count == 0 { return }
      try Node.wrapping { try copy.write(contentsOf: chunk[..<count]) }
    }
  }

  deinit {
    if closes { close(descriptor) }
  }

  /// The next line without its end (`\n` or `\r\n`), valid inside of `body`; nil at the end.
  package mutating func next<Result>(
    _ body: (UnsafeRawBufferPointer) throws(NodeError) -> Result
  ) throws(NodeError) -> Result? {
    try skipMark()
    while true {
      if let end = findEnd() {
        lineNumber += 1
        let range = start..<end
        start = end + 1
        searched = start
        return try give(range, body)
      }
      guard buffer.count - start <= Self.limit else {
        throw .lineTooLong(source: name, line: lineNumber + 1, limit: Self.limit)
      }
      if ended {
        guard start < buffer.count else { return nil }
        lineNumber += 1
        let range = start..<buffer.count
        start = buffer.count
        searched = start
        return try give(range, body)
      }
      try fill()
    }
  }

  // MARK: Elements

  /// The most bytes examined for the start of an array, or allowed after it.
  private static let lookahead = 64 << 10

  /// Consumes the tokens and white space before each, if the text begins with them.
  package mutating func consume(_ tokens: [String]) throws(NodeError) -> Bool {
    try skipMark()
    var offset = 0
    for token in tokens {
      while offset < Self.lookahead, let byte = try peek(offset), Self.isSpace(byte) { offset += 1 }
      for wanted in token.utf8 {
        guard try peek(offset) == wanted else { return false }
        offset += 1
      }
    }
    skip(offset)
    return true
  }

  /// The text of the next array element after a consumed `[`; nil after `]`. `lineNumber` counts
  /// elements. Memory is bounded by the longest element, which may have as many bytes as a line.
  package mutating func nextElement<Result>(
    _ body: (UnsafeRawBufferPointer) throws(NodeError) -> Result
  ) throws(NodeError) -> Result? {
    try skipSpace()
    if try peek(0) == UInt8(ascii: "]") {
      skip(1)
      return nil
    }
    if lineNumber > 0 {
      guard let byte = try peek(0) else { throw cutShort }
      guard byte == UInt8(ascii: ",") else {
        throw .malformedInput(
          source: name,
          what: "element \(lineNumber) of the array is not followed by a comma. Correct the file.")
      }
      skip(1)
      try skipSpace()
    }
    var scan = ElementScan()
    while !scan.read(buffer[start...]) {
      guard buffer.count - start <= Self.limit else {
        throw .lineTooLong(source: name, line: lineNumber + 1, limit: Self.limit)
      }
      if ended { throw cutShort }
      try fill()
    }
    lineNumber += 1
    let range = start..<start + scan.length
    skip(scan.length)
    return try give(range, body)
  }

  /// All remaining bytes, at most 64 KiB.
  package mutating func rest() throws(NodeError) -> [UInt8] {
    while !ended && buffer.count - start <= Self.lookahead { try fill() }
    guard buffer.count - start <= Self.lookahead else {
      throw .malformedInput(source: name, what: "text follows the array. Remove it.")
    }
    defer { skip(buffer.count - start) }
    return Array(buffer[start...])
  }

  package var cutShort: NodeError {
    .malformedInput(source: name, what: "the JSON array ends too early. Fetch the file again.")
  }

  /// The byte at `offset` from the current position; nil past the end.
  private mutating func peek(_ offset: Int) throws(NodeError) -> UInt8? {
    while start + offset >= buffer.count {
      if ended { return nil }
      try fill()
    }
    return buffer[start + offset]
  }

  private mutating func skip(_ count: Int) {
    start += count
    searched = start
  }

  private mutating func skipSpace() throws(NodeError) {
    while let byte = try peek(0), Self.isSpace(byte) { skip(1) }
  }

  private mutating func skipMark() throws(NodeError) {
    if isMetadataChecked { return }
    isMetadataChecked = true
    let metadata: [UInt8] = [0xEF, 0xBB, 0xBF]
    for (offset, byte) in metadata.enumerated() {
      guard try peek(offset) == byte else { return }
    }
    skip(3)
  }

  fileprivate static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
  }

  /// Traps if a line was skipped or bytes would never be returned. Valid between two lines.
  func checkInvariants() {
    precondition(start <= searched && searched <= buffer.count, "a line is given once")
    buffer.withUnsafeBytes { bytes in
      let base = bytes.baseAddress
      let hit = base.flatMap { memchr($0 + start, 10, searched - start) }
      precondition(hit == nil, "where was searched no line ends")
    }
    precondition(inflater == nil || started, "the first bytes say whether there is more to do with them")
    precondition(compressed.isEmpty || inflater != nil, "what is compressed is inflated")
    inflater?.checkInvariants()
  }

  private mutating func findEnd() -> Int? {
    let found: Int? = buffer.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress, searched < bytes.count,
        let hit = memchr(base + searched, 10, bytes.count - searched)
      else { return nil }
      return UnsafeRawPointer(hit) - base
    }
    searched = found ?? buffer.count
    return found
  }

  private func give<Result>(
    _ range: Range<Int>, _ body: (UnsafeRawBufferPointer) throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    guard range.count <= Self.limit else {
      throw .lineTooLong(source: name, line: lineNumber, limit: Self.limit)
    }
    let outcome: Swift.Result<Result, NodeError> = buffer.withUnsafeBytes { bytes in
      var line = range
      if !keepsReturns, !line.isEmpty, bytes[line.upperBound - 1] == 13 {
        line = line.lowerBound..<line.upperBound - 1
      }
      do throws(NodeError) {
        return .success(try body(UnsafeRawBufferPointer(rebasing: bytes[line])))
      } catch {
        return .failure(error)
      }
    }
    return try outcome.get()
  }

  /// Drops the returned lines, then reads or inflates more bytes into the buffer.
  private mutating func fill() throws(NodeError) {
    if start > 0 {
      buffer.removeFirst(start)
      searched -= start
      start = 0
    }
    if buffer.count + Self.slack > buffer.capacity {
      // Doubles the capacity. Past half of the limit, reserves all that the longest line needs: two
      // buffers of about that size would take twice the memory.
      let duplicate = max(2 * buffer.capacity, buffer.count + Self.slack)
      buffer.reserveCapacity(duplicate > Self.limit / 2 ? Self.limit + Self.slack : duplicate)
    }
    if let inflater, !compressed.isEmpty {
      try inflater.inflate(compressed.prefix(Self.inflated), into: &buffer)
      compressed = compressed.dropFirst(Self.inflated)
      return
    }
    let count = System.uninterrupted {
      chunk.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
    }
    guard count >= 0 else { throw .cannotRead(path: name, errno: errno) }
    if !started && count > 0 {
      started = true
      if chunk[0] == 0x1F, count < 2 || chunk[1] == 0x8B { inflater = try GzipInflater(name: name) }
    }
    bytesRead += count
    if count == 0 {
      ended = true
      // A plain file may be empty. An empty gzip file is the result of a failed transfer.
      if !started, name.hasSuffix(".gz") {
        throw .malformedInput(source: name, what: "the file is empty, which no gzip file is; fetch it again")
      }
      if let inflater, !inflater.isAtEnd {
        throw .malformedInput(source: name, what: "the gzip stream ends too early; fetch the file again")
      }
      return
    }
    if inflater != nil {
      compressed = chunk[..<count]
    } else {
      buffer.append(contentsOf: chunk[..<count])
    }
  }
}

/// Finds the end of a JSON value incrementally. The parser checks its syntax.
private struct ElementScan {
  /// Bytes that belong to the value.
  private(set) var length = 0
  private var depth = 0
  private var isText = false
  private var isEscaped = false

  /// `bytes` is the value from its start; `length` bytes were read before. True at its end.
  mutating func read(_ bytes: ArraySlice<UInt8>) -> Bool {
    for byte in bytes.dropFirst(length) {
      if isText {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isText = false
        }
        length += 1
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): isText = true
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        if depth == 0 { return true }
        depth -= 1
        if depth == 0 {
          length += 1
          return true
        }
      case UInt8(ascii: ","), 0x20, 0x0A, 0x0D, 0x09:
        if depth == 0 { return true }
      default: break
      }
      length += 1
    }
    return false
  }
}

/// Inflates a gzip stream incrementally. Concatenated members form one stream, as with gzip(1).
private final class GzipInflater {
  private var stream = z_stream()
  private let name: String
  private(set) var isAtEnd = false
  private var batch = [UInt8](repeating: 0, count: 256 << 10)

  init(name: String) throws(NodeError) {
    self.name = name
    // 15 bits of window, plus 16 to require a gzip header.
    guard inflateInit2_(&stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw .malformedInput(source: name, what: "zlib could not be started")
    }
  }

  deinit { inflateEnd(&stream) }

  /// Traps if zlib points to released input, or has lost its state.
  func checkInvariants() {
    precondition(stream.state != nil, "zlib has its tables")
    precondition(stream.next_in == nil && stream.avail_in == 0, "input is inflated at once")
    precondition(!isAtEnd || stream.total_in > 0, "a stream that ended has begun")
  }

  func inflate(_ input: ArraySlice<UInt8>, into output: inout [UInt8]) throws(NodeError) {
    var input = Array(input)
    let failed: Bool = input.withUnsafeMutableBufferPointer { bytes in
      stream.next_in = bytes.baseAddress
      stream.avail_in = UInt32(bytes.count)
      while stream.avail_in > 0 {
        if isAtEnd {
          // Tapes and block devices pad with zero bytes, which gzip(1) ignores as well.
          while stream.avail_in > 0, stream.next_in?.pointee == 0 {
            stream.next_in += 1
            stream.avail_in -= 1
          }
          if stream.avail_in == 0 { break }
          guard inflateReset(&stream) == Z_OK else { return true }
          isAtEnd = false
        }
        let status: Int32 = batch.withUnsafeMutableBufferPointer { space in
          stream.next_out = space.baseAddress
          stream.avail_out = UInt32(space.count)
          return CZlib.inflate(&stream, Z_NO_FLUSH)
        }
        output.append(contentsOf: batch[..<(batch.count - Int(stream.avail_out))])
        if status == Z_STREAM_END { isAtEnd = true } else if status != Z_OK { return true }
      }
      // Output that zlib holds back after filling a whole output buffer.
      while !isAtEnd && stream.avail_out == 0 {
        let status: Int32 = batch.withUnsafeMutableBufferPointer { space in
          stream.next_out = space.baseAddress
          stream.avail_out = UInt32(space.count)
          return CZlib.inflate(&stream, Z_NO_FLUSH)
        }
        output.append(contentsOf: batch[..<(batch.count - Int(stream.avail_out))])
        if status == Z_STREAM_END {
          isAtEnd = true
        } else if status != Z_OK && status != Z_BUF_ERROR {
          return true
        }
        if status == Z_BUF_ERROR { break }
      }
      return false
    }
    // These buffers are invalid after this call.
    (stream.next_in, stream.avail_in) = (nil, 0)
    (stream.next_out, stream.avail_out) = (nil, 0)
    if failed {
      throw .malformedInput(source: name, what: "the gzip stream is corrupt; fetch the file again")
    }
  }
}
