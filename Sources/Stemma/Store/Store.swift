import Foundation
import StemmaEvents
import StemmaNode
import StemmaSchema
import StemmaTables
import Synchronization

/// An offline-first store: a node in a directory, which the command-line tool can open too.
///
/// Writes are made one commit group at a time on a thread of the store's own, and are durable when they return. Reads
/// run beside them on a few other threads, each on one committed state. Reads and writes do not wait for each other.
public final class Store: Sendable {
  /// The directory of the node.
  public let directory: URL
  let writer: Writer
  let readers: Readers
  /// The models of the declared types as the node's schema has them, and which state of the schema that is.
  private let declared: NodeModels
  private let tables: [any Table.Type]
  let options: Options
  let changes: ChangeFeed
  let rows: RowFeed
  let resolvers: Resolvers
  /// Whether the directory goes with the store.
  private let isTemporary: Bool
  /// The store that this is for another author.
  private let original: Store?

  private final class NodeModels: Sendable {
    let state: Mutex<(types: [ObjectIdentifier: Model], schemaChanges: Int)>

    init(_ types: [ObjectIdentifier: Model]) { state = Mutex((types, 0)) }
  }

  /// Opens the store in a directory, or makes one.
  ///
  /// Models that are new to the node, and other additions, are applied; whatever could not hold for the events that
  /// are there is refused before anything is written. Models that the named ones lead to need not be named.
  /// - Throws: `models` if the models do not fit, `failed` if the directory cannot be used.
  public convenience init(
    at directory: URL, options: Options = Options(), models: any Table.Type...
  ) async throws {
    try await self.init(directory, options, models, isTemporary: false)
  }

  /// Opens the store in a directory that is given by its path, relative to the current one, or makes one.
  public convenience init(
    at directory: String, options: Options = Options(), models: any Table.Type...
  ) async throws {
    try await self.init(URL(fileURLWithPath: directory), options, models, isTemporary: false)
  }

  /// Opens the store in a directory, or makes one, with models in an array.
  public convenience init(
    at directory: URL, options: Options = Options(), models: [any Table.Type]
  ) async throws {
    try await self.init(directory, options, models, isTemporary: false)
  }

  /// A store in memory that leaves nothing behind: for tests and previews. Everything works as in any other, the tool and
  /// other stores too: it has a directory, which is in memory on Linux, where `/dev/shm` has a gigabyte of room, and
  /// otherwise where the system has temporary files. It is deleted when the store is closed or released, or the process
  /// exits; if that is killed, when the next process makes a temporary store.
  public static func temporary(
    options: Options = Options(), models: any Table.Type...
  ) async throws -> Store {
    try await temporary(options: options, models: models)
  }

  /// A store in memory that leaves nothing behind, with models in an array.
  public static func temporary(
    options: Options = Options(), models: [any Table.Type]
  ) async throws -> Store {
    let directory = try StoreError.wrapping { () throws(NodeError) in try TemporaryStores.newStore() }
    return try await Store(directory, options, models, isTemporary: true)
  }

  private init(
    _ directory: URL, _ options: Options, _ models: [any Table.Type], isTemporary: Bool
  ) async throws {
    self.directory = directory
    self.options = options
    self.isTemporary = isTemporary
    resolvers = Resolvers()
    original = nil
    let path = directory.path
    try Self.checkPlace(directory, options)
    readers = Readers(Node.tablesPath(in: path))
    rows = RowFeed(readers)
    writer = Writer(rows)
    changes = ChangeFeed(readers, rows)
    let schema: Schema
    do {
      let models = try DeclaredModels(models)
      schema = try await writer.open(path, models, options)
      tables = models.tables
    } catch { throw StoreError.translated(error) }
    declared = NodeModels(Self.models(of: tables, in: schema))
  }

  /// The same store for another author: its commits name `author`, unless `write(by:)` names another. Closing one of
  /// the two closes both.
  public func `as`(_ author: String) -> Store { Store(self, author) }

  private init(_ original: Store, _ author: String) {
    self.original = original
    directory = original.directory
    writer = original.writer
    readers = original.readers
    declared = original.declared
    tables = original.tables
    var options = original.options
    options.author = author
    self.options = options
    changes = original.changes
    rows = original.rows
    resolvers = original.resolvers
    isTemporary = false
  }

  /// - Throws: `failed` for a place where neither a store is nor one can be made.
  private static func checkPlace(_ directory: URL, _ options: Options) throws(StoreError) {
    let files = FileManager.default
    var isDirectory: ObjCBool = false
    if files.fileExists(atPath: directory.path, isDirectory: &isDirectory) {
      guard isDirectory.boolValue else {
        throw .failed("\(directory.path) is a file; a store is a directory: name another one")
      }
    } else if !options.isReadOnly {
      let parent = directory.deletingLastPathComponent().path
      // What is in the way otherwise, as a directory that may not be searched, is told by who meets it.
      do { _ = try files.attributesOfItem(atPath: parent) } catch CocoaError.fileReadNoSuchFile {
        throw .failed("there is no directory \(parent) to make the store in; make that first")
      } catch {}
    }
  }

  deinit { removeTemporaryFiles() }

  /// Ends the store: what is being written is finished, then reads, writes and observations end with `closed`. The files
  /// of a temporary store are gone then.
  public func close() async {
    await writer.close()
    readers.close()
    changes.finish()
    (original ?? self).removeTemporaryFiles()
  }

  private func removeTemporaryFiles() {
    guard isTemporary else { return }
    // What cannot be removed, or was before, goes with the folder of the process.
    do { try FileManager.default.removeItem(at: directory) } catch {}
  }

  private static func models(
    of tables: [any Table.Type], in schema: Schema
  ) -> [ObjectIdentifier: Model] {
    var models: [ObjectIdentifier: Model] = [:]
    for table in tables { models[ObjectIdentifier(table)] = schema.model(named: table.modelName) }
    return models
  }

  /// The model of a type, as the node's schema has it.
  func model(of table: any Table.Type) throws(StoreError) -> Model {
    guard let model = declared.state.withLock({ $0.types[ObjectIdentifier(table)] }) else {
      throw .models("\(table.modelName) was not among the models that the store was opened with")
    }
    return model
  }

  /// A key as errors name it, and as the tool reads it.
  func text(of key: some TableKey, _ table: any Table.Type) throws(StoreError) -> String {
    KeyWords.text(Transaction.key(key), of: try model(of: table))
  }

  /// Adopts the schema that another process has applied.
  private func takeIn(_ schema: Schema, _ schemaChanges: Int) {
    declared.state.withLock { declared in
      guard declared.schemaChanges != schemaChanges else { return }
      declared = (Self.models(of: tables, in: schema), schemaChanges)
    }
  }

  // MARK: Writing

  /// Makes one commit of everything that `body` does; if it throws anything but `unresolved`, nothing of it is left.
  ///
  /// A commit that was begun is finished, also if its task is then cancelled. One whose task is cancelled before is not
  /// begun, and throws `CancellationError`.
  ///
  /// - Parameters:
  ///   - by: who makes the change; nil: the author that the store was opened with.
  ///   - note: why.
  ///   - body: makes the changes, on the thread that writes. It is called once more if it, or a commit that shares its sync,
  ///     meets damage of the tables: these are made anew from the log, and nothing is left of the first call.
  /// - Returns: what `body` returned. The commit is durable then, and every read that begins later shows it.
  @discardableResult
  public func write<Result: Sendable>(
    by: String? = nil, note: String? = nil, _ body: @escaping @Sendable (Transaction) throws -> Result
  ) async throws -> Result {
    if options.isReadOnly { throw StoreError.readOnly }
    let result: Result
    do {
      result = try await writer.commit(CommitNote(by: by ?? options.author, note: note)) {
        [self] write, recorded, schemaChanges in
        takeIn(write.schema, schemaChanges)
        let transaction = Transaction(self, write, recorded)
        defer { transaction.end() }
        return try body(transaction)
      }
    } catch { throw StoreError.translated(error) }
    noteCommit()
    try await resolveConflicts()
    return result
  }

  /// Says that the tables have changed.
  func noteCommit() {
    readers.noteCommit()
    changes.publish()
  }

  /// Says that others than the thread that writes may have changed the tables.
  func noteOthers() async {
    readers.noteCommit()
    rows.noteOthers()
    await writer.look()
    changes.publish()
  }

  // MARK: Reading

  /// Reads on a thread that may wait for the disk.
  func read<Result: Sendable>(
    _ body: @escaping @Sendable (ReadConnection) throws -> Result
  ) async throws -> Result {
    do { return try await readers.read(body) } catch { throw translated(error) }
  }

  /// What a read met, in our words. Where the store was closed meanwhile its files may be gone, whatever the read says of that.
  func translated(_ error: any Error) -> any Error {
    let error = StoreError.translated(error)
    if readers.isClosed, case .failed? = error as? StoreError { return StoreError.closed }
    return error
  }

  /// The record with a key; nil if there is none.
  public func get<Row: Table>(
    _ type: Row.Type, byIdentifier key: Row.PrimaryKey
  ) async throws -> Row? {
    do {
      return try readers.readHere { connection in try connection.row(Row.self, key, self) }
    } catch { throw translated(error) }
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
      throw StoreError.notFound(model: Row.modelName, key: try text(of: key, Row.self))
    }
    return row
  }
}
