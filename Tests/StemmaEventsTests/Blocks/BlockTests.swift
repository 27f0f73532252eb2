import StemmaEvents
import Testing

@Suite struct BlockTests {
  @Test(arguments: 1...60)
  func everyEventComesBackInBothOrders(seed: Int) throws {
    var source = RandomEvents(seed: UInt64(seed))
    let events = source.events(seed % 4 == 0 ? 400 : seed)
    let messages = [
      (events[0].event.commit, CommitMessage(author: "Ann", text: "née\0", source: "a.ndjson:7")),
      (events[events.count - 1].event.commit, CommitMessage(text: "")),
    ]
    let expected = Dictionary(messages, uniquingKeysWith: { $1 }).sorted { $0.key < $1.key }
    let reader = try BlockReader(block(events, messages: messages))
    #expect(reader.count == events.count)
    #expect(try reader.events() == events, "seed \(seed)")
    #expect(try reader.eventsByKey() == events.sorted(by: order), "seed \(seed)")
    #expect(reader.messages.map(\.commit) == expected.map(\.key))
    #expect(reader.messages.map(\.message) == expected.map(\.value))
  }

  /// A few names, origins and partitions are compared directly; more are hashed. Values in
  /// partitions may contain zeros and punctuation, which keys and names encode differently.
  @Test(arguments: [15, 16, 17, 18, 40], [("plain", "plain"), ("a\0b", "a\0b"), ("50%=,", "50%25%3D%2C")])
  func fewAndManyNamesAreNumbered(count: Int, value: (inKey: String, inName: String)) throws {
    var events: [BlockEvent] = []
    for round in 0..<2 {
      for number in 0..<count {
        let origin = Origin(UInt64(number + 1))
        let key = Key(.string(value.inKey + "\(number)"), .int(Int64(number)))
        let partition = Partition("tenant=\(value.inName)\(number)")
        let sequence = StemmaEvents.SequenceNumber(UInt64(round + 1))
        let context =
          round == 0 ? Context.empty : Context(trusted: [.init(origin: origin, sequence: .init(1))])
        let event = Event(
          partition: partition, model: "Model\(number)", key: key, operation: round == 0 ? .create : .update,
          assignments: [Assignment("field\(number)", .int(Int64(number)))], id: EventID(origin, sequence),
          context: context, version: Version(UInt64(round + 1)), timestamp: Timestamp(milliseconds: 1),
          commit: CommitID(origin, UInt64(round + 1)))
        events.append(BlockEvent(relativePosition: UInt64(events.count), event: event))
      }
    }
    let reader = try BlockReader(block(events))
    #expect(try reader.events() == events)
    #expect(reader.partitions == Set(events.map(\.event.partition)).sorted())
  }

  @Test func keysAreDistinctAndInOrder() throws {
    var source = RandomEvents(seed: 5)
    let events = source.events(300)
    let reader = try BlockReader(block(events))
    var expected: [BlockReader.Record] = []
    for event in events.sorted(by: order) {
      let record = BlockReader.Record(
        partition: event.event.partition, model: event.event.model, key: event.event.key)
      if expected.last != record { expected.append(record) }
    }
    #expect(reader.keys == expected)
    #expect(reader.partitions == Set(events.map(\.event.partition)).sorted())
  }

  @Test func sameEventsGiveSameBytesAlsoFromAUsedWriter() {
    var source = RandomEvents(seed: 11)
    let events = source.events(200)
    var writer = BlockWriter()
    for event in events.prefix(50) { writer.append(event.event, relativePosition: event.relativePosition) }
    _ = writer.finish()
    for event in events { writer.append(event.event, relativePosition: event.relativePosition) }
    let bytes = writer.finish()
    #expect(bytes == block(events))
    #expect(writer.count == 0)
    #expect(writer.rawBytes == 0)
  }

  @Test func cursorGivesTheSameAsEvents() throws {
    var source = RandomEvents(seed: 21)
    let events = source.events(300)
    let reader = try BlockReader(block(events))
    for (order, expected) in [(BlockCursor.Order.relativePosition, events), (.key, events.sorted(by: order))]
    {
      let cursor = try reader.cursor(order)
      var digester = BlockDigester()
      digester.begin(cursor)
      for stored in expected {
        let event = stored.event
        cursor.checkInvariants()
        let hasMoved = cursor.advance()
        #expect(hasMoved)
        cursor.checkInvariants()
        #expect(digester.digest(of: cursor) == event.digest.hash)
        digester.checkInvariants()
        #expect(cursor.relativePosition == stored.relativePosition)
        #expect(reader.record(cursor.key).key == event.key)
        #expect(Array(cursor.keyBytes) == event.key.bytes)
        #expect(cursor.operation == event.operation)
        #expect(cursor.id == event.id)
        #expect(cursor.version == event.version)
        #expect(cursor.timestamp == event.timestamp)
        #expect(cursor.commit == event.commit)
        #expect(cursor.cause == event.cause)
        #expect((0..<cursor.contextCount).map(cursor.contextEntry) == event.context.entries)
        let assignments = (0..<cursor.assignmentCount).map {
          Assignment(cursor.fieldName(cursor.field($0)), cursor.value($0))
        }
        #expect(assignments == event.assignments)
        for (index, assignment) in event.assignments.enumerated() {
          guard case .string(let text) = assignment.value else { continue }
          #expect(cursor.text(index).elementsEqual(text.utf8))
        }
      }
      let hasMore = cursor.advance()
      #expect(!hasMore)
    }
  }

  @Test func linearHistoryIsImplicit() throws {
    let reader = try BlockReader(block(history(of: 5)))
    let cursor = try reader.cursor(.key)
    while cursor.advance() { #expect(cursor.isContextImplicit) }
  }

  @Test func oneEventIsSmall() {
    #expect(block([history(of: 2)[1]]).count < 150)
  }

  @Test func partitionsThatAreNoFieldAndValueKeepTheWholeKey() throws {
    // A partition's name may look like field and value of the key, with a different value.
    for (name, key) in [
      ("x=5", Key(.int(6))), ("x=05", Key(.int(5))), ("x=%2c", Key(.string(","))), ("x=", Key(.string(""))),
      ("x==", Key(.string("="))), ("x=5,y=6", Key(.int(5), .int(6))), ("x=true", Key(.bool(false))),
      ("x=1.5", Key(.double(1.5))), ("=", Key(.string(""))),
    ] {
      var event = history(of: 1)[0]
      event.event.partition = Partition(name)
      event.event.key = key
      #expect(try BlockReader(block([event])).events() == [event])
    }
  }

  @Test func implicitContextsHaveABound() throws {
    // A thousand origins in one record: each further event implies a context of a thousand entries.
    // Beyond a million entries the block must write them out, and still reads back completely.
    var context = Context.empty
    for origin in 0..<1000 { context.insert(EventID(Origin(UInt64(origin)), SequenceNumber(1))) }
    var events: [BlockEvent] = []
    for index in 0..<1060 {
      var event = history(of: 1)[0]
      event.relativePosition = UInt64(index)
      event.event.id = EventID(Origin(5), SequenceNumber(UInt64(index) + 2))
      event.event.version = Version(UInt64(index) + 2)
      event.event.context = context
      context.insert(event.event.id)
      events.append(event)
    }
    let reader = try BlockReader(block(events))
    let cursor = try reader.cursor(.relativePosition)
    var implicit = 0
    while cursor.advance() {
      if cursor.isContextImplicit { implicit += cursor.contextCount }
    }
    #expect(implicit == Limits.blockImplicitEntries / 1000 * 1000)
    #expect(try reader.events() == events)
  }
}

/// The history of one book, written by one origin.
func history(of count: Int) -> [BlockEvent] {
  var events: [BlockEvent] = []
  var context = Context.empty
  for index in 0..<UInt64(count) {
    let id = EventID(Origin(0x1122_3344_5566_7788), SequenceNumber(index + 1))
    let event = Event(
      partition: Partition("Book"), model: "Book", key: Key(.string("978-0132350884")),
      operation: index == 0 ? .create : .update,
      assignments: [
        Assignment("pages", .int(464 + Int64(index))), Assignment("title", .string("Clean Code")),
      ],
      id: id, context: context, version: Version(index + 1),
      timestamp: Timestamp(milliseconds: 1_700_000_000_000 + index),
      commit: CommitID(id.origin, index + 1))
    context.insert(id)
    events.append(BlockEvent(relativePosition: index, event: event))
  }
  return events
}
