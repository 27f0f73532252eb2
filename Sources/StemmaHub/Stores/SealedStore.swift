import Crypto
import Foundation
import StemmaNode
import StemmaReplication

/// Seals what a store keeps, so that its host learns only sizes and times.
///
/// Each object is sealed with ChaCha20-Poly1305 in chunks of 64 KiB, so that a range is read
/// without the rest. Its key is derived (HKDF, SHA-256) from the hub's key and the name of the
/// object, so no object can take the place of another. The nonce is the number of the chunk.
///
///     objects/…     named by a keyed hash (HMAC, SHA-256) of the digest; chunks
///     all others    32 random bytes, which are a part of the key's derivation; chunks
///
/// The name of a segment determines its content, so the same key never seals two contents. Others
/// are written again under their name, with other random bytes. `hub.json` is not sealed.
package final class SealedStore: ObjectStore {
  private static let chunk = 64 << 10
  private static let tag = 16
  private static let saltSize = 32
  private static let objects = "objects/"

  private let store: any ObjectStore
  private let key: SymmetricKey

  package init(_ store: any ObjectStore, key: SymmetricKey) {
    self.store = store
    self.key = key
  }

  package var name: String { store.name }

  private static func isObject(_ key: String) -> Bool { key.hasPrefix(objects) }

  /// The key under which the store keeps an object.
  private func storedKey(_ name: String) -> String {
    guard Self.isObject(name) else { return name }
    let code = HMAC<SHA256>.authenticationCode(for: Array(name.utf8), using: derived("names", []))
    return Self.objects + Array(code).hexadecimal
  }

  private func derived(_ name: String, _ salt: [UInt8]) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(
      inputKeyMaterial: key, salt: salt, info: Array("stemma.hub.\(name)".utf8), outputByteCount: 32)
  }

  private static func nonce(_ chunk: Int) -> [UInt8] {
    [0, 0, 0, 0] + withUnsafeBytes(of: UInt64(chunk).bigEndian) { Array($0) }
  }

  // MARK: Sealing

  private func sealed(_ bytes: [UInt8], _ name: String, _ salt: [UInt8]) throws(ObjectError) -> [UInt8] {
    let key = derived(name, salt)
    var sealed = salt
    for (index, start) in stride(from: 0, to: bytes.count, by: Self.chunk).enumerated() {
      do {
        let box = try ChaChaPoly.seal(
          bytes[start..<min(start + Self.chunk, bytes.count)], using: key,
          nonce: ChaChaPoly.Nonce(data: Self.nonce(index)))
        sealed += box.ciphertext
        sealed += box.tag
      } catch { throw .refused("\(name) cannot be sealed: \(error)") }
    }
    return sealed
  }

  /// The content of whole chunks, from chunk `first` on.
  private func opened(
    _ bytes: ArraySlice<UInt8>, _ name: String, _ salt: [UInt8], from first: Int
  ) throws(ObjectError) -> [UInt8] {
    let key = derived(name, salt)
    var opened: [UInt8] = []
    opened.reserveCapacity(bytes.count)
    let size = Self.chunk + Self.tag
    for (index, start) in stride(from: bytes.startIndex, to: bytes.endIndex, by: size).enumerated() {
      let part = bytes[start..<min(start + size, bytes.endIndex)]
      do {
        let box = try ChaChaPoly.SealedBox(
          nonce: ChaChaPoly.Nonce(data: Self.nonce(first + index)), ciphertext: part.dropLast(Self.tag),
          tag: part.suffix(Self.tag))
        opened += try ChaChaPoly.open(box, using: key)
      } catch {
        throw .refused(
          "\(name) (stored as \(storedKey(name))) was changed, or is sealed with another key")
      }
    }
    return opened
  }

  package func get(_ name: String, _ range: Range<UInt64>?) throws(ObjectError) -> [UInt8]? {
    if name == HubLayout.description { return try store.get(name, range) }
    guard Self.isObject(name) else {
      guard let bytes = try store.get(name, nil) else { return nil }
      let content = try opened(
        bytes.dropFirst(Self.saltSize), name, Array(bytes.prefix(Self.saltSize)), from: 0)
      return range.map { Self.part(of: content, $0, from: 0) } ?? content
    }
    guard let range else {
      guard let bytes = try store.get(storedKey(name), nil) else { return nil }
      return try opened(bytes[...], name, [], from: 0)
    }
    let first = range.lowerBound / UInt64(Self.chunk)
    let last = (max(range.upperBound, 1) - 1) / UInt64(Self.chunk)
    let size = UInt64(Self.chunk + Self.tag)
    guard let bytes = try store.get(storedKey(name), first * size..<(last + 1) * size) else { return nil }
    let content = try opened(bytes[...], name, [], from: Int(first))
    return Self.part(of: content, range, from: first * UInt64(Self.chunk))
  }

  private static func part(of bytes: [UInt8], _ range: Range<UInt64>, from start: UInt64) -> [UInt8] {
    let end = min(Int(clamping: range.upperBound - start), bytes.count)
    return Array(bytes[min(Int(clamping: range.lowerBound - start), end)..<end])
  }

  package func put(_ name: String, _ bytes: [UInt8], ifAbsent: Bool) throws(ObjectError) -> Bool {
    if name == HubLayout.description { return try store.put(name, bytes, ifAbsent: ifAbsent) }
    let salt: [UInt8] =
      Self.isObject(name) ? [] : SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }
    return try store.put(storedKey(name), try sealed(bytes, name, salt), ifAbsent: ifAbsent)
  }

  package func list(_ prefix: String, after last: String?) throws(ObjectError) -> ObjectPage {
    try store.list(prefix, after: last)
  }

  package func delete(_ name: String) throws(ObjectError) { try store.delete(storedKey(name)) }
}

/// The key of a sealed hub: a file of 64 hexadecimal digits.
package enum HubKey {
  package static func read(_ path: String) throws(NodeError) -> SymmetricKey {
    let text: String
    do { text = try String(contentsOfFile: path, encoding: .utf8) } catch {
      throw .malformedInput(source: path, what: "\(path): the key of the hub cannot be read")
    }
    let digits = Array(text.trimmingCharacters(in: .whitespacesAndNewlines).utf8)
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count - 1, by: 2) {
      guard let byte = UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16) else {
        break
      }
      bytes.append(byte)
    }
    guard digits.count == 64, bytes.count == 32 else {
      throw .malformedInput(
        source: path, what: "\(path): a key of a hub has 64 hexadecimal digits, and nothing else")
    }
    return SymmetricKey(data: bytes)
  }

  /// Makes a new key in a file that only its owner reads, unless the file is there.
  package static func make(_ path: String) throws(NodeError) -> Bool {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    guard descriptor >= 0 else {
      if errno == EEXIST { return false }
      throw .cannotRead(path: path, errno: errno)
    }
    defer { close(descriptor) }
    let text = SymmetricKey(size: .bits256).withUnsafeBytes { Array($0).hexadecimal } + "\n"
    let written = Array(text.utf8).withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    guard written == text.utf8.count, fsync(descriptor) == 0 else {
      throw .cannotRead(path: path, errno: errno)
    }
    return true
  }
}
