/// The right to write to a node: `flock` on the file `lock` in the node's directory, with the holder's pid in
/// it. Held per group of commits, not per process; readers never take it. The operating system releases it
/// when the holder dies.
package final class WriterLock {
  private let file: any File

  /// Waits up to `wait` milliseconds, then throws `.inUse`. Makes the file if there is none.
  package init(
    _ path: String, fileSystem: any FileSystem, wait milliseconds: UInt32, pid: Int32 = System.processID
  ) throws(LogError) {
    let file = try fileSystem.open(path, .openOrCreate)
    var waited: UInt32 = 0
    var pause: UInt32 = 1
    while try !file.tryLock() {
      guard waited < milliseconds else {
        let holder = String(decoding: try file.read(at: 0, count: 32), as: UTF8.self)
        throw .inUse(path: path, pid: Int32(holder.prefix { $0 != "\n" }))
      }
      pause = min(pause, milliseconds - waited)
      System.sleep(milliseconds: pause)
      waited += pause
      pause = min(pause * 2, 20)
    }
    self.file = file
    let text = Array("\(pid)\n".utf8)
    try file.write(text, at: 0)
    try file.truncate(to: UInt64(text.count))
  }

  deinit { release() }

  /// Lets the next one write. Harmless when repeated.
  package func release() { file.close() }
}
