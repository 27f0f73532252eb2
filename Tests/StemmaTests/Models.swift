import Stemma

@Table struct Team {
  let id: UUID  // inferred primary key
  var mantra: String
  @HasMany("teamId") var members: Related<Member>
}

@Table struct Member {
  let id: UUID
  var name: String
  var teamId: UUID?
  @BelongsTo("teamId") var team: Team?
}

@Table struct Book {
  @Column(primaryKey: true) let isbn: String
  var title: String
}

@Table struct Enrollment {  // composite key, flattened into columns
  @Selection struct ID: Hashable {
    let courseID: Int
    let studentID: Int
  }
  let id: ID
  var grade: String?
}

@Table struct Reminder {
  let id: UUID
  var title: String
  var isDone = false  // a comment behind a default
}
