import Stemma

// Models of a module whose default isolation is the main actor, as an app may be. Only types that a
// column holds by a representation are declared nonisolated.

nonisolated struct Tag: Codable, Hashable { var name: String }

enum Level: Int, ColumnValue { case low, high }

@Table struct Team {
  let id: UUID
  var name: String
  @HasMany("teamId") var members: Related<Member>
}

@Table @Index("name") struct Member {
  @Selection struct Size {
    var width: Int
    var depth: Int?
  }
  let id: UUID
  var name: String {
    didSet { isShown = true }
  }
  var level: Level = .low
  @Column(as: [Tag].JSONRepresentation.self) var tags: [Tag]
  var size: Size
  var teamId: UUID?
  @Ephemeral var isShown = false
  @BelongsTo("teamId") var team: Team?
}

@Table struct Seat {
  @Selection struct ID: Hashable {
    let row: Int
    let number: Int
  }
  let id: ID
}

@Selection struct Brief {
  var name: String
  var width: Int
}

func mainActorModels(_ store: Store) async throws -> [Brief] {
  let team = try await store.insert(Team.Draft(name: "a"))
  let size = Member.Size(width: 1, depth: nil)
  var member = try await store.insert(Member.Draft(name: "b", tags: [Tag(name: "c")], size: size, team: team))
  member.name = "d"
  member.setTeam(nil)
  try await Member.update(member).execute(store)
  _ = try await member.team
  _ = try await team.members.fetch()
  _ = try await store.insert(Seat.Draft(row: 1, number: 2))
  return try await Member.where { $0.size.width == 1 && $0.level == .low }
    .select { Brief.Columns(name: $0.name, width: $0.size.width) }.fetchAll(store)
}
