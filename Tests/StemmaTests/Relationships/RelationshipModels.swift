import Stemma

// The models of the article on relationships, one group per section.

// One to many: `Team` and `Member` of Models.swift. One to one:

@Table struct Customer {
  let id: UUID
  var name: String?
  @HasOne("customerId") var activeCart: Cart?
}

@Table struct Cart {
  let id: UUID
  var items: [String]
  var customerId: UUID?
  @BelongsTo("customerId") var customer: Customer?
}

// Many to many: through a join model with a separate id, and through one whose key is the pair.

@Table struct Article {
  let id: UUID
  var title: String?
  var content: String?
  @HasMany("postId") var postTags: Related<ArticleTag>
  @ManyToMany(through: ArticleTag.self) var tags: Related<Tag>
  @ManyToMany(through: Rating.self) var raters: Related<Person>
}

@Table struct Tag {
  let id: UUID
  var name: String?
  @HasMany("tagId") var postTags: Related<ArticleTag>
  @ManyToMany(through: ArticleTag.self) var posts: Related<Article>
}

@Table struct ArticleTag {
  let id: UUID
  var postId: UUID
  var tagId: UUID
  @BelongsTo("postId") var post: Article
  @BelongsTo("tagId") var tag: Tag
}

@Table struct Rating {
  @Selection struct ID: Hashable {
    let articleId: UUID
    let personId: UUID
  }
  let id: ID
  var stars: Int?
  @BelongsTo("articleId") var article: Article
  @BelongsTo("personId") var person: Person
}

// Several relationships between two models, one of them required; key paths as names.

@Table struct Post {
  let id: UUID
  var title: String
  var content: String
  var authorId: UUID
  @BelongsTo(\Post.authorId) var author: Person
  var editorId: UUID?
  @BelongsTo(\Post.editorId) var editor: Person?
}

@Table struct Person {
  let id: UUID
  var name: String?
  @HasMany(\Post.editorId) var editedPosts: Related<Post>
  @HasMany(\Post.authorId) var authoredPosts: Related<Post>
}

enum TwoOptional {
  @Table struct Post {
    let id: UUID
    var title: String
    var content: String
    var authorId: UUID?
    @BelongsTo("authorId") var author: Person?
    var editorId: UUID?
    @BelongsTo("editorId") var editor: Person?
  }

  @Table struct Person {
    let id: UUID
    var name: String?
    @HasMany("editorId") var editedPosts: Related<Post>
    @HasMany("authorId") var authoredPosts: Related<Post>
  }
}

// Keys that would be equal if their parts were concatenated.

enum Hall {
  @Table struct Shelf {
    @Selection struct ID: Hashable {
      let room: String
      let row: String
    }
    let id: ID
    @HasMany("shelfRoom", "shelfRow") var items: Related<Item>
  }

  @Table struct Item {
    let id: UUID
    var shelfRoom: String?
    var shelfRow: String?
    @BelongsTo("shelfRoom", "shelfRow") var shelf: Shelf?
  }
}

// Sort keys in the identifier: a reference of two fields.

@Table struct Novel {
  let id: UUID
  var title: String
  var content: String
  var authorName: String?
  var authorDoB: String.AWSDate?
  @BelongsTo("authorName", "authorDoB") var author: Writer?
}

@Table struct Writer {
  @Selection struct ID: Hashable {
    let name: String
    let dateOfBirth: String.AWSDate
  }
  let id: ID
  @HasMany("authorName", "authorDoB") var authoredPosts: Related<Novel>
}

// A model that refers to itself, two that refer to each other, and a delete rule.

@Table struct Employee {
  let id: UUID
  var name: String
  var managerId: UUID?
  @BelongsTo("managerId") var manager: Employee?
  @HasMany("managerId", onDelete: .restrict) var reports: Related<Employee>
}

@Table struct Department {
  let id: UUID
  var name: String
  var headId: UUID?
  @BelongsTo("headId") var head: Officer?
  @HasMany("departmentId") var officers: Related<Officer>
}

@Table struct Officer {
  let id: UUID
  var name: String
  var departmentId: UUID
  @BelongsTo("departmentId") var department: Department
  @HasMany("headId") var heads: Related<Department>
}

// A reference with a part that the record's own key fixes.

@Table struct Project {
  @Selection struct ID: Hashable {
    let tenant: String
    let number: Int
  }
  let id: ID
  var name: String
  @HasMany("tenant", "projectNumber") var tasks: Related<Job>
}

@Table struct Job {
  @Selection struct ID: Hashable {
    let tenant: String
    let job: Int
  }
  let id: ID
  var projectNumber: Int
  @BelongsTo("tenant", "projectNumber") var project: Project
}

// People who follow people.

@Table struct Account {
  @Column(primaryKey: true) let name: String
  @ManyToMany(through: Following.self, by: "follower") var follows: Related<Account>
  @ManyToMany(through: Following.self, by: "followed") var followers: Related<Account>
}

@Table struct Following {
  @Selection struct ID: Hashable {
    let followerName: String
    let followedName: String
  }
  let id: ID
  @BelongsTo("followerName") var follower: Account
  @BelongsTo("followedName") var followed: Account
}
