import Stemma
import Testing

/// The examples of the article "Modeling relationships", section by section, with this library.
@Suite("The article on relationships")
struct RelationshipArticleTests {
  @Test("Model one-to-many relationships: create, update, delete, lazy and eager")
  func oneToMany() async throws {
    let witness = try await Witness(Team.self, Member.self)
    let store = witness.store
    // Create a "Has Many" relationship between records
    let team = try await witness.expect {
      try await store.insert(Team.Draft(mantra: "Go Frontend!"))
    } appends: {
      """
      create Team #1 mantra="Go Frontend!"
      """
    } rows: {
      """
      teams id=#1 mantra="Go Frontend!"
      """
    }
    let tim = try await witness.expect {
      try await store.insert(Member.Draft(name: "Tim", team: team))
    } appends: {
      """
      create Member #2 name="Tim" teamId=#1
      """
    } rows: {
      """
      teams id=#1 mantra="Go Frontend!"
      members id=#2 name="Tim" teamId=#1
      """
    }
    // Update a "Has Many" relationship between records
    let newTeam = try await store.insert(Team.Draft(mantra: "Go Fullstack!"))
    #expect(witness.number(of: newTeam.id) == 3)
    var existing = tim
    try await witness.expect {
      existing.setTeam(newTeam)
      existing = try await store.update(existing)
    } appends: {
      """
      link Member #2 team: teamId=#3
      """
    } rows: {
      """
      teams id=#1 mantra="Go Frontend!"
      teams id=#3 mantra="Go Fullstack!"
      members id=#2 name="Tim" teamId=#3
      """
    }
    // Lazy load a "Has Many" relationship
    let queried = try await store.find(Team.self, newTeam.id)
    #expect(try await queried.members.count() == 1)
    #expect(try await queried.members.fetch().map(\.name) == ["Tim"])
    // Eagerly load a "Has Many" relationship
    let eager = try #require(
      try await store.get(Team.self, byIdentifier: newTeam.id, including: { [$0.members] }))
    #expect(try eager.loaded(\.members).map(\.name) == ["Tim"])
    // Delete a "Has Many" relationship between records
    try await witness.expect {
      existing.setTeam(nil)
      try await store.update(existing)
    } appends: {
      """
      unlink Member #2 team: teamId=null
      """
    } rows: {
      """
      teams id=#1 mantra="Go Frontend!"
      teams id=#3 mantra="Go Fullstack!"
      members id=#2 name="Tim"
      """
    }
    #expect(try await queried.members.isEmpty())
    try await witness.rebuild()
  }

  @Test("Model a one-to-one relationship: create, update, delete, load")
  func oneToOne() async throws {
    let witness = try await Witness(Customer.self, Cart.self)
    let store = witness.store
    // Create a "Has One" relationship between records
    let customer = try await store.insert(Customer.Draft(name: "Rene"))
    #expect(witness.number(of: customer.id) == 1)
    var cart = try await witness.expect {
      try await store.insert(Cart.Draft(items: ["Tomato", "Ice", "Mint"], customer: customer))
    } appends: {
      """
      create Cart #2 customerId=#1 items=["Tomato","Ice","Mint"]
      """
    } rows: {
      """
      customers id=#1 name="Rene"
      carts id=#2 items="[\\"Tomato\\",\\"Ice\\",\\"Mint\\"]" customerId=#1
      """
    }
    #expect(try await customer.activeCart?.id == cart.id)
    // Update a "Has One" relationship between records
    let newCustomer = try await store.insert(Customer.Draft(name: "Ada"))
    #expect(witness.number(of: newCustomer.id) == 3)
    try await witness.expect {
      cart.setCustomer(newCustomer)
      cart = try await store.update(cart)
    } appends: {
      """
      link Cart #2 customer: customerId=#3
      """
    } rows: {
      """
      customers id=#1 name="Rene"
      customers id=#3 name="Ada"
      carts id=#2 items="[\\"Tomato\\",\\"Ice\\",\\"Mint\\"]" customerId=#3
      """
    }
    // Load related data in "Has One" relationships
    let queried = try await store.find(Cart.self, cart.id)
    #expect(try await queried.customer?.name == "Ada")
    #expect(try await customer.activeCart == nil)
    let eager = try #require(
      try await store.get(
        Customer.self, byIdentifier: newCustomer.id, including: { [$0.activeCart.customer] }))
    #expect(try eager.loaded(\.activeCart)?.items == ["Tomato", "Ice", "Mint"])
    #expect(try eager.loaded(\.activeCart)?.loaded(\.customer)?.id == newCustomer.id)
    // Delete a "Has One" relationship between records
    try await witness.expect {
      cart.setCustomer(nil)
      try await store.update(cart)
    } appends: {
      """
      unlink Cart #2 customer: customerId=null
      """
    } rows: {
      """
      customers id=#1 name="Rene"
      customers id=#3 name="Ada"
      carts id=#2 items="[\\"Tomato\\",\\"Ice\\",\\"Mint\\"]"
      """
    }
  }

  @Test("Model a many-to-many relationship: by hand through the join model")
  func manyToManyByHand() async throws {
    let witness = try await Witness(
      Article.self, Tag.self, ArticleTag.self, Rating.self, Person.self, Post.self)
    let store = witness.store
    let article = try await store.insert(Article.Draft(title: "Merging"))
    let tag = try await store.insert(Tag.Draft(name: "data"))
    #expect([witness.number(of: article.id), witness.number(of: tag.id)] == [1, 2])
    var join = try await witness.expect {
      try await store.insert(ArticleTag.Draft(post: article, tag: tag))
    } appends: {
      """
      create ArticleTag #3 postId=#1 tagId=#2
      """
    } rows: {
      """
      articles id=#1 title="Merging"
      tags id=#2 name="data"
      articleTags id=#3 postId=#1 tagId=#2
      """
    }
    #expect(try await article.postTags.fetch().count == 1)
    #expect(try await join.tag.name == "data")
    var names: [String?] = []
    for try await postTag in tag.postTags { names.append(try await postTag.post.title) }
    #expect(names == ["Merging"])
    let eager = try #require(
      try await store.get(Article.self, byIdentifier: article.id, including: { [$0.postTags.tag] }))
    #expect(try eager.loaded(\.postTags).map { try $0.loaded(\.tag)?.name } == ["data"])
    let sync = try await store.insert(Tag.Draft(name: "sync"))
    #expect(witness.number(of: sync.id) == 4)
    try await witness.expect {
      join.setTag(sync)
      join = try await store.update(join)
    } appends: {
      """
      link ArticleTag #3 tag: tagId=#4
      """
    } rows: {
      """
      articles id=#1 title="Merging"
      tags id=#2 name="data"
      tags id=#4 name="sync"
      articleTags id=#3 postId=#1 tagId=#4
      """
    }
    try await witness.expect {
      try await store.delete(join)
    } appends: {
      """
      delete ArticleTag #3
      """
    } rows: {
      """
      articles id=#1 title="Merging"
      tags id=#2 name="data"
      tags id=#4 name="sync"
      """
    }
    #expect(try await article.postTags.isEmpty())
  }

  @Test("Model a many-to-many relationship: @ManyToMany reads and changes through the join model")
  func manyToMany() async throws {
    let witness = try await Witness(
      Article.self, Tag.self, ArticleTag.self, Rating.self, Person.self, Post.self)
    let store = witness.store
    let article = try await store.insert(Article.Draft(title: "Merging"))
    let (data, sync) = try await store.write { tx in
      (try tx.insert(Tag.Draft(name: "data")), try tx.insert(Tag.Draft(name: "sync")))
    }
    let ana = try await store.insert(Person.Draft(name: "Ana"))
    #expect([article.id, data.id, sync.id, ana.id].map(witness.number) == [1, 2, 3, 4])
    try await witness.expect {
      try await store.write { tx in
        try article.tags.add(data, tx)
        try article.tags.add(data, tx)
        try article.tags.add(sync, tx)
      }
    } appends: {
      """
      create ArticleTag #5 postId=#1 tagId=#2
      create ArticleTag #6 postId=#1 tagId=#3
      """
    } rows: {
      """
      articles id=#1 title="Merging"
      tags id=#2 name="data"
      tags id=#3 name="sync"
      articleTags id=#5 postId=#1 tagId=#2
      articleTags id=#6 postId=#1 tagId=#3
      persons id=#4 name="Ana"
      """
    }
    #expect(try await article.tags.fetch().map(\.name) == ["data", "sync"])
    #expect(try await article.tags.rows().where { $0.name == "sync" }.fetchAll(store).count == 1)
    #expect(try await data.posts.fetch().map(\.title) == ["Merging"])
    // The key of the join model is the pair.
    try await witness.expect {
      try await article.raters.add(ana)
    } appends: {
      """
      create Rating articleId=#1 personId=#4
      """
    } rows: {
      """
      articles id=#1 title="Merging"
      tags id=#2 name="data"
      tags id=#3 name="sync"
      articleTags id=#5 postId=#1 tagId=#2
      articleTags id=#6 postId=#1 tagId=#3
      ratings articleId=#1 personId=#4
      persons id=#4 name="Ana"
      """
    }
    let eager = try #require(
      try await store.get(Article.self, byIdentifier: article.id, including: { [$0.tags.posts, $0.raters] }))
    #expect(try eager.loaded(\.tags).map(\.name) == ["data", "sync"])
    #expect(try eager.loaded(\.tags)[1].loaded(\.posts).map(\.id) == [article.id])
    #expect(try eager.loaded(\.raters).map(\.name) == ["Ana"])
    try await witness.expect {
      try await article.tags.remove(data)
      try await article.raters.remove(ana)
    } appends: {
      """
      delete ArticleTag #5
      delete Rating articleId=#1 personId=#4
      """
    } rows: {
      """
      articles id=#1 title="Merging"
      tags id=#2 name="data"
      tags id=#3 name="sync"
      articleTags id=#6 postId=#1 tagId=#3
      persons id=#4 name="Ana"
      """
    }
    let notThere = "`tags` of Article \(article.id.uuidString.lowercased()) does not lead to that record"
    await #expect(throws: StoreError.failed(.notLinked, notThere)) { try await article.tags.remove(data) }
  }

  @Test("Model multiple relationships between two models: both optional")
  func bothOptional() async throws {
    typealias Post = TwoOptional.Post
    typealias Person = TwoOptional.Person
    let witness = try await Witness(Post.self, Person.self)
    let store = witness.store
    let ana = try await store.insert(Person.Draft(name: "Ana"))
    let ben = try await store.insert(Person.Draft(name: "Ben"))
    #expect([ana.id, ben.id].map(witness.number) == [1, 2])
    var post = try await witness.expect {
      try await store.insert(Post.Draft(title: "One", content: "…", author: ana, editor: ben))
    } appends: {
      """
      create Post #3 authorId=#1 content="…" editorId=#2 title="One"
      """
    } rows: {
      """
      posts id=#3 title="One" content="…" authorId=#1 editorId=#2
      persons id=#1 name="Ana"
      persons id=#2 name="Ben"
      """
    }
    let queried = try #require(try await store.get(Post.self, byIdentifier: post.id))
    let (loadedAuthor, loadedEditor) = (try await queried.author, try await queried.editor)
    #expect([loadedAuthor?.name, loadedEditor?.name] == ["Ana", "Ben"])
    let eager = try #require(
      try await store.get(
        Person.self, byIdentifier: ana.id,
        including: { [$0.authoredPosts.editor, $0.editedPosts] }))
    #expect(try eager.loaded(\.authoredPosts).map { try $0.loaded(\.editor)?.name } == ["Ben"])
    #expect(try eager.loaded(\.editedPosts).isEmpty)
    try await witness.expect {
      post.setAuthor(ben)
      post.setEditor(nil)
      post = try await store.update(post)
    } appends: {
      """
      link Post #3 author: authorId=#2
      unlink Post #3 editor: editorId=null
      """
    } rows: {
      """
      posts id=#3 title="One" content="…" authorId=#2
      persons id=#1 name="Ana"
      persons id=#2 name="Ben"
      """
    }
    try await witness.expect {
      post.setAuthor(nil)
      try await store.update(post)
    } appends: {
      """
      unlink Post #3 author: authorId=null
      """
    } rows: {
      """
      posts id=#3 title="One" content="…"
      persons id=#1 name="Ana"
      persons id=#2 name="Ben"
      """
    }
    #expect(try await ben.authoredPosts.isEmpty())
  }

  @Test("Model multiple relationships between two models; make relationships required or optional")
  func several() async throws {
    let witness = try await Witness(
      Post.self, Person.self, Article.self, Tag.self, ArticleTag.self, Rating.self)
    let store = witness.store
    let ana = try await store.insert(Person.Draft(name: "Ana"))
    let ben = try await store.insert(Person.Draft(name: "Ben"))
    #expect([ana.id, ben.id].map(witness.number) == [1, 2])
    var post = try await witness.expect {
      try await store.insert(Post.Draft(title: "One", content: "…", author: ana))
    } appends: {
      """
      create Post #3 authorId=#1 content="…" title="One"
      """
    } rows: {
      """
      posts id=#3 title="One" content="…" authorId=#1
      persons id=#1 name="Ana"
      persons id=#2 name="Ben"
      """
    }
    #expect(try await post.author.name == "Ana")
    #expect(try await post.editor == nil)
    try await witness.expect {
      post.setEditor(ben)
      post.setAuthor(ben)
      post.title = "Two"
      post = try await store.update(post)
    } appends: {
      """
      link Post #3 author: authorId=#2
      link Post #3 editor: editorId=#2
      update Post #3 title="Two"
      """
    } rows: {
      """
      posts id=#3 title="Two" content="…" authorId=#2 editorId=#2
      persons id=#1 name="Ana"
      persons id=#2 name="Ben"
      """
    }
    #expect(try await ben.authoredPosts.fetch().map(\.title) == ["Two"])
    #expect(try await ben.editedPosts.count() == 1)
    #expect(try await ana.authoredPosts.isEmpty())
    try await witness.expect {
      post.setEditor(nil)  // `post.setAuthor(nil)` does not compile
      try await store.update(post)
    } appends: {
      """
      unlink Post #3 editor: editorId=null
      """
    } rows: {
      """
      posts id=#3 title="Two" content="…" authorId=#2
      persons id=#1 name="Ana"
      persons id=#2 name="Ben"
      """
    }
    let (saved, key) = (post, post.id.uuidString.lowercased())
    await #expect(throws: StoreError.requiredReference(model: "Post", key: key, relationship: "author")) {
      try await ben.authoredPosts.remove(saved)
    }
  }

  @Test("Model relationships for models with sort keys in their identifier")
  func sortKeys() async throws {
    let witness = try await Witness(Novel.self, Writer.self)
    let store = witness.store
    let ana = try await store.insert(Writer.Draft(name: "Ana", dateOfBirth: "1980-02-29"))
    let namesake = try await store.insert(Writer.Draft(name: "Ana", dateOfBirth: "1991-01-01"))
    var novel = try await witness.expect {
      try await store.insert(Novel.Draft(title: "One", content: "…", author: ana))
    } appends: {
      """
      create Novel #1 authorDoB="1980-02-29" authorName="Ana" content="…" title="One"
      """
    } rows: {
      """
      novels id=#1 title="One" content="…" authorName="Ana" authorDoB="1980-02-29"
      writers name="Ana" dateOfBirth="1980-02-29"
      writers name="Ana" dateOfBirth="1991-01-01"
      """
    }
    #expect(try await novel.author?.id == ana.id)
    try await witness.expect {
      novel.setAuthor(namesake)
      novel = try await store.update(novel)
    } appends: {
      """
      link Novel #1 author: authorDoB="1991-01-01" authorName="Ana"
      """
    } rows: {
      """
      novels id=#1 title="One" content="…" authorName="Ana" authorDoB="1991-01-01"
      writers name="Ana" dateOfBirth="1980-02-29"
      writers name="Ana" dateOfBirth="1991-01-01"
      """
    }
    #expect(try await namesake.authoredPosts.fetch().map(\.title) == ["One"])
    let eager = try #require(
      try await store.get(
        Writer.self, byIdentifier: namesake.id, including: { [$0.authoredPosts.author] }))
    #expect(try eager.loaded(\.authoredPosts).map { try $0.loaded(\.author)?.dateOfBirth } == ["1991-01-01"])
    try await witness.expect {
      novel.setAuthor(nil)
      try await store.update(novel)
    } appends: {
      """
      unlink Novel #1 author: authorDoB=null authorName=null
      """
    } rows: {
      """
      novels id=#1 title="One" content="…"
      writers name="Ana" dateOfBirth="1980-02-29"
      writers name="Ana" dateOfBirth="1991-01-01"
      """
    }
  }

  @Test("identifiers whose parts hold # and quotes keep their links, and are never taken for each other")
  func joinedKeys() async throws {
    let witness = try await Witness(Hall.Shelf.self, Hall.Item.self)
    let store = witness.store
    let shelf = try await store.insert(Hall.Shelf.Draft(room: "a#b", row: "\"c\""))
    let other = try await store.insert(Hall.Shelf.Draft(room: "a", row: "b#\"c\""))
    var item = try await witness.expect {
      try await store.insert(Hall.Item.Draft(shelf: shelf))
    } appends: {
      #"""
      create Item #1 shelfRoom="a#b" shelfRow="\"c\""
      """#
    }
    #expect(try await item.shelf?.id == shelf.id)
    #expect(try await other.items.isEmpty())
    try await witness.expect {
      item.setShelf(other)
      item = try await store.update(item)
    } appends: {
      #"""
      link Item #1 shelf: shelfRoom="a" shelfRow="b#\"c\""
      """#
    } rows: {
      #"""
      shelfs room="a" row="b#\"c\""
      shelfs room="a#b" row="\"c\""
      items id=#1 shelfRoom="a" shelfRow="b#\"c\""
      """#
    }
    #expect(try await shelf.items.isEmpty())
    let eager = try #require(
      try await store.get(Hall.Shelf.self, byIdentifier: other.id, including: { [$0.items.shelf] }))
    #expect(try eager.loaded(\.items).map { try $0.loaded(\.shelf)?.id } == [other.id])
    try await witness.rebuild()
  }
}
