/// Which names the files of a log are to have, whose headers say that they have those of others.
///
/// A file gets its own name, unless another one holds that: the file with this name, or with this number as a file of the
/// other kind, that says so of itself, unless that is damaged and this a copy of it that is whole; or one that cannot be
/// read, and may hold more, as only a whole segment has all that there was under its name. What else stood there, a copy of
/// a third file or what cannot be read, gets the name that has become free, where it stands for what is missing then. Each
/// exchange puts one file more in its place, and none that is there is moved, unless it is damaged. Nothing is written over.
struct NamePlan: Equatable {
  /// By the names that files have: those that they are to have.
  private(set) var names: [LogFileName: LogFileName] = [:]
  /// Files that get their own names, by those that they have.
  private(set) var restored: Set<LogFileName> = []
  /// Files that have names of others, and would get one that the log has no use for.
  private(set) var aside: Set<LogFileName> = []

  var isEmpty: Bool { names.isEmpty && aside.isEmpty }

  init() {}

  /// `files`: the segments and journals that are there. `own`: what the headers of those that can be read say.
  /// `replaced`: numbers of files that others replace, which no file gets. `highest`: the number that the log has come to,
  /// as far as that is known without these files. `isWhole` is asked of segments that say that they are others, and of those
  /// that these say they are.
  init(
    files present: [LogFileName], own: [LogFileName: LogFileName], replaced: Set<UInt64>, highest: UInt64,
    isWhole: (LogFileName) throws(LogError) -> Bool
  ) throws(LogError) {
    // By the names that they are to have.
    var files = Dictionary(uniqueKeysWithValues: present.map { ($0, $0) })
    func isHeld(_ name: LogFileName) -> Bool { files[name].map { own[$0] == name } ?? false }
    func exchange() throws(LogError) -> (name: LogFileName, own: LogFileName, occupied: LogFileName?)? {
      for (name, file) in files.sorted(by: { $0.key < $1.key }) {
        guard let wanted = own[file], wanted != name, wanted.other.map(isHeld) != true,
          !replaced.contains(wanted.number ?? 0)
        else { continue }
        if isHeld(wanted) {
          guard !wanted.isJournal, let holder = files[wanted], !(try isWhole(holder)), try isWhole(file)
          else {
            continue
          }
        }
        let occupied = [wanted, wanted.other].compactMap { $0 }.first { files[$0] != nil }
        if let occupant = occupied.flatMap({ files[$0] }), own[occupant] == nil, !(try isWhole(file)) {
          continue
        }
        return (name, wanted, occupied)
      }
      return nil
    }
    while let (name, wanted, occupied) = try exchange() {
      let file = files.removeValue(forKey: name)
      if let occupied { files[name] = files.removeValue(forKey: occupied) }
      files[wanted] = file
    }
    let last = own.values.compactMap(\.number).reduce(highest, max)
    for (name, file) in files where name != file {
      let number = name.number ?? 0
      let isFree = name.other.map { files[$0] == nil } ?? false
      if own[file] == name {
        restored.insert(file)
      } else if number == 0 || number > last || replaced.contains(number) || !isFree {
        aside.insert(file)
        continue
      }
      names[file] = name
    }
  }
}

extension LogFileName {
  /// The name that the header of a file says; nil: it cannot be read, or is of another log.
  init?(inHeaderOf path: String, log: LogID, _ fileSystem: any FileSystem) throws(LogError) {
    do throws(LogError) {
      let file = try fileSystem.open(path, .read)
      if let number = try JournalHeader.number(of: file, log: log) {
        self = .journal(number)
      } else {
        self = .segment(try SegmentHeader(of: file, path: path, log: log).number)
      }
    } catch {
      if case .system = error { throw error }
      return nil
    }
  }

  /// What is wrong with a file that has this name in its header, and has another one.
  func misnamed(_ path: String) -> Damage {
    Damage(path: path, offset: Self.numberOffset, flaw: .disagreement("this is \(text) under another name"))
  }

  /// Of the number in the header of either kind.
  fileprivate static let numberOffset: UInt64 = 24
}

extension Damage {
  /// Whether this is of a file that is known for another one.
  var isMisnamed: Bool {
    if case .disagreement = flaw { offset == LogFileName.numberOffset } else { false }
  }
}
