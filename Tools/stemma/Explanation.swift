import ArgumentParser
import StemmaEvents
import StemmaNode

/// An error in the tool's form: one line, and an exit code.
struct Explanation {
  var message: String
  var exitCode: ExitCode

  init(message: String, exitCode: ExitCode) {
    self.message = message
    self.exitCode = exitCode
  }

  init(_ error: NodeError) {
    var spelling = ControlSpelling.plain
    // A schema error has one line per mistake.
    if case .schema = error { spelling = .lines }
    self.init(
      message: printable(Explanations.text(of: error), as: spelling), exitCode: ExitCode(error.code))
  }
}

extension ExitCode {
  init(_ code: ErrorCode) {
    self =
      switch code {
      case .revisionMismatch, .overwritten, .unsafeUndo, .changedMeanwhile, .forked: .no
      case .invalidAddress: .usage
      case .noNode, .metadataLost, .schemaLost, .notFound, .noConflict, .noEvent, .noRemote, .cannotRead,
        .noLog:
        .noInput
      case .unreachable, .incomplete: .unavailable
      case .nodeExists, .unfinishedClone, .cannotCreate: .cannotCreate
      case .inUse, .scopeChanged: .inUse
      case .readOnly, .outsideScope, .notPermitted, .unacknowledged, .systemDenied: .noPermission
      case .peerFailed, .system, .diskFull, .corrupt, .corruptPartition, .missingEvents, .duplicateEvents,
        .syncFailed,
        .tablesUnusable, .tablesReplaced, .abandoned:
        .inputOutput
      case .metadataInvalid, .schemaInvalid, .schemaConflict, .newerFormat, .malformed, .unknownName,
        .invalidValue,
        .missingValue, .immutableKey, .alreadyExists, .requiredReference, .danglingReference, .notLinked,
        .restricted,
        .severalConflicts, .invalidQuery, .overLimit, .sameLog, .protocolViolation, .foreignLog:
        .badData
      }
  }
}

/// Reads and then finishes the output. If corruption hides events, it finishes the output first and
/// then rethrows the error. After any other error it does not finish.
func goingAroundCorruption(_ read: () throws -> Void, thenAlways finish: () throws -> Void) throws {
  do { try read() } catch let error as NodeError {
    guard case .missing = error else { throw error }
    try finish()
    Output.flush()
    throw error
  }
  try finish()
}
