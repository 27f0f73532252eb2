import ArgumentParser
import Foundation
import StemmaHTTP
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
      }, progress: progress)
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
      "A file of certificates to trust instead of the system's (default: STEMMA_CA).", valueName: "file"),
    completion: .file())
  var authorities: String?

  /// The token of the option or the environment.
  func named() throws(NodeError) -> String? {
    if let tokenFile {
      let text = try Node.wrapping { try String(contentsOfFile: tokenFile, encoding: .utf8) }
      return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }
    let token = ProcessInfo.processInfo.environment["STEMMA_TOKEN"] ?? ""
    return token.isEmpty ? nil : token
  }

  func options(for address: String, _ node: Node?) throws(NodeError) -> HTTPOptions {
    let kept = try node.map { (node) throws(NodeError) in
      try Credentials(of: node.directory, node.ports)[address]
    }
    let authorities = authorities ?? ProcessInfo.processInfo.environment["STEMMA_CA"]
    return HTTPOptions(token: try named() ?? kept ?? nil, authorities: authorities)
  }

  /// Keeps the named token for later exchanges.
  func keep(for address: String, in directory: String, _ ports: Ports) throws(NodeError) {
    guard case .http = PeerAddress(address), let token = try named() else { return }
    var credentials = try Credentials(of: directory, ports)
    guard credentials[address] != token else { return }
    credentials[address] = token
    try credentials.save(in: directory)
  }
}
