import Testing

@testable import Stemma

/// Cases beyond the article: cycles, pages, deletion, staleness, and records without a store.
@Suite("Relationships")
struct RelationshipTests {
  @Test("pages, and a sequence that neither skips nor repeats what changes under it")
  func pages() async throws {
    let store = try await Store.temporary(models: Team.self, Member.self)
    let team = try await store.insert(Team.Draft(mantra: "many"))
    let names = (0..<450).map { "member \($0)" }
    try await store.write { tx in
      for name in names { try tx.insert(Member.Draft(name: name, team: team)) }
      try tx.insert(Member.Draft(name: "alone", teamId: nil))
    }
    #expect(try await team.members.count() == 450)
    #expect(try await team.members.fetch(limit: 10, offset: 445).map(\.name) == Array(names[445...]))
    #expect(try await team.members.first()?.name == "member 0")
    var seen: [String] = []
    for try await member in team.members {
      seen.append(member.name)
      // The first page is complete, so offsets would now skip as many rows as are unlinked here.
      if seen.count <= 50 { try await team.members.remove(member) }
    }
    #expect(seen == names)
    #expect(try await team.members.count() == 400)
  }

  @Test("an eager read takes one query for each step, over cycles and self-references")
  func eagerCycles() async throws {
    let store = try await Store.temporary(models: Employee.self, Department.self, Officer.self)
    let boss = try await store.insert(Employee.Draft(name: "Boss"))
    try await store.write { tx in
      let second = try tx.insert(Employee.Draft(name: "Second", manager: boss))
      for number in 0..<20 { try tx.insert(Employee.Draft(name: "\(number)", manager: second)) }
    }
    let eager = try #require(
      try await store.get(
        Employee.self, byIdentifier: boss.id, including: { [$0.reports.reports.manager.manager, $0.manager] })
    )
    #expect(try eager.loaded(\.manager) == nil)
    let second = try #require(try eager.loaded(\.reports).first)
    #expect(try second.loaded(\.reports).count == 20)
    let managers = try second.loaded(\.reports).map { try $0.loaded(\.manager)?.name }
    #expect(managers == Array(repeating: "Second", count: 20))
    #expect(try second.loaded(\.reports)[7].loaded(\.manager)?.loaded(\.manager)?.name == "Boss")
    // With all rows of a statement.
    let named = Employee.where { $0.name.in(["Boss", "Second", "3"]) }.order { $0.name }
    let rows = try await named.fetchAll(store, including: { [$0.reports, $0.manager.manager] })
    #expect(rows.map(\.name) == ["3", "Boss", "Second"])
    #expect(try rows.map { try $0.loaded(\.reports).count } == [0, 1, 20])
    #expect(try rows.map { try $0.loaded(\.manager)?.name } == ["Second", nil, "Boss"])
    #expect(try rows[0].loaded(\.manager)?.loaded(\.manager)?.name == "Boss")
    // The record of one model refers to the other, which refers back.
    let department = try await store.insert(Department.Draft(name: "Sales"))
    let officer = try await store.insert(Officer.Draft(name: "Ana", department: department))
    var headed = department
    headed.setHead(officer)
    try await store.update(headed)
    let circle = try #require(
      try await store.get(
        Department.self, byIdentifier: department.id,
        including: { [$0.head.department.officers, $0.officers.heads.head] }))
    #expect(try circle.loaded(\.head)?.loaded(\.department)?.loaded(\.officers).map(\.name) == ["Ana"])
    #expect(try circle.loaded(\.officers)[0].loaded(\.heads)[0].loaded(\.head)?.id == officer.id)
  }

  @Test("after an eager read the accessors still read what is there now, and `loaded` what was read along")
  func accessorsReadAnew() async throws {
    let store = try await Store.temporary(models: Team.self, Member.self, Customer.self, Cart.self)
    let team = try await store.insert(Team.Draft(mantra: "One"))
    let id = try await store.insert(Member.Draft(name: "Tim", team: team)).id
    let member = try #require(
      try await store.get(Member.self, byIdentifier: id, including: { [$0.team] }))
    try await Team.find(team.id).update { $0.mantra = "Two" }.execute(store)
    #expect(try await member.team?.mantra == "Two")
    #expect(try member.loaded(\.team)?.mantra == "One")
    try await Team.find(team.id).delete().execute(store)
    #expect(try await member.team == nil)
    let customer = try await store.insert(Customer.Draft(name: "Ana"))
    let eager = try #require(
      try await store.get(Customer.self, byIdentifier: customer.id, including: { [$0.activeCart] }))
    try await store.insert(Cart.Draft(items: ["Ice"], customer: customer))
    #expect(try await eager.activeCart?.items == ["Ice"])
    #expect(try eager.loaded(\.activeCart) == nil)
  }

  @Test("an employee who manages himself is read and deleted like any other")
  func selfReference() async throws {
    let store = try await Store.temporary(models: Employee.self)
    var boss = try await store.insert(Employee.Draft(name: "Boss"))
    boss.managerId = boss.id
    boss = try await store.update(boss)
    let eager = try #require(
      try await store.get(
        Employee.self, byIdentifier: boss.id, including: { [$0.manager.manager.reports.manager] }))
    #expect(try eager.loaded(\.manager)?.loaded(\.manager)?.loaded(\.reports).map(\.id) == [boss.id])
    try await store.delete(boss)
    #expect(try await store.get(Employee.self, byIdentifier: boss.id) == nil)
  }

  @Test("people who follow people: both sides of one model, distinguished by the join model's relationships")
  func reflexive() async throws {
    let store = try await Store.temporary(models: Account.self, Following.self)
    let (ana, ben) = try await store.write { tx in
      (try tx.insert(Account.Draft(name: "ana")), try tx.insert(Account.Draft(name: "ben")))
    }
    try await ana.follows.add(ben)
    #expect(try await ana.follows.fetch().map(\.name) == ["ben"])
    #expect(try await ana.followers.isEmpty())
    #expect(try await ben.followers.fetch().map(\.name) == ["ana"])
    let eager = try #require(
      try await store.get(Account.self, byIdentifier: "ben", including: { [$0.followers.follows] }))
    #expect(try eager.loaded(\.followers).map { try $0.loaded(\.follows).map(\.name) } == [["ben"]])
  }

  @Test("a key that fixes a part of a reference lets only the rest of it be set")
  func partlyFixedReference() async throws {
    let witness = try await Witness(Project.self, Job.self)
    let store = witness.store
    let (one, two, foreign) = try await store.write { tx in
      (
        try tx.insert(Project.Draft(tenant: "acme", number: 1, name: "One")),
        try tx.insert(Project.Draft(tenant: "acme", number: 2, name: "Two")),
        try tx.insert(Project.Draft(tenant: "umbrella", number: 1, name: "Foreign"))
      )
    }
    var job = try await store.insert(
      Job(id: Job.ID(tenant: "acme", job: 9), projectNumber: 1))
    #expect(try await job.project.name == "One")
    try job.setProject(two)
    try await witness.expect {
      job = try await store.update(job)
    } appends: {
      """
      link Job tenant=acme job=9 project: projectNumber=2
      """
    }
    #expect(try await two.tasks.fetch().map(\.job) == [9])
    #expect(try await one.tasks.isEmpty())
    #expect(throws: StoreError.fixedReference(model: "Job", relationship: "project", field: "tenant")) {
      try job.setProject(foreign)
    }
    #expect(job.projectNumber == 2)
  }

  @Test("saving a record whose relationship was never loaded keeps it")
  func unloadedReferencesStay() async throws {
    let witness = try await Witness(Team.self, Member.self)
    let store = witness.store
    let team = try await store.insert(Team.Draft(mantra: "Stay"))
    let id = try await store.insert(Member.Draft(name: "Tim", team: team)).id
    #expect([team.id, id].map(witness.number) == [1, 2])
    var member = try await store.find(Member.self, id)
    member.name = "Tom"
    try await witness.expect { [member] in
      try await store.update(member)
    } appends: {
      """
      update Member #2 name="Tom"
      """
    } rows: {
      """
      teams id=#1 mantra="Stay"
      members id=#2 name="Tom" teamId=#1
      """
    }
  }

  @Test("what was not read along is never taken for nothing")
  func notLoaded() async throws {
    let store = try await Store.temporary(models: Team.self, Member.self)
    let team = try await store.insert(Team.Draft(mantra: "One"))
    let other = try await store.insert(Team.Draft(mantra: "Two"))
    let id = try await store.insert(Member.Draft(name: "Tim", team: team)).id
    #expect(throws: StoreError.notLoaded(model: "Team", relationship: "members")) {
      try team.loaded(\.members)
    }
    var member = try #require(try await store.get(Member.self, byIdentifier: id, including: { [$0.team] }))
    #expect(try member.loaded(\.team)?.mantra == "One")
    // The included record is not the target of the new reference.
    member.setTeam(other)
    #expect(throws: StoreError.notLoaded(model: "Member", relationship: "team")) { try member.loaded(\.team) }
    #expect(try await member.team?.mantra == "Two")
    member.setTeam(nil)
    #expect(try member.loaded(\.team) == nil)
    #expect(try await member.team == nil)
  }

  @Test("what was read along, or was not there, answers only for the reference that it was read by")
  func loadedByAnother() async throws {
    let store = try await Store.temporary(models: Team.self, Member.self)
    let team = try await store.insert(Team.Draft(mantra: "One"))
    let id = try await store.insert(Member.Draft(name: "Tim")).id
    func eager() async throws -> Member {
      try #require(try await store.get(Member.self, byIdentifier: id, including: { [$0.team] }))
    }
    var member = try await eager()
    #expect(try member.loaded(\.team) == nil)
    let notLoaded = StoreError.notLoaded(model: "Member", relationship: "team")
    member.setTeam(team)
    #expect(throws: notLoaded) { try member.loaded(\.team) }
    // The old copy remains unchanged, and the new one has no included records.
    let saved = try await store.update(member)
    for copy in [member, saved] { #expect(throws: notLoaded) { try copy.loaded(\.team) } }
    member.teamId = nil
    #expect(try member.loaded(\.team) == nil)
    member = try await eager()
    member.teamId = nil
    #expect(try member.loaded(\.team) == nil)
    member.teamId = team.id
    #expect(try member.loaded(\.team)?.mantra == "One")
    // The missing record was looked up for the old reference, not for this one.
    member.teamId = UUID()
    #expect(throws: notLoaded) { try member.loaded(\.team) }
    try await store.update(member)
    #expect(try await eager().loaded(\.team) == nil)
  }

  @Test("a record that no store made says so when it is asked for a relation")
  func recordsFromNoStore() async throws {
    let member = Member(id: UUID(), name: "Tim", teamId: UUID())
    await #expect(throws: StoreError.notFromStore(model: "Member")) { try await member.team }
    let team = Team(id: UUID(), mantra: "None")
    await #expect(throws: StoreError.notFromStore(model: "Team")) { try await team.members.fetch() }
    await #expect(throws: StoreError.notFromStore(model: "Team")) { try await team.members.count() }
    let customer = Customer(id: UUID(), name: nil)
    await #expect(throws: StoreError.notFromStore(model: "Customer")) { try await customer.activeCart }
    #expect(throws: StoreError.notLoaded(model: "Team", relationship: "members")) {
      try team.loaded(\.members)
    }
  }

  @Test("deleting a parent unlinks the optional and deletes the required, in one commit, children first")
  func standardDeletion() async throws {
    let witness = try await Witness(Team.self, Member.self, Department.self, Officer.self)
    let store = witness.store
    let team = try await store.insert(Team.Draft(mantra: "Gone"))
    let member = try await store.insert(Member.Draft(name: "Tim", team: team))
    #expect([team.id, member.id].map(witness.number) == [1, 2])
    try await witness.expect {
      try await store.delete(team)
    } appends: {
      """
      unlink Member #2 team: teamId=null
      delete Team #1
      """
    } rows: {
      """
      members id=#2 name="Tim"
      """
    }
    let department = try await store.insert(Department.Draft(name: "Sales"))
    let officer = try await store.insert(Officer.Draft(name: "Ana", department: department))
    #expect([department.id, officer.id].map(witness.number) == [3, 4])
    try await witness.expect {
      try await store.delete(department)
    } appends: {
      """
      delete Officer #4
      delete Department #3
      """
    }
  }

  @Test("`onDelete: .restrict` refuses as long as there are children")
  func restrictedDeletion() async throws {
    let store = try await Store.temporary(models: Employee.self)
    let boss = try await store.insert(Employee.Draft(name: "Boss"))
    let report = try await store.insert(Employee.Draft(name: "Ana", manager: boss))
    await #expect(
      throws: StoreError.restricted(
        model: "Employee", key: boss.id.uuidString.lowercased(), by: "Employee", count: 1)
    ) { try await store.delete(boss) }
    try await boss.reports.remove(report)
    try await store.delete(boss)
    #expect(try await store.find(Employee.self, report.id).managerId == nil)
  }

  @Test("a stale copy does not delete unseen what another author wrote since: both stay, in conflict")
  func staleDeletion() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    let id = try await store.insert(Reminder.Draft(title: "Rest")).id
    let stale = try await store.find(Reminder.self, id)
    try await Reminder.find(id).update { $0.title = "Rest well" }.execute(store)
    try await store.delete(stale)
    let kinds = try await store.writer.access { node in
      var kinds: [String] = []
      try node.conflicts() { kinds.append($0.kind.rawValue) }
      return kinds
    }
    #expect(kinds == ["delete"])
    // By its key, the record is deleted in its current state.
    let other = try await store.insert(Reminder.Draft(title: "Sleep")).id
    try await Reminder.find(other).update { $0.title = "Sleep well" }.execute(store)
    try await store.delete(Reminder.self, other)
    #expect(try await store.get(Reminder.self, byIdentifier: other) == nil)
    // The statement does the same. With a revision, only that state of the record is deleted.
    let read = try await store.insert(Reminder.Draft(title: "Walk"))
    let revision = try await store.revision(of: read)
    try await Reminder.find(read.id).update { $0.title = "Walk far" }.execute(store)
    await #expect {
      try await store.delete(read, ifRevision: revision)
    } throws: {
      if case .revisionMismatch? = $0 as? StoreError { true } else { false }
    }
    #expect(try await store.get(Reminder.self, byIdentifier: read.id)?.title == "Walk far")
    try await Reminder.delete(read).execute(store)
    #expect(try await store.get(Reminder.self, byIdentifier: read.id) == nil)
    #expect(try await store.conflicts().count == 1)
  }

  @Test("a required reference to a record that is not here says which one; an optional one is nil")
  func danglingReferences() async throws {
    let store = try await Store.temporary(
      models: Post.self, Person.self, Article.self, Tag.self, ArticleTag.self, Rating.self)
    let missing = UUID()
    let post = try await store.insert(
      Post.Draft(title: "One", content: "…", authorId: missing, editorId: missing))
    await #expect(
      throws: StoreError.dangling(
        model: "Post", relationship: "author", target: "Person \(missing.uuidString.lowercased())")
    ) { try await post.author }
    #expect(try await post.editor == nil)
    // An included but missing record gives the same results.
    let eager = try #require(
      try await store.get(Post.self, byIdentifier: post.id, including: { [$0.author, $0.editor] }))
    #expect(
      throws: StoreError.dangling(
        model: "Post", relationship: "author", target: "Person \(missing.uuidString.lowercased())")
    ) { try eager.loaded(\.author) }
    #expect(try eager.loaded(\.editor) == nil)
    #expect(post.authorId == missing && post.editorId == missing)
    let dangling = try await store.conflicts().filter { $0.kind == .dangling }
    #expect(Set(dangling.map(\.field)) == ["author", "editor"])
    // The references lead to such a record as soon as it exists.
    try await store.insert(Person.Draft(id: missing, name: "Ana"))
    #expect(try await post.author.id == missing)
    #expect(try await post.editor?.id == missing)
    #expect(try await store.conflicts().isEmpty)
  }

  @Test("of two carts for one customer, hasOne shows the one that was linked last, as the tables do")
  func siblings() async throws {
    let store = try await Store.temporary(models: Customer.self, Cart.self)
    let customer = try await store.insert(Customer.Draft(name: "Rene"))
    var first = try await store.insert(Cart.Draft(items: ["first"], customer: customer))
    let second = try await store.insert(Cart.Draft(items: ["second"], customer: customer))
    #expect(try await customer.activeCart?.items == ["second"])
    let eager = try #require(
      try await store.get(Customer.self, byIdentifier: customer.id, including: { [$0.activeCart] }))
    #expect(try eager.loaded(\.activeCart)?.id == second.id)
    // The first cart was linked again, so it has the longer history, although its key is lower.
    first.setCustomer(nil)
    first = try await store.update(first)
    first.setCustomer(customer)
    try await store.update(first)
    #expect(try await customer.activeCart?.items == ["first"])
  }

  @Test("inside of a commit a relationship shows what the commit has changed so far")
  func insideACommit() async throws {
    let store = try await Store.temporary(models: Team.self, Member.self)
    let names = try await store.write { tx in
      let team = try tx.insert(Team.Draft(mantra: "New"))
      let member = try tx.insert(Member.Draft(name: "Tim", teamId: nil))
      try team.members.add(member, tx)
      return try team.members.fetch(tx).map(\.name)
    }
    #expect(names == ["Tim"])
  }
}
