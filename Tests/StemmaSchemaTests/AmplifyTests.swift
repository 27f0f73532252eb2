import Foundation
import StemmaSchema
import Testing

/// Amplify's own test schemas, compared with the output of Amplify's code generator.
@Suite(.enabled(if: Corpus.isThere, Corpus.reason)) struct AmplifyTests {
  struct Expected: Decodable {
    struct Field: Decodable {
      var required: Bool
      var type: String
    }
    struct Relation: Decodable {
      var kind: String
      var required: Bool
      var type: String
      var targetNames: [String]
    }
    var primaryKey: [String]?
    var fields: [String: Field]
    var relations: [String: Relation]
  }

  private func load(_ name: String) throws -> (Schema, [String: Expected]) {
    let schema = try SDL.read(Corpus.text("amplify-schemas/\(name).graphql")).schema
    let expected = try JSONDecoder().decode(
      [String: Expected].self, from: Data(Corpus.text("amplify-schemas/\(name).expected.json").utf8))
    return (schema, expected)
  }

  /// The key in the text of the schema: the field with `@primaryKey` and its sort keys, else `id`.
  /// Nil if the text has no such type.
  private func keyInSDL(of model: String, in name: String) throws -> [String]? {
    let text = try Corpus.text("amplify-schemas/\(name).graphql")
    guard let start = text.firstRange(of: try Regex("type \(model)\\s"))?.lowerBound else { return nil }
    let body = text[start...].prefix { $0 != "}" }
    guard let key = body.firstMatch(of: /(\w+)\s*:\s*\w+!\s*@primaryKey(\([^)]*\))?/) else { return ["id"] }
    return [String(key.1)] + (key.2 ?? "").matches(of: /"(\w+)"/).map { String($0.1) }
  }

  /// Gen 1 stores an implicit `@hasOne` and its `@belongsTo` as two references. Gen 2 and Stemma
  /// store only the reference of the `@belongsTo`.
  private static func isPair(_ model: String, _ name: String) -> Bool {
    ["Project4aV2", "Project4bV2"].contains(model) && name.lowercased().hasSuffix("team")
      || ["project4aV2TeamId", "project4bV2TeamId"].contains(name)
  }

  @Test(arguments: [("common-primarykey", 11), ("transformerv2", 34)])
  func modelsEqualTheGeneratedOnes(name: String, count: Int) throws {
    let (schema, expected) = try load(name)
    #expect(expected.count == count)
    for (modelName, model) in expected.sorted(by: { $0.key < $1.key }) {
      let read = try #require(schema.model(named: modelName))
      // A join model that `@manyToMany` creates is not in the text.
      let key = try model.primaryKey ?? keyInSDL(of: modelName, in: name)
      if let key {
        #expect(read.keyFields.map { read.fields[$0].name } == key, "\(modelName)")
      } else {
        #expect(schema.models.contains { $0.relationships.contains { $0.joinModel == modelName } })
      }
      for (fieldName, field) in model.fields.sorted(by: { $0.key < $1.key }) {
        if Self.isPair(modelName, fieldName) { continue }
        // The generator adds both timestamps to every model. Here a model has only its declared
        // ones.
        if ["createdAt", "updatedAt"].contains(fieldName) { continue }
        let found = try #require(read.field(named: fieldName), "\(modelName).\(fieldName)")
        #expect(Self.type(found.type) == field.type, "\(modelName).\(fieldName)")
        #expect(found.isRequired == field.required, "\(modelName).\(fieldName)")
      }
      for (relationName, relation) in model.relations.sorted(by: { $0.key < $1.key }) {
        if Self.isPair(modelName, relationName) { continue }
        let found = try #require(read.relationship(named: relationName), "\(modelName).\(relationName)")
        if found.kind == .manyToMany {
          #expect(found.joinModel == relation.type)
          continue
        }
        #expect(found.kind.rawValue == relation.kind)
        #expect(found.target == relation.type)
        if !relation.targetNames.isEmpty {
          #expect(found.storesReference)
          #expect(found.referenceFields == relation.targetNames, "\(modelName).\(relationName)")
        }
      }
    }
  }

  /// The schema adds no fields to those of the generator: its fields, the reference fields of its
  /// relations, and the key.
  @Test(arguments: ["common-primarykey", "transformerv2"])
  func noFieldIsAddedThatAmplifyDoesNotKnow(name: String) throws {
    let (schema, expected) = try load(name)
    for model in schema.models {
      guard let known = expected[model.name] else { continue }
      // The generator omits `id`, and fields that a belongsTo hides.
      let names = Set(known.fields.keys).union(known.relations.values.flatMap(\.targetNames)).union(["id"])
      #expect(model.fields.filter { !names.contains($0.name) }.map(\.name) == [], "\(model.name)")
    }
  }

  @Test func keysOfTheSDLStandWhereTheGeneratorLeftThemOut() throws {
    let (schema, _) = try load("common-primarykey")
    func key(_ name: String) -> [String] {
      schema.model(named: name).map { model in model.keyFields.map { model.fields[$0].name } } ?? []
    }
    #expect(key("ModelImplicitDefaultPk") == ["id"])
    #expect(key("ModelExplicitDefaultPk") == ["id"])
    #expect(key("ModelExplicitCustomPk") == ["userId"])
    #expect(key("ModelCompositePk") == ["id", "dob"])
    #expect(key("ModelCompositeMultiplePk") == ["id", "location", "name"])
    let customer = try #require(
      try load("transformerv2").0.model(named: "CustomerWithMultipleFieldsinPK"))
    #expect(
      customer.keyFields.map { customer.fields[$0].name } == [
        "id", "dob", "date", "time", "phoneNumber", "priority", "height",
      ])
  }

  @Test func implicitHasManyAddsItsFieldsToTheChild() throws {
    let schema = try load("common-primarykey").0
    let post = try #require(schema.model(named: "PostWithCompositeKey"))
    let comment = try #require(schema.model(named: "CommentWithCompositeKey"))
    let names = ["postWithCompositeKeyCommentsId", "postWithCompositeKeyCommentsTitle"]
    #expect(post.relationship(named: "comments")?.referenceFields == names)
    #expect(post.relationship(named: "comments")?.storesReference == false)
    #expect(comment.relationship(named: "post")?.referenceFields == names)
    #expect(comment.fields.suffix(2).map(\.name) == names)
    #expect(comment.references.count == 1)

    let alone = try #require(try load("transformerv2").0.model(named: "Comment3aV2"))
    #expect(
      alone.references == [
        Reference(
          target: "Post3aV2", fields: ["post3aV2CommentsId"], relationship: nil, isRequired: false)
      ])
  }

  @Test func manyToManyMakesTheJoinModel() throws {
    let schema = try load("common-primarykey").0
    let join = try #require(schema.model(named: "PostTagsWithCompositeKey"))
    let fields = [
      "postWithTagsCompositeKeyPostId", "postWithTagsCompositeKeytitle", "tagWithCompositeKeyId",
      "tagWithCompositeKeyname",
    ]
    #expect(join.fields.map(\.name) == fields)
    #expect(join.keyFields == [0, 1, 2, 3])
    #expect(join.isJoinModel)
    #expect(join.relationships.map(\.name) == ["postWithTagsCompositeKey", "tagWithCompositeKey"])
    let post = try #require(schema.model(named: "PostWithTagsCompositeKey"))
    let tags = try #require(post.relationship(named: "tags"))
    #expect(tags.joinModel == join.name)
    #expect(tags.target == "TagWithCompositeKey")
    #expect(tags.referenceFields == Array(fields[..<2]))
    #expect(schema.models.last?.name == join.name)
  }

  private static func type(_ type: FieldType) -> String {
    switch type.base {
    case .enumeration(let name): ".enum(type: \(name).self)"
    case .embedded(let name):
      type.isList ? ".embeddedCollection(of: \(name).self)" : ".embedded(type: \(name).self)"
    case .scalar(let scalar):
      if type.isList {
        ".embeddedCollection(of: String.self)"
      } else {
        switch scalar {
        case .awsDateTime: ".dateTime"
        case .awsDate: ".date"
        case .awsTime: ".time"
        case .int: ".int"
        case .float: ".double"
        default: ".string"
        }
      }
    }
  }
}
