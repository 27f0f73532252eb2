import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSchema

/// The parts of any Stemma file: a log file, a shipment or a batch, complete or corrupt.
///
/// Requires neither a node nor a schema; uses the names of a node around the file. Writes nothing.
package struct FileInspection {
  package enum Format: Sendable, Equatable {
    case log(LogFileFormat)
    case shipment
    /// An unknown format. Its parts are the blocks that decode.
    case unknown

    package var name: String {
      switch self {
      case .log(let format): format.rawValue
      case .shipment: "shipment"
      case .unknown: "unknown"
      }
    }
  }

  package let source: InspectedFile
  package let format: Format
  package let description: EventDescription
  /// The log of the node whose names are used.
  private let log: LogID?

  /// - Parameter node: the node whose names are used, if it is not the one around the file.
  package init(path: String, node: String? = nil, ports: Ports = Ports()) throws(NodeError) {
    do throws(LogError) {
      source = try InspectedFile(path: path, fileSystem: ports.fileSystem)
      if try ShipmentInspection.recognizes(source) {
        format = .shipment
      } else if let known = try LogFileFormat(of: source) {
        format = .log(known)
      } else {
        format = .unknown
      }
    } catch .system(_, let operation, let code) where operation == "open" || code == EISDIR {
      throw .cannotRead(path: path, errno: code)
    } catch .notAFile(_, .directory) {
      // The path comes from the user and need not be in a log.
      throw .cannotRead(path: path, errno: EISDIR)
    } catch { throw .log(error) }
    let folder = path.lastIndex(of: "/").map { path[..<$0] } ?? "."
    let named = Node.description(near: node ?? (folder.isEmpty ? "/" : String(folder)), ports)
    description = named ?? .nameless
    log = named?.metadata.logID
  }

  /// Returns the parts of the file in order, including corrupt ones.
  ///
  /// - Throws: a newer format, or an error of the operating system.
  package func parts(
    _ request: InspectionRequest, _ body: @escaping (InspectedPart) -> Void
  ) throws(NodeError) {
    var request = request
    request.log = request.log ?? log
    do throws(LogError) {
      switch format {
      case .log(let format): try inspect(source, as: format, request, body)
      case .shipment: try ShipmentInspection.run(source, request, body)
      case .unknown: try inspect(source, as: nil, request, body)
      }
    } catch { throw .log(error) }
  }

  /// Identifies a file of another format and a command that reads it; nil if unknown. The
  /// signatures have two bytes or more, so that one corrupt byte of a Stemma file cannot match.
  package var otherContent: Notice? {
    let start: [UInt8]
    do { start = try source.bytes(at: 0, count: 512) } catch { return nil }
    let json: Notice = "JSON and no file of a log; any editor reads it"
    let known: [(beginning: [UInt8], what: Notice)] = [
      (
        Array("SQLite format 3\0".utf8),
        "an SQLite database and no file of a log; \(step: .query) or sqlite3 reads it, and of a node \(step: .verify) checks it"
      ),
      ([0x1F, 0x8B, 0x08], "compressed with gzip; \(step: .inspect(after: "gzip -dc FILE")) looks inside"),
      (Array("{\"".utf8), json), (Array("{\n".utf8), json),
    ]
    if let what = known.first(where: { start.starts(with: $0.beginning) })?.what { return what }
    return Self.isText(start) ? "text and no file of a log; any editor reads it" : nil
  }

  /// Whether a file with this beginning is text. The headers of Stemma files contain zeros.
  private static func isText(_ start: [UInt8]) -> Bool {
    guard start.count >= 16 else { return false }
    guard start.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || [9, 10, 13].contains($0) }) else { return false }
    // The last character may be incomplete.
    return (0..<4).contains(where: { String(validating: start.dropLast($0), as: UTF8.self) != nil })
  }

  // MARK: JSON

  package func json(_ part: InspectedPart, withEvents: Bool) -> JSON {
    var members: [(name: String, value: JSON)] = [("part", .string(part.kind.rawValue))]
    if let number = part.number { members.append(("number", .int(Int64(number)))) }
    members.append(("offset", Value.int(Int64(clamping: part.offset)).json))
    members.append(("bytes", Value.int(Int64(clamping: part.length)).json))
    members.append(
      (
        "facts",
        .object(
          part.facts.map { fact in
            switch fact.value {
            case .number(let number): (fact.name, Value.int(Int64(clamping: number)).json)
            case .text(let text): (fact.name, .string(text))
            case .position(let position): (fact.name, .string(position.description))
            }
          })
      ))
    let flaws = part.flaws.map { flaw in
      JSON.object([
        ("offset", Value.int(Int64(clamping: flaw.offset)).json), ("what", .string(flaw.flaw.description)),
      ])
    }
    members.append(("corruption", .array(flaws)))
    if let block = part.block {
      members.append(("keys", .int(Int64(block.keyCount))))
      members.append(("checked", .bool(part.isChecked)))
      if withEvents {
        var events: [JSON] = []
        forEachEvent(of: part) { events.append(description.json($0, $1)) }
        members.append(("events", .array(events)))
      }
    }
    return .object(members)
  }

  // MARK: Events

  /// The events of a block in position order, with the notes of their commits. Positions are those
  /// of the file; in a shipment they count from 0.
  package func forEachEvent(of part: InspectedPart, _ body: (StoredEvent, CommitMessage) -> Void) {
    guard let block = part.block else { return }
    let messages = Dictionary(
      block.messages.map { ($0.commit, $0.message) }, uniquingKeysWith: { first, _ in first })
    let events: [BlockEvent]
    // A part has a block only if its values were decoded before.
    do throws(EventsError) { events = try block.events() } catch { return }
    for event in events {
      let stored = StoredEvent(
        event.event, at: (part.base ?? Position(0)).advanced(by: event.relativePosition))
      body(stored, messages[event.event.commit] ?? CommitMessage())
    }
  }
}
