// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Stemma

// Public models, for those who use them from another module.

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
