import Testing

/// An import writes differences between the source and the node. It never resolves a conflict.
@Suite("an import never decides")
struct ImportConflictTests {
  /// Conflicts of a field, of a reference, and of existence. `shop` shows its own values.
  private func met() throws -> Workplace {
    try Shop.synced(
      [
        "create Customer id=ada name=Ada",
        "create Customer id=bob name=Bob",
        "create Team id=blue name=Blue",
        "create Team id=red name=Red",
        "create Team id=green name=Green",
        "create Badge id=b team=green",
      ],
      field: [
        "update Customer ada name=Field",
        "link Badge b team=red",
        "delete Team blue",
      ],
      shop: [
        "update Customer ada name=Shop",
        "link Badge b team=blue",
        "update Team blue name=Bleu",
      ])
  }

  private func conflicts(_ work: Workplace) throws -> [String] {
    try work.stemma("-C", "shop", "conflicts", "--json").array()
      .map { "\($0.text("kind") ?? "") \($0.text("model") ?? "") \($0.text("field") ?? "-")" }.sorted()
  }

  /// An import of an export must leave conflicts open.
  @Test("what export writes changes nothing where it is imported again, also where a field is in conflict")
  func exportChangesNothing() throws {
    let work = try met()
    let before = try conflicts(work)
    #expect(before.contains("value Customer name") && before.contains("delete Team -"), "\(before)")
    let lines = try work.stemma("-C", "shop", "export").output
    let again = try work.stemma("-C", "shop", "import", "-", "--json", input: lines).objects()
    #expect(again.last?.number("events") == 0)
    #expect(try conflicts(work) == before)
    for line in [
      #"{"op":"link","model":"Badge","key":"b","fields":{"team":"blue"}}"#,
      #"{"op":"update","model":"Customer","key":"ada","fields":{"name":"Shop"}}"#,
    ] {
      let result = try work.stemma("-C", "shop", "import", "-", "--json", input: line + "\n").objects()
      #expect(result.last?.number("events") == 0, "\(line)")
    }
    try work.write("rows.csv", "id,name\nada,Shop\nbob,Bob\n")
    try work.stemma("-C", "shop", "import", "rows.csv", "--model", "Customer")
    #expect(try conflicts(work) == before)
  }

  @Test("a different value is written, and --resolve closes the conflict of a value that is shown")
  func writesDifference() throws {
    let work = try met()
    let before = try conflicts(work)
    let shown = #"{"model":"Customer","key":"ada","fields":{"name":"Shop"}}"# + "\n"
    try work.stemma("-C", "shop", "import", "--resolve", "-", input: shown)
    #expect(try conflicts(work) == before.filter { $0 != "value Customer name" })
    let other = try met()
    let field = shown.replacing("Shop", with: "Third")
    try other.stemma("-C", "shop", "import", "-", input: field)
    #expect(try conflicts(other) == before.filter { $0 != "value Customer name" })
    #expect(try other.stemma("-C", "shop", "get", "Customer", "ada", "--json").output.contains("Third"))
  }
}
