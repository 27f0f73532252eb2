import StemmaSchema

extension Node {
  /// What people may name in the node that `path` is in, read from its small files alone: for completing what
  /// is being typed.
  package static func names(
    near path: String, _ ports: Ports = Ports()
  ) throws(NodeError) -> (models: [String], remotes: [String]) {
    let directory = try nearest(from: path)
    let mark = try readMark(directory, ports)
    return (try readSchema(directory, ports).models.map(\.name), mark.remotes.map(\.name))
  }
}
