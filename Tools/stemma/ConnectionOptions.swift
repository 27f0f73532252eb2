import ArgumentParser
import Foundation
import StemmaHTTP
import StemmaHub
import StemmaNode
import StemmaSync

/// How peers on other machines are reached.
struct ConnectionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The remote shell for HOST:PATH, with its options (default: STEMMA_SSH, or ssh).", valueName: "words"))
  var sshCommand: String?
  @OptionGroup var token: TokenOptions

  func connections(
    _ options: Node.OpeningOptions, progress: @escaping (UInt64, UInt64) -> Void
  ) -> Connections {
    let named = sshCommand ?? ProcessInfo.processInfo.environment["STEMMA_SSH"] ?? ""
    return Connections(
      options: options, shell: named.isEmpty ? Connections.shell : named,
      http: HTTPPeer.connector { [token] (remote, node) throws(NodeError) in
        try token.options(for: remote.address, node)
      }, hub: HubLink.connect, progress: progress)
  }
}

/// How servers are reached. A token never is an argument: the list of processes would show it.
struct TokenOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A file with the token for a server; `clone` and `remote` keep it (default: STEMMA_TOKEN, or the kept one).",
      valueName: "file"), completion: .file())
  var tokenFile: String?
  @Option(
    name: .customLong("ca"),
    help: ArgumentHelp(
      "A file of certificates to trust instead of the system's; kept likewise (default: STEMMA_CA, or the kept one).",
      valueName: "file"),
    completion: .file())
  var authorities: String?

  /// The token of the option or the environment.
  func named() throws(NodeError) -> String? {
    if let tokenFile {
      let text = try Node.wrapping { try String(contentsOfFile: tokenFile, encoding: .utf8) }
      return try Self.checked(text.trimmingCharacters(in: .whitespacesAndNewlines), of: tokenFile)
    }
    let token = ProcessInfo.processInfo.environment["STEMMA_TOKEN"] ?? ""
    return token.isEmpty ? nil : try Self.checked(token, of: "STEMMA_TOKEN")
  }

  /// An error of the client would show the text.
  private static func checked(_ token: String, of source: String) throws(NodeError) -> String {
    guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw .malformedInput(source: source, what: "it does not hold one token, and nothing else")
    }
    return token
  }

  func options(for address: String, _ node: Node?) throws(NodeError) -> HTTPOptions {
    let kept = try node.map { (node) throws(NodeError) in
      try Credentials(of: node.directory, node.ports)[address]
    }
    return HTTPOptions(
      token: try named() ?? kept?.token, authorities: namedAuthorities ?? kept?.authorities)
  }

  private var namedAuthorities: String? {
    let named = authorities ?? ProcessInfo.processInfo.environment["STEMMA_CA"] ?? ""
    return named.isEmpty ? nil : PeerAddress.absolute(named)
  }

  /// Keeps the named token and authorities for later exchanges.
  func keep(for address: String, in directory: String, _ ports: Ports) throws(NodeError) {
    guard case .http = PeerAddress(address) else { return }
    var credentials = try Credentials(of: directory, ports)
    let kept = credentials[address]
    credentials[address] = HTTPOptions(
      token: try named() ?? kept.token, authorities: namedAuthorities ?? kept.authorities)
    if credentials[address] != kept { try credentials.save(in: directory) }
  }
}

/// How a hub is reached. The address that is kept has all of it.
struct HubOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Of a bucket: the service's URL (default: that of AWS, or the environment's).", valueName: "url"))
  var endpoint: String?
  @Option(
    help: ArgumentHelp("Of a bucket: its region (default: that of the environment).", valueName: "name"))
  var region: String?
  @Option(help: ArgumentHelp("Of a bucket: the section of the files in ~/.aws.", valueName: "name"))
  var profile: String?
  @Flag(
    inversion: .prefixedNo, help: "Of a bucket: whether its name is in the path (default: with an endpoint).")
  var pathStyle: Bool?
  @Option(
    help: ArgumentHelp("The file with the key of a sealed hub.", valueName: "file"), completion: .file())
  var keyFile: String?

  /// The address with these options. Others than those of hubs take none.
  func address(_ text: String) throws -> String {
    let isGiven = endpoint != nil || region != nil || profile != nil || pathStyle != nil || keyFile != nil
    switch PeerAddress(text) {
    case .hub: return try hub(text).text
    case .http where keyFile != nil: return try hub(text).text
    default:
      guard !isGiven else {
        throw Failure("\(text) is no hub, which alone takes these options; write s3://… or file:///…", .usage)
      }
      return text
    }
  }

  func hub(_ text: String) throws -> HubAddress {
    guard text.contains("://") else {
      throw Failure(
        "\(text) is no hub; write s3://BUCKET/PREFIX, file:///FOLDER or https://HOST/PATH", .usage)
    }
    var address = try HubAddress(text)
    if let endpoint { address.options.endpoint = endpoint }
    if let region { address.options.region = region }
    if let profile { address.options.profile = profile }
    if let pathStyle { address.options.isPathStyle = pathStyle }
    if let keyFile { address.keyFile = PeerAddress.absolute(keyFile) }
    return address
  }
}
