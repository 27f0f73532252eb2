import Stemma

// These declarations do not compile. Each refused line ends with a part of the error message.

@Table struct Enrollment {
  @Selection struct ID: Hashable {
    let student: String
    let course: String
  }
  let id: ID
  var title: String
  @BelongsTo("title") var topic: Topic
}

@Table struct Topic {
  @Column(primaryKey: true) let name: String
  @HasMany("title") var enrollments: Related<Enrollment>
}

func constants() {
  _ = Enrollment.select { ($0.title, 5) }  // refused: Int
  _ = Enrollment.all.select { ($0.title, 5) }  // refused: Int
  _ = Enrollment.order { ($0.title, 5) }  // refused: Int
  _ = Enrollment.group { $0.title }.select { ($0.title, 5) }  // refused: Int
  _ = Enrollment.group { ($0.title, 5) }  // refused: Int
  _ = Enrollment.order { _ in }  // refused: ()
  _ = Enrollment.select { _ in 5 }  // refused: Int
}

/// The key of a row that may be missing may be missing, too.
func missing() {
  _ = Topic.leftJoin { $0.enrollments }.select { $1.id }  // refused: OptionalGroup
  _ = Topic.leftJoin { $0.enrollments }.select { $1.id.student }
}
