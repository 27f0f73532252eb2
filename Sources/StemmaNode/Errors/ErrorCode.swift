import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaTables

/// The subject of an error, for programs. `docs/ERRORS.md` lists the codes and their remedies.
public enum ErrorCode: String, Sendable, CaseIterable {
  // Nodes
  case noNode, nodeExists, unfinishedClone, metadataLost, metadataInvalid, schemaLost, schemaInvalid
  case schemaConflict, newerFormat, inUse, readOnly, scopeChanged

  // Records
  case malformed, unknownName, invalidValue, missingValue, immutableKey, alreadyExists, notFound
  case requiredReference, danglingReference, notLinked, restricted, outsideScope, revisionMismatch
  case noConflict, severalConflicts, invalidQuery, overLimit

  // The past
  case invalidAddress, noEvent, overwritten, unsafeUndo, changedMeanwhile

  // Peers
  case noRemote, unreachable, notPermitted, sameLog, forked, incomplete, protocolViolation
  case peerFailed, unacknowledged

  // Files
  case system, systemDenied, diskFull, cannotRead, cannotCreate, corrupt, corruptPartition
  case missingEvents, duplicateEvents, noLog, foreignLog, syncFailed, tablesUnusable
  case tablesReplaced, abandoned
}

extension NodeError {
  package var code: ErrorCode {
    switch self {
    case .noNode: .noNode
    case .alreadyANode, .logWithoutMetadata: .nodeExists
    case .unfinishedClone(_, _, let reason): reason?.code ?? .unfinishedClone
    case .lostMetadata: .metadataLost
    case .noParent, .occupied, .noTemporaryPlace: .cannotCreate
    case .cannotRead: .cannotRead
    case .badMetadata: .metadataInvalid
    case .noSchema: .schemaLost
    case .badSchema, .schema: .schemaInvalid
    case .newerFormat: .newerFormat
    case .refusedSchema: .schemaConflict
    case .mutation(let error): error.code
    case .log(let error): error.code
    case .tables(let error): error.code
    case .replication(let error): error.code
    case .inspection(let error): error.code
    case .lineTooLong: .overLimit
    case .malformedInput: .malformed
    case .importLine(_, _, let reason, _, _), .importEnded(_, let reason, _): reason.code
    case .unknownRemote, .noRemotes: .noRemote
    case .notAPeer: .unreachable
    case .missingPrerequisites: .incomplete
    case .unauthenticated: .notPermitted
    case .scopeChanged: .scopeChanged
    case .unacknowledged: .unacknowledged
    case .corrupt: .corrupt
    case .missing: .missingEvents
    case .corruptPartition: .corruptPartition
    case .duplicateEvents: .duplicateEvents
    case .abandoned: .abandoned
    case .unforeseen: .system
    }
  }
}

extension MutationError {
  package var code: ErrorCode {
    switch self {
    case .notJSON, .wrongShape, .unknownOperation: .malformed
    case .unknownModel, .unknownField, .unknownRelationship: .unknownName
    case .value, .noCandidate: .invalidValue
    case .missingKey, .missingField: .missingValue
    case .keyFieldAssigned, .fixedReference: .immutableKey
    case .alreadyExists: .alreadyExists
    case .notFound: .notFound
    case .requiredReference: .requiredReference
    case .notLinked: .notLinked
    case .danglingReference: .danglingReference
    case .restricted: .restricted
    case .outsideScope: .outsideScope
    case .revisionMismatch: .revisionMismatch
    case .noConflict: .noConflict
    case .severalConflicts: .severalConflicts
    }
  }
}

extension InspectionError {
  package var code: ErrorCode {
    switch self {
    case .noSuchEvent, .beyondTheEnd, .noSuchCommit: .noEvent
    case .overwritten: .overwritten
    case .emptyPast, .takesAlong, .existenceInConflict: .unsafeUndo
    case .changedMeanwhile: .changedMeanwhile
    case .notAPointInTime, .notAPointInTimeOrNode, .notAnEvent, .daysOrEvent, .severalEvents, .severalCommits,
      .unknownPlaceholder, .unclosedPlaceholder:
      .invalidAddress
    }
  }
}

extension LogError {
  package var code: ErrorCode {
    switch self {
    case .system(_, _, let code): ErrorCode(system: code)
    case .corrupt(_, _, let flaw) where flaw.isDuplicate: .duplicateEvents
    case .notAFile, .corrupt, .noManifest, .gap: .corrupt
    case .newerFormat: .newerFormat
    case .foreignLog: .foreignLog
    case .noLog: .noLog
    case .logExists: .nodeExists
    case .inUse: .inUse
    case .poisoned: .syncFailed
    case .readOnly: .readOnly
    case .overLimit: .overLimit
    }
  }
}

extension TablesError {
  package var code: ErrorCode {
    switch self {
    case .needsRebuild: .tablesUnusable
    case .rebuilt, .replaced: .tablesReplaced
    case .busy: .inUse
    case .io(_, _, let code): ErrorCode(system: code)
    case .pathTooLong: .cannotCreate
    case .sqlite where isNotPermitted: .systemDenied
    case .sqlite where isDiskFull: .diskFull
    case .sqlite where isOfTheFiles: .system
    case .sqlite, .notAQuery: .invalidQuery
    case .unknownModel, .unknownField, .unknownRelationship: .unknownName
    case .gap, .merge, .unfitKey, .foreignPartition, .inconsistent: .corrupt
    }
  }
}

extension ReplicationError {
  package var code: ErrorCode {
    switch self {
    case .malformed, .corrupt, .unexpectedMessage, .gap, .foreignPartition, .hostileEvent: .protocolViolation
    case .overLimit: .overLimit
    case .newerFormat: .newerFormat
    case .sameLog: .sameLog
    case .schemaConflict, .schemaUnreadable: .schemaConflict
    case .notPermitted: .notPermitted
    case .fork: .forked
    case .incomplete: .incomplete
    case .failed: .peerFailed
    case .corruptLog, .inconsistentLog: .corrupt
    case .scope: .invalidValue
    case .refusedByPeer(let error): error.code
    }
  }
}

extension ErrorCode {
  /// - Parameter code: of the operating system (`errno`).
  init(system code: Int32) {
    switch code {
    case EACCES, EPERM, EROFS: self = .systemDenied
    case ENOSPC, EDQUOT: self = .diskFull
    default: self = .system
    }
  }
}
