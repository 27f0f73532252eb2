import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaSchema

/// The mutations of an import in order.
protocol MutationSource: AnyObject {
  /// The next mutation; nil at the end.
  ///
  /// - Throws: `SourceError` if the source cannot be read further. An item carries its own error.
  func next() throws(SourceError) -> SourceItem?
  /// False if the next mutation may not be available yet, because a stream is idle.
  var isReady: Bool { get }
  /// The number of lines read, including those without a mutation.
  var lineNumber: Int { get }
  /// The bytes read from the stored source; 0 if unknown.
  var bytesRead: Int { get }
  /// The text at the start of an importable file of refused lines; empty: none.
  var header: [UInt8] { get }
  /// Warnings about the part read so far, one sentence each.
  var notices: [String] { get }
  /// Traps if the remaining input is inconsistent. Runs in debug builds after each item.
  func checkInvariants()
}

extension MutationSource {
  var isReady: Bool { true }
  var notices: [String] { [] }
  var bytesRead: Int { 0 }
}

struct SourceItem: Sendable {
  /// The first line, counted from 1; in a SQLite file the row, counted over all tables.
  var line: Int
  /// The last line.
  var lastLine: Int
  var mutation: Result<Mutation, MutationError>
  /// The text of the source without the last line end; empty unless refused lines are written out.
  var text: [UInt8]
  /// Nil if the source is no feed.
  var position: FeedPosition?
}

/// The reason why a source cannot be read further, and the line.
struct SourceError: Error {
  var line: Int
  var reason: NodeError
}

extension Import {
  /// The format of an import's files.
  package enum Format: String, CaseIterable, Sendable {
    case ndjson, csv, tsv, sqlite, debezium, couchdb

    /// Determines the format by the extension without `.gz`; NDJSON by default.
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

  private func ahead(_ source: any MutationSource, _ path: String) -> ReadAhead {
    ReadAhead(source, batch: options.batch, isStream: LineReader.isStream(path: path))
  }

  private func named(_ name: String?) throws(NodeError) -> Model? {
    guard let name else { return nil }
    guard let model = node.schema.model(named: name) else {
      throw .mutation(.unknownModel(name, known: node.schema.models.map(\.name)))
    }
    return model
  }

  /// The named model, or the one that the file is named after (`books.csv`).
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
