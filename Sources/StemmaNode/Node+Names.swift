import StemmaSchema

extension Node {
  /// The names that commands accept in the node around `path`.
  package struct Names: Sendable {
    package var models: [String] = []
    package var remotes: [String] = []
    /// Names of all known origins.
    package var origins: [String] = []
    /// By model.
    package var fields: [String: [String]] = [:]

    package init() {}
  }

  /// Reads only the node's small files, for shell completion.
  package static func names(near path: String, _ ports: Ports = Ports()) throws(NodeError) -> Names {
    let directory = try nearest(from: path)
    let metadata = try readMetadata(directory, ports)
    let models = try readSchema(directory, ports).models
    var names = Names()
    names.models = models.map(\.name)
    names.remotes = metadata.remotes.map(\.name)
    names.origins = Set(metadata.origins + metadata.names.keys).map { metadata.displayName(of: $0) }.sorted()
    for model in models { names.fields[model.name] = model.fields.map(\.name) }
    return names
  }
}
