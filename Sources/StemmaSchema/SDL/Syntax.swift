/// The syntax tree of a schema's text, with places, before any check.
struct Document {
  var types: [TypeSyntax] = []
  var enums: [EnumSyntax] = []
}

struct NameSyntax: Equatable {
  var text: String
  var place: Place
}

struct TypeSyntax {
  var name: NameSyntax
  var directives: [DirectiveSyntax]
  var fields: [FieldSyntax]
}

struct EnumSyntax {
  var name: NameSyntax
  var cases: [NameSyntax]
}

struct FieldSyntax {
  var name: NameSyntax
  var type: TypeReferenceSyntax
  var directives: [DirectiveSyntax]
}

/// `Name`, `Name!`, `[Name]`, `[Name!]`, each with or without a marker of its own.
struct TypeReferenceSyntax {
  var name: NameSyntax
  var isRequired: Bool
  var isList: Bool
  var elementsRequired: Bool
}

struct DirectiveSyntax {
  /// Without the `@`.
  var name: NameSyntax
  var arguments: [ArgumentSyntax]

  func argument(_ name: String) -> ArgumentSyntax? { arguments.first { $0.name.text == name } }
}

struct ArgumentSyntax {
  var name: NameSyntax
  var value: LiteralSyntax
}

struct LiteralSyntax {
  indirect enum Kind {
    case null
    case bool(Bool)
    case int(String)
    case float(String)
    case string(String)
    case name(String)
    case list([LiteralSyntax])
    case object([ArgumentSyntax])
  }

  var kind: Kind
  var place: Place
}
