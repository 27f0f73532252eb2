import StemmaNode

extension Store {
  /// How a store is opened.
  public struct Options: Sendable {
    /// The name of a node that opening makes, which its changes show; nil: the host's name.
    public var name: String?
    /// Which partitions a node that opening makes holds: `.partition(Task.self, workspace.id)`, or patterns as
    /// `"tenant=a*"`. Empty: all. A pattern that can match no partition of the models throws, and no node is made.
    public var partitions: [PartitionPattern] = []
    /// Whether nothing is ever written: neither the models are applied nor records changed.
    public var isReadOnly = false
    /// How long a write waits for another process's commit, in seconds; a day at most.
    public var wait: Double = 5
    /// The author of this store's commits, unless `write(by:)` names another. `Store.as(_:)` gives a store for another
    /// author.
    public var author: String?
    /// The file system, clock and randomness of commits.
    var ports = Ports()

    /// Defaults: the host's name, all partitions, for reading and writing, a wait of 5 seconds, no author.
    public init(
      name: String? = nil, partitions: [PartitionPattern] = [], isReadOnly: Bool = false, wait: Double = 5,
      author: String? = nil
    ) {
      self.name = name
      self.partitions = partitions
      self.isReadOnly = isReadOnly
      self.wait = wait
      self.author = author
    }
  }
}
