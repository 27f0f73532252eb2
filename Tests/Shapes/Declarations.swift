import Stemma

// Declarations that must compile. Nothing here runs. Each represents a form that the documentation
// shows, or a difficult case for an expansion.

// Access levels. A private model's members are as private as it is; a public one's are public.

@Table private struct PrivateNote {
  let id: UUID
  var text: String
}

@Table fileprivate struct FileprivateNote {
  let id: UUID
  private(set) var text: String
}

private func privateModels(_ store: Store) async throws {
  let note = try await store.insert(PrivateNote.Draft(text: "a"))
  _ = PrivateNote(id: note.id, text: note.text)
  _ = try await FileprivateNote.where { $0.text == "a" }.fetchAll(store)
}

/// A public model with a key of several parts, one of them also the reference.
@Table public struct PublicNote {
  /// A public key: its initializer must be public as well.
  @Selection public struct ID: Hashable {
    /// The part that is a reference.
    public let folder: String
    /// The part that is minted.
    public let id: UUID
  }
  /// The whole key.
  public let id: ID
  /// A column that a draft must set.
  public var text: String
  /// A column that a draft may omit.
  public var draftText: String?
  /// A required reference that the key fixes, so it has no setter.
  @BelongsTo("folder") public var parent: PublicFolder
}

/// A public model whose key is not called `id`.
@Table public struct PublicFolder {
  /// The key, which is never minted.
  @Column(primaryKey: true) public let name: String
  /// A time that the node maintains.
  public var createdAt: Date
  /// The other side of the reference.
  @HasMany("folder") public var notes: Related<PublicNote>
}

/// Uses the public members that the macros generate.
public func publicModels() -> PublicNote.Draft {
  let note = PublicNote(id: PublicNote.ID(folder: "f", id: UUID()), text: "a")
  return PublicNote.Draft(note)
}

// Custom initializers, and private properties.

@Table struct Account {
  @Ephemeral let kind = "account"
  private var secret: String?
  let id: UUID
  @Ephemeral var isOpen = false
  private(set) var name: String {
    willSet { isOpen = newValue != name }
  }

  init(named name: String) throws {
    id = UUID()
    self.name = name
  }
}

@Table struct Vault {
  private var secret = ""
  var name: String
  let id: Int
}

/// A public type with a custom initializer that may fail.
@Table public struct Ledger {
  /// The name of the ledger.
  public var name: String
  /// The key.
  public let id: Int
  /// Nil if the text is not a number.
  public init?(_ text: String) {
    guard let id = Int(text) else { return nil }
    (self.name, self.id) = (text, id)
  }
}

func initializers(_ store: Store) async throws -> [String] {
  var account = try await store.insert(Account(named: "a"))
  account.isOpen = true
  let ledger = Ledger("1").map(Ledger.Draft.init)
  return [account.kind, account.name, ledger?.name ?? ""]
}

// A namespace, and Swift's attributes and comments in every place.

enum Library {
  /// Documented.
  @available(macOS 15, *)
  @Table("library_books")  // a comment behind the attribute
  struct Book: Identifiable, Hashable, Codable {
    /* before */ let id: UUID  // behind
    /// A title,
    /// on two lines.
    var title = "Untitled"  // behind a default
    var pages: Int
    var shelf: Int
    var weight = 0.5 /* inside */
    var `default`: Bool = false
    nonisolated var isbn: String?
    var summary: String { "\(title), \(pages)" }
    var price: Decimal = 0 {
      didSet { if price < 0 { price = 0 } }
    }
    static let limit = 3
    @Ephemeral lazy var expensive: Int = pages * 2
    #if DEBUG
      func dump() { print(title) }
    #endif
    func shout() -> String { title.uppercased() }
    struct Nested { var a: Int }
  }
}

func hashableDrafts(_ book: Library.Book) -> Bool {
  Set([Library.Book.Draft(book)]).contains(Library.Book.Draft(pages: 1, shelf: 2))
}

// Columns: names, representations, groups, indexes, policies, a partition, ephemeral properties.

struct Tag: Codable, Hashable { var name: String }

@Table("articles_", policy: .latest, deletes: .deleteWins, partition: [])
@Index("title", "rank", name: "byTitleAndRank")
struct Article {
  @Selection struct Key: Hashable {
    let site: String
    let number: Int
  }
  @Selection struct Span {
    var start: Date
    var end: Date?
  }
  @Column(primaryKey: true) let key: Key
  @Column("headline") var title: String
  @Index var rank: Int = -1
  var span: Span
  @Column(as: [Tag].JSONRepresentation.self) var tags: [Tag] = []
  @Column(as: Tag?.JSONRepresentation.self) var main: Tag?
  @Column("seen_at", as: Date.UnixTimeRepresentation?.self) var seen: Date?
  @Column(as: String.AWSEmail.self) var author: String
  @Ephemeral var isSelected = false
  @Ephemeral let kind = "article"
  var createdAt: Date
  var updatedAt: Date?
}

func columns(_ store: Store) async throws {
  let span = Article.Span(start: Date(timeIntervalSince1970: 0), end: nil)
  let draft = Article.Draft(site: "a", number: 1, title: "T", span: span, author: "a@b.example")
  _ = Article.Draft(key: Article.Key(site: "a", number: 1), title: "T", span: span, author: "a@b.example")
  var article = try await store.insert(draft)
  article.isSelected = true
  _ = article.createdAt
  _ = try await Article.where { $0.title == "T" && $0.span.end == nil && $0.key.site == "a" }.fetchAll(store)
}

// A selection outside of any table; a key under another name.

@Selection struct Load {
  var name: String
  var tasks: Int
  var last: Date?
}

@Table struct Depot {
  @Column("depot_no", primaryKey: true) let number: Int
  var name: String
  var at: Date?
  @HasOne(\Crane.depotNumber) var crane: Crane?
}

@Table struct Crane {
  let id: UUID
  var depotNumber: Int?
  @BelongsTo(\Crane.depotNumber) var depot: Depot?
}

func loads(_ store: Store) async throws -> [Load] {
  try await Depot.all.select { Load.Columns(name: $0.name, tasks: $0.number, last: $0.at) }.fetchAll(store)
}

// A model is Identifiable by its `id`, whether or not it declares that. A model whose key has
// another name is so only if it declares an `id`. A model that uses the name of the protocol's
// associated type is not.

@Table struct Said: Identifiable { let id: UUID }
@Table struct Keyed: Identifiable {
  @Column(primaryKey: true) let code: String
  var id: String { code }
}
@Table struct Extended { let id: Int }
extension Extended: Identifiable {}
@Table struct Confused {
  struct ID {}
  let id: UUID
}

func identities(_ store: Store) async throws -> [UUID] {
  func ids<Row: Identifiable>(_ rows: [Row]) -> [Row.ID] { rows.map(\.id) }
  let moved = try await Order.all.fetchAll(store)
  return try await ids(Employee.all.fetchAll(store)) + ids(moved).map(\.id)
}

// Keys of every kind.

enum Level: String, KeyValue, CaseIterable { case low, high }

@Table struct Leveled { @Column(primaryKey: true) let level: Level }
@Table struct Dated { @Column(primaryKey: true) let day: Date }
@Table struct Flagged {
  @Selection struct ID: Hashable {
    let flag: Bool
    let weight: Double
    let link: URL
    let level: Level
  }
  let id: ID
}
