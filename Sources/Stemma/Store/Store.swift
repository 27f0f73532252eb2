import Foundation
import StemmaEvents
import StemmaNode
import StemmaSchema
import StemmaTables

/// An offline-first store: a node in a directory, which the command-line tool can open too.
///
/// Writes run on the store's own thread, one commit group at a time. They are durable when they
/// return, unless they are `relaxed`. Reads run concurrently on a few other threads, each on one
/// committed state. Reads and writes do not wait for each other.
public final class Store: Sendable {
  /// The directory of the node.
  public let directory: URL
  let writer: Writer
  let readers: Readers
  /// The models of the declared types in the node's schema, and the version of that schema.
  private let declared: NodeModels
  private let tables: [any Table.Type]
  let options: Options
  let changes: ChangeFeed
  let rows: RowFeed
  let resolvers: Resolvers
  /// Whether the directory is deleted with the store.
  private let isTemporary: Bool
  /// The store from which `as(_:)` made this one.
  private let original: Store?

  private final class NodeModels: Sendable {
    let state: Mutex<(types: [ObjectIdentifier: Model], schemaChanges: Int)>

    init(_ types: [ObjectIdentifier: Model]) { state = Mutex((types, 0)) }
  }

  /// Opens the store in a directory, or creates one.
  ///
  /// Additions to the node's schema, such as new models, are applied. A change that does not fit
  /// existing events is refused before anything is written. Related models need not be named.
  /// - Throws: `models` if the models do not fit, `failed` if the directory cannot be used.
  public convenience init(
    at directory: URL, options: Options = Options(), models: any Table.Type...
  ) async throws {
    try await self.init(directory, options, models, isTemporary: false)
  }

  /// Opens or creates the store in a directory given by its path, relative to the current one.
  public convenience init(
    at directory: String, options: Options = Options(), models: any Table.Type...
  ) async throws {
    try await self.init(URL(fileURLWithPath: directory), options, models, isTemporary: false)
  }

  /// Opens or creates the store in a directory, with models in an array.
  public convenience init(
    at directory: URL, options: Options = Options(), models: [any Table.Type]
  ) async throws {
    try await self.init(directory, options, models, isTemporary: false)
  }

  /// A store for tests and previews that leaves nothing behind. It has a directory, also for other
  /// stores and the tool: in memory on Linux, if `/dev/shm` has a gigabyte of room, otherwise among
  /// the temporary files. The directory is deleted when the store is closed or released, or the
  /// process exits. After a kill, the next process that makes a temporary store deletes it.
  public static func temporary(
    options: Options = Options(), models: any Table.Type...
  ) async throws -> Store {
    try await temporary(options: options, models: models)
  }

  /// A temporary store as above, with models in an array.
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

  /// The same store for another author: its commits name `author`, unless `write(author:)` names
  /// another. Closing one of the two closes both.
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

  /// - Throws: `failed` for a place that has no store and where none can be created.
  private static func checkPlace(_ directory: URL, _ options: Options) throws(StoreError) {
    let files = FileManager.default
    var isDirectory: ObjCBool = false
    if files.fileExists(atPath: directory.path, isDirectory: &isDirectory) {
      guard isDirectory.boolValue else {
        throw .failed(.cannotCreate, "\(directory.path) is a file; a store is a directory: name another one")
      }
    } else if !options.isReadOnly {
      let parent = directory.deletingLastPathComponent().path
      // Other obstacles, such as an unsearchable directory, are reported when the node is opened.
      do { _ = try files.attributesOfItem(atPath: parent) } catch CocoaError.fileReadNoSuchFile {
        throw .failed(.cannotCreate, "there is no directory \(parent) to make the store in; make that first")
      } catch {}
    }
  }

  deinit { removeTemporaryFiles() }

  /// Closes the store. Running writes finish, and all commits are durable; then reads and writes
  /// throw `closed`, and observations end. The files of a temporary store are deleted.
  public func close() async {
    await writer.close()
    readers.close()
    changes.finish()
    (original ?? self).removeTemporaryFiles()
  }

  private func removeTemporaryFiles() {
    guard isTemporary else { return }
    // The process's folder is removed later, with anything that is left.
    do { try FileManager.default.removeItem(at: directory) } catch {}
  }

  private static func models(
    of tables: [any Table.Type], in schema: Schema
  ) -> [ObjectIdentifier: Model] {
    var models: [ObjectIdentifier: Model] = [:]
    for table in tables { models[ObjectIdentifier(table)] = schema.model(named: table.modelName) }
    return models
  }

  /// The model of a type in the node's schema.
  func model(of table: any Table.Type) throws(StoreError) -> Model {
    guard let model = declared.state.withLock({ $0.types[ObjectIdentifier(table)] }) else {
      throw .models("\(table.modelName) was not among the models that the store was opened with")
    }
    return model
  }

  /// A key as errors print it, and as the tool reads it.
  func text(of key: some TableKey, _ table: any Table.Type) throws(StoreError) -> String {
    KeyWords.text(Transaction.key(key), of: try model(of: table))
  }

  /// Adopts the schema that another process has applied.
  private func adoptChanges(_ schema: Schema, _ schemaChanges: Int) {
    declared.state.withLock { declared in
      guard declared.schemaChanges != schemaChanges else { return }
      declared = (Self.models(of: tables, in: schema), schemaChanges)
    }
  }

  // MARK: Writing

  /// Makes one commit of `body`. If this throws anything but `unresolved`, no change is kept.
  ///
  /// A commit that has begun is finished even if its task is cancelled. A task that is cancelled
  /// before begins none, and throws `CancellationError`.
  ///
  /// - Parameters:
  ///   - author: the author of the change; nil: the author that the store was opened with.
  ///   - message: the message of the commit.
  ///   - durability: whether this waits until the commit is on disk; nil: the store's option.
  ///   - body: makes the changes, on the writer's thread. It is called a second time if it, or a
  ///     commit that shares its sync, finds the tables corrupt. These are rebuilt from the log, and
  ///     nothing is left of the first call.
  /// - Returns: the result of `body`. The commit is then durable, unless it is `relaxed`, and every
  ///   later read shows it.
  @discardableResult
  public func write<Result: Sendable>(
    author: String? = nil, message: String? = nil, durability: Durability? = nil,
    _ body: @escaping @Sendable (Transaction) throws -> Result
  ) async throws -> Result {
    if options.isReadOnly { throw StoreError.readOnly }
    let result: Result
    do {
      result = try await writer.commit(
        CommitMessage(author: author ?? options.author, text: message),
        isRelaxed: durability ?? options.durability == .relaxed
      ) {
        [self] write, recorded, schemaChanges in
        adoptChanges(write.schema, schemaChanges)
        let transaction = Transaction(self, write, recorded)
        defer { transaction.end() }
        return try body(transaction)
      }
    } catch { throw StoreError.translated(error) }
    noteCommit()
    try await resolveConflicts()
    return result
  }

  /// Reports a change of the tables by the writer's thread.
  func noteCommit() {
    readers.noteCommit()
    changes.publish()
  }

  /// Reports a possible change of the tables outside of the writer's thread.
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

  /// The store's error for a read error. A closed store turns `failed` into `closed`.
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

  /// The record with a key, with its related records on some paths of any depth.
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
