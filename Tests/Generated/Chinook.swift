// swift-format-ignore-file
import Stemma

@Table
struct Genre {
  @Column(primaryKey: true) let genreId: Int
  var name: String?
  @HasMany("genreId") var tracks: Related<Track>
}

@Table
struct MediaType {
  @Column(primaryKey: true) let mediaTypeId: Int
  var name: String?
  @HasMany("mediaTypeId") var tracks: Related<Track>
}

@Table
struct Artist {
  @Column(primaryKey: true) let artistId: Int
  var name: String?
  @HasMany("artistId") var albums: Related<Album>
}

@Table
@Index("artistId", name: "byArtist")
struct Album {
  @Column(primaryKey: true) let albumId: Int
  var title: String
  var artistId: Int
  @BelongsTo("artistId") var artist: Artist
  @HasMany("albumId") var tracks: Related<Track>
}

@Table
@Index("albumId", name: "byAlbum")
@Index("mediaTypeId", name: "byMediaType")
@Index("genreId", name: "byGenre")
struct Track {
  @Column(primaryKey: true) let trackId: Int
  var name: String
  var albumId: Int?
  var mediaTypeId: Int
  var genreId: Int?
  var composer: String?
  var milliseconds: Int
  var bytes: Int?
  var unitPrice: Double
  @BelongsTo("albumId") var album: Album?
  @BelongsTo("mediaTypeId") var mediaType: MediaType
  @BelongsTo("genreId") var genre: Genre?
  @HasMany("trackId") var playlists: Related<PlaylistTrack>
  @HasMany("trackId") var invoiceLines: Related<InvoiceLine>
}

@Table
struct Playlist {
  @Column(primaryKey: true) let playlistId: Int
  var name: String?
  @HasMany("playlistId") var tracks: Related<PlaylistTrack>
}

@Table
@Index("playlistId", name: "byPlaylist")
@Index("trackId", name: "byTrack")
struct PlaylistTrack {
  @Selection struct ID: Hashable {
    let playlistId: Int
    let trackId: Int
  }
  let id: ID
  @BelongsTo("playlistId") var playlist: Playlist
  @BelongsTo("trackId") var track: Track
}

@Table
@Index("reportsTo", name: "byManager")
struct Employee {
  @Column(primaryKey: true) let employeeId: Int
  var lastName: String
  var firstName: String
  var title: String?
  var reportsTo: Int?
  var birthDate: Date?
  var hireDate: Date?
  var address: String?
  var city: String?
  var state: String?
  var country: String?
  var postalCode: String?
  var phone: String?
  var fax: String?
  var email: String?
  @BelongsTo("reportsTo") var manager: Employee?
  @HasMany("reportsTo") var reports: Related<Employee>
  @HasMany("supportRepId") var customers: Related<Customer>
}

@Table
@Index("supportRepId", name: "bySupportRep")
struct Customer {
  @Column(primaryKey: true) let customerId: Int
  var firstName: String
  var lastName: String
  var company: String?
  var address: String?
  var city: String?
  var state: String?
  var country: String?
  var postalCode: String?
  var phone: String?
  var fax: String?
  var email: String
  var supportRepId: Int?
  @BelongsTo("supportRepId") var supportRep: Employee?
  @HasMany("customerId") var invoices: Related<Invoice>
}

@Table
@Index("customerId", "invoiceDate", name: "byCustomer")
struct Invoice {
  @Column(primaryKey: true) let invoiceId: Int
  var customerId: Int
  var invoiceDate: Date
  var billingAddress: String?
  var billingCity: String?
  var billingState: String?
  var billingCountry: String?
  var billingPostalCode: String?
  var total: Double
  @BelongsTo("customerId") var customer: Customer
  @HasMany("invoiceId") var lines: Related<InvoiceLine>
}

@Table
@Index("invoiceId", name: "byInvoice")
@Index("trackId", name: "byTrack")
struct InvoiceLine {
  @Column(primaryKey: true) let invoiceLineId: Int
  var invoiceId: Int
  var trackId: Int
  var unitPrice: Double
  var quantity: Int
  @BelongsTo("invoiceId") var invoice: Invoice
  @BelongsTo("trackId") var track: Track
}
