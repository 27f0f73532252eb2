import StemmaEvents
import StemmaLog
import StemmaReplication

extension Node {
  /// Recreates the metadata of a node that lost both copies. The log identifies itself; the other
  /// entries are lost. The node begins a new origin, has everything in scope, and knows no remotes.
  ///
  /// - Throws: `noSchema`, `badSchema` or `alreadyANode`; `.log(.noLog)` if no readable headers
  ///   agree on the id of the log.
  package static func recreateMetadata(
    at directory: String, name: String, _ options: OpeningOptions
  ) throws(NodeError) {
    let ports = options.ports
    _ = try readSchema(directory, ports)
    try wrapping {
      let lock = try WriterLock(
        path(directory, lockFileName), fileSystem: ports.fileSystem, wait: options.waitMilliseconds)
      defer { lock.release() }
      for file in [NodeMetadata.fileName, NodeMetadata.copyName] where try ports.exists(file, in: directory) {
        throw NodeError.alreadyANode(path: directory)
      }
      let place = path(directory, logDirectoryName)
      guard let id = try Log.id(in: place, fileSystem: ports.fileSystem) else {
        throw LogError.noLog(path: place)
      }
      let log = try Log.open(
        in: place, id: id, fileSystem: ports.fileSystem, options: options.log(.readOnly))
      var metadata = NodeMetadata(
        logID: id, name: name, origins: [Origin(ports.newID())],
        watermark: log.recovery.watermarkIdentity ?? .none, scope: .everything)
      metadata.cutCount = log.recovery.cutCount
      metadata.isRecreated = true
      try save(metadata, in: directory, ports)
    }
  }
}
