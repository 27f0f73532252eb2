import StemmaLog

extension SimulatedFileSystem {
  /// Traps if the disk's state is inconsistent. For the suites that use it.
  package func checkInvariants() {
    withState { state in
      for names in [state.names, state.durableNames] {
        for (path, entry) in names {
          if case .file(let inode) = entry {
            precondition(inode < state.nextInode, "\(path) was made")
          }
        }
      }
      for (path, entry) in state.names {
        // The durable name of a directory may follow those of its files.
        precondition(
          path == "/" || state.names[State.directory(of: path)] == .directory, "\(path) is in a directory")
        if case .file(let inode) = entry { precondition(state.inodes[inode] != nil, "a name has a file") }
      }
      if lie != .writesOverDroppedPages {
        precondition(
          state.inodes.values.allSatisfy { $0.dropped.isEmpty }, "who does not lie takes all writes")
      }
      if state.open.isEmpty {
        precondition(
          state.inodes.values.allSatisfy { $0.lockedBy == nil && $0.queue.isEmpty },
          "a lock goes with its file, and so does a place in the queue")
      }
      if state.queue.isEmpty {
        precondition(state.names == state.durableNames, "all names are durable where nothing is queued")
      }
    }
  }
}
