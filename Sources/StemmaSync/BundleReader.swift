import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication

// A bundle: a shipment as a file. It has the answers of a node to one request, so a receiver reads
// it as it reads a peer.
//
//     magic       8 bytes, "STMBNDL1"
//     greeting    of the creator
//     request     the scope, and the prerequisites: what the receiver must hold already
//     holding     the same scope, and what a receiver holds afterwards
//     chunk …     the batches of the shipment
//     end
//
// Each message is framed as in `MessageFraming`. Nothing follows the end. Holding covers the
// prerequisites, and both have only partitions of the scope.

package enum Bundle {
  static let magic = Array("STMBNDL1".utf8)
  /// Bytes that are read at once.
  static let readSize = 1 << 18

  /// Whether a file begins with the magic of a bundle.
  package static func isBundle(_ path: String, _ ports: Ports) throws(NodeError) -> Bool {
    try open(path, ports) { (file) throws(LogError) in try file.read(at: 0, count: magic.count) == magic }
  }

  static func open<Result>(
    _ path: String, _ ports: Ports, _ body: (any File) throws(LogError) -> Result
  ) throws(NodeError) -> Result {
    let file: any File
    do throws(LogError) { file = try ports.fileSystem.open(path, .read) } catch {
      if case .system(_, _, let code) = error { throw .cannotRead(path: path, errno: code) }
      throw .log(error)
    }
    do throws(LogError) { return try body(file) } catch { throw .log(error) }
  }
}

/// Reads the messages of a bundle from an untrusted source. Memory: one message and one read.
package struct BundleReader {
  /// Supplies bytes in order; empty at the end.
  package typealias Source = () throws(NodeError) -> [UInt8]

  /// The path, or another name for messages.
  package let name: String
  package let greeting: Greeting
  package let scope: NarrowedScope
  /// The events that the receiver must hold already.
  package let prerequisites: VersionVector
  /// The version vector of a receiver of the whole scope afterwards.
  package let holding: VersionVector
  /// The bytes that were read.
  package private(set) var size: UInt64
  private let source: Source
  private var decoder: MessageDecoder
  private var hasEnded = false

  /// Reads the messages before the first chunk.
  ///
  /// - Throws: `.corrupt` unless the bytes are a bundle.
  package init(_ name: String, _ source: @escaping Source) throws(NodeError) {
    var input = Input(name: name, source: source)
    try input.readMagic()
    guard case .greeting(let greeting) = try input.message() else {
      throw input.fault("its first message is no greeting")
    }
    guard case .request(let request) = try input.message() else {
      throw input.fault("its second message is no request")
    }
    guard case .holding(let holding) = try input.message() else {
      throw input.fault("its third message is no holding")
    }
    guard holding.scope == request.scope, holding.versionVector.covers(request.versionVector),
      holding.versionVector.partitions.keys.allSatisfy(request.scope.contains)
    else { throw input.fault("its prerequisites and its content contradict each other") }
    self.name = name
    self.greeting = greeting
    scope = request.scope
    prerequisites = request.versionVector
    self.holding = holding.versionVector
    (self.source, decoder, size) = (source, input.decoder, input.size)
  }

  /// The next chunk, or the end; nil after the end.
  package mutating func next() throws(NodeError) -> SessionMessage? {
    guard !hasEnded else { return nil }
    var input = Input(name: name, source: source, decoder: decoder, size: size)
    // Releases the other reference, so that the bytes grow in place.
    decoder = MessageDecoder()
    let message = try input.message()
    switch message {
    case .chunk: break
    case .end:
      guard try input.isAtEnd() else { throw input.fault("bytes follow its end") }
      hasEnded = true
    default: throw input.fault("it has the message \(message.name) among its chunks")
    }
    (decoder, size) = (input.decoder, input.size)
    return message
  }

  func fault(_ what: String) -> NodeError { Input(name: name, source: source).fault(what) }
}

/// The bytes of a bundle, and the position in them.
private struct Input {
  let name: String
  let source: BundleReader.Source
  var decoder = MessageDecoder()
  var size: UInt64 = 0

  func fault(_ what: String) -> NodeError {
    .corrupt(what: "\(name): corrupt bundle: \(what). Copy or create it again")
  }

  mutating func readMagic() throws(NodeError) {
    var first: [UInt8] = []
    while first.count < Bundle.magic.count {
      let arrived = try source()
      if arrived.isEmpty { break }
      size += UInt64(arrived.count)
      first += arrived
    }
    guard first.starts(with: Bundle.magic) else {
      throw .corrupt(what: "\(name): not a Stemma bundle (bad magic number). Name a file of `bundle create`")
    }
    decoder.append(first[Bundle.magic.count...])
  }

  mutating func message() throws(NodeError) -> SessionMessage {
    while true {
      do throws(ReplicationError) {
        if let message = try decoder.next() { return message }
      } catch .newerFormat(let subject, let found, let supported) {
        throw .replication(.newerFormat(subject, found: found, supported: supported))
      } catch .corrupt(let subject, let found) {
        throw fault("\(subject) before byte \(size): \(found)")
      } catch { throw fault("\(error)") }
      let arrived = try source()
      guard !arrived.isEmpty else { throw fault("it ends early, at byte \(size)") }
      size += UInt64(arrived.count)
      decoder.append(arrived)
    }
  }

  func isAtEnd() throws(NodeError) -> Bool {
    guard decoder.isBetweenMessages else { return false }
    return try source().isEmpty
  }
}

extension BundleReader {
  /// Reads a file.
  package init(path: String, _ ports: Ports) throws(NodeError) {
    let file = try Bundle.open(path, ports) { $0 }
    var offset: UInt64 = 0
    try self.init(path) { () throws(NodeError) in
      do throws(LogError) {
        let bytes = try file.read(at: offset, count: Bundle.readSize)
        offset += UInt64(bytes.count)
        return bytes
      } catch { throw .log(error) }
    }
  }

  /// Reads standard input or another descriptor.
  package init(_ name: String, descriptor: Int32) throws(NodeError) {
    let stream = ByteStream(input: descriptor, output: descriptor)
    try self.init(name) { () throws(NodeError) in
      do throws(ByteStream.Failure) { return try stream.read() } catch {
        throw .log(.system(path: name, operation: "read", errno: error.errno))
      }
    }
  }
}
