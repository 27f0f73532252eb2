import StemmaSchema
import Testing

@Suite struct SchemaTests {
  @Test func modelsAreFoundByName() {
    let field = Field(name: "id", type: FieldType(.scalar(.id)), isRequired: true)
    let book = Model(name: "Book", tableName: "books", fields: [field], keyFields: [0], partitionDepth: 0)
    let schema = Schema(models: [book])
    #expect(schema.model(named: "Book") == book)
    #expect(schema.model(named: "book") == nil)
    #expect(book.autoPopulatedField == 0)
  }
}
