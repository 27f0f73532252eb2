import StemmaEvents

/// The set of partition patterns that a node holds, or that a peer asks for.
///
/// A partition is in scope when at least one inclusion matches it and no exclusion does; the order of the
/// patterns means nothing. Patterns that others make redundant stay listed: whoever removes the wide one
/// later still has the narrow one.
///
/// Invariants: patterns are sorted and distinct; a text is not both included and excluded; a scope without
/// an inclusion has no exclusion (it holds nothing).
package struct Scope: Sendable, Hashable {
  package let list: [ScopePattern]
  private let exactInclusions: Set<Partition>
  private let exactExclusions: Set<Partition>
  private let inclusions: [ScopePattern]
  private let exclusions: [ScopePattern]

  package static let everything = Scope(sorted: [.everything])
  package static let nothing = Scope(sorted: [])

  private init(sorted patterns: [ScopePattern]) {
    list = patterns
    exactInclusions = Set(patterns.lazy.filter { !$0.isExclusion }.compactMap(\.partition))
    exactExclusions = Set(patterns.lazy.filter(\.isExclusion).compactMap(\.partition))
    inclusions = patterns.filter { !$0.isExclusion && $0.partition == nil }
    exclusions = patterns.filter { $0.isExclusion && $0.partition == nil }
  }

  package static func == (a: Scope, b: Scope) -> Bool { a.list == b.list }
  package func hash(into hasher: inout Hasher) { hasher.combine(list) }

  /// Reads patterns as a person lists them, in any order, repeated or not. Where all are exclusions, they
  /// exclude from everything. No pattern at all: nothing.
  package init(patterns texts: [String]) throws(ReplicationError) {
    var patterns: Set<ScopePattern> = []
    for text in texts { patterns.insert(try ScopePattern(text)) }
    if !patterns.isEmpty, patterns.allSatisfy(\.isExclusion) { patterns.insert(.everything) }
    try self.init(patterns)
  }

  /// Reads what `patterns` gave, from a file or from a peer. Throws for anything else.
  package init(canonical texts: [String]) throws(ReplicationError) {
    guard texts.count <= ReplicationLimits.patterns else { throw .scope(.tooManyPatterns(texts.count)) }
    let scope = try Scope(patterns: texts)
    guard scope.patterns.elementsEqual(texts, by: { $0.hasSameBytes(as: $1) }) else {
      throw .scope(.notCanonical(texts))
    }
    self = scope
  }

  private init(_ patterns: Set<ScopePattern>) throws(ReplicationError) {
    guard patterns.count <= ReplicationLimits.patterns else { throw .scope(.tooManyPatterns(patterns.count)) }
    let kept = patterns.filter { $0.isExclusion || !patterns.contains($0.opposite) }
    let includesAny = kept.contains { !$0.isExclusion }
    self.init(sorted: includesAny ? kept.sorted() : [])
  }

  /// The patterns in canonical order: inclusions, then exclusions, each by their bytes. Canonical for
  /// storing and sending; `init(canonical:)` reads it back.
  package var patterns: [String] { list.map(\.description) }

  package var isEverything: Bool {
    list.contains { !$0.isExclusion && $0.matchesEverything } && !list.contains(where: \.isExclusion)
  }

  package func contains(_ partition: Partition) -> Bool {
    guard exactInclusions.contains(partition) || inclusions.contains(where: { $0.matches(partition) })
    else { return false }
    return !exactExclusions.contains(partition) && !exclusions.contains { $0.matches(partition) }
  }

  /// Whether everything that `other` contains is surely in this scope. May say no where a closer look at two
  /// globs would say yes; never the reverse.
  package func covers(_ other: Scope) -> Bool {
    other.list.allSatisfy { pattern in
      if pattern.isExclusion { return true }
      if let partition = pattern.partition { return contains(partition) || !other.contains(partition) }
      let isIncluded = list.contains { !$0.isExclusion && ($0.matchesEverything || $0 == pattern) }
      return isIncluded && list.allSatisfy { !$0.isExclusion || other.list.contains($0) }
    }
  }

  /// Adds patterns. An inclusion takes away its own exclusion (`!P` goes when `P` is added) and the reverse.
  /// Throws `excluded` for one partition that another exclusion would still keep out.
  package func adding(_ added: [ScopePattern]) throws(ReplicationError) -> Scope {
    var set = Set(list)
    for pattern in added {
      set.remove(pattern.opposite)
      set.insert(pattern)
    }
    let scope = try Scope(set)
    for pattern in added where !pattern.isExclusion {
      guard let partition = pattern.partition, !scope.contains(partition) else { continue }
      for exclusion in scope.list where exclusion.isExclusion && exclusion.matches(partition) {
        throw .scope(.excluded(pattern, by: exclusion))
      }
    }
    return scope
  }

  /// Removes listed patterns. A partition that another pattern covers stays in scope. Exclusions go with the
  /// last inclusion: they have nothing left to exclude from.
  package func removing(_ removed: [ScopePattern]) throws(ReplicationError) -> Scope {
    var set = Set(list)
    for pattern in removed {
      guard set.remove(pattern) != nil else { throw .scope(.notListed(pattern)) }
    }
    return try Scope(set)
  }
}

extension Scope: CustomStringConvertible {
  package var description: String { list.isEmpty ? "nothing" : patterns.joined(separator: " ") }
}

/// What lies in several scopes at once: a node's own, a peer's, and the patterns of one run.
package struct NarrowedScope: Hashable, Sendable {
  /// A partition must be in each. Never empty; no scope twice, and none that contains everything unless it
  /// is the only one.
  package let scopes: [Scope]

  package init(_ scopes: [Scope]) {
    var kept: [Scope] = []
    for scope in scopes where !scope.isEverything && !kept.contains(scope) { kept.append(scope) }
    self.scopes = kept.isEmpty ? [.everything] : kept
  }

  package init(_ scopes: Scope...) { self.init(scopes) }

  package func contains(_ partition: Partition) -> Bool { scopes.allSatisfy { $0.contains(partition) } }

  package func narrowed(to scope: Scope) -> NarrowedScope { NarrowedScope(scopes + [scope]) }
}
