import Stemma

// These declarations do not compile: attributes that no macro can read, or that do not exist.

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

// Attributes in places where no macro reads them.

@Table struct Marked {
  @Index("width") @Selection struct Size {  // refused: @Index belongs on the struct with @Table
    var width: Int
  }
  let id: Int
  var size: Size
  @Column("name") func name() {}  // refused: @Column belongs on a property of a struct
  @Ephemeral struct Inner {}  // refused: @Ephemeral belongs on a property of a struct
  #if DEBUG
    @HasMany("markedId") var others: Related<Marked>  // refused: a relationship cannot stand inside of #if
  #endif
  #if DEBUG
    @Index  // refused: @Index cannot stand inside of #if
  #endif
  var shelf: Int
}

struct Unread {
  @Column("other") var title: String  // refused: @Column belongs on a property of a struct
  @Ephemeral @Index var year = 0  // refused: @Ephemeral belongs on | @Index belongs on
}

extension Unread {
  @Index var loud: String { title }  // refused: @Index belongs on the struct with @Table
}

@Table struct Leading {
  let id: Int
  var ownerId: Int?
  @Ephemeral @BelongsTo("ownerId") var owner: Owner?  // refused: leave out @Ephemeral, or @BelongsTo
  @HasMany("leadingId") static var all: Related<Pet>  // refused: leave out `static`
}

// Column attributes are read wherever @Table is placed.

#if !SERVER
  @Table  // refused: @Table cannot stand inside of #if
#endif
struct There {
  @Column(primaryKey: true) let number: Int
  @Index var title: String
}

#if SERVER
  @Table
#endif
struct NotThere {
  @Column(primaryKey: true) let number: Int
  @Index var title: String
  @HasMany("ownerId") var pets: Related<Pet>  // refused: whose @Table is not inside of #if
}
