/// A connection that an app brings, for a session between two stores.
///
/// It carries bytes in order and without loss. Several sent arrays may arrive as one, or one as
/// several. The store at one side answers (`Store.answer(_:)`). The store
/// at the other side syncs with `SyncPeer.transport(_:open:)`. The app authenticates the peer, and
/// encrypts the bytes if that is necessary.
///
/// A store calls the members one after another, from any thread. It waits 600 seconds for a call,
/// and cancels the task of a call for which it no longer waits. Any error ends the session:
/// complete batches are durable, and the next sync transfers the rest.
public protocol Transport: Sendable {
  /// Sends bytes, in the order of the calls. It may return before the peer has received them.
  ///
  /// A transport without any buffer can block both sides, because a side may send while the other
  /// side does.
  func send(_ bytes: [UInt8]) async throws

  /// The next bytes of the peer, as soon as there are some. Empty when the peer has closed its side
  /// and all of its bytes were received.
  func receive() async throws -> [UInt8]

  /// Ends the sending direction after the bytes that were sent. It is called once.
  ///
  /// The peer receives all of them, and then the end. Afterwards, this side receives until the peer
  /// has closed its side. A transport that can only close both directions returns empty bytes
  /// there, or throws. The store then cannot report an error by which the peer fails after the
  /// transfer.
  func close() async throws
}
