import Foundation
import Stemma

// Types that have other names, and long ones.

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

/// Whose `id` is a column like others.
@Table struct Ticket {
  @Column(primaryKey: true) let number: Int
  @Column(primaryKey: false) var id: String
}

/// Names that are words of the language in other places.
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
