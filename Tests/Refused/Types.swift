import Stemma

// Types that only the compiler knows. It prints our message and names the property.

struct Point: Codable, Sendable {
  var x = 0
}

enum Level: String {
  case low
}

@Table struct NoColumns {  // refused: the type of a column is a ColumnValue
  let id: UUID
  var place: Point  // refused: the type of a column is a ColumnValue
  var level: Level?  // refused: the type of a column is a ColumnValue
  var points: [Point]  // refused: the type of a column is a ColumnValue
  @Column(as: Point.JSONRepresentation.self) var stored: Point
}

@Table struct NoKey {  // refused: is a KeyValue | DraftPart | ColumnValue | not conform | inferred
  let id: Level
}

@Table struct NoModels {
  let id: UUID
  var pointId: UUID?
  @BelongsTo("pointId") var point: Point?  // refused: leads to a model: mark
  @BelongsTo("id") var always: Point  // refused: leads to a model: mark
  @HasOne("ownerId") var one: Point?  // refused: leads to a model: mark
  @HasMany("ownerId") var many: Related<Point>  // refused: leads to a model: mark
  @ManyToMany(through: Grouped.self) var far: Related<Point>  // refused: leads to a model: mark
}

@Table struct ListKey {
  let id: [Int]  // refused: `id` cannot be a part of a key, as it is a list
}

@Table struct DecimalKey {
  @Selection struct ID: Hashable {  // refused: is a KeyValue
    let shop: Int
    let price: Decimal  // refused: `price` cannot be a part of a key
  }
  let id: ID
}

@Table struct Grouped {
  let id: UUID
  @Selection struct Part {
    var name: String
    var ownerId: UUID?
    @BelongsTo("ownerId") var owner: Grouped?  // refused: @BelongsTo belongs in the struct with @Table itself
  }
  var part: Part
}

struct Plain {
  let id: UUID
  @HasMany("plainId") var others: Related<Grouped>  // refused: @HasMany belongs in
}

// A relationship without its attribute, or without the arguments of the attribute.

@Table struct Unmarked {
  let id: UUID
  var proprietor: Grouped  // refused: a model is no column: mark the property @BelongsTo
  var other: Grouped?  // refused: a model is no column: mark the property @BelongsTo
  var more: [Grouped]  // refused: models are no column: the property is a Related<Model>
}

@Table struct Unnamed {
  let id: UUID
  @BelongsTo var owner: Grouped  // refused: name the reference fields: @BelongsTo("…")
  @HasOne var first: Grouped?  // refused: name the reference fields: @HasOne("…")
  @HasOne("ownerId") var second: Grouped  // refused: there may be no Grouped yet
  @HasMany var all: Related<Grouped>  // refused: name the reference fields: @HasMany("…")
  @ManyToMany var far: Related<Grouped>  // refused: name the model that belongs to both sides
}

@Table struct Unselected {
  struct ID: Hashable {
    let city: String
    let number: Int
  }
  let id: ID  // refused: mark it @Selection
}

// Places where a model is not allowed.

enum Shelf<Paper> {
  @Table struct Book {  // refused: a model cannot be nested in a generic type; declare it outside of `Shelf`
    let id: UUID
    var title: String
    var ownerId: UUID?
    @BelongsTo("ownerId") var owner: Grouped?
    @HasMany("bookId") var others: Related<Grouped>
  }
}

// A type of another module with the name of a type of this library.

enum Kind {
  enum Related: String, ColumnValue { case near, far }
}

@Table struct Cousin {
  let id: UUID
  var kind: Kind.Related
  var others: Related<Cousin>  // refused: `others` leads to other records: put @HasMany
}
