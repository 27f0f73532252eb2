// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Stemma

// Public models with members that are not public.

enum Level: String, KeyValue {
  case low
}

@Table public struct HiddenKey {
  let id: Level  // refused: the key of a public model is public, and so is its type
  @HasOne("keyLevel") public var led: Led?
}

@Table public struct Led {
  public let id: UUID
  var keyLevel: Level?
  @BelongsTo("keyLevel") public var key: HiddenKey?
}

@Table public struct HiddenParts {
  @Selection struct ID: Hashable {  // refused: `id` is public, so its type is
    let city: String
    let number: Int
  }
  public let id: ID  // refused: cannot be declared public because
}

@Table public struct Nested {
  enum Kind: String, ColumnValue {  // refused: `kind` is public, so its type is
    case plain
  }
  public let id: UUID
  public var kind: Kind?  // refused: cannot be declared public because
}

@Table public struct Internal {
  public let id: UUID
  var level: Level
  fileprivate var last: Level?
  var internalId: UUID?
  @BelongsTo("internalId") var hidden: Hidden?
}

@Table struct Hidden {
  let id: UUID
  @HasOne("internalId") var owner: Internal?
}

// The compiler reports it at the property, and at the generated code.

@Table public struct Beside {  // refused: cannot be declared public because
  public let id: UUID
  public var level: Level  // refused: cannot be declared public because
}
