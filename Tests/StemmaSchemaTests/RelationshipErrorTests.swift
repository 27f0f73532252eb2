import StemmaSchema
import Testing

/// Amplify's validations.
@Suite struct RelationshipErrorTests {
  private let person =
    "type Person @model { name: String! @primaryKey(sortKeyFields: [\"born\"]) born: AWSDate! }\n"

  @Test func countTypesAndOrderAgreeWithTheKey() {
    expectError(
      person + "type Post @model { n: String  p: Person @belongsTo(fields: ‸[\"n\"]) }",
      "`Post.p` names 1 reference field, but the key of `Person` has 2 parts (name, born)",
      "one field of `Post` for each part")
    expectError(
      person + "type Post @model { n: ID  b: AWSDate  p: Person @belongsTo(fields: ‸[\"n\", \"b\"]) }",
      "reference field `n` of `Post` is ID, but `name` in the key of `Person` is String", "write `n: String`")
    expectError(
      person + "type Post @model { n: String  b: AWSDate  p: Person @belongsTo(fields: ‸[\"b\", \"n\"]) }",
      "reference field `b` of `Post` is AWSDate", "in the order of the key: name, born")
    expectError(
      person + "type Post @model { n: [String]  b: AWSDate  p: Person @belongsTo(fields: ‸[\"n\", \"b\"]) }",
      "is [String]", "write `n: String`")
    expectError(
      "type A @model { bs: [B] @hasMany(references: ‸[\"aId\"]) } type B @model { x: Int }",
      "`B` has no field `aId` for `A.bs`", "add `aId: ID` to `B`")
    expectError(
      "type A @model { b: B @hasOne(fields: ‸[\"b2\"])  b2: B @belongsTo } type B @model { x: Int }",
      "`b2` of `A` is a relationship and holds no key", "a field of type ID")
  }

  /// Reference fields that the key does not fix must be all required or all optional.
  @Test func freeReferenceFieldsAreAllRequiredOrNone() {
    expectError(
      person + "type Post @model { n: String!  b: AWSDate  p: Person @belongsTo(fields: ‸[\"n\", \"b\"]) }",
      "partly required: `b` is not", "make all of n, b required, or none")
  }

  @Test func theIndexOfAHasManyExists() {
    expectError(
      "type A @model { bs: [B] @hasMany(indexName: ‸\"byA\", fields: [\"id\"]) } type B @model { aId: ID @index(name: \"byX\") }",
      "`B` has no index `byA` for `A.bs`", "add `@index(name: \"byA\")` to the field of `B`")
    expectError(
      "type A @model { x: Int  bs: [B] @hasMany(indexName: \"byA\", fields: ‸[\"x\"]) } type B @model { aId: ID @index(name: \"byA\") }",
      "`fields` of `A.bs` is not the key of `A`", "write `fields: [\"id\"]`")
    expectError(
      "type A @model { x: Int! @primaryKey(sortKeyFields: [\"y\"]) y: Int! bs: [B] @hasMany(indexName: \"byA\", fields: ‸[\"x\", \"y\"]) } type B @model { aId: Int @index(name: \"byA\") }",
      "has fewer fields than the key of `A`", "`sortKeyFields`")
    expectError(
      "type A @model { bs: [B] @hasMany(indexName: \"byA\", fields: ‸[\"id\"]) } type B @model { aId: Int @index(name: \"byA\") }",
      "reference field `aId` of `B` is Int, but `id` in the key of `A` is ID", "write `aId: ID`")
  }

  @Test func targetsAreModelsAndListsWhereManyAre() {
    expectError("type A @model { b: ‸B @hasOne }", "unknown model `B`", "declare `type B @model`")
    expectError("type A @model { b: ‸Int @hasOne }", "`Int` is not a model", "leave `@hasOne` out")
    expectError("type A @model { a: ‸A @hasMany }", "`@hasMany` needs a list", "write `a: [A]`")
    expectError("type A @model { a: [‸A] @belongsTo }", "`@belongsTo` needs a single model", "write `a: A`")
    expectError(
      "type A @model { x: ID  a: A @belongsTo(fields: [\"x\"]) ‸@index }",
      "is not allowed beside `@belongsTo`", "on the reference field")
    expectError(
      "type A @model { x: ID  a: A ‸@hasOne(fields: [\"x\"], references: [\"x\"]) }",
      "both `fields` and `references`", "keep `fields`")
    expectError(
      "type A @model { a: [A] @hasMany(onDelete: ‸CASCADED) }", "none of its words",
      "STANDARD, RESTRICT, CASCADE")
  }

  @Test func whatFacesSeveralMustSayWhich() {
    expectError(
      """
      type P @model { ‸cs: [C] @hasMany }
      type C @model { x: ID y: ID a: P @belongsTo(fields: ["x"]) b: P @belongsTo(fields: ["y"]) }
      """, "`P.cs` could be the other side of `C.a`, `C.b`", "@hasMany(references: [\"x\"])")
    expectError(
      """
      type P @model { as: [C] @hasMany(references: ["x"])  bs: [C] @hasMany(references: ["y"]) }
      type C @model { x: ID y: ID ‸p: P @belongsTo }
      """, "`C.p` could be the other side of `P.as`, `P.bs`", "@belongsTo(fields: [\"x\"])")
  }

  @Test func impliedFieldsMustFit() {
    expectError(
      "type P @model { ‸cs: [C] @hasMany } type C @model { pCsId: Int }",
      "reference field `pCsId` of `C` is Int, but `id` in the key of `P` is ID", "write `pCsId: ID`")
    expectError(
      "type P @model { ‸cs: [C] @hasMany } type C @model { pCsId: P @hasOne }", "`pCsId` cannot be one",
      "explicitly")
  }

  @Test func aRelationHasTwoSides() {
    expectError(
      "type A @model { bs: [B] @manyToMany(relationName: ‸\"AB\") } type B @model { x: Int }",
      "relation `AB` is used once", "on exactly two fields")
    expectError("type A @model { bs: [A] ‸@manyToMany }", "needs the argument `relationName`", "\"…\"")
    expectError(
      """
      type A @model { bs: [B] @manyToMany(relationName: ‸"R") }
      type B @model { cs: [C] @manyToMany(relationName: "R") }
      type C @model { x: Int }
      """, "do not face each other: `A` names `B`, `B` names `C`", "the other's model")
    expectError(
      """
      type A @model { bs: [B] @manyToMany(relationName: ‸"AB") }
      type B @model { as: [A] @manyToMany(relationName: "AB") }
      type AB @model { x: Int }
      """, "has the name of another type", "rename the relation")
    expectError(
      """
      type A @model { bs: [B] @manyToMany(relationName: ‸"a-b") }
      type B @model { as: [A] @manyToMany(relationName: "a-b") }
      """, "cannot name a join model", "letters")
  }
}
