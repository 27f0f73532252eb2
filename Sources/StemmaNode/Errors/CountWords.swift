/// `1 event`, `2,000 events`.
package func counted(_ count: some BinaryInteger, _ noun: String) -> String {
  "\(grouped(count)) \(noun)\(count == 1 ? "" : "s")"
}

/// A number with thousands separators: `31,983`.
package func grouped(_ number: some BinaryInteger) -> String {
  var digits = Array(String(number))
  var index = digits.count - 3
  while index > (number < 0 ? 1 : 0) {
    digits.insert(",", at: index)
    index -= 3
  }
  return String(digits)
}
