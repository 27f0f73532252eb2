/// A value, or a key, that the schema does not allow. The caller renders it.
package struct ValueError: Error, Equatable, Sendable {
  package var model: String
  /// The record's key in words (`KeyWords`), where it is known.
  package var key: String?
  /// A field's name; inside of embedded types and lists with the way to it (`address.street`, `tags[2]`).
  /// Nil if the key as a whole is meant.
  package var field: String?
  /// The offending value as JSON text, cut after `longestValue` bytes.
  package var value: String
  /// What a valid value is like.
  package var rule: String

  package static let longestValue = 200

  package init(model: String, key: String? = nil, field: String?, value: JSON, rule: String) {
    self.model = model
    self.key = key
    self.field = field
    let text = value.text
    self.value =
      text.utf8.count <= Self.longestValue
      ? text : String(decoding: text.utf8.prefix(Self.longestValue - 3), as: UTF8.self) + "…"
    self.rule = rule
  }

  /// An error that was told in its parts.
  package init(model: String, key: String?, field: String?, valueText: String, rule: String) {
    (self.model, self.key, self.field, value, self.rule) = (model, key, field, valueText, rule)
  }

  /// The same error with the record that it is about.
  package func named(by key: String) -> ValueError {
    var error = self
    error.key = key
    return error
  }
}
