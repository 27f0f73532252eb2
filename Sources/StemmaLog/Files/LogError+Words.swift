import StemmaEvents

extension LogError: CustomStringConvertible {
  /// The problem and its place.
  package var description: String {
    switch self {
    case .system(let path, let operation, let code): System.failure(of: operation, at: path, code)
    case .notAFile(let path, let kind):
      "\(path) is \(kind), not a file; move it away, and put the file back"
    case .corrupt(let path, _, let flaw) where flaw.isDuplicate: "\(path): \(flaw)"
    case .corrupt(let path, let offset, let flaw):
      "\(path) is corrupt at byte \(offset): \(flaw)"
    case .newerFormat(let path, let found, let supported):
      "\(path) has format \(found), this program knows up to \(supported); update it"
    case .foreignLog(let path, let expected, let found):
      "\(path) belongs to log \(found), this is log \(expected); take it away"
    case .noManifest(let path, let flaw):
      "\(path) cannot be read (\(flaw)), nor the one before it"
    case .noLog(let path): "there is no log in \(path)"
    case .logExists(let path): "there is a log in \(path) already"
    case .inUse(let path, let pid):
      "node in use\(pid.map { " by process \($0)" } ?? ""): \(path) is locked; try again, or wait longer with --wait"
    case .poisoned(let path):
      "a sync of \(path) failed, so what is on disk is unknown; open the node again and repeat the last change"
    case .readOnly(let path): "\(path) was opened for reading only"
    case .overLimit(let subject, let found, let limit): "\(subject): \(found) is over the limit of \(limit)"
    case .gap(let partition, let origin, let expected, let found):
      "partition \(partition): event \(found) of \(origin) came where \(expected) was expected"
    }
  }
}

extension NotAFile: CustomStringConvertible {
  package var description: String {
    switch self {
    case .directory: "a directory"
    case .linkLoop: "a symbolic link that leads back to itself"
    case .deadLink: "a symbolic link that leads nowhere"
    case .pipe: "a pipe"
    case .socket: "a socket"
    case .device: "a device"
    }
  }
}

extension Flaw: CustomStringConvertible {
  package var description: String {
    switch self {
    case .missing: "the file is missing"
    case .notAFile(let kind): "\(kind) has the name of the file, which is missing"
    case .empty: "the file is empty"
    case .notThisFormat: "no file, and no part of one, begins like this"
    case .cutShort(let expected, let found):
      "it is cut short: \(expected) bytes were expected, there are \(found)"
    case .checksum(let expected, let found):
      "the checksum of the bytes is \(found.eightDigits), it should be \(expected.eightDigits)"
    case .digest: "the digest does not fit the bytes of the file"
    case .malformed(let field): "\(field) has a value that it cannot have"
    case .disagreement(let subject): subject
    case .duplicate(let partition, let id):
      "duplicate event id \(id) in partition \(partition); "
        + "a machine was set back and wrote again; clone a peer and go on there"
    case .block(let error): error.description
    }
  }
}

extension UInt32 {
  /// The notation of checksums.
  var eightDigits: String {
    let digits = String(self, radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }
}
