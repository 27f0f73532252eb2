import ArgumentParser
import Foundation
import Logging
import StemmaEvents
import StemmaHTTP
import StemmaNode

struct UI: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ui",
    abstract: "Look at the node in a browser.",
    discussion: """
      Serves a page for this machine only, prints its address and opens it in a browser, until SIGTERM or SIGINT. The \
      address has a secret behind the #, without which nothing is answered; browsers do not send it to servers. From \
      another machine, forward the port: ssh -L 8000:localhost:8000 HOST stemma -C DIR ui --port 8000.
      `stemma serve --ui` offers the page to holders of tokens.
      Examples:
        stemma ui
        stemma -C /srv/shop ui --port 8000
      """)
  @Option(help: ArgumentHelp("The port to listen at (default: any free one).", valueName: "number"))
  var port: UInt16 = 0
  @OptionGroup var author: AuthorOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    signal(SIGPIPE, SIG_IGN)
    receiveStopSignals()
    let node = try options.open()
    let nodeName = node.metadata.name
    var configuration = Server.Configuration()
    let secret = AccessTokens.newSecret()
    (configuration.port, configuration.hasPage, configuration.secret) = (Int(port), true, secret)
    var logger = Logger(label: "stemma") { _ in LineLog(form: .text) }
    // Each view makes several requests.
    logger.logLevel = .warning
    let name = author.name?.addingPercentEncoding(withAllowedCharacters: .alphanumerics)
    let proposal = name.map { "&author=\($0)" } ?? ""
    let opening = NodeOpening(directory: node.directory, wait: options.wait)
    let server = try Server(opening, configuration, logger)
    try blocking {
      try await server.run { address in
        let page = "\(address)/#token=\(secret)" + proposal
        Output.line("\(printable(nodeName)) at \(page)")
        Output.flush()
        if Output.isTerminal { Self.open(page) }
      }
    }
  }

  /// Opens the page in a browser. Without one, the person opens the printed address.
  private static func open(_ page: String) {
    #if canImport(Darwin)
      let program = "/usr/bin/open"
    #else
      let environment = ProcessInfo.processInfo.environment
      guard environment["DISPLAY"] != nil || environment["WAYLAND_DISPLAY"] != nil else { return }
      let program = "/usr/bin/xdg-open"
    #endif
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = [page]
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    do { try process.run() } catch { Output.warning("no browser was opened: \(error.localizedDescription)") }
  }
}
