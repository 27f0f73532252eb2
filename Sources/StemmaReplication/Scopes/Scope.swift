import StemmaEvents

/// The set of partition patterns that a node holds, or that a peer requests.
///
/// A partition is in scope if at least one inclusion matches it and no exclusion does, in any
/// order. Redundant patterns stay listed: after the wide one is removed, the narrow one still
/// applies.
///
/// Invariants: patterns are sorted and distinct. No text is both included and excluded. A scope
/// without an inclusion has no exclusion (it is empty).
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

  /// Parses patterns as a person lists them, in any order, with repetitions. Exclusions alone
  /// exclude from everything. An empty list gives an empty scope.
  package init(patterns texts: [String]) throws(ReplicationError) {
    var patterns: Set<ScopePattern> = []
    for text in texts { patterns.insert(try ScopePattern(text)) }
    if !patterns.isEmpty, patterns.allSatisfy(\.isExclusion) { patterns.insert(.everything) }
    try self.init(patterns)
  }

  /// Parses the output of `patterns`, from a file or from a peer. Throws for anything else.
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

  /// The patterns in canonical order: inclusions, then exclusions, each in byte order. For storing
  /// and sending; `init(canonical:)` parses them.
  package var patterns: [String] { list.map(\.description) }

  package var isEverything: Bool {
    list.contains { !$0.isExclusion && $0.matchesEverything } && !list.contains(where: \.isExclusion)
  }

  /// The partitions in scope, if each is named; nil if globs include some.
  package var named: Set<Partition>? { inclusions.isEmpty ? exactInclusions.filter(contains) : nil }

  package func contains(_ partition: Partition) -> Bool {
    guard exactInclusions.contains(partition) || inclusions.contains(where: { $0.matches(partition) })
    else { return false }
    return !exactExclusions.contains(partition) && !exclusions.contains { $0.matches(partition) }
  }

  /// Whether this scope certainly contains all of `other`. May return false if a comparison of two
  /// globs would show that it does; never returns true wrongly.
  package func covers(_ other: Scope) -> Bool {
    other.list.allSatisfy { pattern in
      if pattern.isExclusion { return true }
      if let partition = pattern.partition { return contains(partition) || !other.contains(partition) }
      let isIncluded = list.contains { !$0.isExclusion && ($0.matchesEverything || $0 == pattern) }
      return isIncluded && list.allSatisfy { !$0.isExclusion || other.list.contains($0) }
    }
  }

  /// Adds patterns. An inclusion removes its own exclusion (`!P` if `P` is added), and vice versa.
  /// Throws `excluded` for one partition that another exclusion matches.
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

  /// Removes listed patterns. A partition that another pattern covers stays in scope. The last
  /// inclusion takes all exclusions with it.
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

/// The intersection of several scopes: a node's own, a peer's, and the patterns of one run.
package struct NarrowedScope: Hashable, Sendable {
  /// A partition must be in each. Not empty, without duplicates; contains `everything` only alone.
  package let scopes: [Scope]

  package init(_ scopes: [Scope]) {
    var kept: [Scope] = []
    for scope in scopes where !scope.isEverything && !kept.contains(scope) { kept.append(scope) }
    self.scopes = kept.isEmpty ? [.everything] : kept
  }

  package init(_ scopes: Scope...) { self.init(scopes) }

  package var isEverything: Bool { scopes.allSatisfy(\.isEverything) }

  /// The partitions in all scopes, if one of the scopes names each of its own; otherwise nil.
  package var named: Set<Partition>? { scopes.lazy.compactMap(\.named).first.map { $0.filter(contains) } }

  package func contains(_ partition: Partition) -> Bool { scopes.allSatisfy { $0.contains(partition) } }

  package func narrowed(to scope: Scope) -> NarrowedScope { NarrowedScope(scopes + [scope]) }
}
