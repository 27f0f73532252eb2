import Stemma

/// The name is the key, so two people who create "Shopping" on two machines get one list.
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
