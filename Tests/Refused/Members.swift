import Stemma

@Table struct Constant {
  let id: UUID
  let kind = "a"  // refused: `kind` is the same in every row
}

@Table struct Untyped {
  let id: UUID
  var number = Int.max  // refused: write the type of `number`
}

@Table struct Clash {
  let id: UUID
  struct Draft {}  // refused: @Table writes `Draft`
}

@Table struct SameName {
  let id: UUID
  var title: String
  var Title: String  // refused: would be one column, `Title`
}

@Table struct OneName {
  let id: UUID
  @Column("owner") var ownerId: UUID?  // refused: have one name
  @BelongsTo("ownerId") var owner: OneName?
}

@Table struct PartAndGroup {
  @Selection struct ID: Hashable {
    let size: Int
  }
  @Selection struct Size {
    var width: Int
  }
  let id: ID
  var size: Size  // refused: `size` is a part of the key already
}

@MainActor @Table struct Isolated {  // refused: a record is a value for every actor
  let id: UUID
}

@Swift.MainActor @Table struct IsolatedOtherwise {  // refused: a record is a value for every actor
  let id: UUID
}

@globalActor actor MembersActor { static let shared = MembersActor() }

@MembersActor @Table struct IsolatedElsewhere {  // refused: a record is a value for every actor
  let id: UUID
}

@Table struct Conditional {
  let id: UUID
  #if DEBUG
    var trace: String  // refused: a column cannot stand inside of #if
  #endif
}

@Table struct Generic<Value> {  // refused: a model cannot be generic
  let id: UUID
}

enum Named {
  @Table struct Draft {  // refused: a type with @Table cannot be called Draft
    let id: UUID
  }
}

@Table(partition: ["b"]) struct Parted {  // refused: a partition is named by the first parts of the key
  @Selection struct ID: Hashable {
    let a: String
    let b: String
  }
  let id: ID
}

// References to a refused declaration cause no further errors.

@Table struct Refused {
  var title: (String, Int)  // refused: a tuple is no column
  let id: Int
  @HasMany("refusedId") var dependents: Related<Dependent>
  @HasOne("refusedId") var first: Dependent?
}

@Table struct Keyless {  // refused: Keyless has no primary key
  @HasMany("keylessId") var dependents: Related<Dependent>
}

@Table struct Dependent {
  let id: UUID
  var refusedId: Int?
  var keylessId: UUID?
  @BelongsTo("refusedId") var refused: Refused?
  @BelongsTo("keylessId") var keyless: Keyless?
}

@Table @Table struct Twice {  // refused: a model has one @Table
  let id: UUID
}

@Selection class Grouped {  // refused: @Selection requires a struct
  var name = ""
}

@Table struct Observed {
  let id: UUID
  var pages, shelf: Int  // refused: declare the columns `pages` and `shelf` one by one
  var twice: Int??  // refused: the type of `twice` is `Int?`
  var owner: any Sendable  // refused: a column has a type of its own
}

@Table struct Observing {
  let id: UUID
  var label: String {  // refused: `label` can have one observer of its own
    willSet {}
    didSet {}
  }
}

@Table struct Lazy {
  let id: UUID
  lazy var shown: String = "a"  // refused: a column is not lazy
}

// Groups and keys are checked like models.

@Table struct Parts {
  @Selection struct ID: Hashable {
    let site: String
    let kind = "a"  // refused: `kind` would be the same in every record
  }
  @Selection struct Size {
    var width: Int
    let unit = "mm"  // refused: `unit` is the same in every row
    @Ephemeral var isShown: Bool  // refused: `isShown` is not stored
    lazy var shown: String = "a"  // refused: a column is not lazy
    @Index var depth: Int  // refused: write @Index("depth") on the struct with @Table
    @Column(primaryKey: true) var height: Int  // refused: the key is a property of the model
    #if DEBUG
      var trace: String  // refused: a column cannot stand inside of #if
    #endif
    var pair: (Int, Int)  // refused: a tuple is no column
    var partId: Int?
  }
  let id: ID
  var size: Size
}

@Table struct Leading {
  @Selection struct Part {
    var ownerId: Int?
  }
  let id: Int
  var part: Part
  @BelongsTo("ownerId") var owner: Leading?  // refused: `ownerId` belongs to the group `part`
}

@Table struct Titled {
  @Selection struct Size {
    var width: Int
  }
  let id: Int
  @Column("size") var outer: Size  // refused: the columns of `outer` are the properties of `Size`
}

/// A selection of a statement.
@Selection public struct Shown {
  /// A column.
  public var name: String
  let kind = "a"  // refused: `kind` is the same in every row
}

func shown(_ shown: Shown) -> any Selection { shown }
