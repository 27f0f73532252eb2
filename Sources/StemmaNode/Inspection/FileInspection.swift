import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema

/// Any file of this software, taken apart: a log file, a shipment, or a part of one, whole or damaged.
///
/// Needs neither a node nor a schema; where the file stands in a node's directory, events are told with that
/// node's names. Writes nothing.
package struct FileInspection {
  package enum Format: Sendable, Equatable {
    case log(LogFileFormat)
    case shipment
    /// No format that is known here. Blocks and frames are looked for all the same.
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

  /// `path`: the file. `node`: the node whose names are used, if that is another than the one around the file.
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
      // Not one of a log, but what somebody named.
      throw .cannotRead(path: path, errno: EISDIR)
    } catch { throw .log(error) }
    let folder = path.lastIndex(of: "/").map { path[..<$0] } ?? "."
    description = Self.description(near: node ?? (folder.isEmpty ? "/" : String(folder)), ports)
  }

  /// Names of the node that is in a directory or around it; without one, origins and stored names stand for
  /// themselves.
  private static func description(near directory: String, _ ports: Ports) -> EventDescription {
    do throws(NodeError) {
      let node = try Node.nearest(from: directory)
      let mark = try Node.readMark(node, ports)
      return EventDescription(schema: try Node.readSchema(node, ports), mark: mark)
    } catch {
      // A damaged node is what this command is for.
      return .nameless
    }
  }

  /// Gives the parts of the file, in its order. What is damaged is part of the result.
  ///
  /// - Throws: a newer format, or what the operating system says.
  package func parts(
    _ request: InspectionRequest, _ body: @escaping (InspectedPart) -> Void
  ) throws(NodeError) {
    do throws(LogError) {
      switch format {
      case .log(let format): try inspect(source, as: format, request, body)
      case .shipment: try ShipmentInspection.run(source, request, body)
      case .unknown: try BlockScan(source).reportFragments(request, body)
      }
    } catch { throw .log(error) }
  }

  /// What a file of an unknown format is, and what reads it; nil if that cannot be told. It takes at least two bytes,
  /// which one damaged byte of a file of this software does not make.
  package var otherContent: String? {
    let start: [UInt8]
    do { start = try source.bytes(at: 0, count: 512) } catch { return nil }
    let json = "JSON and no file of a log; any editor reads it"
    let known: [(beginning: [UInt8], what: String)] = [
      (
        Array("SQLite format 3\0".utf8),
        "an SQLite database and no file of a log; `stemma query` or sqlite3 reads it, and of a node `stemma verify` checks it"
      ),
      ([0x1F, 0x8B, 0x08], "compressed with gzip; `gzip -dc FILE | stemma inspect -` looks inside"),
      (Array("{\"".utf8), json), (Array("{\n".utf8), json),
    ]
    if let what = known.first(where: { start.starts(with: $0.beginning) })?.what { return what }
    return Self.isText(start) ? "text and no file of a log; any editor reads it" : nil
  }

  /// Whether a file that begins so is text: the header of one of this software has zeros in its first bytes.
  private static func isText(_ start: [UInt8]) -> Bool {
    guard start.count >= 16 else { return false }
    guard start.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || [9, 10, 13].contains($0) }) else { return false }
    // The last character may be cut.
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
    members.append(("damage", .array(part.flaws.map(json))))
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

  private func json(_ flaw: InspectedFlaw) -> JSON {
    func count(_ number: UInt64) -> JSON { Value.int(Int64(clamping: number)).json }
    var members: [(name: String, value: JSON)] = [
      ("offset", count(flaw.offset)), ("what", .string(flaw.flaw.description)),
      (
        "byte",
        flaw.byte.map { byte in
          .object([("found", .int(Int64(byte.found))), ("expected", .int(Int64(byte.expected)))])
        } ?? .null
      ),
    ]
    if let range = flaw.range, !range.isEmpty {
      members += [("from", count(range.lowerBound)), ("to", count(range.upperBound - 1))]
    }
    switch flaw.flaw {
    case .lacking(let missing): members.append(("missing", count(missing)))
    case .cutShort(let expected, let found) where found < expected:
      members.append(("missing", count(expected - found)))
    case .surplus(let surplus): members.append(("tooMany", count(surplus)))
    default: break
    }
    return .object(members)
  }

  // MARK: Events

  /// The events of a block in arrival order, with the notes of their commits. Positions are those of the file
  /// where it has any, and count from 0 in a shipment.
  package func forEachEvent(of part: InspectedPart, _ body: (StoredEvent, CommitNote) -> Void) {
    guard let block = part.block else { return }
    let notes = Dictionary(block.notes.map { ($0.commit, $0.note) }, uniquingKeysWith: { first, _ in first })
    let events: [BlockEvent]
    // A part has a block only if its values were read once.
    do throws(EventsError) { events = try block.events() } catch { return }
    for event in events {
      let stored = StoredEvent(event.event, at: Position(file: part.place, index: event.arrival))
      body(stored, notes[event.event.commit] ?? CommitNote())
    }
  }
}

extension EventDescription {
  /// Of events of which neither schema nor node is known.
  static let nameless = EventDescription(
    schema: Schema(),
    mark: NodeMark(
      logID: LogID(0), name: "", origins: [],
      watermark: FileIdentity(inode: 0, birthSeconds: 0, birthNanoseconds: 0), scope: .everything))
}
