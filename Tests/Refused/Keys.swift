import Stemma

// These declarations do not compile. Each refused line ends with a part of the error message.

@Table struct NoKey {  // refused: NoKey has no primary key
  var title: String
}

@Table struct TwoKeys {
  @Column(primaryKey: true) let a: Int
  @Column(primaryKey: true) let b: Int  // refused: TwoKeys has a primary key already, `a`
}

@Table struct OptionalKey {
  let id: UUID?  // refused: the primary key `id` cannot be nil
}

@Table struct OptionalPart {
  @Selection struct ID: Hashable {
    let city: String
    let number: Int?  // refused: the key part `number` cannot be nil
  }
  let id: ID
}

@Table struct UnhashableKey {
  @Selection struct ID {  // refused: a primary key is Hashable
    let a: Int
  }
  let id: ID
}

@Table class Object {  // refused: @Table requires a struct
  let id: UUID = UUID()
}

@Table struct Custom {
  @Column(primaryKey: true) let code: String
  var title: String
}

@Table actor Acting {  // refused: @Table requires a struct
  let id = UUID()
}

@Table enum Kind {  // refused: @Table requires a struct
  case plain
}

@Table struct DeniedKey {
  @Column(primaryKey: false) let id: UUID  // refused: leave out `primaryKey: false` at `id`
}

@Table struct OtherKey {
  @Column(primaryKey: false) let id: Int
  @Column(primaryKey: true) let isbn: String
}

struct Code: KeyValue {
  static var columnType: ColumnType { .text }
  var datum: Datum { .text("a") }
  init(datum: Datum) throws(StoreError) {}
}

@Table struct Coded {
  let id: Code
  var title: String
}

@Table struct InSortKey {
  @Selection struct ID: Hashable {
    let country: String
    let id: UUID
  }
  let id: ID
}

func drafts() {
  _ = Custom.Draft(title: "a")  // refused: missing argument for parameter 'code'
  _ = InSortKey.Draft()  // refused: missing argument
  _ = Coded.Draft(title: "a")  // refused: the node mints no `id` of this type
}

func keys(_ custom: inout Custom) {
  custom.code = "b"  // refused: 'code' is a 'let' constant
  _ = Coded.find("a")  // refused: the key of this model is no String
  _ = OtherKey.find(custom.code)
  _ = OtherKey.find([custom.code])
}

@Selection struct Beside: Hashable {
  let a: String
  let b: Int
}

@Table struct KeyBeside {  // refused: declare the @Selection inside of the model
  let id: Beside
}

@Table struct GroupBeside {  // refused: declare the @Selection inside of the model
  let id: UUID
  var part: Beside
  var other: Beside?
}

@Table struct Represented {
  let id: UUID
  @Column(as: Date.DayRepresentation.self) var day: Date?  // refused: write `as:` with a question mark
  @Column(as: Date.DayRepresentation.self) var birthday: String  // refused: stores values of another type
}

@Table struct Constant {  // refused: stores values of another type
  let id: UUID
  @Column(as: Date.DayRepresentation.self) let born: String
}

@Table struct OptionalConstant {  // refused: write `as:` with a question mark
  let id: UUID
  @Column(as: Date.DayRepresentation.self) let last: Date?
}
