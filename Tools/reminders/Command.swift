/// The commands of the program.
enum Command: Equatable {
  case add(list: String, title: String)
  /// One list, or all.
  case show(list: String?)
  case done(title: String)
  case remove(title: String)
  /// A directory, or the URL of a server.
  case sync(peer: String)
  case conflicts
  case help

  static let usage = """
    reminders [-C DIRECTORY] add LIST TITLE   a reminder; the list is made if it is not there
    reminders [-C DIRECTORY] show [LIST]      what is to be done, and what is done
    reminders [-C DIRECTORY] done TITLE       ticks it off
    reminders [-C DIRECTORY] remove TITLE     deletes it
    reminders [-C DIRECTORY] sync OTHER       exchanges changes with another directory, or a server (http:// or https://)
    reminders [-C DIRECTORY] conflicts        what was changed apart and could not be merged
    The directory is a node: `stemma -C DIRECTORY log` tells what happened in it. Without -C it is `reminders`.
    The variable REMINDERS_TOKEN holds the token for a server.
    """

  /// Nil if there is no such command. Without words it shows all lists.
  init?(_ words: [String]) {
    switch (words.first, words.count) {
    case ("add", 3): self = .add(list: words[1], title: words[2])
    case ("show", 1), (nil, _): self = .show(list: nil)
    case ("show", 2): self = .show(list: words[1])
    case ("done", 2): self = .done(title: words[1])
    case ("remove", 2): self = .remove(title: words[1])
    case ("sync", 2): self = .sync(peer: words[1])
    case ("conflicts", 1): self = .conflicts
    case ("help", 1), ("--help", 1), ("-h", 1): self = .help
    default: return nil
    }
  }
}
