import StemmaEvents
import StemmaLog
import StemmaSchema

/// Where an import takes its mutations from, one after the other.
protocol MutationSource: AnyObject {
  /// The next mutation; nil at the end.
  ///
  /// - Throws: `SourceError` where the source cannot be read on. What is wrong with one mutation alone is told in the
  ///   item.
  func next() throws(SourceError) -> SourceItem?
  /// False if nobody can say when the next mutation comes: its writer has not written it yet.
  var isReady: Bool { get }
  /// How many lines were read, those without a mutation included.
  var lineNumber: Int { get }
  /// What a file of refused lines has to begin with so that it can be imported; empty: nothing.
  var header: [UInt8] { get }
  /// Traps if what is left to be read contradicts itself. In debug builds behind each item, on the thread that reads.
  func checkInvariants()
}

extension MutationSource {
  var isReady: Bool { true }
}

struct SourceItem: Sendable {
  /// The line that it begins with, from 1; in a SQLite file the row, counted over all tables.
  var line: Int
  /// The line that it ends with.
  var lastLine: Int
  var mutation: Result<Mutation, MutationError>
  /// As it stands in the source, without the end of its last line; empty unless it may have to be written out.
  var text: [UInt8]
}

/// Why a source cannot be read on, and from which line.
struct SourceError: Error {
  var line: Int
  var reason: NodeError
}

extension Import {
  /// What an import reads.
  package enum Format: String, CaseIterable, Sendable {
    case ndjson, csv, tsv, sqlite

    /// By the extension, `.gz` aside; NDJSON if it says nothing.
    init(path: String) {
      var name = path.lowercased()
      if name.hasSuffix(".gz") { name.removeLast(3) }
      switch name.fileName.split(separator: ".").last {
      case "csv": self = .csv
      case "tsv", "tab": self = .tsv
      case "sqlite", "sqlite3", "db": self = .sqlite
      default: self = .ndjson
      }
    }
  }

  func source(_ path: String) throws(NodeError) -> any MutationSource {
    let keepsText = reject != nil
    switch options.format ?? Format(path: path) {
    case .ndjson:
      return try ahead(
        NDJSONSource(
          path, firstLine: options.firstLine, defaultModel: options.model, keepsText: keepsText), path)
    case .csv:
      return try ahead(
        CSVSource(path, .comma, model(of: path), node.schema, keepsText: keepsText), path)
    case .tsv:
      return try ahead(CSVSource(path, .tab, model(of: path), node.schema, keepsText: keepsText), path)
    case .sqlite:
      return try SQLiteSource(
        path, node.schema, try named(options.model), keepsText: keepsText, notice: notice)
    }
  }

  private func ahead(_ source: any MutationSource, _ path: String) throws(NodeError) -> ReadAhead {
    do throws(LogError) {
      return try ReadAhead(
        source, from: path, batch: options.batch, isStream: LineReader.isStream(path: path))
    } catch { throw .log(error) }
  }

  private func named(_ name: String?) throws(NodeError) -> Model? {
    guard let name else { return nil }
    guard let model = node.schema.model(named: name) else {
      throw .mutation(.unknownModel(name, known: node.schema.models.map(\.name)))
    }
    return model
  }

  /// The model of a file's rows: the named one, or the one that the file is named after (`books.csv`).
  private func model(of path: String) throws(NodeError) -> Model {
    if let model = try named(options.model) { return model }
    let name = path.fileName.prefix { $0 != "." }
    let found = node.schema.models.first { $0.name == name || $0.tableName == name }
    guard let found else {
      throw .malformedInput(source: path, what: "which model are its rows of? say --model NAME")
    }
    return found
  }
}

/// Lines of JSON, one mutation each.
final class NDJSONSource: MutationSource {
  private var reader: LineReader
  private let firstLine: Int
  private let defaultModel: String?
  private let keepsText: Bool
  let header: [UInt8] = []

  /// Lines before `firstLine` are not read as mutations.
  init(_ path: String, firstLine: Int, defaultModel: String?, keepsText: Bool) throws(NodeError) {
    reader = try LineReader(path: path)
    self.firstLine = firstLine
    self.defaultModel = defaultModel
    self.keepsText = keepsText
  }

  var lineNumber: Int { reader.lineNumber }

  func checkInvariants() { reader.checkInvariants() }

  func next() throws(SourceError) -> SourceItem? {
    while true {
      let number = reader.lineNumber + 1
      let isSkipped = number < firstLine
      let read: SourceItem??
      do throws(NodeError) {
        read = try reader.next { line throws(NodeError) -> SourceItem? in
          guard !isSkipped, line.contains(where: { $0 != 0x20 && $0 != 0x09 }) else { return nil }
          let mutation: Result<Mutation, MutationError>
          do throws(MutationError) {
            mutation = .success(try Mutation(line: line, defaultModel: defaultModel))
          } catch { mutation = .failure(error) }
          return SourceItem(
            line: number, lastLine: number, mutation: mutation, text: keepsText ? Array(line) : [])
        }
      } catch { throw SourceError(line: number, reason: error) }
      guard let read else { return nil }
      if let item = read { return item }
    }
  }
}
