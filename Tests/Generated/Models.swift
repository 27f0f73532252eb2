import Stemma

/// The models of each schema.
package enum Models {
  package static let git: [any Stemma.Table.Type] = [
    Author.self, Commit.self, File.self, FileAuthor.self,
  ]
  package static let nodes: [any Stemma.Table.Type] = [
    Doc.self
  ]
  package static let chinook: [any Stemma.Table.Type] = [
    Genre.self, MediaType.self, Artist.self, Album.self, Track.self, Playlist.self, PlaylistTrack.self,
    Employee.self, Customer.self, Invoice.self, InvoiceLine.self,
  ]
  package static let odd: [any Stemma.Table.Type] = [
    UUIDModel.self, DoubleModel.self, Texts.self, RelatedModel.self, SendableModel.self, AnyModel.self,
    DraftModel.self, ColumnsModel.self, Depot.self, Parts.self, RelationshipsModel.self,
    PrimaryKeyModel.self, StemmaModel.self, Stamps.self, CodableModel.self, HashableModel.self,
    KeyValueModel.self, TableModel.self,
    ColumnModel.self, ID2.self, Foundation.self, Optional.self, Array.self, Result.self, Error.self,
    Store.self, Transaction.self, Void.self, Never.self, Character.self, Data.self, Decimal.self,
    TypeModel.self, ProtocolModel.self, KeyModel.self, Class.self, Student.self, Mail.self, Words.self,
    SwiftModel.self,
  ]
}

extension Models {
  /// Drafts of keys with an `id` that they leave out.
  package static let minted: [any Stemma.TableDraft] = [AnyModel.Draft(), DraftModel.Draft(name: "d")]
}
