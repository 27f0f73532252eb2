// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Stemma

// Public models, for use in another module.

@Table public struct Crew {
  public let id: UUID
  public var name: String
  @HasMany("crewId") public var sailors: Related<Sailor>
}

@Table public struct Sailor: Hashable {
  @Selection public struct Rank: Hashable, Sendable {
    public var title: String
    public var grade = 1
  }
  public let id: UUID
  public var name: String
  public var rank: Rank
  public var crewId: UUID?
  @BelongsTo("crewId") public var crew: Crew?
}

@Table public struct Berth {
  @Selection public struct ID: Hashable {
    public let deck: Int
    public let number: Int
  }
  public let id: ID
  public var note: String?
}

// Public models with columns that only their own module knows.

enum Grade: String, ColumnValue, Codable {
  case low, high
}

@Table public struct Consignment {
  @Selection public struct Size {
    public var width: Int
    var unit: Grade = .low
  }
  @Selection struct Mark {
    var quality: Grade
    var text: String?
  }
  public let id: UUID
  public var label: String
  public var size: Size
  var grade: Grade = .low
  private var last: Grade?
  @Column(as: [Grade].JSONRepresentation.self) var grades: [Grade] = []
  var mark: Mark
  var notes: [String]
  var depotId: UUID?
  @BelongsTo("depotId") var shed: Shed?
}

@Table struct Shed {
  let id: UUID
  @HasMany("depotId") var consignments: Related<Consignment>
}

extension Consignment {
  /// A draft with all values that are not public.
  public static func draft(_ label: String) -> Draft {
    Draft(
      label: label, size: Size(width: 1), grade: .high, mark: Mark(quality: .low, text: nil), notes: [],
      shed: nil)
  }
}

// Default values that use internal names of their module.

let usualWeight = 3

@Table public struct Parcel {
  @Selection public struct Size {
    public var width: Int = usualWeight
  }
  static let limit = 4
  public let id: UUID
  public var weight: Int = usualWeight
  public var count: Int? = Self.limit
  public var size = Size(width: usualWeight)
  public var labels: [String] = []
  var grade: Grade = .low
  var rank: Int = usualWeight + 1
}

extension Parcel {
  /// A draft without values.
  public static func draft() -> Draft { Draft() }
}
