import StemmaEvents
import StemmaMerge
import StemmaNode

extension FieldDecision {
  /// The decision in sentences; the first one states the shown value.
  package var words: [String] {
    var words = [statement]
    guard let winner = candidates.first else {
      return words + [
        shown.isNull ? "It was never written." : "It was never written: this is the schema's default."
      ]
    }
    guard candidates.count > 1 else {
      return words + ["\(winner.words) wrote it, and had seen every other write of it."]
    }
    let isMutual = candidates.allSatisfy(\.saw.isEmpty)
    words.append("\(candidates.count) writes \(isMutual ? "had not seen each other" : "stand side by side"):")
    words += candidates.map { "  \($0.number). \(printable($0.value.canonicalText, as: .json))  \($0.words)" }
    words += candidates.compactMap(\.sight)
    words.append(Self.reason(rule, winner, candidates.first { $0.value != winner.value } ?? winner))
    return words
  }

  private var statement: String {
    guard let field else {
      return shown == .bool(true) ? "The record exists." : "The record does not exist."
    }
    return "\(field) is \(printable(shown.canonicalText, as: .json))."
  }

  /// The reason why the first candidate wins over the best candidate with another value.
  fileprivate static func reason(_ rule: Decision.Rule, _ winner: Candidate, _ other: Candidate) -> String {
    let wins = "\(winner.event) is shown"
    switch rule {
    case .unwritten, .only: return "Nothing was to be decided."
    case .agree: return "They agree."
    case .earliest: return "Of the times of creation the earliest is shown; it is no conflict."
    case .latest: return "Of the times of change the latest is shown; it is no conflict."
    case .deleteWins: return "By the model's policy a deletion wins: \(wins)."
    case .updateWins: return "By the model's policy a change wins over a deletion: \(wins)."
    case .version:
      return "\(wins): version \(winner.version), the longer history, goes before version \(other.version)."
    case .timestamp:
      let versions =
        winner.version == other.version
        ? "the versions are equal, and" : "the model's policy asks for the time first, and"
      return winner.time == other.time
        ? "\(wins): \(versions) within the same millisecond its counter is the higher one."
        : "\(wins): \(versions) \(winner.time) is later than \(other.time)."
    case .origin:
      return
        "\(wins): version and time are equal, and its origin is the higher number; that is arbitrary, and "
        + "the same on every node."
    case .sequence: return "\(wins): version and time are equal, and it is the later one of the two."
    }
  }
}

extension ConflictDescription.Candidate {
  /// The write in a few words.
  package var words: String {
    "\(event) (version \(version), \(time)\(author.map { ", by \($0)" } ?? ""))"
  }
}

extension ConflictDescription.Candidate {
  /// For a change whose writer had seen the concurrent deletion: the reason for the conflict.
  package var sight: String? {
    if saw.isEmpty { return nil }
    return "\(event) had seen the deletion \(saw.joined(separator: " and ")), "
      + "but an ordinary update does not bury one."
  }
}

extension ConflictDescription {
  /// The reason why a cardinality or whole-record conflict shows its first candidate; otherwise
  /// nil.
  package var reason: String? {
    guard kind == .cardinality || isOfWholeRecord, candidates.count > 1 else { return nil }
    let (winner, other) = (candidates[0], candidates[1])
    let rule: Decision.Rule =
      if winner.version != other.version {
        .version
      } else if winner.timestamp != other.timestamp {
        .timestamp
      } else {
        winner.id.origin != other.id.origin ? .origin : .sequence
      }
    return FieldDecision.reason(rule, winner, other)
  }
}
