import ArgumentParser
import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaTables

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
      message: printable(Explanations.text(of: error), as: spelling), exitCode: Self.exitCode(of: error))
  }

  private static func exitCode(of error: NodeError) -> ExitCode {
    switch error {
    case .noNode, .noSchema, .lostMetadata: .noInput
    case .alreadyANode, .logWithoutMetadata, .noParent, .occupied, .noTemporaryPlace: .cannotCreate
    case .unfinishedClone(_, _, let reason): reason.map { exitCode(of: $0) } ?? .cannotCreate
    case .badMetadata, .badSchema, .newerFormat, .schema, .refusedSchema, .lineTooLong, .malformedInput:
      .badData
    case .mutation(let error): exitCode(of: error)
    case .log(let error): exitCode(of: error)
    case .tables(let error): exitCode(of: error)
    case .replication(let error): exitCode(of: error)
    case .inspection(let error): exitCode(of: error)
    case .cannotRead: .noInput
    case .importLine(_, _, let reason, _, _), .importEnded(_, let reason, _): exitCode(of: reason)
    case .unknownRemote, .noRemotes: .noInput
    case .notAPeer: .unavailable
    case .scopeChanged: .inUse
    case .unacknowledged: .noPermission
    case .corrupt, .missing, .corruptPartition, .duplicateEvents, .abandoned: .inputOutput
    }
  }

  private static func exitCode(of error: MutationError) -> ExitCode {
    switch error {
    case .notFound, .noConflict: .noInput
    case .outsideScope: .noPermission
    case .revisionMismatch: .no
    default: .badData
    }
  }

  private static func exitCode(of error: InspectionError) -> ExitCode {
    switch error {
    case .noSuchEvent, .beyondTheEnd, .noSuchCommit: .noInput
    case .overwritten, .emptyPast, .takesAlong, .existenceInConflict, .changedMeanwhile: .no
    case .notAPointInTime, .notAPointInTimeOrNode, .notAnEvent, .daysOrEvent, .severalEvents, .severalCommits,
      .unknownPlaceholder,
      .unclosedPlaceholder:
      .usage
    }
  }

  private static func exitCode(ofSystem code: Int32) -> ExitCode {
    [EACCES, EPERM, EROFS].contains(code) ? .noPermission : .inputOutput
  }

  private static func exitCode(of error: LogError) -> ExitCode {
    switch error {
    case .system(_, _, let code): exitCode(ofSystem: code)
    case .notAFile, .corrupt, .noManifest, .poisoned, .gap: .inputOutput
    case .newerFormat, .foreignLog, .overLimit: .badData
    case .noLog: .noInput
    case .logExists: .cannotCreate
    case .inUse: .inUse
    case .readOnly: .noPermission
    }
  }

  private static func exitCode(of error: TablesError) -> ExitCode {
    switch error {
    case .busy: .inUse
    case .pathTooLong: .cannotCreate
    case .io(_, _, let code): exitCode(ofSystem: code)
    case .sqlite where error.isNotPermitted: .noPermission
    case .sqlite where error.isOfTheFiles: .inputOutput
    case .unknownModel, .unknownField, .unknownRelationship, .notAQuery, .sqlite: .badData
    default: .inputOutput
    }
  }

  private static func exitCode(of error: ReplicationError) -> ExitCode {
    switch error {
    case .fork: .no
    case .notPermitted: .noPermission
    case .incomplete: .unavailable
    case .failed, .corruptLog: .inputOutput
    case .refusedByPeer(let inner): exitCode(of: inner)
    default: .badData
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
