import StemmaSchema
import Testing

@Suite struct RelationshipTests {
  private func schema(_ text: String) throws -> Schema { try SDL.read(text).schema }
  private func relationship(_ schema: Schema, _ model: String, _ name: String) throws -> Relationship {
    try #require(schema.model(named: model)?.relationship(named: name))
  }

  private static let person = """
    type Person @model {
      name: String! @primaryKey(sortKeyFields: ["dateOfBirth"])
      dateOfBirth: AWSDate!

    """

  @Test func gen2ReferencesOfBothSides() throws {
    let schema = try schema(
      Self.person + """
          authoredPosts: [Post] @hasMany(references: ["authorName", "authorDoB"])
        }
        type Post @model {
          authorName: String
          authorDoB: AWSDate
          author: Person @belongsTo(references: ["authorName", "authorDoB"])
        }
        """)
    let author = try relationship(schema, "Post", "author")
    let posts = try relationship(schema, "Person", "authoredPosts")
    #expect(author.referenceFields == ["authorName", "authorDoB"])
    #expect(author.storesReference && !posts.storesReference)
    #expect(posts.referenceFields == author.referenceFields)
    #expect(schema.model(named: "Post")?.referenceRegisters == [["authorName", "authorDoB"]])
  }

  @Test func referencesMayBeOneString() throws {
    let schema = try schema(
      """
      type Customer @model { activeCart: Cart @hasOne(references: "customerId") }
      type Cart @model { customerId: ID  customer: Customer @belongsTo(references: "customerId") }
      """)
    let cart = try relationship(schema, "Customer", "activeCart")
    #expect(cart.kind == .hasOne && !cart.storesReference)
    #expect(cart.referenceFields == ["customerId"])
    #expect(try relationship(schema, "Cart", "customer").storesReference)
    #expect(schema.model(named: "Cart")?.references.count == 1)
  }

  @Test func severalRelationshipsAreToldApartByTheirFields() throws {
    let schema = try schema(
      """
      type Post @model {
        authorId: ID!  author: Person! @belongsTo(fields: ["authorId"])
        editorId: ID  editor: Person @belongsTo(fields: ["editorId"])
      }
      type Person @model {
        edited: [Post] @hasMany(references: ["editorId"])
        authored: [Post] @hasMany(references: ["authorId"], onDelete: RESTRICT)
      }
      """)
    #expect(try relationship(schema, "Post", "author").isRequired)
    #expect(try !relationship(schema, "Post", "editor").isRequired)
    #expect(try relationship(schema, "Person", "authored").deleteRule == .restrict)
    #expect(schema.model(named: "Post")?.referenceRegisters == [["authorId"], ["editorId"]])
  }

  @Test func hasManyWithoutIndexNameGoesByTheChildsKey() throws {
    let schema = try schema(
      """
      type Order @model { number: Int! @primaryKey  lines: [Line] @hasMany(fields: ["number"]) }
      type Line @model { orderNumber: Int! @primaryKey(sortKeyFields: ["line"])  line: Int! }
      """)
    #expect(try relationship(schema, "Order", "lines").referenceFields == ["orderNumber"])
    let line = try #require(schema.model(named: "Line"))
    #expect(line.references.map(\.isRequired) == [true])
    #expect(line.referenceRegisters.isEmpty)
  }

  @Test func anImplicitHasManySharesTheFieldsOfTheBelongsToThatFacesIt() throws {
    let schema = try schema(
      """
      type Post @model { comments: [Comment] @hasMany }
      type Comment @model { postID: ID!  post: Post! @belongsTo(fields: ["postID"]) }
      """)
    #expect(try relationship(schema, "Post", "comments").referenceFields == ["postID"])
    #expect(schema.model(named: "Comment")?.fields.map(\.name) == ["id", "postID"])
  }

  @Test func anImplicitBelongsToSharesTheFieldsOfTheHasManyThatFacesIt() throws {
    let schema = try schema(
      """
      type Post @model { comments: [Comment] @hasMany(indexName: "byPost", fields: ["id"]) }
      type Comment @model { postID: ID! @index(name: "byPost")  post: Post! @belongsTo }
      type Blog @model { items: [Item] @hasMany }
      type Item @model { blog: Blog! @belongsTo }
      """)
    #expect(try relationship(schema, "Comment", "post").referenceFields == ["postID"])
    let blog = try relationship(schema, "Item", "blog")
    #expect(blog.referenceFields == ["blogItemsId"])
    #expect(schema.model(named: "Item")?.field(named: "blogItemsId")?.isRequired == true)
  }

  /// Stored once, in the model that belongs to the other.
  @Test(arguments: [
    ("@belongsTo", "teamProjectId"), ("@belongsTo(fields: [\"owner\"])", "owner"),
    ("@belongsTo(references: [\"owner\"])", "owner"),
  ])
  func aHasOneAndTheBelongsToThatFacesItAreOneRelationship(belongsTo: String, field: String) throws {
    let schema = try schema(
      """
      type Project @model { team: Team @hasOne }
      type Team @model { owner: ID project: Project \(belongsTo) }
      """)
    #expect(try relationship(schema, "Project", "team").referenceFields == [field])
    #expect(try relationship(schema, "Team", "project").referenceFields == [field])
    #expect(try !relationship(schema, "Project", "team").storesReference)
    #expect(schema.models.map { $0.references.count } == [0, 1])
    #expect(schema.model(named: "Project")?.fields.map(\.name) == ["id"])
  }

  /// With two of one kind, the pairs are ambiguous.
  @Test func aHasOneThatFacesNothingOrSeveralStoresItsReference() throws {
    let alone = try schema("type Project @model { team: Team @hasOne } type Team @model { x: Int }")
    #expect(try relationship(alone, "Project", "team").referenceFields == ["projectTeamId"])
    let several = try schema(
      """
      type Project @model { a: Team @hasOne b: Team @hasOne }
      type Team @model { project: Project @belongsTo }
      """)
    #expect(try relationship(several, "Project", "a").storesReference)
    #expect(try relationship(several, "Team", "project").referenceFields == ["teamProjectId"])
    let many = try schema(
      """
      type Project @model { lead: Team @hasOne teams: [Team] @hasMany }
      type Team @model { project: Project @belongsTo }
      """)
    #expect(try relationship(many, "Team", "project").referenceFields == ["projectTeamsId"])
    #expect(try relationship(many, "Project", "lead").referenceFields == ["projectLeadId"])
  }

  @Test func aRequiredBelongsToMakesTheSharedReferenceRequired() throws {
    let schema = try schema(
      """
      type Project @model { team: Team @hasOne }
      type Team @model { project: Project! @belongsTo }
      """)
    #expect(schema.model(named: "Team")?.field(named: "teamProjectId")?.isRequired == true)
  }

  @Test func aModelMayReferToItself() throws {
    let schema = try schema(
      """
      type Employee @model { manager: Employee @belongsTo  reports: [Employee] @hasMany }
      type Person @model {
        followers: [Person] @manyToMany(relationName: "Follow")
        following: [Person] @manyToMany(relationName: "Follow")
      }
      """)
    #expect(try relationship(schema, "Employee", "manager").referenceFields == ["employeeReportsId"])
    #expect(try relationship(schema, "Employee", "reports").referenceFields == ["employeeReportsId"])
    let follow = try #require(schema.model(named: "Follow"))
    #expect(follow.fields.map(\.name) == ["personFollowersId", "personFollowingId"])
    #expect(follow.isJoinModel)
    #expect(try relationship(schema, "Person", "following").referenceFields == ["personFollowingId"])
  }

  @Test func theSidesOfAJoinModelStandInTheOrderOfTheirModelsNames() throws {
    let schema = try schema(
      """
      type User @model { posts: [Post] @manyToMany(relationName: "PostEditor") }
      type Post @model { editors: [User] @manyToMany(relationName: "PostEditor") }
      """)
    let join = try #require(schema.model(named: "PostEditor"))
    #expect(join.fields.map(\.name) == ["postId", "userId"])
    #expect(join.tableName == "postEditors")
    #expect(join.partitionDepth == 1)
    #expect(join.indexes == [Index(name: "byUser", fields: ["userId"])])
  }

  /// A reference field in the child's own key is fixed. Only the free fields decide whether the
  /// relationship is required.
  @Test func referenceFieldsMayBePartsOfTheOwnKey() throws {
    let schema = try schema(
      """
      type Commit @model {
        repo: String! @primaryKey(sortKeyFields: ["sha"])
        sha: ID!
        parentSha: ID
        parent: Commit @belongsTo(fields: ["repo", "parentSha"])
      }
      """)
    let commit = schema.models[0]
    let parent = try relationship(schema, "Commit", "parent")
    #expect(!parent.isRequired)
    #expect(commit.freeReferenceFields(of: parent) == ["parentSha"])
    #expect(commit.referenceRegisters == [["parentSha"]])
    #expect(commit.holdsKeyPart("parentSha") && commit.holdsKeyPart("repo"))
  }

  @Test func relationshipsThatShareAFieldAreOneRegister() throws {
    let schema = try schema(
      """
      type User @model { tenant: ID! @primaryKey(sortKeyFields: ["name"])  name: String! }
      type Task @model {
        tenant: ID  author: String  editor: String  other: ID  title: String
        writtenBy: User @belongsTo(fields: ["tenant", "author"])
        editedBy: User @belongsTo(fields: ["tenant", "editor"])
        task: Task @belongsTo(fields: ["other"])
      }
      """)
    #expect(schema.model(named: "Task")?.referenceRegisters == [["tenant", "author", "editor"], ["other"]])
  }

  @Test func joinModelsAreRecognised() throws {
    func isJoin(_ fields: String) throws -> Bool? {
      try schema("type A @model { x: Int } type B @model { x: Int }\n type AB @model { \(fields) }")
        .model(named: "AB")?.isJoinModel
    }
    let key = "aId: ID! @primaryKey(sortKeyFields: [\"bId\"])  bId: ID!"
    let sides = "a: A! @belongsTo(fields: [\"aId\"])  b: B! @belongsTo(fields: [\"bId\"])"
    #expect(try isJoin("\(key) \(sides)") == true)
    #expect(try isJoin("\(key) \(sides) note: String") == true)
    #expect(try isJoin("\(key) \(sides) createdAt: AWSDateTime!") == true)
    #expect(try isJoin("\(key) \(sides) cId: ID  c: A @belongsTo(fields: [\"cId\"])") == true)
    #expect(try isJoin("\(key) \(sides) note: String!") == false)
    #expect(try isJoin("aId: ID! bId: ID! \(sides)") == false)
    #expect(try isJoin("\(key) a: A! @belongsTo(fields: [\"aId\"])") == false)
  }

  @Test func aMismatchOfRequirementIsAWarning() throws {
    try expectWarning(
      "type A @model { x: Int } type B @model { aId: ID  ‸a: A! @belongsTo(fields: [\"aId\"]) }",
      "`B.a` is required, but `aId` is not", "add `!`")
    try expectWarning(
      "type A @model { x: Int } type B @model { aId: ID!  ‸a: A @belongsTo(fields: [\"aId\"]) }",
      "`B.a` is required, because `aId` is", "write `a: A!`")
  }
}
