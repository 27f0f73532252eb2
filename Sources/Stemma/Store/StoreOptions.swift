import StemmaNode

extension Store {
  /// The time at which a write returns.
  public enum Durability: Sendable {
    /// When the commit is on disk: no crash loses it.
    case strict
    /// When the commit is written. It is on disk within 50 milliseconds, or when the write that
    /// runs then has ended, and at the latest with the next strict commit. Until then, a crash of
    /// the machine or a power loss may lose it: the newest commits first, and none that is on disk.
    /// The end of the process loses nothing. Peers never get a commit that can be lost.
    case relaxed
  }

  /// How a store is opened.
  public struct Options: Sendable {
    /// The name of a node that opening creates, which its changes show; nil: the host's name.
    public var name: String?
    /// The partitions of a node that opening creates: `.partition(Task.self, workspace.id)`, or
    /// patterns as `"tenant=a*"`. Empty: all. A pattern without a possible partition throws, and no
    /// node is created.
    public var partitions: [PartitionPattern] = []
    /// Whether the store is read-only: no models are applied, no records changed.
    public var isReadOnly = false
    /// How long a write waits for another process's commit, in seconds; a day at most.
    public var wait: Double = 5
    /// The author of this store's commits, unless `write(author:)` names another. For another
    /// author, use `Store.as(_:)`.
    public var author: String?
    /// When writes return, unless `write(durability:)` overrides it.
    public var durability = Durability.strict
    /// The file system, clock and randomness of commits.
    var ports = Ports()

    /// Defaults: the host's name, all partitions, read and write access, a wait of 5 seconds, no
    /// author, strict durability.
    public init(
      name: String? = nil, partitions: [PartitionPattern] = [], isReadOnly: Bool = false, wait: Double = 5,
      author: String? = nil, durability: Durability = .strict
    ) {
      self.name = name
      self.partitions = partitions
      self.isReadOnly = isReadOnly
      self.wait = wait
      self.author = author
      self.durability = durability
    }
  }
}
