import StemmaEvents
import StemmaLog
import StemmaNode
import Testing

@testable import Stemma

@Suite("Errors of a store")
struct StoreErrorTests {
  @Test(
    "where an app has a call for what to do next, the words name that, and no command of the tool",
    arguments: [
      (.noNode(path: "d"), "a store that is opened for writing makes one"),
      (.noRemotes, "`addRemote(_:at:)`"),
      (.unacknowledged(partition: "Note", events: 3), "`discards: true`"),
      (.mutation(.outsideScope(partition: "Note")), "`changeScope(adding:)`"),
      (.mutation(.noConflict(model: "Note", key: "1", field: "text", kind: "value")), "`conflicts()`"),
      (.log(.noLog(path: "d/log")), "open a store in another directory and sync it"),
      (.log(.inUse(path: "d/lock", pid: 7)), "the option `wait`"),
      (.log(.system(path: "d/lock", operation: "open", errno: 30)), "the option `isReadOnly`"),
      (.tables(.busy(path: "d/tables.sqlite")), "the option `wait`"),
      (.tables(.needsRebuild(path: "d/tables.sqlite", .missing)), "open the store again"),
      (.tables(.needsRebuild(path: "d/tables.sqlite", .corrupt("x"))), "remove it and open the store again"),
      (.tables(.rebuilt(path: "d/tables.sqlite", .corrupt("x"))), "try again"),
    ] as [(NodeError, String)])
  func words(_ error: NodeError, _ call: String) {
    guard case .failed(_, let what) = StoreError(error) else {
      Issue.record("\(StoreError(error))")
      return
    }
    #expect(what.contains(call) && !what.contains("stemma ") && !what.contains("--"), "\(what)")
  }

  @Test(
    "a step for which the library has no call is named without a command",
    arguments: [
      .log(.corrupt(path: "d/log/1.journal", offset: 7, .empty)),
      .replication(.corruptLog(Corruption(path: "d/log/1.journal", offset: 7, flaw: .empty))),
      .replication(.refusedByPeer(.failed("d is corrupt"))),
      .corruptPartition("Note"), .noSchema(path: "d/schema"),
      .badSchema(path: "d/schema", what: "it is not UTF-8"),
      .duplicateEvents(node: "n", path: "d", partition: "Note", event: "n:1"),
      .unfinishedClone(path: "d", source: nil, nil),
    ] as [NodeError])
  func commands(_ error: NodeError) {
    let words = "\(StoreError(error))"
    #expect(!words.contains("stemma ") && !words.contains("PEER"), "\(words)")
  }

  @Test("what a peer refuses is reported like what is met here")
  func peers() {
    let words = "\(StoreError(.replication(.refusedByPeer(.sameLog(LogID(1))))))"
    #expect(words.contains("open a store in a new directory"), "\(words)")
  }

  @Test("a table can be called as anything that is no column of one")
  func statements() {
    let error = StoreError.unreadable(table: "SQL", column: "size", value: "1")
    #expect("\(error)" == "SQL.size holds 1, which its Swift type cannot show")
  }

  @Test("a value of a statement that does not fit is reported with the statement's name for it")
  func misfits() async throws {
    let store = try await Store.temporary(models: Reminder.self)
    func words(_ read: () async throws -> Void) async -> String {
      do { try await read() } catch { return "\(error)" }
      return "nothing"
    }
    let cannot = "which its Swift type cannot show"
    #expect(
      await words { _ = try await SQL<Int>("SELECT NULL").fetchOne(store) } == "NULL is null, \(cannot)")
    #expect(await words { _ = try await SQL<Int>("SELECT 'x'").fetchOne(store) } == "'x' is \"x\", \(cannot)")
    #expect(await words { _ = try await SQL<UInt8>("SELECT 300").fetchOne(store) } == "300 is 300, \(cannot)")
    #expect(
      await words { _ = try await SQL<Int>("SELECT FROM").fetchOne(store) }
        == "SQLite refuses the statement: near \"FROM\": syntax error")
    let most = Int.max
    #expect(
      await words {
        _ = try await SQL<Int>("SELECT sum(value) FROM (SELECT \(most) AS value UNION ALL SELECT 1)")
          .fetchOne(store)
      } == "SQLite refuses the statement: integer overflow")
  }

  @Test("only a lock that may not be written is reported as a store that can only be read")
  func otherFiles() {
    for error in [
      NodeError.log(.system(path: "d/lock", operation: "open", errno: 5)),
      .log(.system(path: "d/log/1.journal", operation: "open", errno: 30)),
    ] { #expect(!"\(StoreError(error))".contains("isReadOnly")) }
  }
}
