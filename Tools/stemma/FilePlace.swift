import Foundation

/// The identity of a file, independent of the path.
struct FilePlace: Equatable {
  private let device: UInt64
  private let inode: UInt64
  /// Whether it is a regular file, not a directory, pipe or device.
  let isFile: Bool
  /// In bytes.
  let size: Int64

  /// The size is not part of the identity: it can differ between two looks.
  static func == (a: FilePlace, b: FilePlace) -> Bool { a.device == b.device && a.inode == b.inode }

  /// Nil if the file does not exist or cannot be examined.
  init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    self.init(status)
  }

  /// The file that a command reads for this path; `-` is standard input.
  init?(input path: String) {
    var status = stat()
    guard (path == "-" ? fstat(STDIN_FILENO, &status) : stat(path, &status)) == 0 else { return nil }
    self.init(status)
  }

  private init(_ status: stat) {
    device = UInt64(truncatingIfNeeded: status.st_dev)
    inode = UInt64(truncatingIfNeeded: status.st_ino)
    size = Int64(status.st_size)
    isFile = status.st_mode & S_IFMT == S_IFREG
  }
}
