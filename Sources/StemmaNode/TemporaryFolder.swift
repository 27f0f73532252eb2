import Foundation

/// A folder in the system's place for temporary files, gone when it is released.
final class TemporaryFolder {
  let path: String

  init(_ ports: Ports) throws {
    path = NSTemporaryDirectory() + "/stemma-\(ports.newID())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    // Whatever stays behind is in the place that the system cleans.
    do { try FileManager.default.removeItem(atPath: path) } catch {}
  }
}
