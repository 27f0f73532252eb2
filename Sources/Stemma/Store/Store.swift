import Foundation
import StemmaEvents
import StemmaNode
import StemmaSchema
import StemmaTables

/// An offline-first store: a node in a directory, which the command-line tool can open too.
///
/// Writes are made one commit group at a time on a thread of the store's own and are durable when they return; reads
/// run beside them on a few others, each on one committed state, and neither waits for the other.
public final class Store: Sendable {
  /// Where the node is.
  public let directory: URL
  let writer = Writer()
  private let readers: Readers
  private let declared: [ObjectIdentifier: Model]
  let changes = ChangeFeed()
  /// Whether the directory goes when the store does.
  private let isTemporary: Bool

  /// Opens the store in a directory, or makes one.
  ///
  /// Models that are new to the node, and other additions, are applied; whatever could not hold for the events that
  /// are there is refused before anything is written.
  /// - Throws: `models` if the models do not fit, `failed` if the directory cannot be used.
  public convenience init(at directory: URL, models: any Table.Type...) async throws {
    try await self.init(directory, models, isTemporary: false)
  }

  public convenience init(at directory: String, models: any Table.Type...) async throws {
    try await self.init(URL(fileURLWithPath: directory), models, isTemporary: false)
  }

  /// A store that leaves nothing behind: for tests and previews. Everything works as in any other; its files are in a
  /// temporary directory that is deleted with the store.
  public static func temporary(models: any Table.Type...) async throws -> Store {
    try await temporary(models: models)
  }

  public static func temporary(models: [any Table.Type]) async throws -> Store {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("stemma-\(UUID().uuidString)")
    return try await Store(directory, models, isTemporary: true)
  }

  private init(_ directory: URL, _ tables: [any Table.Type], isTemporary: Bool) async throws {
    self.directory = directory
    self.isTemporary = isTemporary
    let path = directory.path
    readers = Readers(Node.tablesPath(in: path))
    let schema: Schema
    do { schema = try await writer.open(path, DeclaredModels(tables: tables)) } catch {
      throw StoreError.translated(error)
    }
    var models: [ObjectIdentifier: Model] = [:]
    for table in tables {
      guard let model = schema.model(named: table.modelName) else { continue }
      models[ObjectIdentifier(table)] = model
    }
    declared = models
  }

  deinit {
    guard isTemporary else { return }
    // Nobody is left who could be told; the system clears its temporary directory by itself.
    do { try FileManager.default.removeItem(at: directory) } catch {}
  }

  /// The model of a type, as the node's schema has it.
  func model(of table: any Table.Type) throws(StoreError) -> Model {
    guard let model = declared[ObjectIdentifier(table)] else {
      throw .models("\(table.modelName) was not among the models that the store was opened with")
    }
    return model
  }

  // MARK: Writing

  /// Makes one commit of everything that `body` does; if it throws, nothing of it is left.
  ///
  /// - Parameters:
  ///   - by: who makes the change.
  ///   - note: why.
  /// - Returns: what `body` returned. The commit is durable then, and every read that begins later shows it.
  @discardableResult
  public func write<Result: Sendable>(
    by: String? = nil, note: String? = nil, _ body: @escaping @Sendable (Transaction) throws -> Result
  ) async throws -> Result {
    do {
      let result = try await writer.commit(CommitNote(by: by, note: note)) { [self] write in
        let transaction = Transaction(self, write)
        do { return try body(transaction) } catch {
          transaction.takeBack()
          throw error
        }
      }
      readers.noteCommit()
      changes.publish()
      return result
    } catch { throw StoreError.translated(error) }
  }

  // MARK: Reading

  /// Reads on a thread that may wait for the disk.
  func read<Result: Sendable>(
    _ body: @escaping @Sendable (ReadConnection) throws -> Result
  ) async throws -> Result {
    do { return try await readers.read(body) } catch { throw StoreError.translated(error) }
  }

  /// The record with a key; nil if there is none.
  public func get<Row: Table>(
    _ type: Row.Type, byIdentifier key: Row.PrimaryKey
  ) async throws -> Row? {
    do {
      return try readers.readHere { connection in try connection.row(Row.self, key, self) }
    } catch { throw StoreError.translated(error) }
  }

  /// The record with a key, with the records of some relationships, any depth.
  public func get<Row: Table>(
    _ type: Row.Type, byIdentifier key: Row.PrimaryKey,
    including paths: @Sendable (Row.Relationships) -> [any RelationshipPaths<Row>]
  ) async throws -> Row? {
    let names = paths(Row.relationships).map(\.names)
    return try await read { [self] (connection: ReadConnection) in
      try connection.snapshot {
        guard let row = try connection.row(Row.self, key, self) else { return nil }
        for path in names { try connection.include(path[...], in: [row], self) }
        return row
      }
    }
  }

  /// The record with a key.
  ///
  /// - Throws: `notFound`.
  public func find<Row: Table>(_ type: Row.Type, _ key: Row.PrimaryKey) async throws -> Row {
    guard let row = try await get(type, byIdentifier: key) else {
      throw StoreError.notFound(model: Row.modelName, key: KeyWords(key).description)
    }
    return row
  }
}

/// A key as errors name it.
struct KeyWords: CustomStringConvertible {
  let description: String

  init(_ key: some TableKey) {
    var record = RecordWriter()
    key.write(to: &record)
    description = record.key.map { $0?.text ?? "?" }.joined(separator: ", ")
  }
}
