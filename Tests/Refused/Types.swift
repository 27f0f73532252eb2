import Stemma

// Types that only the compiler knows: it has our words, and names the property.

struct Point: Codable, Sendable {
  var x = 0
}

enum Level: String {
  case low
}

@Table struct NoColumns {  // refused: the type of a column is a ColumnValue
  let id: UUID
  var point: Point
  var level: Level?
  var points: [Point]
  @Column(as: Point.JSONRepresentation.self) var stored: Point
}

@Table struct NoKey {  // refused: the type of a key, or of a part of one, is a KeyValue
  let id: Level
}

@Table struct NoModels {
  let id: UUID
  var pointId: UUID?
  @BelongsTo("pointId") var point: Point?  // refused: a relationship leads to a model: mark its type @Table
  @HasOne("ownerId") var one: Point?  // refused: value of type 'Point' has no member 'ownerId'
  @HasMany("ownerId") var many: Related<Point>  // refused: type 'Point' does not conform to protocol 'Table'
}

@Table struct ListKey {
  let id: [Int]  // refused: `id` cannot be a part of a key, as it is a list
}

@Table struct DecimalKey {
  @Selection struct ID: Hashable {
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
    @BelongsTo("ownerId") var owner: Grouped?  // refused: @BelongsTo stands in the struct with @Table itself
  }
  var part: Part
}

struct Plain {
  let id: UUID
  @HasMany("plainId") var others: Related<Grouped>  // refused: @HasMany stands in
}
