// A block is the unit of compression, checksum and transfer of the log: some events, from one to a few
// thousand, laid out so that they compress well and can be read in parts.
//
// Two orders meet in it. The keys of the records stand sorted in a table, so that whoever looks for a key or
// rebuilds tables has them in order. The events stand in arrival order, each naming its key by number, so
// that sequence, time, commit and arrival become small gaps. Everything is in columns, and the columns are in
// three streams, each deflated by itself: K (names and keys), M (what each event has besides values) and
// V (values). Reading keys or an index leaves V alone.
//
// Integers are LEB128 varints in their shortest form, zz is zigzag, fixed-width numbers are big-endian.
//
//     block       codec u8 = 1 · layout u8 = 1 · n (events) · sizes of K, M, V · K · M · V
//     size        raw bytes << 1 | deflated; if deflated: stored bytes
//
// Codec 1 is raw deflate (RFC 1951). A stream is deflated where that makes it shorter, never under
// 256 bytes. The layout has no checksum of its own: journal frames and segment directories carry one.
//
//     K           origins:    count, 8 bytes each
//                 names:      count, each length · bytes (models, fields, relationships)
//                 partitions: count, sorted by bytes, each shared prefix with the one before · length of
//                             the rest · rest
//                 shapes:     count, each operation u8 (+ 80 if a relationship follows: name) ·
//                             count of fields, each name << 3 | type
//                 runs:       count, by (partition, model), each partition - that of the run before · model ·
//                             count of keys · form u8 = leading | rest << 2
//                 keys:       shared prefixes with the key before in the run (0 for its first), all; lengths
//                             of the rests, all; rests
//     type        0 null, 1 Boolean, 2 integer, 3 double, 4 string, 5 JSON
//     leading     the leading part of each key is 0 there, or left out because the partition is `field=value`:
//                 1 string, 2 integer, 3 Boolean of that value
//     rest        the remaining bytes are 0 as encoded; or one string part: 1 lowercase hexadecimal digits, two
//                 in a byte, 2 a UUID in lower case, 16 bytes
//
//     M           n entries each, in arrival order:
//                 key zz(this - last - 1), last = -1 at first · shape · origin ·
//                 sequence - last of (partition, origin) - 1 · milliseconds zz(delta) · counter ·
//                 commit number zz(delta of origin) · arrival - last - 1
//                 then what few events have, each with the count of events since the one before:
//                 contexts:   count; gaps; versions; counts of entries; origins; sequences
//                 commits:    count; gap · origin · number (of another origin than the event's)
//                 causes:     count; gap · 0 if of the same partition, else partition + 1 · origin · sequence
//                 notes:      count; origin · number of the commit · flags u8 · by (1) · note (2) · source (4),
//                             each length · bytes; sorted by commit
//
// A context that is not listed is implicit: the context of the key's event before in the block, with that
// event's dot; the version is one higher. Without one before: empty, version 1.
//
//     V           for each (field, type but null) in first-use order of the shapes: encoding u8 and
//                 the values of the events that have it, in arrival order
//     Boolean     0: a byte each
//     integer     0: zz each; 1: zz of the difference from the one before (0 at first)
//     double      0: 8 bytes each (IEEE 754); 1: places u8 = k, then zz(m) each, meaning m / 10^k
//     string      0: all lengths, then all bytes; 2: lowercase hexadecimal digits, all lengths in bytes, then
//                 two digits in a byte; 3: UUIDs in lower case, 16 bytes each; times, as an integer column with
//                 its own encoding byte: 4 seconds `2025-11-08T00:00:00Z`, 5 milliseconds
//                 `2025-11-08T00:00:00.000Z`, 6 days `2025-11-08`, 7 seconds of `2025-11-08T00:00:00+01:00`,
//                 then zz(minutes of the offset) each
//     JSON        0: as strings
//
// A reader refuses what breaks any rule: numbers that are not in their shortest form, streams that are not used
// up, indexes out of range, tables out of order or with an entry twice or unused, text that is not UTF-8, names
// that are not GraphQL names, keys that are no encoding of a key, sequences that do not rise, contexts that
// cover their own event, NaN and -0. Memory for a count is taken only after the count was compared with the bytes
// that are there, or with `Limits`.

enum BlockFormat {
  static let codec: UInt8 = 1
  static let layout: UInt8 = 1
  /// Shorter streams are stored plain: deflate gains little there, and costs ten times the rest.
  static let leastDeflated = 256
}

/// An event out of a block, with its place in the arrival order of the file.
package struct BlockEvent: Hashable, Sendable {
  package var arrival: UInt64
  package var event: Event

  package init(arrival: UInt64, event: Event) {
    self.arrival = arrival
    self.event = event
  }
}
