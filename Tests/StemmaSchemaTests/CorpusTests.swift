import StemmaSchema
import Testing

@Suite(.enabled(if: Corpus.isThere, Corpus.reason)) struct CorpusTests {
  @Test(arguments: Corpus.schemas)
  func everySchemaIsReadAndPrintedBack(path: String) throws {
    let (schema, _) = try SDL.read(Corpus.text(path))
    #expect(!schema.models.isEmpty)
    let printed = SDL.print(schema)
    let (again, _) = try SDL.read(printed)
    #expect(again == schema)
    #expect(SDL.print(again) == printed)
  }
}
