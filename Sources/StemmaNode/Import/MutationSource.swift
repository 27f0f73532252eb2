import StemmaEvents
import StemmaLog
import StemmaSchema

/// The source of an import's mutations, one after the other.
protocol MutationSource: AnyObject {
  /// The next mutation; nil at the end.
  ///
  /// - Throws: `SourceError` where the source cannot be read on. The item has the error of a single mutation.
  func next() throws(SourceError) -> SourceItem?
  /// False if it is unknown when the next mutation comes: its writer has not written it yet.
  var isReady: Bool { get }
  /// How many lines were read, those without a mutation included.
  var lineNumber: Int { get }
  /// How many bytes were read, as they are stored; 0 where that is not known.
  var bytesRead: Int { get }
  /// The beginning that a file of refused lines needs to be imported; empty: none.
  var header: [UInt8] { get }
  /// Warnings about the part of the source that was read; one sentence each.
  var notices: [String] { get }
  /// Traps if what is left to be read contradicts itself. In debug builds behind each item, on the thread that reads.
  func checkInvariants()
}

extension MutationSource {
  var isReady: Bool { true }
  var notices: [String] { [] }
  var bytesRead: Int { 0 }
}

struct SourceItem: Sendable {
  /// The line that it begins with, from 1; in a SQLite file the row, counted over all tables.
  var line: Int
  /// The line that it ends with.
  var lastLine: Int
  var mutation: Result<Mutation, MutationError>
  /// As the source has it, without the end of its last line; empty unless it may have to be written out.
  var text: [UInt8]
  /// Nil where the source is no feed.
  var position: FeedPosition?
}

/// Why a source cannot be read on, and from which line.
struct SourceError: Error {
  var line: Int
  var reason: NodeError
}

extension Import {
  /// The format of an import's files.
  package enum Format: String, CaseIterable, Sendable {
    case ndjson, csv, tsv, sqlite, debezium, couchdb

    /// By the extension, `.gz` aside; NDJSON if it says nothing.
    package init(path: String) {
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
    let format = options.format ?? Format(path: path)
    switch format {
    case .ndjson, .debezium, .couchdb:
      return try ahead(
        JSONSource(path, firstLine: options.firstLine, try form(format, path), keepsText: keepsText), path)
    case .csv, .tsv:
      return try ahead(
        CSVSource(
          path, dialect(format), options.columns, try model(of: path), node.schema, keepsText: keepsText),
        path)
    case .sqlite:
      return try SQLiteSource(
        path, node.schema, try named(options.model), keepsText: keepsText, notice: notice)
    }
  }

  private func form(_ format: Format, _ path: String) throws(NodeError) -> any RecordForm {
    let progress = options.offset?.progress
    switch format {
    case .debezium:
      return DebeziumRecords(try named(options.model), node.schema, options.columns, progress)
    case .couchdb:
      return try CouchDBRecords(try model(of: path), node.schema, options.columns, progress)
    default: return MutationRecords(try named(options.model), node.schema, options.columns)
    }
  }

  private func dialect(_ format: Format) -> CSV.Dialect {
    var dialect = options.dialect
    if format == .tsv { dialect.delimiter = UInt8(ascii: "\t") }
    return dialect
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
