import Foundation
import HTTPTypes
import Hummingbird
import StemmaNode
import StemmaReplication
import StemmaSync

/// An error as a problem document (RFC 9457).
///
/// `code` is an `ErrorCode`, as on the command line. `refusal` is the session message of the error
/// in base 64, for a peer.
struct Problem: HTTPResponseError {
  static let contentType = "application/problem+json"

  private struct Document: Encodable {
    var type = "about:blank"
    var title: String
    var status: Int
    var code: String
    var refusal: String?
  }

  var status: HTTPResponse.Status
  var code: String
  var title: String
  var refusal: ReplicationError?
  /// Whether the rest of the request is not read, so that the connection must be closed.
  var closes = false

  static let busy = Problem(
    status: .serviceUnavailable, code: ErrorCode.inUse.rawValue, title: "too many requests use the node")
  static let unauthenticated = Problem(
    status: .unauthorized, code: ErrorCode.notPermitted.rawValue, title: "a valid token is required")
  static let forbidden = Problem(
    status: .forbidden, code: ErrorCode.notPermitted.rawValue, title: "the token does not permit this")
  static let foreignOrigin = Problem(
    status: .forbidden, code: ErrorCode.notPermitted.rawValue,
    title: "the request comes from the page of another site")
  static let tooLarge = Problem(
    status: .contentTooLarge, code: ErrorCode.overLimit.rawValue, title: "the body is too large", closes: true
  )
  static let slow = Problem(
    status: .requestTimeout, code: ErrorCode.incomplete.rawValue, title: "the body arrived too slowly",
    closes: true)
  /// An error of the router, such as an unknown path.
  init(_ status: HTTPResponse.Status) {
    let code: ErrorCode =
      switch status {
      case .notFound: .notFound
      case .internalServerError: .system
      default: .malformed
      }
    self.init(status: status, code: code.rawValue, title: status.reasonPhrase.lowercased())
  }

  /// A parameter or body that the resource cannot use.
  static func unusable(_ title: String) -> Problem {
    Problem(status: .unprocessableContent, code: ErrorCode.malformed.rawValue, title: title)
  }

  /// The events of a record are lost to corruption.
  static func unreadable(_ title: String) -> Problem {
    Problem(status: .internalServerError, code: ErrorCode.missingEvents.rawValue, title: title)
  }

  static func malformed(_ title: String) -> Problem {
    Problem(status: .badRequest, code: ErrorCode.malformed.rawValue, title: title)
  }

  /// An error of a resource for programs that are no peers.
  ///
  /// - Parameter isLimited: whether the caller may use only some partitions. Errors that can name
  ///   others have a general text then.
  init(resource error: NodeError, isLimited: Bool) {
    let code = error.code
    status =
      switch code {
      case .notFound, .noEvent, .noConflict, .noRemote, .noLog: .notFound
      case .revisionMismatch: .preconditionFailed
      case .alreadyExists, .severalConflicts, .restricted, .requiredReference, .danglingReference, .notLinked,
        .overwritten, .unsafeUndo, .changedMeanwhile, .immutableKey:
        .conflict
      case .notPermitted: .forbidden
      case .overLimit: .contentTooLarge
      case .malformed, .unknownName, .invalidValue, .missingValue, .invalidQuery, .invalidAddress,
        .outsideScope:
        .unprocessableContent
      case .inUse, .scopeChanged: .serviceUnavailable
      default: .internalServerError
      }
    self.code = code.rawValue
    let isPrivate =
      status == .internalServerError || [.restricted, .notPermitted, .unsafeUndo].contains(code)
    title =
      isLimited && isPrivate
      ? (code == .notPermitted ? Self.forbidden.title : "the token does not permit the reason to be shown")
      : Explanations.text(of: error).description
  }

  /// - Parameter isLimited: whether the caller may use only some partitions.
  init(_ error: NodeError, isLimited: Bool) {
    let refusal = error.refusal(isLimited: isLimited)
    status =
      switch error.code {
      case .notPermitted: .forbidden
      case .schemaConflict, .forked, .sameLog: .conflict
      case .overLimit: .contentTooLarge
      case .protocolViolation, .malformed, .newerFormat, .invalidValue: .unprocessableContent
      case .incomplete: .badRequest
      case .inUse, .scopeChanged: .serviceUnavailable
      default: .internalServerError
      }
    code = error.code.rawValue
    title = "\(refusal)"
    self.refusal = refusal
  }

  private init(
    status: HTTPResponse.Status, code: String, title: String, closes: Bool = false
  ) {
    self.status = status
    self.code = code
    self.title = title
    self.closes = closes
  }

  func response(from request: Request, context: some RequestContext) throws -> Response {
    let document = Document(
      title: title, status: status.code, code: code,
      refusal: refusal.map { Data(SessionMessage.refusal($0).encoded).base64EncodedString() })
    var headers: HTTPFields = [.contentType: Self.contentType]
    if status == .unauthorized { headers[.wwwAuthenticate] = "Bearer" }
    if status == .serviceUnavailable { headers[.retryAfter] = "1" }
    if closes { headers[.connection] = "close" }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let body = try encoder.encode(document)
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }
}
