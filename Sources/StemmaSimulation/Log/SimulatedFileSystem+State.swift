import StemmaLog

extension SimulatedFileSystem.State {
  typealias Change = SimulatedFileSystem.Change
  typealias Entry = SimulatedFileSystem.Entry

  static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "" }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  static func name(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return path }
    return String(path[path.index(after: slash)...])
  }

  func requireDirectory(of path: String, _ operation: String) throws(LogError) {
    guard names[Self.directory(of: path)] == .directory else {
      throw .system(path: path, operation: operation, errno: System.notFound)
    }
  }

  /// Changes names for all readers at once, but durably only after a sync of the directory.
  mutating func change(_ changes: [(path: String, entry: Entry?)]) {
    for (path, entry) in changes { names[path] = entry }
    queue.append(.names(changes))
  }

  mutating func write(_ bytes: [UInt8], at offset: Int, to inode: Int) {
    guard !bytes.isEmpty else { return }
    Self.write(bytes, at: offset, to: &inodes[inode, default: .init()].current)
    queue.append(.write(inode: inode, offset: offset, bytes: bytes))
  }

  mutating func truncate(_ inode: Int, to size: Int) {
    Self.truncate(&inodes[inode, default: .init()].current, to: size)
    // The blocks of dropped ranges after the end are freed.
    inodes[inode]?.dropped.removeAll { $0.lowerBound >= size }
    queue.append(.truncate(inode: inode, size: size))
  }

  private static func write(_ bytes: [UInt8], at offset: Int, to image: inout [UInt8]) {
    let end = offset + bytes.count
    if image.count < end { image += [UInt8](repeating: 0, count: end - image.count) }
    image.replaceSubrange(offset..<end, with: bytes)
  }

  private static func truncate(_ image: inout [UInt8], to size: Int) {
    if image.count > size { image.removeLast(image.count - size) }
    if image.count < size { image += [UInt8](repeating: 0, count: size - image.count) }
  }

  /// Applies the queued changes that `isMeant` to the durable image.
  mutating func settle(_ isMeant: (Change) -> Bool) {
    var rest: [Change] = []
    for change in queue {
      if isMeant(change) { makeDurable(change) } else { rest.append(change) }
    }
    queue = rest
  }

  static func isAbout(_ inode: Int) -> (Change) -> Bool {
    { change in
      switch change {
      case .write(inode, _, _), .truncate(inode, _): true
      default: false
      }
    }
  }

  private mutating func makeDurable(_ change: Change) {
    switch change {
    case .write(let inode, let offset, var bytes):
      // `file` ends before the write, which would otherwise copy the bytes.
      if let file = inodes[inode] {
        for index in file.dropped.joined() where offset..<offset + bytes.count ~= index {
          bytes[index - offset] = index < file.durable.count ? file.durable[index] : 0
        }
      }
      Self.write(bytes, at: offset, to: &inodes[inode, default: .init()].durable)
    case .truncate(let inode, let size):
      Self.truncate(&inodes[inode, default: .init()].durable, to: size)
    case .names(let changes):
      for (path, entry) in changes { durableNames[path] = entry }
    }
  }

  /// The effect of a crash on an unsynced change.
  mutating func keepSomeOf(_ change: Change) {
    switch (chooser.below(3), change) {
    case (0, _): break
    case (1, .write(let inode, let offset, let bytes)): keepTorn(bytes, at: offset, of: inode)
    default: makeDurable(change)
    }
  }

  /// Files in a directory whose own name is lost are lost with it.
  mutating func dropOrphans() {
    while let orphan = durableNames.keys.first(where: {
      $0 != "/" && durableNames[Self.directory(of: $0)] != .directory
    }) {
      durableNames[orphan] = nil
    }
  }

  /// Keeps any prefix, or any sectors. After half of the prefixes the file keeps its new size.
  private mutating func keepTorn(_ bytes: [UInt8], at offset: Int, of inode: Int) {
    var image = inodes[inode, default: .init()].durable
    let before = image
    Self.write(bytes, at: offset, to: &image)
    if chooser.below(2) == 0 {
      let kept = chooser.below(bytes.count + 1)
      for index in offset + kept..<offset + bytes.count {
        image[index] = index < before.count ? before[index] : 0
      }
      if chooser.below(2) == 0 { Self.truncate(&image, to: max(before.count, offset + kept)) }
    } else {
      let sector = SimulatedFileSystem.sector
      for first in stride(from: offset / sector * sector, to: offset + bytes.count, by: sector)
      where chooser.below(2) == 0 {
        for index in max(first, offset)..<min(first + sector, offset + bytes.count) {
          image[index] = index < before.count ? before[index] : 0
        }
      }
    }
    inodes[inode, default: .init()].durable = image
  }

  /// The effect of a failed sync on a file. `isLying`: its pages stay, but later writes are lost.
  mutating func drop(_ inode: Int, _ pages: SimulatedFileSystem.DroppedPages, isLying: Bool) {
    let isMeant = Self.isAbout(inode)
    let unsynced = queue.filter(isMeant)
    queue.removeAll(where: isMeant)
    for change in unsynced { keepSomeOf(change) }
    guard var file = inodes[inode] else { return }
    if isLying {
      for case .write(_, let offset, let bytes) in unsynced {
        file.dropped.append(offset..<offset + bytes.count)
      }
    } else if pages == .forgotten {
      let length = file.current.count
      file.current = file.durable
      if chooser.below(2) == 0 { Self.truncate(&file.current, to: length) }
    }
    inodes[inode] = file
  }
}
