import StemmaNode
import StemmaTables
import Testing

/// Error messages for users.
@Suite struct ExplanationTests {
  /// The codes are FULL, IOERR_FSTAT, IOERR_SHMSIZE, PROTOCOL, ABORT, READONLY and ERROR of
  /// https://sqlite.org/rescode.html.
  @Test func whatSQLiteRefusesSaysWhatToDo() {
    // SQLite also reports FULL if a write returns zero without a reason.
    let full =
      "make room there, or, if there is room, see that its disk is well and files may grow (`ulimit -f`); then try again"
    let cases: [(Int32, String, String)] = [
      (13, "database or disk is full", full),
      (2_570, "disk I/O error", "see that its disk is well and files may grow (`ulimit -f`), and try again"),
      (4_874, "disk I/O error", full),
      (15, "locking protocol", "see that its disk is well and files may grow (`ulimit -f`), and try again"),
      (
        4, "Transaction was aborted",
        "see that its disk is well and files may grow (`ulimit -f`), and try again"
      ),
      (
        8, "attempt to write a readonly database",
        "see that it and its folder may be written to, and try again"
      ),
    ]
    for (code, message, advice) in cases {
      #expect(
        Explanations.text(of: TablesError.sqlite(path: "n/tables.sqlite", code: code, message: message))
          .description
          == "n/tables.sqlite: SQLite says \(message); \(advice)")
    }
    #expect(
      Explanations.text(
        of: TablesError.sqlite(path: "t", code: 1, message: "near \"x\": syntax error")
      ).description
        == "SQLite says near \"x\": syntax error")
  }
}
