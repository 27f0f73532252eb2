import StemmaNode

extension Notice {
  func contains(_ text: String) -> Bool { description.contains(text) }
  func hasPrefix(_ text: String) -> Bool { description.hasPrefix(text) }
}
