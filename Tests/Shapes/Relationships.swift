import Stemma

// Tables that refer to each other, to themselves, and to each other several times.

@Table struct Employee {
  let id: UUID
  var name: String
  var managerId: UUID?
  var mentorId: UUID?
  @BelongsTo("managerId") var manager: Employee?
  @BelongsTo(\Employee.mentorId) var mentor: Employee?
  @HasMany("managerId") var reports: Related<Employee>
  @HasMany(\Employee.mentorId) var students: Related<Employee>
  @HasOne("ownerId") var badge: Badge?
}

@Table struct Badge {
  let id: UUID
  var ownerId: UUID
  @BelongsTo("ownerId") var owner: Employee
}

// A composite target, with a required and an optional reference.

@Table struct Person {
  @Selection struct ID: Hashable {
    let name: String
    let dateOfBirth: Date
  }
  let id: ID
  @HasMany("authorName", "authorDoB") var posts: Related<Post>
}

@Table struct Post {
  let id: UUID
  var authorName: String
  var authorDoB: Date
  var editorName: String?
  var editorDoB: Date?
  @BelongsTo("authorName", "authorDoB") var author: Person
  @BelongsTo("editorName", "editorDoB") var editor: Person?
}

// A join model: its references form its key.

@Table struct Course {
  let id: UUID
  var title: String
  @HasMany("courseId") var attendances: Related<Attendance>
}

@Table struct Student {
  let id: UUID
  @HasMany("studentId") var attendances: Related<Attendance>
}

@Table struct Attendance {
  @Selection struct ID: Hashable {
    let courseId: UUID
    let studentId: UUID
  }
  let id: ID
  @BelongsTo("courseId") var course: Course
  @BelongsTo("studentId") var student: Student
}

// References that share a field with the key, so records remain within their tenant.

@Table struct Customer {
  @Selection struct ID: Hashable {
    let tenant: String
    let number: Int
  }
  let id: ID
  @HasMany("tenant", "customerNumber") var orders: Related<Order>
}

@Table struct Order {
  @Selection struct ID: Hashable {
    let tenant: String
    let id: UUID
  }
  let id: ID
  var customerNumber: Int?
  @BelongsTo("tenant", "customerNumber") var customer: Customer?
}

// Rules in attributes: for deletion, for conflicts, and for the side of a join model.

/// Rules of all kinds.
@Table(policy: .optimistic, deletes: .updateWins) public struct Choir: Codable, Hashable {
  /// The key.
  public let id: Int
  /// The name of the choir.
  public var name: String
  /// Prevents the deletion of the choir while singers exist.
  @HasMany("choirId", onDelete: .restrict) public var singers: Related<Singer>
}

/// A value of a model with relationships can be encoded, without the related records.
@Table(deletes: .updateWins) public struct Singer: Codable, Hashable {
  /// The key.
  public let id: Int
  /// The reference, which is encoded.
  public var choirId: Int?
  /// The related record, which is not encoded.
  @BelongsTo("choirId") public var choir: Choir?
  /// The singers whom it teaches.
  @ManyToMany(through: Lesson.self, by: "teacher") public var pupils: Related<Singer>
  /// The singers who teach it.
  @ManyToMany(through: Lesson.self, by: "pupil") public var teachers: Related<Singer>
  /// Another rule, written with its type.
  @HasOne("singerId", onDelete: DeleteRule.restrict) public var songbook: Songbook?
}

/// The relation between a teacher and a pupil.
@Table public struct Lesson: Codable {
  /// Both sides.
  @Selection public struct ID: Hashable, Codable {
    /// One of them.
    public let teacherId: Int
    /// The other.
    public let pupilId: Int
  }
  /// The pair.
  public let id: ID
  /// The teacher.
  @BelongsTo("teacherId") public var teacher: Singer
  /// The pupil.
  @BelongsTo("pupilId") public var pupil: Singer
}

/// Belongs to one singer.
@Table public struct Songbook {
  /// The key.
  public let id: Int
  /// The key of its singer.
  public var singerId: Int
  /// The singer.
  @BelongsTo("singerId") public var singer: Singer
}

func relationships(_ store: Store) async throws {
  var employee = try await store.insert(Employee.Draft(name: "Ana"))
  var other = try await store.insert(Employee.Draft(name: "Ben", manager: employee, mentor: employee))
  employee.setMentor(other)
  other.setManager(nil)
  _ = try await employee.manager?.reports.fetch()
  _ = try await employee.badge?.owner.name
  var badge = Badge.Draft(owner: employee)
  badge.ownerId = other.id
  let author = Person(id: Person.ID(name: "Ana", dateOfBirth: Date(timeIntervalSince1970: 0)))
  var post = try await store.insert(Post.Draft(author: author))
  post.setAuthor(author)
  post.setEditor(nil)
  let course = try await store.insert(Course.Draft(title: "Logic"))
  let student = try await store.insert(Student.Draft())
  let attendance = try await store.insert(Attendance.Draft(course: course, student: student))
  _ = attendance.courseId
  let customer = try await store.insert(Customer.Draft(tenant: "t", number: 1))
  var order = try await store.insert(try Order.Draft(tenant: "t", customer: customer))
  try order.setCustomer(nil)
  _ = try await store.get(
    Employee.self, byIdentifier: employee.id, including: { [$0.reports, $0.reports.manager, $0.badge.owner] })
}

// An optional with its long name.

@Table struct Holder {
  let id: UUID
  @HasOne("holderId") var locker: Optional<Locker>
}

@Table struct Locker {
  let id: UUID
  var holderId: UUID?
  @BelongsTo("holderId") var holder: Swift.Optional<Holder>
}
