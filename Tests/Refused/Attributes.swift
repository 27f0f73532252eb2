import Stemma

// None of this compiles: attributes that say what no macro can read, or what there is not.

private let rule = DeleteRule.restrict
private let title = "title"

@Table struct Owner {
  let id: Int
  @HasMany("ownerId", onDelete: rule) var pets: Related<Pet>  // refused: cannot read `onDelete: rule`
}

@Table struct Pet {
  let id: Int
  var ownerId: Int?
  @BelongsTo("ownerId") var owner: Owner?
}

@Table struct Named {
  let id: Int
  @Column(title) var name: String  // refused: @Column cannot read `title`
}

@Table struct Computed {
  let id: Int
  @Column("shout") var loud: String { "a" }  // refused: `loud` is not stored in a record
}

@Table struct Represented {
  @Selection struct ID: Hashable {
    let shelf: String
    @Column(as: Date.UnixTimeRepresentation.self) let day: Date  // refused: `day` is stored as it is
  }
  let id: ID
}

@Table struct Forwarded {
  @Selection struct ID: Hashable {
    let primaryKey: Int  // refused: @Table writes `primaryKey`
  }
  let id: ID
}

@Table struct Parted {
  @Selection struct ID: Hashable {
    let shelf: String
    let parts: Int  // refused: @Selection writes `parts`
  }
  let id: ID
}

@Selection struct Nothing {  // refused: `Nothing` has no property that is stored
}

@Table
@Index("title")
@Index("title")  // refused: Indexed has an index `byTitle` already
struct Indexed {
  let id: Int
  var title: String
}
