import Stemma

/// A list has its name for a key, so that two people who make "Shopping" on two machines have one list.
@Table struct RemindersList {
  @Column(primaryKey: true) let name: String
  @HasMany("listName") var reminders: Related<Reminder>
}

@Table struct Reminder {
  let id: UUID
  var title: String
  var isDone = false
  var listName: String
  var createdAt: Date
  @BelongsTo("listName") var list: RemindersList
}
