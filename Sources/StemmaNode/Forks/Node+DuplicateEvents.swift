import StemmaEvents
import StemmaLog

extension Node {
  /// Throws `.duplicateEvents` if the log holds an event id twice. Reads the file trailers; if they
  /// count more events than the tables, also reads footers and journals.
  func checkNames() throws(NodeError) {
    let events = try Self.wrapping { try log.files().reduce(0) { $0 + $1.events } }
    guard try events > reading({ try $0.eventCount() }) else { return }
    do throws(LogError) { _ = try log.streams() } catch {
      guard case .corrupt(_, _, .duplicate(let partition, let id)) = error else { return }
      throw .duplicateEvents(
        node: metadata.name, path: directory, partition: partition.description, event: description.name(id))
    }
  }
}
