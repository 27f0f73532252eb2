import StemmaNode

extension Store {
  /// How a store is opened.
  public struct Options: Sendable {
    /// The name of a node that opening makes, by which people tell its changes from others'; nil: the host's name.
    public var name: String?
    /// Which partitions a node that opening makes holds: `.partition(Task.self, workspace.id)`, or patterns as
    /// `"tenant=a*"`. Empty: all. A pattern that can match no partition of the models throws, and no node is made.
    public var partitions: [PartitionPattern] = []
    /// Whether nothing is ever written: neither the models are applied nor records changed.
    public var isReadOnly = false
    /// How long a write waits for another process's commit, in seconds; a day at most.
    public var wait: Double = 5
    /// Who makes the commits of this store, where `write(by:)` names nobody else. `Store.as(_:)` makes them another's.
    public var author: String?
    /// What commits are written through, and when and by what chance.
    var ports = Ports()

    /// What is not given is as usual: the host's name, all partitions, for reading and writing, 5 seconds of
    /// patience, no author.
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
