import StemmaEvents
import StemmaSchema
import Testing

@Suite struct KeyWordsTests {
  private func words(_ parts: KeyPart...) throws -> String {
    let schema = try SDL.read(
      """
      type One @model { id: ID! }
      type Two @model { repo: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! }
      """
    ).schema
    let model = try #require(schema.model(named: parts.count == 1 ? "One" : "Two"))
    return KeyWords.text(Key(parts), of: model)
  }

  @Test func aKeyIsWrittenAsItIsTyped() throws {
    #expect(try words(.string("978-0")) == "978-0")
    #expect(try words(.string("GRDB.swift"), .int(5)) == "repo=GRDB.swift n=5")
  }

  @Test func whatAShellTakesApartIsQuoted() throws {
    #expect(try words(.string("Gwendal Roué")) == "'Gwendal Roué'")
    #expect(try words(.string("it's"), .int(-1)) == #"'repo=it'\''s' n=-1"#)
    #expect(try words(.string("$HOME*")) == "'$HOME*'")
  }

  /// Terminal control characters are escaped in the shell's form `$'…'`.
  @Test func controlCharactersAreSpelledForAShell() throws {
    #expect(try words(.string("e\u{1B}[31mvil")) == #"$'e\033[31mvil'"#)
    #expect(try words(.string("it's\n\\n"), .int(1)) == #"$'repo=it\'s\n\\n' n=1"#)
    #expect(try words(.string("\u{9B}\u{202E}")) == #"$'\302\233\342\200\256'"#)
  }

  /// A bare value needs its name if it looks like an option, JSON, nothing, or a named part.
  @Test func valuesThatCannotStandAloneAreNamed() throws {
    #expect(try words(.string("-n")) == "id=-n")
    #expect(try words(.string("{}")) == "'id={}'")
    #expect(try words(.string("")) == "id=")
    #expect(try words(.string("id=7")) == "id=id=7")
    #expect(try words(.string("a=b")) == "a=b")
  }
}
