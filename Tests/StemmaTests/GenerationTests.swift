import Foundation
import StemmaSchema
import Testing

/// `stemma schema generate --swift`
@Suite("Swift structs for a node's schema")
struct GenerationTests {
  @Test("types, keys, references, policies and names")
  func text() throws {
    let schema = try SDL.read(
      """
      enum Mood { HAPPY IN_BETWEEN default }
      type Address { street: String! zip: Int mood: Mood }
      type Team @model @conflict(policy: LATEST, deletes: DELETE_WINS) {
        id: ID!
        name: String! @default(value: "red") @index(name: "byNameAndSize", sortKeyFields: ["size"])
        size: Int @default(value: "3")
        mail: [AWSEmail!]! mood: Mood address: Address since: AWSTimestamp!
        members: [Member] @hasMany(references: ["teamId"], onDelete: RESTRICT)
        createdAt: AWSDateTime!
      }
      type Member @model @partition(fields: []) {
        country: String! @primaryKey(sortKeyFields: ["id"])
        id: ID!
        code: ID
        teamId: ID
        in: Boolean!
        team: Team @belongsTo(references: ["teamId"])
        tags: [Tag] @manyToMany(relationName: "MemberTags")
      }
      type Tag @model { name: ID! @primaryKey  members: [Member] @manyToMany(relationName: "MemberTags") }
      """
    ).schema
    #expect(
      SwiftSource.text(of: schema) == """
        import Stemma

        enum Mood: String, Codable, CaseIterable, KeyValue {
          case happy = "HAPPY"
          case inBetween = "IN_BETWEEN"
          case `default`
        }

        struct Address: Codable, Hashable, Sendable {
          var street: String
          var zip: Int?
          var mood: Mood?
        }

        @Table(policy: .latest, deletes: .deleteWins)
        @Index("name", "size")
        struct Team {
          let id: String.ID
          var name: String = "red"
          var size: Int? = 3
          var mail: [String.AWSEmail]
          var mood: Mood?
          @Column(as: Address?.JSONRepresentation.self) var address: Address?
          @Column(as: Date.UnixTimeRepresentation.self) var since: Date
          var createdAt: Date
          @HasMany("teamId", onDelete: .restrict) var members: Related<Member>
        }

        @Table(partition: [])
        struct Member {
          @Selection struct ID: Hashable {
            let country: String
            let id: String.ID
          }
          let id: ID
          @Column(as: String.ID?.self) var code: String?
          var teamId: String.ID?
          var `in`: Bool
          @BelongsTo("teamId") var team: Team?
          @ManyToMany(through: MemberTags.self) var tags: Related<Tag>
        }

        @Table
        struct Tag {
          @Column(primaryKey: true) let name: String.ID
          @ManyToMany(through: MemberTags.self) var members: Related<Member>
        }

        @Table
        @Index("tagName", name: "byTag")
        struct MemberTags {
          @Selection struct ID: Hashable {
            let memberCountry: String
            let memberid: String.ID
            let tagName: String.ID
          }
          let id: ID
          @BelongsTo("memberCountry", "memberid") var member: Member
          @BelongsTo("tagName") var tag: Tag
        }

        """)
    try expectCompiles(schema)
  }

  @Test(
    "the schemas of Amplify's own tests", .enabled(if: data != nil, "STEMMA_DATA is not set"),
    arguments: ["common-primarykey", "transformerv2"])
  func amplify(_ name: String) throws {
    let folder = try #require(Self.data)
    let text = try String(contentsOfFile: "\(folder)/amplify-schemas/\(name).graphql", encoding: .utf8)
    try expectCompiles(try SDL.read(text).schema)
  }

  private static let data = ProcessInfo.processInfo.environment["STEMMA_DATA"]

  private func expectCompiles(_ schema: Schema) throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("Models-\(UUID()).swift")
    defer { do { try FileManager.default.removeItem(at: file) } catch {} }
    let text = SwiftSource.text(of: schema)
    try text.write(to: file, atomically: true, encoding: .utf8)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    for complaint in try Compiler.complaints(about: file) {
      Issue.record("\(complaint.message)\n\(complaint.line): \(complaint.place(in: lines) ?? "")")
    }
  }
}
