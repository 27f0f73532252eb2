import StemmaEvents

/// What is wrong with the bytes of a log file.
package enum Flaw: Error, Equatable, Sendable {
  /// A file that the others say must be there is not.
  case missing
  /// There is something else under its name.
  case notAFile(NotAFile)
  case empty
  /// The file does not begin, or a part of it does not begin, as this format does.
  case notThisFormat
  /// Bytes that must be there are not.
  case cutShort(expected: UInt64, found: UInt64)
  /// There are fewer bytes, or more, than there must be: by how many.
  case lacking(UInt64)
  case surplus(UInt64)
  /// A CRC32C does not fit the bytes that it covers.
  case checksum(expected: UInt32, found: UInt32)
  /// The SHA-256 of a segment does not fit its bytes.
  case digest
  /// The checks hold, but a field has a value that it cannot have: which.
  case malformed(_ field: String)
  /// Two places that must say the same do not: what they say.
  case disagreement(_ subject: String)
  /// The log has another event of this name before it: a machine was set back, and what it wrote then is here too.
  case doubled(Partition, Dot)
  /// Events that damage took, and that are not found again yet (`BlockEntry.isGap`).
  case gap
  /// A block that its checksum covers does not decode.
  case block(EventsError)
}

/// A place in a log file where its bytes are not what they were.
package struct Damage: Hashable, Sendable {
  package var path: String
  /// Bytes from the beginning of the file.
  package var offset: UInt64
  package var flaw: Flaw

  package init(path: String, offset: UInt64, flaw: Flaw) {
    self.path = path
    self.offset = offset
    self.flaw = flaw
  }

  package var error: LogError { .damaged(path: path, offset: offset, flaw) }
}

extension Flaw {
  package var isNotAFile: Bool { if case .notAFile = self { true } else { false } }

  /// Whether the bytes are what was written, and only a name is there twice.
  package var isDoubled: Bool { if case .doubled = self { true } else { false } }
}

extension Damage: Comparable {
  package static func < (a: Damage, b: Damage) -> Bool {
    a.path == b.path ? a.offset < b.offset : a.path.hasBytes(before: b.path)
  }
}

extension Flaw: Hashable {
  package func hash(into hasher: inout Hasher) { hasher.combine(String(describing: self)) }
}

/// What can have a file's name and is none.
package enum NotAFile: Hashable, Sendable { case directory, linkLoop, deadLink, pipe, socket, device }

/// Every error of this module.
package enum LogError: Error, Equatable, Sendable {
  /// The operating system refused.
  case system(path: String, operation: String, errno: Int32)
  /// There is something else where a file was to be opened.
  case notAFile(path: String, NotAFile)
  /// Bytes of a log file are not what was written. Nothing that they held was returned.
  case damaged(path: String, offset: UInt64, Flaw)
  /// The file was written by a newer version of this software. Nothing has been changed.
  case newerFormat(path: String, found: UInt8, supported: UInt8)
  /// The file belongs to another log.
  case foreignLog(path: String, expected: LogID, found: LogID)
  /// There is no log in this directory.
  case noLog(path: String)
  /// There is a log in this directory already.
  case logExists(path: String)
  /// Another process kept the writer lock for longer than was to be waited. nil: it left no pid.
  case inUse(path: String, pid: Int32?)
  /// A sync failed since the log was opened; what it holds on disk is unknown until it is opened again.
  case poisoned(path: String)
  case readOnly(path: String)
  /// Something to be written, or a length that was read, is above its limit in `LogLimits`.
  case overLimit(subject: String, found: UInt64, limit: UInt64)
  /// The events to be stored are not a run of their stream without a hole: nothing was written.
  case hole(partition: Partition, origin: Origin, expected: Sequence, found: Sequence)

  /// The damage that this error is about, if it is about any.
  package var damage: Damage? {
    guard case .damaged(let path, let offset, let flaw) = self else { return nil }
    return Damage(path: path, offset: offset, flaw: flaw)
  }

  /// Whether a path named a file that is not there.
  package var isNotFound: Bool {
    if case .system(_, _, System.notFound) = self { true } else { false }
  }

  /// Whether a path of the log named no file.
  var isNoFile: Bool { isNotFound || damage?.flaw.isNotAFile == true }
}

/// Runs `body` and says where a flaw was found.
func locating<Result>(
  _ path: String, _ offset: UInt64, _ body: () throws(Flaw) -> Result
) throws(LogError) -> Result {
  do throws(Flaw) { return try body() } catch { throw .damaged(path: path, offset: offset, error) }
}

/// Runs `body`, which decodes a block that stands at `offset`.
func decoding<Result>(
  _ path: String, _ offset: UInt64, _ body: () throws(EventsError) -> Result
) throws(LogError) -> Result {
  do throws(EventsError) { return try body() } catch {
    throw .damaged(path: path, offset: offset, .block(error))
  }
}
