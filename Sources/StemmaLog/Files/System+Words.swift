#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension System {
  /// The failed operation, its path and error, and advice if there is any.
  package static func failure(of operation: String, at path: String, _ code: Int32) -> String {
    "\(operation) \(path): \(text(of: code))" + (remedy(for: code, of: operation).map { "; \($0)" } ?? "")
  }

  private static func remedy(for code: Int32, of operation: String) -> String? {
    switch code {
    case ENOSPC, EDQUOT: "make room there, and try again"
    case EFBIG: "let files grow (`ulimit -f`), and try again"
    case EMFILE, ENFILE: "let more files be open (`ulimit -n`), and try again"
    case EIO: "check the disk (the system's own log says more)"
    case EROFS: "what is there can only be read; make the disk writable, and try again"
    case EACCES, EPERM:
      switch operation {
      case "opendir": "this user has to be allowed to list that folder"
      case "mkdir", "rename", "unlink": "this user has to be allowed to write in the folder that it is in"
      case "stat": "this user has to be allowed to enter that folder"
      default:
        "this user has to be allowed to read that file, to change the node also to write it and in its folder"
      }
    default: nil
    }
  }
}
