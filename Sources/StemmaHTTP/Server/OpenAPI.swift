import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// The description of all resources, from the file `openapi.json` of this module.
enum OpenAPI {
  static let path = "openapi.json"

  static var response: Response {
    Response(
      status: .ok, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: PackageResources.openapi_json)))
  }

  /// Whether the description has such an answer. Debug builds check each answer of each test.
  static func describes(_ response: Response, to request: Request) -> Bool {
    // The router ignores repeated slashes.
    let path = "/" + request.uri.path.split(separator: "/").joined(separator: "/")
    guard let resource = resource(at: path),
      let operation = resource[request.method.rawValue.lowercased()] as? [String: Any],
      let answers = operation["responses"] as? [String: Any]
    else { return response.status == .notFound && mediaType(of: response) == Problem.contentType }
    guard var answer = answers["\(response.status.code)"] as? [String: Any] else { return false }
    if answer["$ref"] != nil { answer = shared["\(response.status.code)"] as? [String: Any] ?? [:] }
    guard let content = answer["content"] as? [String: Any] else { return mediaType(of: response) == nil }
    return mediaType(of: response).map { content[$0] != nil } ?? false
  }

  /// The description of a path, which may have parameters such as `{model}`.
  private static func resource(at path: String) -> [String: Any]? {
    if let exact = paths[path] { return exact as? [String: Any] }
    let parts = path.split(separator: "/")
    return paths.first { template, _ in
      let names = template.split(separator: "/")
      return names.count == parts.count
        && zip(names, parts).allSatisfy { $0 == $1 || $0.hasPrefix("{") }
    }?.value as? [String: Any]
  }

  /// The media type without parameters.
  private static func mediaType(of response: Response) -> String? {
    response.headers[.contentType].map { String($0.prefix { $0 != ";" }) }
  }

  private static var document: [String: Any] {
    do {
      let bytes = Data(PackageResources.openapi_json)
      return try JSONSerialization.jsonObject(with: bytes) as? [String: Any] ?? [:]
    } catch { preconditionFailure("openapi.json: \(error)") }
  }

  private static var paths: [String: Any] { document["paths"] as? [String: Any] ?? [:] }

  private static var shared: [String: Any] {
    (document["components"] as? [String: Any])?["responses"] as? [String: Any] ?? [:]
  }
}
