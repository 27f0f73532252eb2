import Foundation
import NIOConcurrencyHelpers
import NIOPosix
import StemmaNode

/// How the nodes of a server are opened.
package struct NodeOpening: Sendable {
  package var directory: String
  /// How long a request waits while another process writes, in seconds.
  package var wait: Double
  package var ports: Ports

  package init(directory: String, wait: Double, ports: Ports = Ports()) {
    self.directory = directory
    self.wait = wait
    self.ports = ports
  }

  func open(_ mode: Node.Mode) throws(NodeError) -> Node {
    var options = Node.OpeningOptions(mode: mode)
    options.wait = wait
    options.ports = ports
    return try Node.open(at: directory, options)
  }
}

/// Nodes of one directory for the requests of a server. Each is used by one request at a time, on a
/// thread that may wait for the disk or for the writer lock.
final class NodePool: Sendable {
  /// A node that a request uses.
  ///
  /// Sendable unchecked: its users run one after another, on threads of the pool.
  final class Lease: @unchecked Sendable {
    let node: Node
    fileprivate let writes: Bool
    fileprivate let state: [FileState]
    /// The token of the request that uses it.
    fileprivate var token: String?

    fileprivate init(_ node: Node, writes: Bool, _ state: [FileState]) {
      self.node = node
      self.writes = writes
      self.state = state
    }
  }

  /// Identifies a version of a file. A reader does not notice changes of its metadata or schema, so
  /// it is opened again.
  fileprivate struct FileState: Equatable {
    var inode: UInt64
    var size: Int64
    var seconds: Int
    var nanoseconds: Int
  }

  private let opening: NodeOpening
  private let threads = NIOThreadPool(numberOfThreads: 4)
  private let idle = NIOLockedValueBox<[Lease]>([])
  /// The number of used nodes, by token.
  private let used = NIOLockedValueBox<[String?: Int]>([:])

  init(_ opening: NodeOpening) {
    self.opening = opening
    threads.start()
  }

  /// Runs work that may block.
  func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await threads.runIfActive(body)
  }

  /// Takes a node. Give it back with `giveBack`, unless a session with it failed.
  ///
  /// - Parameters:
  ///   - writes: whether events may be adopted. A node that cannot be written is opened for
  ///     reading.
  ///   - token: the name of the caller's token, which limits its nodes; nil: there are no tokens.
  func take(writes: Bool, for token: String?) async throws -> Lease {
    let isFull = used.withLockedValue { counts in
      let limit = token == nil ? HTTPLimits.sessions : HTTPLimits.sessionsOfToken
      if counts[token, default: 0] >= limit || counts.values.reduce(0, +) >= HTTPLimits.sessions {
        return true
      }
      counts[token, default: 0] += 1
      return false
    }
    if isFull { throw Problem.busy }
    do {
      let lease = try await run { [self] in try opened(writes: writes) }
      lease.token = token
      return lease
    } catch {
      release(token)
      throw error
    }
  }

  private func release(_ token: String?) {
    used.withLockedValue { counts in
      let count = counts[token, default: 0] - 1
      counts[token] = count > 0 ? count : nil
    }
  }

  func giveBack(_ lease: Lease, isReusable: Bool = true) {
    release(lease.token)
    if isReusable { idle.withLockedValue { $0.append(lease) } }
  }

  private func opened(writes: Bool) throws -> Lease {
    let state = try fileStates()
    let found = idle.withLockedValue { idle -> Lease? in
      idle.removeAll { $0.state != state }
      guard let index = idle.lastIndex(where: { $0.writes == writes }) else { return nil }
      return idle.remove(at: index)
    }
    if let found { return found }
    do throws(NodeError) {
      return Lease(try opening.open(writes ? .write : .read), writes: writes, state)
    } catch {
      guard writes, error.isRefusalToWrite else { throw error }
      return Lease(try opening.open(.read), writes: writes, state)
    }
  }

  private func fileStates() throws(NodeError) -> [FileState] {
    var states: [FileState] = []
    for name in Node.ownFileNames {
      var info = stat()
      let path = opening.directory + "/" + name
      guard stat(path, &info) == 0 else { throw .log(.system(path: path, operation: "stat", errno: errno)) }
      #if canImport(Darwin)
        let time = info.st_mtimespec
      #else
        let time = info.st_mtim
      #endif
      states.append(
        FileState(
          inode: UInt64(info.st_ino), size: Int64(info.st_size), seconds: time.tv_sec,
          nanoseconds: time.tv_nsec))
    }
    // Deleted tables stay readable for the process that has opened them. Commits change their size.
    var info = stat()
    let isThere = stat(Node.tablesPath(in: opening.directory), &info) == 0
    states.append(
      FileState(inode: isThere ? UInt64(info.st_ino) : 0, size: 0, seconds: 0, nanoseconds: 0))
    return states
  }
}
