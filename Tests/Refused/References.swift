import Stemma

@Table struct Owner {
  let id: UUID
  @HasMany("ownerId") var pets: [Pet]  // refused: the type of a @HasMany property is Related<Model>
}

@Table struct Holder {
  let id: UUID
  @HasMany("ownerId") var pets: Array<Pet>?  // refused: the type of a @HasMany property is Related<Model>
  @HasOne("ownerId") var first: Related<Pet>  // refused: leads to one record: its type is `Pet?`
}

@Table struct Keeper {
  let id: UUID
  var name: String
}

@Table struct Pet {
  let id: UUID
  var keeperId: UUID
  var walkerId: UUID?
  @BelongsTo("keeperId") var keeper: Keeper
  @BelongsTo("walkerId") var walker: Keeper?
}

@Table struct Cage {
  let id: UUID
  var keeperId: UUID
  @BelongsTo("keeperId") var keeper: Keeper?  // refused: `keeperId` cannot be nil
}

@Table struct Bowl {
  let id: UUID
  var keeperId: UUID?
  @BelongsTo("kepperId") var keeper: Keeper?  // refused: Bowl has no column `kepperId`
}

@Table struct Leash {
  let id: UUID
  var keeperId: Int?
  @BelongsTo("keeperId") var keeper: Keeper?  // refused: do not match the key
}

@Table struct Collar {
  let id: UUID
  var keeperId: UUID?
  var other: UUID?
  @BelongsTo("keeperId", "other") var keeper: Keeper?  // refused: do not match the key
}

@Table struct Kennel {
  @Selection struct ID: Hashable {
    let city: String
    let number: Int
  }
  let id: ID
  @HasMany("kennelCity", "kennelNumber") var dogs: Related<Dog>
  @HasMany("kennelNumber", "kennelCity") var turn: Related<Dog>  // refused: do not match the key
  @HasOne("kennelNumber", "kennelCity") var first: Dog?  // refused: do not match the key
  @HasMany("kennelTown", "kennelNumber") var misspelt: Related<Dog>  // refused: is no property that
  @HasOne("kennelTown", "kennelNumber") var lost: Dog?  // refused: is no property that
  @HasMany("kennelTown", "kennelCity") var both: Related<Dog>  // refused: do not match the key
}

@Table struct Dog {
  let id: UUID
  var kennelCity: String?
  var kennelNumber: Int?
  @BelongsTo("kennelCity", "kennelNumber") var kennel: Kennel?
}

@Table struct Stay {
  @Selection struct ID: Hashable {
    let kennelCity: String
    let number: Int
  }
  let id: ID
  var kennelNumber: String
  var guestNumber: UUID?
  @BelongsTo("kennelCity", "kennelNumber") var kennel: Kennel  // refused: do not match the key
  @BelongsTo("kennelCity", "guestNumber") var guest: Kennel?  // refused: do not match the key
}

@Table struct Breed {
  let id: UUID
  @HasMany(\Breed.id) var dogs: Related<Dog>  // refused: are fields of Dog, not of Breed
  @HasMany("a", "b") var others: Related<Dog>  // refused: 2 reference fields
}

func required(_ pet: inout Pet) {
  pet.setKeeper(nil)  // refused: 'nil' is not compatible with expected argument type 'Keeper'
  _ = Pet.Draft(keeper: nil)  // refused: 'nil' is not compatible with expected argument type 'Keeper'
  _ = Pet.Draft()  // refused: missing argument for parameter
  pet.setWalker(nil)
}

func local() {
  @Table struct Inside {  // refused: declare it in a file or a type | local type cannot have
    let id: UUID
  }
}

@Table struct Toy {
  let id: UUID
  var petId: UUID?
  var cageId: UUID?
  @BelongsTo("petId") var own: Pet?
  @BelongsTo("cageId") var Own: Cage?  // refused: @Table writes `setOwn(_:)` for `own` already
  @BelongsTo("petId") var several: [Pet]  // refused: leads to one record: its type is `Pet?`
  @BelongsTo("petId", "petId") var double: Pet?  // refused: name each once
  @HasMany(fields: ["id"]) var all: Related<Pet>  // refused: not `fields:` | argument label | pass array
}
