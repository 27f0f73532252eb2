/// A value, or a key, that violates the schema. The caller renders it.
package struct ValueError: Error, Equatable, Sendable {
  package var model: String
  /// The record's key in words (`KeyWords`), where it is known.
  package var key: String?
  /// The field's name, with the path inside embedded types and lists (`address.street`, `tags[2]`).
  /// nil if the error is about the whole key.
  package var field: String?
  /// The offending value as JSON text, cut after `longestValue` bytes.
  package var value: String
  /// The rule for valid values.
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

  /// An error from its parts.
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
