// A block is the unit of compression, checksum and transfer of the log. It has one to a few
// thousand events, in a layout that compresses well and can be read in parts.
//
// A block has two orders. The keys of the records are sorted in a table, so a search for a key or a
// rebuild of tables reads them in order. The events are in position order and name their keys by
// number, so the columns of sequence, time, commit and position have small differences. Each of the
// three streams is deflated by itself: K (names and keys), M (events without values) and V
// (values). A reader of keys or of an index does not read V.
//
// Integers are LEB128 varints in their shortest form, zz is zigzag, fixed widths are big-endian.
//
//     block       codec u8 = 1 · layout u8 = 1 · n (events) · sizes of K, M, V · K · M · V
//     size        raw bytes << 1 | deflated; if deflated: stored bytes
//
// Codec 1 is raw deflate (RFC 1951). A stream is deflated if that makes it shorter, never under 256
// bytes. The layout has no checksum of its own: journal frames and segment footers have one.
//
//     K           origins:    count, 8 bytes each
//                 names:      count, each length · bytes (models, fields, relationships)
//                 partitions: count, sorted by bytes, each shared prefix with the one before ·
//                             length of the rest · rest
//                 shapes:     count, each operation u8 (+ 80 if a relationship follows: name) ·
//                             count of fields, each name << 3 | type
//                 runs:       count, by (partition, model), each partition - that of the run before
//                             · model · count of keys · form u8 = leading | rest << 2
//                 keys:       shared prefixes with the key before in the run (0 for its first),
//                             all; lengths of the rests, all; rests
//     type        0 null, 1 Boolean, 2 integer, 3 double, 4 string, 5 JSON
//     leading     0: the keys have their leading part. Else it is omitted, because it is the value
//                 of the partition `field=value`, as 1 string, 2 integer, 3 Boolean
//     rest        the remaining bytes are 0 as encoded; or one string part: 1 lowercase hexadecimal
//                 digits, two in a byte, 2 a UUID in lower case, 16 bytes
//
//     M           n entries each, in position order:
//                 key zz(this - last - 1), last = -1 at first · shape · origin ·
//                 sequence - last of (partition, origin) - 1 · milliseconds zz(delta) · counter ·
//                 commit number zz(delta of origin) · position - last - 1
//                 then columns of few events, each with the count of events since the one before:
//                 contexts:   count; gaps; versions; counts of entries; origins; sequences
//                 commits:    count; gap · origin · number (of another origin than the event's)
//                 causes:     count; gap · 0 if of the same partition, else partition + 1 · origin
//                             · sequence
//                 notes:      count; origin · number of the commit · flags u8 · author (1) ·
//                             message (2) · source (4), each length · bytes; sorted by commit
//
// A context that is not listed is implicit: the context of the key's previous event in the block,
// with the id of that event. The version is one higher. Without a previous event: empty, version 1.
//
//     V           for each (field, type but null) in first-use order of the shapes: encoding u8 and
//                 the values of the events that have it, in position order
//     Boolean     0: a byte each
//     integer     0: zz each; 1: zz of the difference from the one before (0 at first)
//     double      0: 8 bytes each (IEEE 754); 1: places u8 = k, then zz(m) each, meaning m / 10^k
//     string      0: all lengths, then all bytes; 2: lowercase hexadecimal digits, all lengths in
//                 bytes, then two digits in a byte; 3: UUIDs in lower case, 16 bytes each; times,
//                 as an integer column with its own encoding byte: 4 seconds
//                 `2025-11-08T00:00:00Z`, 5 milliseconds `2025-11-08T00:00:00.000Z`, 6 days
//                 `2025-11-08`, 7 seconds of `2025-11-08T00:00:00+01:00`, then zz(minutes of the
//                 offset) each
//     JSON        0: as strings
//
// A reader rejects a block that breaks any rule. It rejects numbers not in their shortest form,
// unread bytes of streams, indexes out of range, and tables that are unsorted or have repeated or
// unused entries. It rejects text that is not UTF-8, invalid GraphQL names, invalid keys, sequences
// that do not rise, contexts that cover their own event, NaN and -0. It allocates memory for a
// count only after comparing the count with the remaining bytes or with `Limits`.

enum BlockFormat {
  static let codec: UInt8 = 1
  static let layout: UInt8 = 1
}

/// An event of a block, with its place in the position order of the file.
package struct BlockEvent: Hashable, Sendable {
  package var relativePosition: UInt64
  package var event: Event

  package init(relativePosition: UInt64, event: Event) {
    self.relativePosition = relativePosition
    self.event = event
  }
}
