import Foundation
import StemmaReplication

/// The keys that sign requests. No description shows the secret.
package struct AWSCredentials: Sendable, Hashable {
  package var accessKey: String
  package var secretKey: String
  /// Goes with temporary keys.
  package var sessionToken: String?

  package init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    self.accessKey = accessKey
    self.secretKey = secretKey
    self.sessionToken = sessionToken
  }

  /// Whether each part can be in a header. An error of the HTTP client would show the others.
  var isPrintable: Bool {
    [accessKey, secretKey, sessionToken ?? "-"].allSatisfy { text in
      !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }
  }

  /// A text without the secrets.
  func redacted(_ text: String) -> String {
    var text = text
    for secret in [secretKey, sessionToken].compactMap(\.self) where !secret.isEmpty {
      text = text.replacing(secret, with: "…")
    }
    return text
  }
}

extension AWSCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "AWSCredentials(\(accessKey))" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: ["accessKey": accessKey]) }
}

/// The settings for S3 in environment variables and in the files of `~/.aws`.
package struct AWSSettings: Sendable, Hashable {
  package var credentials: AWSCredentials?
  package var region: String?
  /// A URL.
  package var endpoint: String?

  package init(credentials: AWSCredentials? = nil, region: String? = nil, endpoint: String? = nil) {
    self.credentials = credentials
    self.region = region
    self.endpoint = endpoint
  }
}

extension AWSCredentials {
  /// The settings of this process: its environment and the files that it names.
  ///
  /// - Parameter profile: overrides `AWS_PROFILE` and the keys in the environment.
  package static func find(profile: String?) throws(ObjectError) -> AWSSettings {
    let environment = ProcessInfo.processInfo.environment
    func contents(_ variable: String, _ standard: String) throws(ObjectError) -> String? {
      let named = environment[variable].flatMap { $0.isEmpty ? nil : $0 }
      let home = environment["HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? NSHomeDirectory()
      var path = named ?? "~/.aws/\(standard)"
      if path.hasPrefix("~/") { path = home + path.dropFirst() }
      guard FileManager.default.fileExists(atPath: path) else { return nil }
      do { return try String(contentsOf: URL(fileURLWithPath: path), encoding: .utf8) } catch {
        throw .refused("\(path): the file cannot be read")
      }
    }
    return try find(
      profile: profile, environment: environment,
      credentialsFile: try contents("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
      configFile: try contents("AWS_CONFIG_FILE", "config"))
  }

  /// The settings for an environment and the contents of the two files; nil: no file.
  ///
  /// Keys come from the environment, then the credentials file, then the config file. All three
  /// parts come from the same place.
  package static func find(
    profile: String?, environment: [String: String], credentialsFile: String?, configFile: String?
  ) throws(ObjectError) -> AWSSettings {
    func variable(_ names: String...) -> String? {
      names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    }
    let named = profile ?? variable("AWS_PROFILE")
    let name = named ?? "default"
    let secrets = AWSProfiles(credentialsFile ?? "", sectionPrefix: nil).values[name]
    let config = AWSProfiles(configFile ?? "", sectionPrefix: "profile ").values[name]
    if named != nil, secrets == nil, config == nil {
      throw .refused("AWS profile \"\(ObjectKey.printable(name))\": no file of credentials has it")
    }
    var settings = AWSSettings(
      region: variable("AWS_REGION", "AWS_DEFAULT_REGION") ?? config?["region"],
      endpoint: variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") ?? config?["endpoint_url"])
    let accessKey = variable("AWS_ACCESS_KEY_ID")
    let secretKey = variable("AWS_SECRET_ACCESS_KEY")
    if profile == nil, accessKey != nil || secretKey != nil {
      guard let accessKey, let secretKey else {
        let missing = accessKey == nil ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY"
        throw .refused("\(missing) is not set, but the other key is. Set both.")
      }
      settings.credentials = AWSCredentials(
        accessKey: accessKey, secretKey: secretKey, sessionToken: variable("AWS_SESSION_TOKEN"))
    } else {
      settings.credentials = try keys(secrets, name)
      if settings.credentials == nil { settings.credentials = try keys(config, name) }
      if settings.credentials == nil { try refuseOtherSources(config ?? [:], name) }
    }
    if let credentials = settings.credentials, !credentials.isPrintable {
      throw .refused("the AWS credentials contain a character that no key has")
    }
    return settings
  }

  private static func keys(_ section: [String: String]?, _ name: String) throws(ObjectError)
    -> AWSCredentials?
  {
    let accessKey = section?["aws_access_key_id"]
    let secretKey = section?["aws_secret_access_key"]
    if accessKey == nil, secretKey == nil { return nil }
    guard let accessKey, let secretKey else {
      let missing = accessKey == nil ? "aws_access_key_id" : "aws_secret_access_key"
      throw .refused("AWS profile \"\(ObjectKey.printable(name))\": \(missing) is missing")
    }
    return AWSCredentials(
      accessKey: accessKey, secretKey: secretKey, sessionToken: section?["aws_session_token"])
  }

  private static func refuseOtherSources(_ section: [String: String], _ name: String) throws(ObjectError) {
    let unsupported = ["role_arn", "credential_process", "sso_session", "sso_start_url", "source_profile"]
    guard let found = unsupported.first(where: { section[$0] != nil }) else { return }
    throw .refused(
      "AWS profile \"\(ObjectKey.printable(name))\": \(found) is not supported. "
        + "Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.")
  }
}

/// The sections of a credentials file or a config file.
struct AWSProfiles {
  /// Profile → name → value.
  private(set) var values: [String: [String: String]] = [:]

  /// - Parameter sectionPrefix: what precedes the name of a profile, except for `default`.
  init(_ text: String, sectionPrefix: String?) {
    var profile: String?
    for line in text.split(whereSeparator: \.isNewline) {
      guard let first = line.first, first != "#", first != ";" else { continue }
      let trimmed = line.trimmingCharacters(in: .whitespaces)
      if trimmed.hasPrefix("["), let end = trimmed.firstIndex(of: "]") {
        let name = trimmed[trimmed.index(after: trimmed.startIndex)..<end]
          .trimmingCharacters(in: .whitespaces)
        profile = Self.profile(name, sectionPrefix)
        if let profile { values[profile, default: [:]] = values[profile] ?? [:] }
        continue
      }
      // Indented lines belong to the value before, such as `s3 =`.
      guard let profile, !first.isWhitespace, let equals = trimmed.firstIndex(of: "=") else { continue }
      let name = trimmed[..<equals].trimmingCharacters(in: .whitespaces).lowercased()
      let value = trimmed[trimmed.index(after: equals)...].trimmingCharacters(in: .whitespaces)
      if !value.isEmpty { values[profile]?[name] = value }
    }
  }

  private static func profile(_ section: String, _ prefix: String?) -> String? {
    guard let prefix, section != "default" else { return section }
    guard section.hasPrefix(prefix) else { return nil }
    return section.dropFirst(prefix.count).trimmingCharacters(in: .whitespaces)
  }
}
