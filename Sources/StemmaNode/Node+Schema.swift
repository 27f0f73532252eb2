import StemmaEvents
import StemmaLog
import StemmaSchema
import StemmaTables

extension Node {
  /// Says what a schema would change.
  package func compare(schema text: String) throws(NodeError) -> SchemaChangeReport {
    try report(try Self.readForStoring(text))
  }

  private typealias NewSchema = (schema: Schema, canonical: String, warnings: [Diagnostic])

  private static func readForStoring(_ text: String) throws(NodeError) -> NewSchema {
    do { return try SDL.readForStoring(text) } catch { throw .schema(error) }
  }

  private func report(_ new: NewSchema) throws(NodeError) -> SchemaChangeReport {
    let used = try modelsWithEvents()
    let comparison = schema.changes(to: new.schema, modelsWithEvents: { used.contains($0) })
    var refusals = comparison.refusals
    // The log is read only for what nothing else is against.
    if refusals.isEmpty {
      let additions = schema.additions(to: new.schema, modelsWithEvents: { used.contains($0) })
      refusals = try loggedRefusals(of: additions, in: new.schema)
    }
    return SchemaChangeReport(
      changes: comparison.changes.map(\.description), refusals: refusals.map(\.description),
      warnings: new.warnings)
  }

  /// Stored names of the schema's models of which there is a record, or was one.
  private func modelsWithEvents() throws(NodeError) -> Set<String> {
    try reading { reader in
      var used: Set<String> = []
      for model in schema.models where try reader.hasEvents(of: model) { used.insert(model.storedName) }
      return used
    }
  }

  /// What a schema adds may have been in the log before: hidden by an earlier schema, or sent by a peer. Reads nothing if
  /// nothing is added; only the partitions of their models if all that is added are fields.
  private func loggedRefusals(
    of additions: [ModelAddition], in schema: Schema
  ) throws(NodeError) -> [SchemaRefusal] {
    guard !additions.isEmpty else { return [] }
    var comparison = LogComparison(additions, schema)
    let filter = additions.contains(where: \.isNewModel) ? nil : Self.partitions(of: additions.map(\.model))
    try Self.wrapping {
      // What is lost cannot be shown; the change itself is refused while the log is damaged.
      var scan = log.scan(partitions: filter, around: Omissions())
      try scan.forEach { scanned in
        let reader = scanned.block.reader
        if comparison.isAbout(reader.model(ofKey: scanned.block.key(scanned.index))) {
          comparison.compare(scanned.stored.event)
        }
        return true
      }
    }
    return comparison.refusals
  }

  private static func partitions(of models: [Model]) -> PartitionFilter {
    let filters = models.map(LogFilter.partitions)
    return { partition in filters.contains { $0(partition) } }
  }

  /// Changes the schema and rebuilds the tables.
  ///
  /// - Throws: `refusedSchema` before anything is written.
  package func apply(schema text: String) throws(NodeError) -> SchemaChangeReport {
    try apply { _ in text }
  }

  /// As above, for a schema that is made from the one that is there while nobody else can change it.
  @discardableResult
  package func apply(
    _ extended: (Schema) throws(NodeError) -> String
  ) throws(NodeError) -> SchemaChangeReport {
    try locked { () throws(NodeError) in
      let new = try Self.readForStoring(try extended(schema))
      let report = try report(new)
      guard report.refusals.isEmpty else { throw .refusedSchema(report.refusals) }
      guard new.schema != schema else { return report }
      try checkLogIsWhole()
      do throws(LogError) {
        try ports.replace(
          Self.path(directory, Self.schemaFileName), with: Array(new.canonical.utf8), in: directory)
      } catch { throw .log(error) }
      // A crash from here on leaves tables of another schema, which the next one who opens rebuilds.
      schema = new.schema
      try reopenTables()
      return report
    }
  }
}

/// What a new schema changes, in words.
package struct SchemaChangeReport: Sendable {
  package var changes: [String]
  package var refusals: [String]
  package var warnings: [Diagnostic]
}
