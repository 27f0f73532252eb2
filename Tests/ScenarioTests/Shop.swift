import Foundation
import Testing

/// A small node with every kind of relationship, for the tests of the command line.
enum Shop {
  static let schema = """
    enum Size { SMALL LARGE }
    type Team @model {
      id: ID! @primaryKey
      name: String!
      members: [Member] @hasMany(references: ["teamId"])
      badges: [Badge] @hasMany(references: ["teamId"])
    }
    type Member @model {
      id: ID! @primaryKey
      name: String!
      age: Int
      height: Float
      active: Boolean
      size: Size
      born: AWSDate
      tags: [String]
      extra: AWSJSON
      teamId: ID
      team: Team @belongsTo(fields: ["teamId"])
      posts: [Post] @manyToMany(relationName: "MemberPost")
    }
    type Badge @model {
      id: ID! @primaryKey
      label: String
      teamId: ID!
      team: Team! @belongsTo(fields: ["teamId"])
    }
    type Post @model {
      id: ID! @primaryKey
      title: String
      members: [Member] @manyToMany(relationName: "MemberPost")
    }
    type Customer @model {
      id: ID! @primaryKey
      name: String
      cart: Cart @hasOne(references: ["customerId"])
    }
    type Cart @model {
      id: ID! @primaryKey
      note: String
      customerId: ID
      customer: Customer @belongsTo(fields: ["customerId"])
    }
    type Visit @model {
      site: String! @primaryKey(sortKeyFields: ["number"])
      number: Int!
      room: String
      guestId: ID
      guest: Customer @belongsTo(fields: ["guestId"])
    }

    """

  /// A directory with a node `shop`.
  /// Two nodes, `shop` and its clone `field`, that synced after concurrent changes. Each line is a
  /// command with its arguments, separated by spaces.
  ///
  /// - Parameters:
  ///   - common: what the shop did before it was cloned.
  ///   - files: files of the workplace, by name.
  static func synced(
    _ common: [String], files: [String: String] = [:], field: [String], shop: [String]
  ) throws -> Workplace {
    let work = try open()
    for (name, text) in files { try work.write(name, text) }
    func run(_ node: String, _ commands: [String]) throws {
      for command in commands {
        let words = command.split(separator: " ").map(String.init)
        let result = try Tool.run(Tool.path, ["-C", node] + words, in: work.path)
        #expect(result.status == 0, "\(command): \(result.errors)")
      }
    }
    try run("shop", common)
    try work.stemma("clone", "shop", "field", "--name", "field")
    try run("field", field)
    try run("shop", shop)
    try work.stemma("-C", "field", "sync")
    return work
  }

  static func open() throws -> Workplace {
    let work = try Workplace()
    try work.write("shop.graphql", schema)
    try work.stemma("init", "shop", "--schema", "shop.graphql", "--name", "shop")
    return work
  }
}

extension Tool.Result {
  /// The single object of `--json`.
  func object(sourceLocation: SourceLocation = #_sourceLocation) throws -> [String: Any] {
    try #require(
      JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any], "\(output)\(errors)",
      sourceLocation: sourceLocation)
  }

  /// The array of objects of `--json`.
  func array(sourceLocation: SourceLocation = #_sourceLocation) throws -> [[String: Any]] {
    try #require(
      JSONSerialization.jsonObject(with: Data(output.utf8)) as? [[String: Any]], "\(output)\(errors)",
      sourceLocation: sourceLocation)
  }

  /// The array of texts of `--json`.
  func texts(sourceLocation: SourceLocation = #_sourceLocation) throws -> [String] {
    try #require(
      JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String], "\(output)\(errors)",
      sourceLocation: sourceLocation)
  }
}

extension [String: Any] {
  func text(_ name: String) -> String? { self[name] as? String }
  func number(_ name: String) -> Int? { self[name] as? Int }
  func object(_ name: String) -> [String: Any] { self[name] as? [String: Any] ?? [:] }
  func array(_ name: String) -> [[String: Any]] { self[name] as? [[String: Any]] ?? [] }
  var members: Set<String> { Set(keys) }
}
