import StemmaSchema

/// How values of a type are compared and ordered, in listings and in the library.
package enum ComparedForm: Equatable, Sendable {
  /// Numbers, Booleans, and text by its bytes.
  case asStored
  case function(SQLFunction)
  case collation(Collation)

  /// A point in time is stored as text of any time zone, with or without fractional seconds. As
  /// text, half a second past ten sorts before ten.
  package init(_ type: FieldType) {
    switch type.isList ? nil : type.scalar {
    case .awsDateTime: self = .function(.milliseconds)
    case .awsTime: self = .collation(.timeOfDay)
    default: self = .asStored
    }
  }

  /// An SQL term that SQLite compares in this form. `term`: a column or a parameter.
  func sql(_ term: String) -> String {
    switch self {
    case .asStored: term
    case .function(let function): "\(function.rawValue)(\(term))"
    case .collation(let collation): "(\(term) COLLATE \(collation.rawValue))"
    }
  }
}
