import StemmaEvents
import StemmaNode
import Testing

@Suite struct ReferenceTests {
  static let commits = """
    type Commit @model {
      repo: ID! @primaryKey(sortKeyFields: ["sha"])
      sha: ID!
      title: String
      parentSha: ID
      parent: Commit @belongsTo(references: ["repo", "parentSha"])
      children: [Commit] @hasMany(references: ["repo", "parentSha"])
    }
    """

  /// The repository is part of the commit's own key. Clearing the complete reference to unlink the
  /// parent would change the key.
  @Test func aReferenceFieldOfTheOwnKeyIsFixed() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.commits)
    try node.commit(
      #"{"op":"create","model":"Commit","key":{"repo":"r","sha":"1"}}"#,
      #"{"op":"create","model":"Commit","key":{"repo":"r","sha":"2"}}"#)
    #expect(try node.fields("Commit", #"{"repo":"r","sha":"2"}"#) == #"{"title":null,"parentSha":null}"#)
    #expect(
      try node.commit(
        #"{"op":"link","model":"Commit","key":{"repo":"r","sha":"2"},"fields":{"parent":{"repo":"r","sha":"1"}}}"#
      )
        == [#"link Commit repo=r sha=2 {"parentSha":"1"}"#])
    #expect(
      try node.refusal(
        #"{"op":"link","model":"Commit","key":{"repo":"r","sha":"2"},"fields":{"parent":{"repo":"q","sha":"1"}}}"#
      )
        == "fixedReference")
    #expect(
      try node.commit(
        #"{"op":"unlink","model":"Commit","key":{"repo":"r","sha":"2"},"fields":{"parent":null}}"#)
        == [#"unlink Commit repo=r sha=2 {"parentSha":null}"#])
    #expect(try node.conflictTexts == [])
  }

  static let places = """
    type Place @model {
      country: ID! @primaryKey(sortKeyFields: ["city"])
      city: ID!
      people: [Person] @hasMany(references: ["homeCountry", "homeCity"])
    }
    type Person @model @partition(fields: []) {
      name: ID! @primaryKey
      homeCountry: ID
      homeCity: ID
    """
  static let belongsTo = "\n home: Place @belongsTo(references: [\"homeCountry\", \"homeCity\"])"

  @Test(arguments: ["\n}", belongsTo + "\n}"])
  func theFreeReferenceFieldsOfOneRelationshipAreWrittenTogether(ending: String) throws {
    let bench = try Bench()
    let a = try bench.node("a", Self.places + ending)
    try a.commit(
      #"{"op":"create","model":"Person","key":"ann","fields":{"homeCountry":"fr","homeCity":"nice"}}"#)
    let b = try bench.node("b", Self.places + ending)
    try b.sync(a)
    #expect(
      try a.commit(#"{"op":"update","model":"Person","key":"ann","fields":{"homeCity":"lyon"}}"#)
        == [#"update Person ann {"homeCity":"lyon","homeCountry":"fr"}"#])
    try b.commit(#"{"op":"update","model":"Person","key":"ann","fields":{"homeCountry":"it"}}"#)
    try a.sync(b)
    // Never Lyon in Italy, whichever value wins.
    let shown = try #require(try a.fields("Person", #""ann""#))
    #expect(
      [#"{"homeCountry":"fr","homeCity":"lyon"}"#, #"{"homeCountry":"it","homeCity":"nice"}"#].contains(shown)
    )
    #expect(try a.conflictTexts.filter { $0.hasPrefix("value") }.count == 1)
    #expect(try b.fields("Person", #""ann""#) == shown)
  }

  @Test func aRequiredReferenceCannotBeUnlinked() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a",
      """
      type Post @model { id: ID! comments: [Comment] @hasMany(references: ["postId"]) }
      type Comment @model { id: ID! postId: ID! post: Post! @belongsTo(references: ["postId"]) }
      """)
    try node.commit(
      #"{"op":"create","model":"Post","key":"p"}"#, #"{"op":"create","model":"Post","key":"q"}"#,
      #"{"op":"create","model":"Comment","key":"c","fields":{"postId":"p"}}"#)
    #expect(
      try node.refusal(#"{"op":"unlink","model":"Comment","key":"c","fields":{"post":null}}"#)
        == "requiredReference")
    #expect(
      try node.refusal(#"{"op":"unlink","model":"Post","key":"p","fields":{"comments":"c"}}"#)
        == "requiredReference")
    #expect(
      try node.commit(#"{"op":"link","model":"Comment","key":"c","fields":{"post":"q"}}"#)
        == [#"link Comment c {"postId":"q"}"#])
  }

  @Test func linkingTheWholeKeyOfAJoinModelCreatesItsRow() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a",
      """
      type Post @model { id: ID! tags: [Tag] @manyToMany(relationName: "PostTag") }
      type Tag @model { id: ID! posts: [Post] @manyToMany(relationName: "PostTag") }
      """)
    try node.commit(#"{"op":"create","model":"Post","key":"p"}"#, #"{"op":"create","model":"Tag","key":"t"}"#)
    let link = try node.commit(#"{"op":"link","model":"Post","key":"p","fields":{"tags":"t"}}"#)
    #expect(link == ["create PostTag postId=p tagId=t"])
    let unlink = try node.commit(#"{"op":"unlink","model":"Tag","key":"t","fields":{"posts":"p"}}"#)
    #expect(unlink == ["delete PostTag postId=p tagId=t"])
    #expect(try node.fields("PostTag", #"{"postId":"p","tagId":"t"}"#) == nil)
  }

  /// As a link of two fields, the event would keep values of an earlier row between the two
  /// records.
  @Test func aLinkThatMakesAJoinRowIsACreate() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a",
      """
      type Post @model { id: ID! tags: [PostTag] @hasMany(references: ["postId"]) }
      type Tag @model { id: ID! posts: [PostTag] @hasMany(references: ["tagId"]) }
      type PostTag @model {
        postId: ID! @primaryKey(sortKeyFields: ["tagId"])
        tagId: ID!
        remark: String
        post: Post! @belongsTo(references: ["postId"])
        tag: Tag! @belongsTo(references: ["tagId"])
      }
      """)
    let both = #""model":"PostTag","key":{"postId":"p","tagId":"t"},"fields":{"post":"p","tag":"t"}}"#
    #expect(try node.commit(#"{"op":"link","# + both) == ["create PostTag postId=p tagId=t"])
    try node.commit(
      #"{"op":"update","model":"PostTag","key":{"postId":"p","tagId":"t"},"fields":{"remark":"old"}}"#)
    // An existing link is not written again.
    #expect(try node.commit(#"{"op":"link","# + both).isEmpty)
    #expect(try node.commit(#"{"op":"unlink","# + both) == ["delete PostTag postId=p tagId=t"])
    #expect(try node.commit(#"{"op":"link","# + both) == ["create PostTag postId=p tagId=t"])
    #expect(try node.fields("PostTag", #"{"postId":"p","tagId":"t"}"#) == #"{"remark":null}"#)
    // The fields must agree with the key. The key alone also deletes a row.
    #expect(
      try node.refusal(
        #"{"op":"link","model":"PostTag","key":{"postId":"p","tagId":"u"},"fields":{"post":"p","tag":"t"}}"#)
        == "fixedReference")
    #expect(
      try node.commit(#"{"op":"unlink","model":"PostTag","key":{"postId":"p","tagId":"t"}}"#)
        == ["delete PostTag postId=p tagId=t"])
    #expect(try node.refusal(#"{"op":"unlink","# + both) == "notFound")
  }

  // MARK: One to one

  static let carts = """
    type Customer @model { id: ID! cart: Cart @hasOne }
    type Cart @model { id: ID! customer: Customer @belongsTo }
    """

  /// Each side has a separate reference.
  static let separateCarts = """
    type Customer @model { id: ID! cartId: ID cart: Cart @hasOne(fields: ["cartId"]) }
    type Cart @model { id: ID! customerId: ID customer: Customer @belongsTo(fields: ["customerId"]) }
    """

  /// Two nodes with a customer and two carts, of which each makes one change.
  private func conflicts(
    _ first: String, _ second: String, _ schema: String = Self.carts
  ) throws -> [String] {
    let bench = try Bench()
    let a = try bench.node("a", schema)
    let b = try bench.node("b", schema)
    try a.commit(
      #"{"op":"create","model":"Customer","key":"x"}"#, #"{"op":"create","model":"Customer","key":"y"}"#,
      #"{"op":"create","model":"Cart","key":"1"}"#, #"{"op":"create","model":"Cart","key":"2"}"#)
    try a.sync(b)
    try a.commit(first)
    try b.commit(second)
    try a.sync(b)
    let after = try bench.open("b")
    let texts = try a.conflictTexts
    #expect(try after.conflictTexts == texts)
    #expect(try after.status().conflicts == UInt64(texts.count))
    return texts
  }

  /// The carts store the reference, although the customer's side links them.
  @Test func twoCartsThatOneCustomerWasGivenAreListed() throws {
    let texts = try conflicts(
      #"{"op":"link","model":"Customer","key":"x","fields":{"cart":"1"}}"#,
      #"{"op":"link","model":"Customer","key":"x","fields":{"cart":"2"}}"#)
    #expect(texts.count == 1 && texts[0].hasPrefix("cardinality Customer x cart: "))
  }

  /// The shown cart, the conflict and its resolution concern the same reference.
  @Test func theCartThatAHasOneShowsIsTheOneOfTheConflict() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.carts)
    try node.commit(
      #"{"op":"create","model":"Customer","key":"x"}"#,
      #"{"op":"create","model":"Cart","key":"1","fields":{"customer":"x"}}"#)
    let model = try #require(node.schema.model(named: "Customer"))
    let key = try node.key(try JSON.parse(#""x""#), of: model)
    func shown() throws -> String? {
      try node.row(model, key, including: ["cart"])?["included"]?["cart"]?["key"]?["id"]?.text
    }
    #expect(try shown() == #""1""#)
    try node.commit(#"{"op":"create","model":"Cart","key":"2","fields":{"customer":"x"}}"#)
    #expect(try node.conflictTexts.map { $0.prefix { $0 != ":" } } == ["cardinality Customer x cart"])
    #expect(try shown() == #""2""#)
    try node.commit(#"{"op":"unlink","model":"Customer","key":"x","fields":{"cart":"2"}}"#)
    #expect(try shown() == #""1""#)
    #expect(try node.conflictTexts == [])
  }

  /// A `@hasOne` with fields is stored in the model that declares it, so two carts are two values
  /// of one field.
  @Test func twoCartsThatOneCustomerWasGivenAreAConflictOfTheReference() throws {
    let texts = try conflicts(
      #"{"op":"link","model":"Customer","key":"x","fields":{"cart":"1"}}"#,
      #"{"op":"link","model":"Customer","key":"x","fields":{"cart":"2"}}"#, Self.separateCarts)
    #expect(texts.count == 1 && texts[0].hasPrefix("value Customer x cartId: "))
  }

  /// A `@belongsTo` with a separate reference is independent of the `@hasOne`: two carts may belong
  /// to one customer.
  @Test func twoCartsOfOneCustomerAreNoConflictOfAnotherReference() throws {
    let texts = try conflicts(
      #"{"op":"link","model":"Cart","key":"1","fields":{"customer":"x"}}"#,
      #"{"op":"link","model":"Cart","key":"2","fields":{"customer":"x"}}"#, Self.separateCarts)
    #expect(texts == [])
  }

  @Test func twoCartsThatBelongToOneCustomerAreListed() throws {
    let texts = try conflicts(
      #"{"op":"link","model":"Cart","key":"1","fields":{"customer":"x"}}"#,
      #"{"op":"link","model":"Cart","key":"2","fields":{"customer":"x"}}"#)
    #expect(texts.count == 1 && texts[0].hasPrefix("cardinality Customer x cart: "))
  }

  /// One cart can be given to two customers that store it.
  @Test func oneCartOfTwoCustomersIsListed() throws {
    let texts = try conflicts(
      #"{"op":"link","model":"Customer","key":"x","fields":{"cart":"1"}}"#,
      #"{"op":"link","model":"Customer","key":"y","fields":{"cart":"1"}}"#, Self.separateCarts)
    #expect(texts.count == 1 && texts[0].hasPrefix("cardinality Cart 1 cart: "))
  }

  @Test func linksOfDifferentRecordsAreNoConflict() throws {
    let texts = try conflicts(
      #"{"op":"link","model":"Customer","key":"x","fields":{"cart":"1"}}"#,
      #"{"op":"link","model":"Cart","key":"2","fields":{"customer":"y"}}"#)
    #expect(texts == [])
  }

  // MARK: Included records

  /// A record that refers to itself can be included any number of times. Some thousand levels would
  /// overflow the stack.
  @Test func aPathOfIncludedRecordsHasALimit() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a", "type Item @model { id: ID! nextId: ID next: Item @belongsTo(references: [\"nextId\"]) }")
    try node.commit(#"{"op":"create","model":"Item","key":"x","fields":{"nextId":"x"}}"#)
    let model = try #require(node.schema.model(named: "Item"))
    let key = try node.key(try JSON.parse(#""x""#), of: model)
    func path(_ length: Int) -> String {
      [String](repeating: "next", count: length).joined(separator: ".")
    }
    for length in [Node.inclusionDepth - 1, Node.inclusionDepth] {
      let text = try #require(try node.row(model, key, including: [path(length)])).text
      #expect(text.split(separator: #""included""#, omittingEmptySubsequences: false).count == length + 1)
      #expect(try JSON.parse(text).text == text)
    }
    #expect(throws: NodeError.self) {
      try node.row(model, key, including: [path(Node.inclusionDepth + 1)])
    }
  }

  // MARK: Cascades

  static let tree = """
    type Team @model { id: ID!
      players: [Player] @hasMany(references: ["teamId"])
      fans: [Fan] @hasMany(references: ["teamId"]) }
    type Player @model { id: ID! teamId: ID! team: Team! @belongsTo(references: ["teamId"]) }
    type Fan @model { id: ID! teamId: ID team: Team @belongsTo(references: ["teamId"]) }
    """

  @Test func aCascadeIsOneCommitWithTheChildrenFirst() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.tree)
    try node.commit(
      #"{"op":"create","model":"Team","key":"t"}"#,
      #"{"op":"create","model":"Player","key":"p","fields":{"teamId":"t"}}"#,
      #"{"op":"create","model":"Fan","key":"f","fields":{"teamId":"t"}}"#)
    let events = try node.rawEvents(#"{"op":"delete","model":"Team","key":"t"}"#)
    #expect(
      Set(events.dropLast().map(node.text)) == ["delete Player p", #"unlink Fan f {"teamId":null}"#])
    let last = try #require(events.last)
    #expect(node.text(last) == "delete Team t")
    #expect(events.dropLast().allSatisfy { $0.cause == last.name } && last.cause == nil)
    #expect(Set(events.map(\.commit)).count == 1)
  }

  /// If two relationships share a field, the first unlink clears both. The second writes nothing
  /// and must not count when children name the deletion as their cause.
  @Test func aCascadeThroughSharedFieldsNamesItsCause() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a",
      """
      type Team @model { club: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! }
      type Fan @model {
        club: ID! @primaryKey(sortKeyFields: ["name"])
        name: ID!
        teamN: Int
        first: Team @belongsTo(references: ["club", "teamN"])
        second: Team @belongsTo(references: ["club", "teamN"])
      }
      """)
    try node.commit(
      #"{"op":"create","model":"Team","key":{"club":"c","n":1}}"#,
      #"{"op":"create","model":"Fan","key":{"club":"c","name":"f"},"fields":{"teamN":1}}"#)
    let events = try node.rawEvents(#"{"op":"delete","model":"Team","key":{"club":"c","n":1}}"#)
    #expect(events.map(node.text) == [#"unlink Fan club=c name=f {"teamN":null}"#, "delete Team club=c n=1"])
    #expect(events[0].cause == events[1].name)
  }

  @Test func restrictRefusesAndWritesNothing() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a",
      """
      type Team @model { id: ID! fans: [Fan] @hasMany(references: ["teamId"])
        players: [Player] @hasMany(references: ["teamId"], onDelete: RESTRICT) }
      type Player @model { id: ID! teamId: ID! team: Team! @belongsTo(references: ["teamId"]) }
      type Fan @model { id: ID! teamId: ID! team: Team! @belongsTo(references: ["teamId"]) }
      """)
    try node.commit(
      #"{"op":"create","model":"Team","key":"t"}"#,
      #"{"op":"create","model":"Fan","key":"f","fields":{"teamId":"t"}}"#,
      #"{"op":"create","model":"Player","key":"p","fields":{"teamId":"t"}}"#)
    #expect(try node.refusal(#"{"op":"delete","model":"Team","key":"t"}"#) == "restricted")
    #expect(try node.history.count == 3)
    #expect(try node.fields("Fan", #""f""#) != nil)
  }

  @Test func cascadesThroughCyclesAndSelfReferencesEnd() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a",
      """
      type Item @model { id: ID! nextId: ID! next: Item! @belongsTo(references: ["nextId"])
        previous: [Item] @hasMany(references: ["nextId"]) }
      """)
    try node.commit(
      #"{"op":"create","model":"Item","key":"x","fields":{"nextId":"y"}}"#,
      #"{"op":"create","model":"Item","key":"y","fields":{"nextId":"x"}}"#,
      #"{"op":"create","model":"Item","key":"z","fields":{"nextId":"z"}}"#)
    #expect(
      try node.commit(#"{"op":"delete","model":"Item","key":"x"}"#) == ["delete Item y", "delete Item x"])
    #expect(try node.commit(#"{"op":"delete","model":"Item","key":"z"}"#) == ["delete Item z"])
  }

  /// A recursive plan of a deletion would overflow the stack with a chain of some thousand records.
  @Test func aCascadeAlongALongChainEnds() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a",
      """
      type Link @model { id: ID! @primaryKey
        parentId: ID!
        parent: Link @belongsTo(references: ["parentId"]) }
      """)
    let count = 20_000
    let lines = try (0..<count).map { number in
      try mutation(
        #"{"op":"create","model":"Link","key":"\#(number)","fields":{"parentId":"\#(max(number - 1, 0))"}}"#)
    }
    try node.write { transaction throws(NodeError) in
      for line in lines { try transaction.perform(line) }
    }
    #expect(try node.status().records == UInt64(count))
    let events = try node.rawEvents(#"{"op":"delete","model":"Link","key":"0"}"#)
    let childrenFirst: [Key] = (0..<count).reversed().map { Key(.string("\($0)")) }
    #expect(events.map(\.key) == childrenFirst)
    #expect(events.allSatisfy { $0.operation == .delete })
    let last = try #require(events.last)
    #expect(events.dropLast().allSatisfy { $0.cause == last.name })
    #expect(try node.status().records == 0)
  }

  /// The order of children with a cycle of two models, an optional reference, and a record
  /// reachable in two ways.
  @Test func aCascadeGoesDepthFirst() throws {
    let bench = try Bench()
    let node = try bench.node(
      "a",
      """
      type Area @model { id: ID! @primaryKey
        spotId: ID
        spot: Spot @belongsTo(references: ["spotId"])
        outerId: ID!
        outer: Area @belongsTo(references: ["outerId"]) }
      type Spot @model { id: ID! @primaryKey
        areaId: ID!
        area: Area @belongsTo(references: ["areaId"]) }
      """)
    func area(_ id: String, in outer: String, at spot: String) -> String {
      #"{"op":"create","model":"Area","key":"\#(id)","fields":{"outerId":"\#(outer)","spotId":"\#(spot)"}}"#
    }
    func spot(_ id: String, in area: String) -> String {
      #"{"op":"create","model":"Spot","key":"\#(id)","fields":{"areaId":"\#(area)"}}"#
    }
    try node.commit(
      area("a", in: "c", at: "s"), area("b", in: "a", at: "t"), area("c", in: "b", at: "t"),
      area("d", in: "a", at: "s"), area("e", in: "e", at: "t"), spot("s", in: "b"), spot("t", in: "a"))
    #expect(
      try node.commit(#"{"op":"delete","model":"Area","key":"a"}"#) == [
        "delete Area c", #"unlink Area d {"spotId":null}"#, "delete Spot s", "delete Area b",
        "delete Area d", #"unlink Area e {"spotId":null}"#, "delete Spot t", "delete Area a",
      ])
    #expect(try node.fields("Area", #""e""#) == #"{"spotId":null,"outerId":"e"}"#)
  }

  /// A cascade beyond the scope would write into partitions that this node does not hold, with
  /// contexts that it has not seen.
  @Test func childrenOutOfTheScopeSurviveTheirParent() throws {
    let bench = try Bench()
    let schema = """
      type Shop @model { id: ID! @primaryKey orders: [Order] @hasMany(references: ["shopId"]) }
      type Order @model {
        tenant: ID! @primaryKey(sortKeyFields: ["n"])
        n: Int!
        shopId: ID!
        shop: Shop! @belongsTo(references: ["shopId"])
      }
      """
    let all = try bench.node("all", schema)
    try all.commit(
      #"{"op":"create","model":"Shop","key":"s"}"#,
      #"{"op":"create","model":"Order","key":{"tenant":"x","n":1},"fields":{"shopId":"s"}}"#,
      #"{"op":"create","model":"Order","key":{"tenant":"y","n":1},"fields":{"shopId":"s"}}"#)
    let part = try bench.node("part", schema, scope: ["Shop", "tenant=x"])
    try part.sync(all)
    #expect(
      try part.commit(#"{"op":"delete","model":"Shop","key":"s"}"#)
        == ["delete Order tenant=x n=1", "delete Shop s"])
    try part.sync(all)
    let after = try bench.open("all")
    #expect(try after.fields("Order", #"{"tenant":"x","n":1}"#) == nil)
    #expect(try after.fields("Order", #"{"tenant":"y","n":1}"#) == #"{"shopId":"s"}"#)
    #expect(try after.conflictTexts == [#"dangling Order tenant=y n=1 shop: {"id":"s"}"#])
  }

  @Test func aReferenceOutOfTheScopeIsNotDangling() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.tree, scope: ["Fan", "Player"])
    try node.commit(#"{"op":"create","model":"Fan","key":"f","fields":{"teamId":"t"}}"#)
    #expect(try node.conflictTexts == [])
    let all = try bench.node("b", Self.tree)
    try all.commit(#"{"op":"create","model":"Fan","key":"f","fields":{"teamId":"t"}}"#)
    #expect(try all.conflictTexts == [#"dangling Fan f team: {"id":"t"}"#])
  }
}
