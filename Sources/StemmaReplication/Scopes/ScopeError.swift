/// A defect in the patterns of a scope. Nothing was changed.
package enum ScopeError: Hashable, Sendable {
  case emptyPattern
  case patternTooLong(_ bytes: Int)
  case tooManyPatterns(_ count: Int)
  /// A `[` without its `]`.
  case openSet(pattern: String)
  /// An unescaped character that partition names escape.
  case mustBeEscaped(pattern: String, character: String, write: String)
  /// A part that never occurs in a partition's name.
  case neverMatches(pattern: String, part: String)
  /// Only exclusions where an inclusion is required, or a list that is not in canonical order.
  case notCanonical(_ patterns: [String])
  /// The scope does not list the pattern to remove.
  case notListed(ScopePattern)
  /// An exclusion matches the partition to add.
  case excluded(ScopePattern, by: ScopePattern)
}

extension ScopeError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .emptyPattern: "a pattern is empty; write * for every partition"
    case .patternTooLong(let bytes):
      "a pattern has \(bytes) bytes; the limit is \(ReplicationLimits.pattern)"
    case .tooManyPatterns(let count):
      "\(count) patterns; the limit is \(ReplicationLimits.patterns)"
    case .openSet(let pattern): "\(pattern): [ without ]; write %5B for the character itself"
    case .mustBeEscaped(let pattern, let character, let write):
      "\(pattern): write \(write) for the character \(character)"
    case .neverMatches(let pattern, let part): "\(pattern): no partition's name has \(part)"
    case .notCanonical(let patterns):
      "not a scope in canonical form: \(patterns.joined(separator: " "))"
    case .notListed(let pattern):
      "\(pattern) is not a pattern of the scope"
        + (pattern.isExclusion ? "" : "; to keep part of it out, add !\(pattern)")
    case .excluded(let pattern, let exclusion):
      "\(pattern) stays out because of \(exclusion); remove that pattern first"
    }
  }
}
