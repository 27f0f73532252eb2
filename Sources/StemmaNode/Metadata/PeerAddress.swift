import Foundation

/// The form of a peer's address.
package enum PeerAddress: Hashable, Sendable {
  case directory(String)
  /// `HOST:PATH`, reached by a remote shell. The path is relative to the home directory there.
  case shell(host: String, path: String)
  /// `http://…` or `https://…`: a server, or a hub in a web site.
  case http(String)
  /// `s3://…` or `file://…`: a hub.
  case hub(String)

  /// `HOST:PATH` has no slash before its first colon. `./a:b` is the directory `a:b`.
  package init(_ text: String) {
    if text.hasPrefix("http://") || text.hasPrefix("https://") {
      self = .http(text)
      return
    }
    if text.hasPrefix("s3://") || text.hasPrefix("file://") {
      self = .hub(text)
      return
    }
    if let colon = text.firstIndex(of: ":"), colon > text.startIndex, text[text.index(after: colon)...] != "",
      !text[..<colon].contains("/"), !text.hasPrefix("-")
    {
      self = .shell(host: String(text[..<colon]), path: String(text[text.index(after: colon)...]))
      return
    }
    self = .directory(text)
  }

  package var isDirectory: Bool { if case .directory = self { true } else { false } }

  package static func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
  }

  /// The form that `stemma.json` keeps. A relative directory becomes absolute.
  package static func stored(_ text: String) -> String {
    switch PeerAddress(text) {
    case .directory(let path): absolute(path)
    case .shell, .hub: text
    case .http(let url): url.hasSuffix("/") ? String(url.dropLast()) : url
    }
  }
}
