import ArgumentParser
import Foundation
import Logging
import StemmaEvents
import StemmaHTTP
import StemmaNode
import StemmaReplication
import StemmaSync

struct Serve: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Answer peers.",
    discussion: """
      Serves the node over HTTP until SIGTERM or SIGINT, which finish the requests in progress. The first line of the output \
      is the address. Without tokens (`stemma token create`) every caller may read and write all, so a server beyond this \
      machine needs tokens and a certificate. SIGHUP reads the certificate again. With --ui, a browser shows the node at \
      the address, within the rights of a token.
      With --stdio, answers one peer through standard input and output: `stemma pull HOST:PATH` starts it with the remote \
      shell. With --read or --write that peer may use only those partitions, and learns nothing of others: a command of an \
      authorized_keys file can hold such limits.
      Examples:
        stemma -C /srv/shop serve
        stemma serve --listen 0.0.0.0:7433 --tls-cert a.pem --tls-key b.pem
        stemma serve --stdio --read tenant=acme --write tenant=acme
      """)
  @Option(help: ArgumentHelp("The address to listen at; port 0 is any free one.", valueName: "host:port"))
  var listen = "127.0.0.1:\(Server.Configuration.port)"
  @Option(help: ArgumentHelp("The certificate chain, as PEM.", valueName: "file"), completion: .file())
  var tlsCert: String?
  @Option(help: ArgumentHelp("Its key, as PEM.", valueName: "file"), completion: .file())
  var tlsKey: String?
  @Flag(help: "Permit other machines without a certificate or tokens.") var insecure = false
  @Option(
    help: ArgumentHelp("The form of the access log on standard error: text or json.", valueName: "form"))
  var logFormat = LogForm.text
  @Flag(help: "Also show the node in a browser, at the address itself.") var ui = false
  @Flag(help: "Answer one peer through standard input and output.") var stdio = false
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("The peer may read only these partitions; may be repeated.", valueName: "pattern"))
  var read: [String] = []
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("The peer may write only these partitions; may be repeated.", valueName: "pattern"))
  var write: [String] = []
  @OptionGroup var options: NodeOptions

  enum LogForm: String, ExpressibleByArgument, CaseIterable { case text, json }

  func validate() throws {
    if !stdio, !(read.isEmpty && write.isEmpty) {
      throw ValidationError("--read and --write belong to --stdio; a token limits a caller over HTTP")
    }
    if stdio, ui { throw ValidationError("--ui is for a server over HTTP; leave --stdio out") }
    if (tlsCert == nil) != (tlsKey == nil) {
      throw ValidationError("--tls-cert and --tls-key belong together")
    }
    _ = try address()
  }

  private func address() throws -> (host: String, port: Int) {
    guard let colon = listen.lastIndex(of: ":"), let port = UInt16(listen[listen.index(after: colon)...])
    else {
      throw ValidationError("--listen takes HOST:PORT, as in 127.0.0.1:7433")
    }
    var host = String(listen[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    return (host, Int(port))
  }

  func run() throws {
    // A lost connection is an error of a write, not the end of this process in the middle of a
    // session.
    signal(SIGPIPE, SIG_IGN)
    receiveStopSignals()
    if stdio { return try answer() }
    var configuration = Server.Configuration()
    (configuration.host, configuration.port) = try address()
    configuration.hasPage = ui
    if let tlsCert, let tlsKey { configuration.certificate = (tlsCert, tlsKey) }
    let node = try options.open()
    let name = node.metadata.name
    let form = logFormat
    let logger = Logger(label: "stemma") { _ in LineLog(form: form) }
    let opening = NodeOpening(directory: node.directory, wait: options.wait)
    if !insecure, try Server.isExposed(opening, configuration) {
      throw Failure(
        "\(listen) is reached from other machines: give --tls-cert and --tls-key and create a token with "
          + "`stemma token create`, or permit it with --insecure", .usage)
    }
    let server = try Server(opening, configuration, logger)
    try blocking {
      try await server.run { address in
        Output.line("\(printable(name)) at \(address)")
        Output.flush()
      }
    }
  }

  private func answer() throws {
    let node = try opened()
    // Without any limit the peer is trusted with all.
    let rights =
      read.isEmpty && write.isEmpty
      ? Rights.everything : Rights(readable: try node.scope(read), writable: try node.scope(write))
    var stream = MessageStream(ByteStream(input: STDIN_FILENO, output: STDOUT_FILENO))
    try Serving.answer(node, &stream, for: rights)
  }

  /// A node on a read-only disk can still be pulled from.
  private func opened() throws -> Node {
    let path = try options.locate()
    do throws(NodeError) { return try Node.open(at: path, options.opening(.write)) } catch {
      guard error.isRefusalToWrite else { throw error }
      return try Node.open(at: path, options.opening(.read))
    }
  }
}

/// A parent may have blocked the signals that end this process, and children inherit that.
func receiveStopSignals() {
  var signals = sigset_t()
  sigemptyset(&signals)
  for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, number) }
  pthread_sigmask(SIG_UNBLOCK, &signals, nil)
}

/// Runs a task and waits for it on this thread.
func blocking(_ body: @escaping @Sendable () async throws -> Void) throws {
  let done = DispatchSemaphore(value: 0)
  let result = ResultBox()
  Task {
    do { try await body() } catch { result.error = error }
    done.signal()
  }
  done.wait()
  if let error = result.error { throw error }
}

/// Sendable unchecked: the semaphore orders both accesses.
private final class ResultBox: @unchecked Sendable { var error: (any Error)? }

/// Writes one line for each message to standard error.
struct LineLog: LogHandler {
  let form: Serve.LogForm
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.info

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let (level, message) = (event.level, event.message)
    let time = Timestamp(milliseconds: SystemClock().milliseconds()).utcText
    var values = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }
    if let error = event.error { values.append(("error", "\(error)")) }
    let text: String
    switch form {
    case .text:
      text = "\(time) \(level) \(message)" + values.map { " \($0.key)=\($0.value)" }.joined()
    case .json:
      let members: [(name: String, value: JSON)] = [
        ("time", .string(time)), ("level", .string("\(level)")), ("message", .string("\(message)")),
      ]
      let details = values.map { (name: $0.key, value: Self.json($0.key, "\($0.value)")) }
      text = JSON.object(members + details).text
    }
    FileHandle.standardError.write(Data((printable(text) + "\n").utf8))
  }

  /// The names of values that are numbers.
  private static let numbers: Set = ["status", "partitions", "events", "received", "sent", "seconds"]

  private static func json(_ name: String, _ value: String) -> JSON {
    guard numbers.contains(name) else { return .string(value) }
    return Int64(value).map(JSON.int) ?? .number(value)
  }
}
