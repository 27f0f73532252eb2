// What stands in a log directory under the name of a file and is none of the log's, in words.

extension Damage {
  /// nil: there is a file.
  init?(notAFileAt path: String, _ fileSystem: any FileSystem) throws(LogError) {
    do throws(LogError) {
      try fileSystem.open(path, .read).close()
      return nil
    } catch {
      guard let damage = error.damage else { throw error }
      self = damage
    }
  }

  /// Whether it is of a file of which nothing was read, and not of one that is known for what it is.
  var isUnread: Bool { if case .disagreement = flaw { false } else { true } }

  /// A file that has the name of one that the log never had.
  static func outsider(_ path: String, named name: String) -> Damage {
    let what =
      "this is a copy of \(name) under a number that is not its own, which nobody reads; take it away, or put it in that "
      + "one's place if that is damaged"
    return Damage(path: path, offset: 24, flaw: .disagreement(what))
  }

  /// A journal that has the number of another one, and other events.
  static func rival(_ path: String, of name: String) -> Damage {
    let what =
      "this claims to be \(name), and so does another file, which is read; this one holds events that the other lacks; nobody "
      + "reads it; look at both (`stemma inspect`) before you take it away"
    return Damage(path: path, offset: 24, flaw: .disagreement(what))
  }

  /// A file whose events the log holds in others, but for those that were purged.
  static func comeBack(_ path: String) -> Damage {
    let what =
      "the log has written this file anew since, under another number, and nobody reads this one; take it away"
    return Damage(path: path, offset: 24, flaw: .disagreement(what))
  }

  static func aside(_ path: String) -> Damage {
    let what =
      "this had the name that a file of the log was to get, and was moved aside; nobody reads it; look at it, and take it away"
    return Damage(path: path, offset: 0, flaw: .disagreement(what))
  }
}
