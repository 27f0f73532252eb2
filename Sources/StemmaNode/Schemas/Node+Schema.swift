import StemmaEvents
import StemmaLog
import StemmaSchema
import StemmaTables

extension Node {
  /// Reports the changes that a schema would make.
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
    // The log is read only if nothing else refuses the schema.
    if refusals.isEmpty {
      let additions = schema.additions(to: new.schema, modelsWithEvents: { used.contains($0) })
      refusals = try loggedRefusals(of: additions, in: new.schema)
    }
    return SchemaChangeReport(
      changes: comparison.changes.map(\.description), refusals: refusals.map(\.description),
      warnings: new.warnings)
  }

  /// Stored names of the schema's models that have or had a record.
  private func modelsWithEvents() throws(NodeError) -> Set<String> {
    try reading { reader in
      var used: Set<String> = []
      for model in schema.models where try reader.hasEvents(of: model) { used.insert(model.storedName) }
      return used
    }
  }

  /// Added models or fields may have events in the log: from an earlier schema, or from a peer.
  /// Reads nothing without additions; for fields alone, only the partitions of their models.
  private func loggedRefusals(
    of additions: [ModelAddition], in schema: Schema
  ) throws(NodeError) -> [SchemaRefusal] {
    guard !additions.isEmpty else { return [] }
    var comparison = LogComparison(additions, schema)
    let filter = additions.contains(where: \.isNewModel) ? nil : Self.partitions(of: additions.map(\.model))
    try Self.wrapping {
      // Lost events cannot be checked; a corrupt log refuses the change anyway.
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
    let filters = models.map(PartitionFilter.init(of:))
    return PartitionFilter { partition in filters.contains { $0(partition) } }
  }

  /// Changes the schema and rebuilds the tables.
  ///
  /// - Throws: `refusedSchema` before anything is written.
  package func apply(schema text: String) throws(NodeError) -> SchemaChangeReport {
    try apply { _ in text }
  }

  /// As above, for a schema derived from the present one under the writer lock.
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
      // After a crash from here on, the next opening rebuilds tables of the old schema.
      schema = new.schema
      try reopenTables()
      return report
    }
  }
}

extension PartitionFilter {
  /// The partitions that may hold events of a model, and perhaps of others.
  package init(of model: Model) {
    if model.partitionDepth == 0 {
      self.init(named: [Partition(model.storedName)])
    } else {
      let prefix = Array("\(model.fields[model.keyFields[0]].storedName)=".utf8)
      self.init { $0.bytes.starts(with: prefix) }
    }
  }
}

/// The changes of a new schema in words.
package struct SchemaChangeReport: Sendable {
  package var changes: [String]
  package var refusals: [String]
  package var warnings: [Diagnostic]
}
