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
