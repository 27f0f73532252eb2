import Foundation
import StemmaReplication

/// The address of a store, as a user writes it.
package enum StoreAddress: Hashable, Sendable {
  /// `s3://bucket/prefix`. The prefix has no slash at its ends and may be empty.
  case s3(bucket: String, prefix: String)
  /// `file:///folder`: an absolute path.
  case folder(String)
  /// `http://…` and `https://…`.
  case web(String)

  /// Settings that are not part of an address.
  package struct Options: Hashable, Sendable, Codable {
    /// The URL of the service; nil: the one of the settings, or of AWS.
    package var endpoint: String?
    /// nil: the one of the settings, or `us-east-1`.
    package var region: String?
    /// nil: with an endpoint.
    package var isPathStyle: Bool?
    /// The section of the files in `~/.aws`.
    package var profile: String?

    package init(
      endpoint: String? = nil, region: String? = nil, isPathStyle: Bool? = nil, profile: String? = nil
    ) {
      self.endpoint = endpoint
      self.region = region
      self.isPathStyle = isPathStyle
      self.profile = profile
    }
  }

  package init(_ text: String) throws(ObjectError) {
    let shown = ObjectKey.printable(text)
    guard let separator = text.firstRange(of: "://") else {
      throw .refused("\"\(shown)\" is no address of a store. Write s3://…, file:///… or https://….")
    }
    let rest = text[separator.upperBound...]
    switch text[..<separator.lowerBound].lowercased() {
    case "s3":
      let bucket = rest.prefix { $0 != "/" }
      guard !bucket.isEmpty else { throw .refused("\"\(shown)\" names no bucket. Write s3://BUCKET/PREFIX.") }
      guard !bucket.contains("@"), !rest.contains(where: { "?#".contains($0) }) else {
        throw .refused("bucket addresses have no user, query or fragment. Write s3://BUCKET/PREFIX.")
      }
      self = .s3(
        bucket: String(bucket),
        prefix: rest.dropFirst(bucket.count).split(separator: "/").joined(separator: "/"))
    case "file":
      guard rest.hasPrefix("/"), let path = rest.removingPercentEncoding, !path.contains("\0") else {
        throw .refused("\"\(shown)\" names no folder. Write file:///FOLDER.")
      }
      self = .folder(path)
    case "http", "https":
      _ = try ServerURL(text)
      self = .web(text)
    case let scheme:
      throw .refused("\"\(ObjectKey.printable(scheme))\" is no kind of store. Write s3, file or https.")
    }
  }

  /// The store. Nothing is read from it yet.
  package func open(_ options: Options) throws(ObjectError) -> any CountedStore {
    guard case .s3 = self else { return try open(options, AWSSettings()) }
    return try open(options, AWSCredentials.find(profile: options.profile))
  }

  /// - Parameter settings: used for buckets only.
  package func open(_ options: Options, _ settings: AWSSettings) throws(ObjectError) -> any CountedStore {
    switch self {
    case .folder(let path): return FolderStore(path)
    case .web(let url): return try WebStore(url)
    case .s3(let bucket, let prefix):
      guard let credentials = settings.credentials else {
        throw .refused(
          "s3://\(bucket): there are no credentials. "
            + "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.")
      }
      let endpoint = options.endpoint ?? settings.endpoint
      return try S3Store(
        S3Store.Configuration(
          bucket: bucket, prefix: prefix, endpoint: endpoint,
          region: options.region ?? settings.region ?? "us-east-1",
          isPathStyle: options.isPathStyle ?? (endpoint != nil), credentials: credentials))
    }
  }
}
