import Foundation
import Testing

@testable import Stemma

enum School {
  @Table struct Student {
    let id: UUID
    @ManyToMany(through: Attendance.self) var courses: Related<Course>
  }
  @Table struct Course {
    let id: UUID
    @ManyToMany(through: Attendance.self) var students: Related<Student>
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
}

/// The article on relationships shows the actual events and rows.
@Suite("The events of the article on relationships")
struct ArticleRelationshipTests {
  /// Rows of the article's tables.
  private static func lines() throws -> [String] {
    let file = URL(fileURLWithPath: #filePath)
      .appendingPathComponent("../../../Sources/Stemma/Stemma.docc/Relationships.md").standardizedFileURL
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
      .filter { $0.hasPrefix("|") }
  }

  /// Expects a row of the article which states that `call` appends `event`.
  private func expectShown(
    _ call: String, _ event: String, _ location: Testing.SourceLocation = #_sourceLocation
  ) throws {
    let isShown = try Self.lines().contains { $0.contains("`\(call)`") && $0.contains("`\(event)`") }
    #expect(isShown, "\(call): \(event)", sourceLocation: location)
  }

  @Test("create, link, unlink, and from the other side")
  func one() async throws {
    let witness = try await Witness(Team.self, Member.self)
    let store = witness.store
    let team = try await store.insert(Team.Draft(mantra: "a"))
    let other = try await store.insert(Team.Draft(mantra: "b"))
    #expect(witness.number(of: team.id) == 1 && witness.number(of: other.id) == 2)
    var member = try await witness.expect {
      try await store.insert(Member.Draft(name: "Tim", team: team))
    } appends: {
      "create Member #3 name=\"Tim\" teamId=#1"
    }
    try expectShown(
      "insert(Member.Draft(name: \"Tim\", team: team))", "create Member … name=\"Tim\" teamId=\"…\"")
    member.setTeam(other)
    try await witness.expect {
      member = try await store.update(member)
    } appends: {
      "link Member #3 team: teamId=#2"
    }
    try expectShown("member.setTeam(other)", "link Member … team: teamId=\"…\"")
    member.setTeam(nil)
    try await witness.expect {
      member = try await store.update(member)
    } appends: {
      "unlink Member #3 team: teamId=null"
    }
    try expectShown("member.setTeam(nil)", "unlink Member … team: teamId=null")
    try await witness.expect {
      try await team.members.add(member)
    } appends: {
      "link Member #3 team: teamId=#1"
    }
    try expectShown("try await team.members.add(member)", "link Member …")
    try await witness.expect {
      try await store.delete(team)
    } appends: {
      """
      unlink Member #3 team: teamId=null
      delete Team #1
      """
    }
  }

  @Test("many to many, through a join model")
  func many() async throws {
    let witness = try await Witness(School.Student.self, School.Course.self, School.Attendance.self)
    let store = witness.store
    let course = try await store.insert(School.Course.Draft())
    let student = try await store.insert(School.Student.Draft())
    #expect(witness.number(of: course.id) == 1 && witness.number(of: student.id) == 2)
    let others = "students id=#2\ncourses id=#1"
    try await witness.expect {
      try await student.courses.add(course)
    } appends: {
      "create Attendance courseId=#1 studentId=#2"
    } rows: {
      "\(others)\nattendances courseId=#1 studentId=#2"
    }
    try expectShown("student.courses.add(course)", "create Attendance courseId=019a… studentId=019b…")
    #expect(try await student.courses.fetch().map(\.id) == [course.id])
    #expect(try await course.students.fetch().map(\.id) == [student.id])
    try await witness.expect {
      try await student.courses.remove(course)
    } appends: {
      "delete Attendance courseId=#1 studentId=#2"
    } rows: {
      others
    }
    try expectShown("student.courses.remove(course)", "delete Attendance courseId=019a… studentId=019b…")
  }
}
