import StemmaEvents
import StemmaSchema

extension TablesTransaction {
  /// Removes all data of these partitions: rows, tombstones, conflicts, streams and
  /// acknowledgements. Commit numbers and the clock stay, because they must never decrease.
  ///
  /// - Returns: the removed partitions, in name order.
  @discardableResult
  package func purge(_ isPurged: (Partition) -> Bool) throws(TablesError) -> [Partition] {
    try flush()
    var purged: [Partition] = []
    var rows: Int64 = 0
    let streams = try connection.prepare("SELECT DISTINCT partition FROM _stemma_streams ORDER BY partition")
    while try streams.step() {
      let partition = Partition(streams.text(0))
      if isPurged(partition) { purged.append(partition) }
    }
    guard !purged.isEmpty else { return [] }
    try connection.execute("CREATE TEMP TABLE _stemma_purged (partition TEXT PRIMARY KEY) WITHOUT ROWID")
    let insert = try connection.prepare("INSERT INTO temp._stemma_purged VALUES (?)")
    for partition in purged {
      insert.bind(1, text: partition.bytes)
      try insert.run()
      for layout in tableSet.layouts { rows += try deleteRows(of: partition, layout) }
    }
    for table in ["_stemma_tombstones", "_stemma_conflicts", "_stemma_meta", "_stemma_acknowledged"] {
      try connection.execute(
        "DELETE FROM \(table) WHERE partition IN (SELECT partition FROM temp._stemma_purged)")
    }
    try connection.execute("DROP TABLE temp._stemma_purged")
    let written = try Meta.headChecksum(of: connection) ?? .zero
    var left = try HeadChecksum.ofRows(connection)
    left.rows = written.rows - rows
    try Meta.move(nil, to: nil, headsBy: left - written, connection)
    forget()
    return purged
  }

  /// Returns the number of deleted rows.
  private func deleteRows(of partition: Partition, _ layout: TableLayout) throws(TablesError) -> Int64 {
    let depth = layout.model.partitionDepth
    if depth == 0 {
      guard partition.bytes.elementsEqual(layout.model.storedName.utf8) else { return 0 }
      try connection.execute("DELETE FROM \(layout.table)")
      return connection.changedRows
    }
    guard let values = layout.keyValues(of: partition) else { return 0 }
    let statement = try connection.prepare("DELETE FROM \(layout.table) WHERE \(layout.keyMatches(depth))")
    for (index, value) in values.enumerated() { statement.bind(Int32(index + 1), value) }
    try statement.run()
    return connection.changedRows
  }
}

extension TableLayout {
  /// The leading key parts in a partition's name; nil if no record of this model can be in the
  /// partition.
  func keyValues(of partition: Partition) -> [Value]? {
    let terms = partition.bytes.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
    let parts = key.prefix(model.partitionDepth)
    guard terms.count == parts.count else { return nil }
    var values: [Value] = []
    for (term, column) in zip(terms, parts) {
      let halves = term.split(
        separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard halves.count == 2, halves[0].elementsEqual(column.field.storedName.utf8),
        let text = Partition.unescaped(halves[1]), let value = column.kind.value(text)
      else { return nil }
      values.append(value)
    }
    return values
  }
}

extension TableLayout.Kind {
  /// The value whose `KeyPart.text` this is; nil if there is none.
  fileprivate func value(_ text: String) -> Value? {
    let value: Value? =
      switch self {
      case .text: .string(text)
      case .integer: Int64(text).map(Value.int)
      case .real: Double(text).map(Value.double)
      case .boolean: text == "true" ? .bool(true) : text == "false" ? .bool(false) : nil
      case .json: nil
      }
    // Another spelling of the same number is another partition.
    return value.flatMap(KeyPart.init)?.text.hasSameBytes(as: text) == true ? value : nil
  }
}

extension Partition {
  /// Undoes the percent-escapes of a value; nil if one is malformed.
  fileprivate static func unescaped(_ escaped: ArraySlice<UInt8>) -> String? {
    var bytes: [UInt8] = []
    var index = escaped.startIndex
    while index < escaped.endIndex {
      if escaped[index] == UInt8(ascii: "%") {
        guard escaped.endIndex - index > 2,
          let byte = UInt8(String(decoding: escaped[index + 1...index + 2], as: UTF8.self), radix: 16)
        else { return nil }
        bytes.append(byte)
        index += 3
      } else {
        bytes.append(escaped[index])
        index += 1
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
