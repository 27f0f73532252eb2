import Stemma

@Table struct Owner {
  let id: UUID
  @HasMany("ownerId") var pets: [Pet]  // refused: the type of a @HasMany property is Related<Model>
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
  @BelongsTo("keeperId") var keeper: Keeper?  // refused: cannot convert value of type 'Int?'
}

@Table struct Collar {
  let id: UUID
  var keeperId: UUID?
  var other: UUID?
  @BelongsTo("keeperId", "other") var keeper: Keeper?  // refused: cannot convert value of type
}

func required(_ pet: inout Pet) {
  pet.setKeeper(nil)  // refused: 'nil' is not compatible with expected argument type 'Keeper'
  _ = Pet.Draft(keeper: nil)  // refused: 'nil' is not compatible with expected argument type 'Keeper'
  _ = Pet.Draft()  // refused: missing argument for parameter
  pet.setWalker(nil)
}

func local() {
  @Table struct Inside {  // refused: local
    let id: UUID
  }
}
