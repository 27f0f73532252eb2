/// Numbers each distinct (partition, model, key) of a block, and writes them in order.
struct BlockKeysWriter {
  struct RunName: Hashable {
    var partition: Int
    var model: Int
  }

  private struct Entry {
    var offset: Int
    var count: Int
    var run: Int
    var hash: Int
  }

  /// All keys in first-use order.
  private var bytes: [UInt8] = []
  private var entries: [Entry] = []
  private var runs = Numbering<RunName>()
  /// Open addressing: index of an entry, or -1. A power of two, at most half full.
  private var slots = [Int32](repeating: -1, count: Self.fewSlots)

  private static let fewSlots = 64

  var count: Int { entries.count }
  /// The bytes of all keys. Their front-coded size is unknown before they are sorted.
  var byteCount: Int { bytes.count }

  mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
    runs.removeAll()
    // After one huge commit, small ones must not clear a huge table.
    if slots.count > 1 << 14 {
      slots = [Int32](repeating: -1, count: Self.fewSlots)
    } else {
      for index in slots.indices { slots[index] = -1 }
    }
  }

  mutating func index(of key: Key, partition: Int, model: Int) -> Int {
    let run = indexOfRun(RunName(partition: partition, model: model))
    var hasher = Hasher()
    hasher.combine(run)
    key.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    let hash = hasher.finalize()
    var slot = hash & (slots.count - 1)
    while slots[slot] >= 0 {
      let index = Int(slots[slot])
      if entries[index].hash == hash, entries[index].run == run, isEqual(entries[index], key.bytes) {
        return index
      }
      slot = (slot + 1) & (slots.count - 1)
    }
    slots[slot] = Int32(entries.count)
    entries.append(Entry(offset: bytes.count, count: key.bytes.count, run: run, hash: hash))
    bytes.append(contentsOf: key.bytes)
    if entries.count * 2 > slots.count { growSlots() }
    return entries.count - 1
  }

  private mutating func indexOfRun(_ name: RunName) -> Int {
    if let index = runs.index(of: name) { return index }
    runs.append(name)
    return runs.count - 1
  }

  /// Traps if a key is not found by its bytes, or runs are not numbered in order.
  func checkInvariants() {
    precondition(slots.count & (slots.count - 1) == 0, "the place in the table is a part of the hash")
    precondition(entries.count * 2 <= slots.count, "a search ends at an empty slot")
    precondition(slots.count { $0 >= 0 } == entries.count, "each key has one slot")
    runs.checkInvariants()
    var offset = 0
    for (index, entry) in entries.enumerated() {
      precondition(entry.offset == offset, "the keys lie one behind the other")
      precondition((0..<runs.count).contains(entry.run), "each key is of a run")
      offset += entry.count
      var slot = entry.hash & (slots.count - 1)
      while slots[slot] >= 0, slots[slot] != Int32(index) { slot = (slot + 1) & (slots.count - 1) }
      precondition(slots[slot] == Int32(index), "a key is found by its hash")
    }
    precondition(offset == bytes.count, "all bytes are those of keys")
  }

  private func isEqual(_ entry: Entry, _ key: [UInt8]) -> Bool {
    guard entry.count == key.count else { return false }
    for index in 0..<key.count where bytes[entry.offset + index] != key[index] { return false }
    return true
  }

  private mutating func growSlots() {
    slots = [Int32](repeating: -1, count: slots.count * 4)
    for (index, entry) in entries.enumerated() {
      var slot = entry.hash & (slots.count - 1)
      while slots[slot] >= 0 { slot = (slot + 1) & (slots.count - 1) }
      slots[slot] = Int32(index)
    }
  }

  /// Appends runs and keys by (partition, model, key). Returns the place of each key in that order.
  func write(to output: inout [UInt8], ranks: [Int], names: [String], partitions: [Partition]) -> [Int] {
    var runOrder = Array(0..<runs.count)
    if runs.count > 1 {
      runOrder.sort { a, b in
        if runs[a].partition != runs[b].partition {
          return ranks[runs[a].partition] < ranks[runs[b].partition]
        }
        return names[runs[a].model].hasBytes(before: names[runs[b].model])
      }
    }
    // The block of one commit mostly has one run.
    var members = runs.count == 1 ? [Array(entries.indices)] : [[Int]](repeating: [], count: runs.count)
    if runs.count > 1 { for (index, entry) in entries.enumerated() { members[entry.run].append(index) } }

    var places = [Int](repeating: 0, count: entries.count)
    var columns = KeyColumns(byteCount: bytes.count, keyCount: entries.count)
    var place = 0
    var previousPartition = 0
    output.appendVarint(runs.count)
    for run in runOrder {
      sort(&members[run])
      for index in members[run] {
        places[index] = place
        place += 1
      }
      let form = form(of: members[run], partition: partitions[runs[run].partition])
      let rank = ranks[runs[run].partition]
      output.appendVarint(rank - previousPartition)
      previousPartition = rank
      output.appendVarint(runs[run].model)
      output.appendVarint(members[run].count)
      output.append(form.leading.rawValue | form.rest.rawValue << 2)
      columns.startRun()
      for index in members[run] { columns.append(payload(of: index, form)) }
    }
    output.append(contentsOf: columns.shared)
    output.append(contentsOf: columns.counts)
    output.append(contentsOf: columns.bytes)
    return places
  }

  /// Sorts by bytes. The eight bytes behind the common prefix mostly decide.
  private func sort(_ indexes: inout [Int]) {
    guard indexes.count > 1 else { return }
    bytes.withUnsafeBytes { all in
      let first = entries[indexes[0]]
      var common = first.count
      for index in indexes {
        let entry = entries[index]
        common = min(common, entry.count)
        var shared = 0
        while shared < common, all[first.offset + shared] == all[entry.offset + shared] { shared += 1 }
        common = shared
      }
      var heads = indexes.map { index in
        let entry = entries[index]
        var head: UInt64 = 0
        for offset in common..<common + 8 {
          head = head << 8 | (offset < entry.count ? UInt64(all[entry.offset + offset]) : 0)
        }
        return (head: head, index: index)
      }
      heads.sort { a, b in
        if a.head != b.head { return a.head < b.head }
        let (x, y) = (entries[a.index], entries[b.index])
        return all[x.offset..<x.offset + x.count].lexicographicallyPrecedes(
          all[y.offset..<y.offset + y.count])
      }
      for (place, head) in heads.enumerated() { indexes[place] = head.index }
    }
  }

  private struct Form {
    var leading: BlockRun.Leading
    /// How many leading bytes of each key are omitted.
    var left: Int
    var rest: BlockRun.Rest
  }

  private func form(of indexes: [Int], partition: Partition) -> Form {
    var form = Form(leading: .kept, left: 0, rest: .plain)
    let kind: BlockRun.Leading
    switch bytes[entries[indexes[0]].offset] {
    case 0x02: kind = .string
    case 0x0C...0x1C: kind = .int
    case 0x26, 0x27: kind = .bool
    default: kind = .kept
    }
    if let part = BlockRun.leadingPart(of: partition, as: kind),
      indexes.allSatisfy({ bytes[range(of: $0)].starts(with: part) })
    {
      form.leading = kind
      form.left = part.count
    }
    let isHex = indexes.allSatisfy { index in
      text(of: index, behind: form.left)?.withUnsafeBytes { $0.isEvenLowercaseHex } ?? false
    }
    let isUUID = indexes.allSatisfy { index in
      text(of: index, behind: form.left)?.withUnsafeBytes { $0.isLowercaseUUID } ?? false
    }
    form.rest = isHex ? .hex : isUUID ? .uuid : .plain
    return form
  }

  private func range(of index: Int) -> Range<Int> {
    entries[index].offset..<entries[index].offset + entries[index].count
  }

  /// The text of a key that is one string part behind its first `left` bytes; otherwise nil.
  private func text(of index: Int, behind left: Int) -> ArraySlice<UInt8>? {
    let rest = bytes[range(of: index)].dropFirst(left)
    guard rest.count >= 2, rest.first == 0x02, rest.last == 0 else { return nil }
    return rest.dropFirst().dropLast()
  }

  private func payload(of index: Int, _ form: Form) -> ArraySlice<UInt8> {
    let rest = bytes[range(of: index)].dropFirst(form.left)
    guard form.rest != .plain else { return rest }
    var packed: [UInt8] = []
    packed.reserveCapacity(rest.count / 2)
    rest.dropFirst().dropLast().withUnsafeBytes { text in
      if form.rest == .hex { packed.appendPacked(hex: text) } else { packed.appendPacked(uuid: text) }
    }
    return packed[...]
  }
}

/// The three columns of front-coded keys.
private struct KeyColumns {
  var shared: [UInt8] = []
  var counts: [UInt8] = []
  var bytes: [UInt8] = []
  private var previous: ArraySlice<UInt8> = []

  init(byteCount: Int, keyCount: Int) {
    shared.reserveCapacity(keyCount)
    counts.reserveCapacity(keyCount)
    bytes.reserveCapacity(byteCount)
  }

  mutating func startRun() { previous = [] }

  mutating func append(_ payload: ArraySlice<UInt8>) {
    var prefix = 0
    let most = min(previous.count, payload.count)
    while prefix < most, previous[previous.startIndex + prefix] == payload[payload.startIndex + prefix] {
      prefix += 1
    }
    shared.appendVarint(prefix)
    counts.appendVarint(payload.count - prefix)
    bytes.append(contentsOf: payload.dropFirst(prefix))
    previous = payload
  }
}
