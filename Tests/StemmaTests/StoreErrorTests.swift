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
      (.tables(.needsRebuild(path: "d/tables.sqlite", .missing)), "open the store anew"),
    ] as [(NodeError, String)])
  func words(_ error: NodeError, _ call: String) {
    guard case .failed(let what) = StoreError(error) else {
      Issue.record("\(StoreError(error))")
      return
    }
    #expect(what.contains(call) && !what.contains("stemma ") && !what.contains("--"), "\(what)")
  }

  @Test("only a lock that may not be written is told as a store that can only be read")
  func otherFiles() {
    for error in [
      NodeError.log(.system(path: "d/lock", operation: "open", errno: 5)),
      .log(.system(path: "d/log/1.journal", operation: "open", errno: 30)),
    ] { #expect(!"\(StoreError(error))".contains("isReadOnly")) }
  }
}
