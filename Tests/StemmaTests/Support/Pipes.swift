import Stemma

/// One end of a connection in memory.
struct PipeEnd: Transport {
  /// Bytes in one direction.
  private struct Pipe: Sendable {
    let bytes: AsyncStream<[UInt8]>
    let input: AsyncStream<[UInt8]>.Continuation

    init() { (bytes, input) = AsyncStream.makeStream(of: [UInt8].self) }
  }

  private let reading: Pipe
  private let writing: Pipe

  /// Both ends of a connection.
  static func pair() -> (PipeEnd, PipeEnd) {
    let (there, back) = (Pipe(), Pipe())
    return (PipeEnd(reading: back, writing: there), PipeEnd(reading: there, writing: back))
  }

  func send(_ bytes: [UInt8]) async throws { writing.input.yield(bytes) }

  func receive() async throws -> [UInt8] {
    for await part in reading.bytes { return part }
    return []
  }

  func close() async throws { writing.input.finish() }
}
