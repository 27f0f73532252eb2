import StemmaEvents
import Testing

@testable import StemmaReplication
import StemmaSimulation

@Suite struct ScopeTests {
  @Test(arguments: [
    ("*", "Author", true), ("Author", "Author", true), ("Author", "Authors", false),
    ("tenantId=ac*", "tenantId=ac", true), ("tenantId=ac*", "tenantId=acme", true),
    ("tenantId=ac*", "tenantId=bacme", false), ("*=JFK", "origin=JFK", true),
    ("a*b*c", "aXXbYYbZc", true), ("a*b*c", "aXXbYYbZ", false), ("a**b", "ab", true),
    ("tenantId=?", "tenantId=é", true), ("tenantId=?", "tenantId=e\u{301}", false),
    ("tenantId=?", "tenantId=", false), ("tenantId=??", "tenantId=😀x", true),
    ("*?", "é", true), ("*?x", "éx", true), ("??", "é", false),
    ("t=[a-c]", "t=b", true), ("t=[a-c]", "t=d", false), ("t=[!a-c]", "t=d", true),
    ("t=[!a-c]", "t=é", true), ("t=[à-ü]", "t=é", true), ("t=[]x]", "t=]", true), ("t=[a-]", "t=-", true),
    ("t=a%2Cb", "t=a%2Cb", true), ("t=a%2cb", "t=a%2Cb", true), ("t=a]b", "t=a]b", true),
    ("t=É", "t=é", false), ("a=1,b=*", "a=1,b=2", true),
  ])
  func patternsMatchWholeNames(pattern: String, name: String, isMatch: Bool) throws {
    #expect(try ScopePattern(pattern).matches(Partition(name)) == isMatch)
  }

  @Test(arguments: [
    ("", ScopeError.emptyPattern), ("!", .emptyPattern), ("t=[ab", .openSet(pattern: "t=[ab")),
    ("t=50%", .mustBeEscaped(pattern: "t=50%", character: "%", write: "%25")),
    ("t=%4", .mustBeEscaped(pattern: "t=%4", character: "%", write: "%25")),
    ("t=%+1", .mustBeEscaped(pattern: "t=%+1", character: "%", write: "%25")),
    ("t=%41", .neverMatches(pattern: "t=%41", part: "%41")),
    ("t=a!", .mustBeEscaped(pattern: "t=a!", character: "!", write: "%21")),
    ("t=[z-a]", .neverMatches(pattern: "t=[z-a]", part: "a range that runs backwards")),
    ("t=[*]", .neverMatches(pattern: "t=[*]", part: "* inside of [ ]")),
    ("t=\0", .neverMatches(pattern: "t=\0", part: "a NUL")),
  ])
  func aBadPatternIsNamed(pattern: String, error: ScopeError) {
    #expect(throws: ReplicationError.scope(error)) { try ScopePattern(pattern) }
    #expect(throws: ReplicationError.self) { try Scope(patterns: [pattern]) }
  }

  @Test func patternsAndListsEndAtTheirLimits() throws {
    let longest = String(repeating: "a", count: ReplicationLimits.pattern)
    #expect(try ScopePattern(longest).bytes.count == ReplicationLimits.pattern)
    #expect(throws: ReplicationError.scope(.patternTooLong(ReplicationLimits.pattern + 1))) {
      try ScopePattern(longest + "a")
    }
    let most = (0..<ReplicationLimits.patterns).map { "p\($0)" }
    #expect(try Scope(patterns: most).patterns.count == most.count)
    #expect(throws: ReplicationError.scope(.tooManyPatterns(most.count + 1))) {
      try Scope(patterns: most + ["one more"])
    }
  }

  @Test func exclusionsWinInAnyOrder() throws {
    let scope = try Scope(patterns: ["!tenantId=ac*", "tenantId=*", "tenantId=acme"])
    #expect(scope.patterns == ["tenantId=*", "tenantId=acme", "!tenantId=ac*"])
    #expect(scope.contains(Partition("tenantId=bob")))
    #expect(!scope.contains(Partition("tenantId=acme")))
    #expect(try scope == Scope(patterns: ["tenantId=acme", "!tenantId=ac*", "tenantId=*", "tenantId=*"]))
  }

  @Test func exclusionsAloneExcludeFromEverything() throws {
    let scope = try Scope(patterns: ["!Author"])
    #expect(scope.patterns == ["*", "!Author"])
    #expect(scope.contains(Partition("Commit")) && !scope.contains(Partition("Author")))
  }

  @Test func noPatternIsNothing() throws {
    #expect(try Scope(patterns: []) == .nothing)
    #expect(!Scope.nothing.contains(Partition("Author")))
  }

  /// A pattern that is covered by another one remains listed. Removing it keeps the partition.
  @Test func aPartitionThatAnotherPatternCoversStays() throws {
    let scope = try Scope(patterns: ["partition=Tests", "partition=T*"])
    let without = try scope.removing([ScopePattern("partition=Tests")])
    #expect(without.patterns == ["partition=T*"])
    #expect(without.contains(Partition("partition=Tests")))
    let other = try scope.removing([ScopePattern("partition=T*")])
    #expect(other.contains(Partition("partition=Tests")) && !other.contains(Partition("partition=Tools")))
  }

  @Test func addingAndRemoving() throws {
    let everything = Scope.everything
    let narrowed = try everything.adding([ScopePattern("!Author")])
    #expect(narrowed.patterns == ["*", "!Author"])
    #expect(try narrowed.adding([ScopePattern("Author")]).patterns == ["*", "Author"])
    #expect(try narrowed.removing([ScopePattern("!Author")]) == everything)
    // Removing the last inclusion also removes its exclusions, because a list of only exclusions
    // would mean everything.
    #expect(try narrowed.removing([.everything]) == .nothing)
    let commit = try ScopePattern("Commit")
    #expect(throws: ReplicationError.scope(.notListed(commit))) { try everything.removing([commit]) }
    let globbed = try Scope(patterns: ["*", "!A*"])
    let (author, exclusion) = (try ScopePattern("Author"), try ScopePattern("!A*"))
    #expect(throws: ReplicationError.scope(.excluded(author, by: exclusion))) {
      try globbed.adding([author])
    }
  }

  @Test func canonicalListsAreReadBackAndNothingElse() throws {
    let scope = try Scope(patterns: ["b", "a*", "!c"])
    #expect(try Scope(canonical: scope.patterns) == scope)
    for bad in [["b", "a*"], ["a", "a"], ["!c"], ["a%2c"], ["a", "!a"], ["a**"]] {
      #expect(throws: ReplicationError.self) { try Scope(canonical: bad) }
    }
  }

  @Test func coversNeverSaysYesWrongly() throws {
    #expect(Scope.everything.covers(try Scope(patterns: ["a*", "!ab"])))
    #expect(try Scope(patterns: ["a*"]).covers(Scope(patterns: ["ab", "ac"])))
    #expect(try !Scope(patterns: ["a*"]).covers(Scope(patterns: ["b"])))
    #expect(try !Scope(patterns: ["a*", "!ab"]).covers(Scope(patterns: ["a*"])))
    #expect(try Scope(patterns: ["a*", "!ab"]).covers(Scope(patterns: ["a*", "!ab", "!ac"])))
    var random = SplitMix64(seed: 7)
    let words = ["a", "ab", "a*", "b*", "*", "?", "!a", "!ab", "!b?", "[ab]"]
    let names = ["a", "b", "ab", "ba", "abc", "c"].map { Partition($0) }
    for _ in 0..<2000 {
      let one = try Scope(patterns: (0...random.below(3)).map { _ in random.element(words) })
      let two = try Scope(patterns: (0...random.below(3)).map { _ in random.element(words) })
      if one.covers(two) { for name in names where two.contains(name) { #expect(one.contains(name)) } }
      let both = NarrowedScope(one, two)
      for name in names { #expect(both.contains(name) == (one.contains(name) && two.contains(name))) }
    }
  }

  /// Compared with a matcher that tries everything. Seed 11.
  @Test func globsAgreeWithANaiveMatcher() throws {
    func naive(_ pattern: Substring, _ name: Substring) -> Bool {
      guard let first = pattern.first else { return name.isEmpty }
      if first == "*" {
        return naive(pattern.dropFirst(), name) || (!name.isEmpty && naive(pattern, name.dropFirst()))
      }
      guard let head = name.first, first == "?" || first == head else { return false }
      return naive(pattern.dropFirst(), name.dropFirst())
    }
    var random = SplitMix64(seed: 11)
    for _ in 0..<5000 {
      let pattern = String((0...random.below(5)).map { _ in random.element(Array("ab*?é")) })
      let name = String((0...random.below(6)).map { _ in random.element(Array("abé")) })
      #expect(
        try ScopePattern(pattern).matches(Partition(name)) == naive(pattern[...], name[...]),
        "\(pattern) \(name)")
    }
  }
}
