import GRDBSQLite
import StemmaEvents
import StemmaMerge
import StemmaSchema

/// Ranks the children of a parent by the writes of their references, for statements that show one
/// child: `stemma_reference_rank(child._state, ?)`, with this as the parameter.
package final class ReferenceRank: Sendable {
  private let child: TableLayout
  private let fields: [String]

  /// The pointer's type name; SQLite keeps its address (sqlite.org/bindptr.html).
  private static let pointerType: StaticString = "stemma_reference"

  /// - Parameter fields: the reference fields of `child` in the node's schema.
  package init(_ child: Model, _ fields: [String]) {
    self.child = TableLayout(child)
    self.fields = fields
  }

  /// Whether a parent shows child `a` rather than `b`: by reference writes, then by the lower key.
  static func isAbove(_ a: (write: Candidate, key: Key), _ b: (write: Candidate, key: Key)) -> Bool {
    let (first, second) = (a.write, b.write)
    return (first.version, first.timestamp, first.id, b.key)
      > (second.version, second.timestamp, second.id, a.key)
  }

  /// Bytes that sort like the writes in `isAbove`; nil if no event has written the reference.
  ///
  /// - Throws: for bytes that are not a row's state. The checksum is not verified.
  func rank(of sealed: UnsafeRawBufferPointer) throws(MergeError) -> [UInt8]? {
    let state = try RecordState(decoding: StateChecksum.state(in: sealed), child.rules) { _ in .null }
    guard let write = child.write(ofReference: fields, state) else { return nil }
    let numbers = [
      write.version.rawValue, write.timestamp.milliseconds << 16 | UInt64(write.timestamp.counter),
      write.id.origin.rawValue, write.id.sequence.rawValue,
    ]
    return numbers.flatMap { number in withUnsafeBytes(of: number.bigEndian) { Array($0) } }
  }

  /// The object that was bound; nil for any other value.
  static func of(_ value: OpaquePointer?) -> ReferenceRank? {
    withPointerType { type in
      sqlite3_value_pointer(value, type).map { Unmanaged<ReferenceRank>.fromOpaque($0).takeUnretainedValue() }
    }
  }

  fileprivate static func withPointerType<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    body(UnsafeRawPointer(pointerType.utf8Start).assumingMemoryBound(to: CChar.self))
  }
}

extension Statement {
  /// Retains `reference` until the parameter is bound again or cleared.
  package func bind(_ index: Int32, _ reference: ReferenceRank) {
    let pointer = Unmanaged.passRetained(reference).toOpaque()
    ReferenceRank.withPointerType { type in
      _ = sqlite3_bind_pointer(handle, index, pointer, type) { pointer in
        if let pointer { Unmanaged<ReferenceRank>.fromOpaque(pointer).release() }
      }
    }
  }
}
