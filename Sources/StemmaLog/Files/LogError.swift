import StemmaEvents

/// A defect in the bytes of a log file.
package enum Flaw: Error, Equatable, Sendable {
  /// A file that other files require is missing.
  case missing
  /// Something other than a regular file has the name.
  case notAFile(NotAFile)
  case empty
  /// The file, or a part of it, lacks the magic bytes.
  case notThisFormat
  /// Required bytes are missing.
  case cutShort(expected: UInt64, found: UInt64)
  /// A CRC32C does not fit the bytes that it covers.
  case checksum(expected: UInt32, found: UInt32)
  /// The SHA-256 of a segment does not fit its bytes.
  case digest
  /// The checksums hold, but the named field has an impossible value.
  case malformed(_ field: String)
  /// Two places that must agree do not; the text states how.
  case disagreement(_ subject: String)
  /// A duplicate event id: a machine was restored from an older state and wrote again.
  case duplicate(Partition, EventID)
  /// Bytes that a checksum covers do not decode.
  case block(EventsError)
}

extension Flaw: ByteReaderError {
  package static func malformed(_ subject: String, _ found: String) -> Flaw {
    .block(.malformed(subject, found))
  }

  package static func overLimit(_ subject: String, found: UInt64, limit: UInt64) -> Flaw {
    .block(.overLimit(subject, found: found, limit: limit))
  }
}

/// A place in a log file whose bytes have changed.
package struct Corruption: Hashable, Sendable {
  package var path: String
  /// Bytes from the beginning of the file.
  package var offset: UInt64
  package var flaw: Flaw

  package init(path: String, offset: UInt64, flaw: Flaw) {
    self.path = path
    self.offset = offset
    self.flaw = flaw
  }

  package var error: LogError { .corrupt(path: path, offset: offset, flaw) }
}

extension Flaw {
  package var isNotAFile: Bool { if case .notAFile = self { true } else { false } }

  /// Whether the bytes are intact and only an event id is duplicate.
  package var isDuplicate: Bool { if case .duplicate = self { true } else { false } }
}

extension Corruption: Comparable {
  package static func < (a: Corruption, b: Corruption) -> Bool {
    a.path == b.path ? a.offset < b.offset : a.path.hasBytes(before: b.path)
  }
}

extension Flaw: Hashable {
  package func hash(into hasher: inout Hasher) { hasher.combine(String(describing: self)) }
}

/// Objects other than regular files.
package enum NotAFile: Hashable, Sendable { case directory, linkLoop, deadLink, pipe, socket, device }

package enum LogError: Error, Equatable, Sendable {
  /// The operating system refused.
  case system(path: String, operation: String, errno: Int32)
  /// Something other than a regular file was to be opened.
  case notAFile(path: String, NotAFile)
  /// Bytes of a log file are not what was written. Nothing that they held was returned.
  case corrupt(path: String, offset: UInt64, Flaw)
  /// The file was written by a newer version of this software. Nothing has been changed.
  case newerFormat(path: String, found: UInt8, supported: UInt8)
  /// The file belongs to another log.
  case foreignLog(path: String, expected: LogID, found: LogID)
  /// Both manifests are unreadable, so the list of live files is unknown.
  case noManifest(path: String, Flaw)
  /// There is no log in this directory.
  case noLog(path: String)
  /// There is a log in this directory already.
  case logExists(path: String)
  /// Another process held the writer lock beyond the wait limit. nil: it left no pid.
  case inUse(path: String, pid: Int32?)
  /// A sync failed. The bytes on disk are unknown until the log is opened again.
  case poisoned(path: String)
  case readOnly(path: String)
  /// Something to be written, or a length that was read, is above its limit in `LogLimits`.
  case overLimit(subject: String, found: UInt64, limit: UInt64)
  /// The events to be stored are not a run of their stream without a gap. Nothing was written.
  case gap(partition: Partition, origin: Origin, expected: SequenceNumber, found: SequenceNumber)

  /// The corruption that this error is about, if it is about any.
  package var corruption: Corruption? {
    guard case .corrupt(let path, let offset, let flaw) = self else { return nil }
    return Corruption(path: path, offset: offset, flaw: flaw)
  }

  /// Whether a path named a file that is not there.
  package var isNotFound: Bool {
    if case .system(_, _, System.notFound) = self { true } else { false }
  }

  /// Whether a path of the log named no file.
  var isNoFile: Bool { isNotFound || corruption?.flaw.isNotAFile == true }
}

/// Runs `body` and adds the place to a flaw.
func locating<Result>(
  _ path: String, _ offset: UInt64, _ body: () throws(Flaw) -> Result
) throws(LogError) -> Result {
  do throws(Flaw) { return try body() } catch { throw .corrupt(path: path, offset: offset, error) }
}

/// Runs `body`, which decodes a block at `offset`.
func decoding<Result>(
  _ path: String, _ offset: UInt64, _ body: () throws(EventsError) -> Result
) throws(LogError) -> Result {
  do throws(EventsError) { return try body() } catch {
    throw .corrupt(path: path, offset: offset, .block(error))
  }
}
