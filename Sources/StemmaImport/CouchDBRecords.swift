import StemmaEvents
import StemmaNode
import StemmaSchema

/// A CouchDB `_changes` feed with `include_docs=true`: one change a line (`feed=continuous`), or an
/// array `results` of all changes. A document is a whole record; an absent field is null.
///
/// See https://docs.couchdb.org/en/stable/api/database/changes.html
struct CouchDBRecords: RecordForm {
  let arrayOpening = ["{", "\"results\"", ":", "["]
  private let model: Model
  private let keyField: String
  private let columns: ColumnNames
  private var rows: RowObjects
  private var progress: FeedProgress?
  private var covered = 0
  private var designs = 0
  /// Ignored members that CouchDB adds to a document.
  private var leftOut: [String] = []

  /// Members that repeat the change or describe earlier revisions.
  private static let bookkeeping = ["_id", "_rev", "_deleted", "_revisions", "_revs_info", "_local_seq"]

  init(
    _ model: Model, _ schema: Schema, _ columns: ColumnNames, _ progress: FeedProgress?
  ) throws(NodeError) {
    guard model.keyFields.count == 1, let part = model.keyFields.first else {
      throw .mutation(
        .wrongShape("`_id` is one text, and the key of \(model.name) has \(model.keyFields.count) parts"))
    }
    self.model = model
    keyField = model.fields[part].name
    if let mapped = columns.fields["_id"], mapped != keyField {
      throw .mutation(.wrongShape("`_id` is the key of \(model.name), which is `\(keyField)`"))
    }
    self.columns = columns
    rows = RowObjects(model, schema, columns, isWhole: true)
    self.progress = progress
  }

  var notices: [String] {
    var notices: [String] = []
    if designs > 0 { notices.append("left out \(counted(designs, "design document"))") }
    if covered > 0 { notices.append(FeedProgress.notice(covered)) }
    let members = leftOut + rows.ignored
    if !members.isEmpty { notices.append(ColumnNames.notice(members)) }
    return notices
  }

  mutating func change(_ text: UnsafeRawBufferPointer) throws(MutationError) -> SourceChange? {
    let change = JSON.object(try JSON.members(of: text))
    guard let sequence = change["seq"], case .string(let id)? = change["id"] else {
      if change["last_seq"] != nil { return nil }
      throw .wrongShape("not a change of CouchDB: `seq` or `id` is missing")
    }
    let position = FeedPosition.sequence(Self.known(sequence))
    if progress?.covers(position) == true {
      covered += 1
      return nil
    }
    progress?.note(position)
    if id.hasPrefix("_design/") {
      designs += 1
      return nil
    }
    if change["deleted"] == .bool(true) {
      var mutation = Mutation(.delete, model: model.name, key: .string(id))
      mutation.toleratesAbsence = true
      return SourceChange(mutation: mutation, position: position)
    }
    guard case .object(let document)? = change["doc"] else {
      throw .wrongShape("`doc` is missing. Fetch the feed with include_docs=true.")
    }
    return SourceChange(mutation: try rows.mutation(members(of: document, id)), position: position)
  }

  /// A number, or any other sequence as its text.
  private static func known(_ sequence: JSON) -> JSON {
    switch sequence {
    case .int, .string: sequence
    default: .string(sequence.text)
    }
  }

  private mutating func members(
    of document: [(name: String, value: JSON)], _ id: String
  ) -> [(name: String, value: JSON)] {
    var members: [(name: String, value: JSON)] = [(keyField, .string(id))]
    for (name, value) in document {
      if name == keyField, value == .string(id) { continue }
      if name.hasPrefix("_"), columns.fields[name] == nil || name == "_id" {
        if !Self.bookkeeping.contains(name), !leftOut.contains(name) { leftOut.append(name) }
        continue
      }
      members.append((name, value))
    }
    return members
  }
}
