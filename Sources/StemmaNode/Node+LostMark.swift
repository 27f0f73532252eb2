import StemmaEvents
import StemmaLog
import StemmaReplication

extension Node {
  /// Makes the mark of a node that lost it, and its copy. The log tells which one it is; what else the mark said nobody knows:
  /// the node begins a new origin, holds everything in its scope, and knows no remotes, nor what was given up of the log.
  ///
  /// - Throws: `noSchema` and `badSchema`, `alreadyANode`; `.log(.noLog)` where no files are whose headers can be read, and of
  ///   which most name one log.
  package static func remakeMark(
    at directory: String, name: String, _ options: OpeningOptions
  ) throws(NodeError) {
    let ports = options.ports
    _ = try readSchema(directory, ports)
    try wrapping {
      let lock = try WriterLock(
        path(directory, lockFileName), fileSystem: ports.fileSystem, wait: options.waitMilliseconds)
      defer { lock.release() }
      for file in [NodeMark.fileName, NodeMark.copyName] where try ports.exists(file, in: directory) {
        throw NodeError.alreadyANode(path: directory)
      }
      let place = path(directory, logDirectoryName)
      guard let id = try Log.id(in: place, fileSystem: ports.fileSystem) else {
        throw LogError.noLog(path: place)
      }
      let log = try Log.open(
        in: place, id: id, fileSystem: ports.fileSystem, options: options.log(.readOnly))
      var mark = NodeMark(
        logID: id, name: name, origins: [Origin(ports.newID())],
        watermark: log.recovery.watermarkIdentity ?? .none, scope: .everything)
      mark.keptTails = log.recovery.keptTails
      mark.isRemade = true
      try save(mark, in: directory, ports)
    }
  }
}
