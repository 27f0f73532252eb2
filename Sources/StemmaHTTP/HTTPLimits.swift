import NIOCore

/// Limits of the server and the client. Sizes in bytes.
enum HTTPLimits {
  /// Headers of a request: one field, all fields, and their number.
  static let headerField = 16 << 10
  static let headerList = 32 << 10
  static let headerFields = 100
  /// Longest body of `have` and `pull`, which is held in memory: a greeting and a version vector.
  static let statement = 64 << 20
  /// Longest body of mutations or of a resolution.
  static let resource = 16 << 20
  /// Bytes of one body part that are handed to a node thread.
  static let block = 256 << 10
  /// Bytes of a response between two pauses, in which the connection drains.
  static let pace = 1 << 20
  /// Slowest body that is accepted, in bytes a second, after `bodyGrace` seconds.
  static let slowestBody = 16_384
  static let bodyGrace = 5
  /// Open connections. Others wait in the queue of the operating system.
  static let connections = 4000
  /// Requests that use a node at the same time. Others are answered with 503.
  static let sessions = 64
  /// Those of one token.
  static let sessionsOfToken = 16
  /// Bytes of an unread body that are discarded before a connection is closed.
  static let discarded = 4 << 20
  static let idle = TimeAmount.seconds(60)
  /// Longest problem document that a client reads.
  static let problem = 1 << 20
}

/// The media type of a stream of session messages (`MessageFraming`).
let messagesType = "application/vnd.stemma.messages"
