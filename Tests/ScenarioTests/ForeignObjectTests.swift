import Foundation
import Testing

/// Objects that other software has added to the tables.
@Suite("foreign objects in the tables")
struct ForeignObjectTests {
  @Test(
    "they are dropped with a warning, and are never in the way",
    arguments: [
      "CREATE UNIQUE INDEX own ON teams (name)", "CREATE INDEX own ON teams (lower(name))",
      "CREATE VIEW own AS SELECT * FROM teams", "CREATE TABLE own (x)",
      "CREATE TRIGGER own BEFORE INSERT ON teams BEGIN SELECT RAISE(ABORT, 'no'); END",
    ])
  func dropped(change: String) throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=a", "name=x")
    let tables = work.file("shop/tables.sqlite")
    for words in [["rebuild"], ["list", "Team", "--json"], ["create", "Team", "id=b", "name=x"]] {
      try Spoil.execute(change, in: tables)
      let result = try Tool.run(Tool.path, ["-C", "shop"] + words, in: work.path)
      #expect(result.status == 0, "\(words): \(result.errors)")
      #expect(result.errors.contains("own"), "\(words): \(result.errors)")
      let left = try work.stemma(
        "-C", "shop", "query", "--tsv", "SELECT count(*) FROM sqlite_master WHERE name = 'own'")
      #expect(left.output == "0\n" && left.errors.isEmpty)
    }
    #expect(try work.stemma("-C", "shop", "list", "Team", "--json").array().count == 2)
    try work.stemma("-C", "shop", "verify")
  }
}
