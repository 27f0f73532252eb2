import Foundation
import GRDB

/// The same record for GRDB.
struct GRDBItem: Codable, FetchableRecord, PersistableRecord {
  static let databaseTableName = "items"

  var id: UUID
  var title: String
  var note: String?
  var priority: Int
  var isDone: Bool
  var effort: Double?

  static func databaseUUIDEncodingStrategy(for column: String) -> DatabaseUUIDEncodingStrategy {
    .lowercaseString
  }
}

extension GRDBItem {
  init(_ draft: Item.Draft) {
    self.init(
      id: draft.id ?? UUID(), title: draft.title, note: draft.note, priority: draft.priority,
      isDone: draft.isDone, effort: draft.effort)
  }
}
