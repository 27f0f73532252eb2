import Foundation
import Stemma

// Types with other names, and with long names.

typealias Number = Int

@Table struct Branch {
  let id: Number
  var upId: Int?
  var sideId: Optional<Number>
  @BelongsTo("upId") var up: Branch?
  @BelongsTo("sideId") var side: Branch?
  @HasMany("sideId") var sides: Related<Branch>
}

@Table struct Named {
  let id: Foundation.UUID
  var title: Swift.String
  var createdAt: Foundation.Date
}

func minted() -> Named.Draft { Named.Draft(title: "a") }

@Table struct Sheet {
  @Selection struct Size {
    var width: Int
    var height: (Int)
  }
  let id: UUID
  var size: (Size)
}

func wide() -> some Any { Sheet.where { $0.size.width > 10 } }

/// Its `id` is an ordinary column.
@Table struct Ticket {
  @Column(primaryKey: true) let number: Int
  @Column(primaryKey: false) var id: String
}

/// Names that are keywords in other contexts.
@Table struct Pause {
  @Selection struct Key: Hashable {
    let `default`: Int
    let `let`: String
  }
  @Selection struct Span {
    @Column("awaited") var await: Int
    var `in`: Int?
  }
  let id: Key
  var await: Bool
  var async: String
  var `var`: Int
  var span: Span
}

@Selection struct Awaited {
  var await: Bool
  var `inout`: Int
}

func pauses(_ store: Store) async throws -> [Awaited] {
  let draft = Pause.Draft(
    default: 1, let: "a", await: true, async: "b", var: 1, span: Pause.Span(await: 1, in: nil))
  var pause = try await store.insert(draft)
  pause.`await`.toggle()
  try await store.update(pause)
  return try await Pause.where { $0.`await` && $0.span.`await` == 1 }
    .select { Awaited.Columns(await: $0.`await`, `inout`: $0.span.`await`) }.fetchAll(store)
}

/// Keywords as names of relationships, reference fields, indexes, partitions and models.
@Table
@Index("switch", "for")
struct `default` {
  @Column(primaryKey: true) let `for`: UUID
  var `switch`: UUID?
  @Index("switch") var await: Int
  var `defer`: UUID?
  @BelongsTo("switch") var `class`: `default`?
  @BelongsTo(\`default`.`defer`) var `in`: `default`?
  @HasMany("switch") var `repeat`: Related<`default`>
  @HasOne(\`default`.`switch`) var `while`: `default`?
}

enum Words {
  enum Case: String, KeyValue, CaseIterable { case first }

  /// The structs of columns in this scope conform to Swift's protocol of this name.
  @Table struct Sendable {
    let id: UUID
    var text: String
  }

  @Table(partition: ["in", "case"]) struct Verb {
    @Selection struct ID: Hashable {
      let `in`: String
      let `case`: Case
      let `for`: UUID
    }
    @Selection struct Span {
      var `where`: Case
      @Column("guarded", as: Date.UnixTimeRepresentation.self) var `guard`: Date
    }
    let id: ID
    var `as`: Case?
    var `is`: Span
    @BelongsTo("for") var `class`: `default`
    @BelongsTo("in", "case", "else") var await: Verb?
    var `else`: UUID?
    @HasMany("in", "case", "else") var `repeat`: Related<Verb>
  }
}

func words(_ store: Store, _ first: `default`) async throws {
  var second = try await store.insert(`default`.Draft(for: UUID(), await: 1, class: first, in: first))
  second.setClass(nil)
  second.setIn(first)
  _ = try await (second.class, second.in, second.while, second.repeat.count())
  _ = try await `default`.where { $0.await == 1 && $0.switch == nil }.fetchAll(store)
  let span = Words.Verb.Span(where: .first, guard: Date())
  var verb = try await store.insert(Words.Verb.Draft(in: "a", case: .first, is: span, class: second))
  try verb.setAwait(verb)
  verb.is.guard = Date()
  try await store.update(verb)
}

/// `Self`, which the generated types also use.
@Table struct Volume {
  enum Kind: Int, ColumnValue { case plain, bound }
  struct Mark: Codable, Hashable { var text: String }
  @Selection struct ID: Hashable {
    typealias Part = Int
    let number: Self.Part
  }
  @Selection struct Size {
    enum Unit: Int, ColumnValue { case page }
    var width: Int
    var unit: Self.Unit
  }
  static let limit = 3
  let id: Self.ID
  var kind: Self.Kind = Self.Kind.bound
  var kinds: [Self.Kind] = [Self.Kind.plain]
  var size: Self.Size
  var pages: Int = Self.limit
  @Column(as: Self.Mark?.JSONRepresentation.self) var mark: Self.Mark?
  var parentNumber: Int?
  @BelongsTo("parentNumber") var parent: Self?
  @HasMany("parentNumber") var parts: Related<Self>
}

func volumes(_ parent: Volume) -> some Any {
  let size = Volume.Size(width: 1, unit: .page)
  _ = Volume.Draft(id: Volume.ID(number: 1), size: size, parentNumber: nil)
  _ = Volume.Draft(number: 2, size: size, parent: parent)
  return Volume.where { $0.kind == .plain && $0.size.unit == .page }
}
