import StemmaEvents
import StemmaNode
import StemmaTables

import protocol Foundation.LocalizedError

/// The errors of a store. A write that throws leaves nothing of its commit, except with
/// `unresolved`: the commit is then made, and a resolver failed afterwards.
public enum StoreError: Error, Sendable, Equatable {
  /// There is no such record, or it is deleted.
  case notFound(model: String, key: String)
  /// A record with that key exists already.
  case alreadyExists(model: String, key: String)
  /// The field does not allow the value, or the key as a whole is invalid: then `field` is nil. The
  /// `value` is JSON text, cut if long. The `rule` is in words. The `key` is nil if it is not
  /// known.
  case invalid(model: String, key: String?, field: String?, value: String, rule: String)
  /// A required relationship would be left without a target.
  case requiredReference(model: String, key: String, relationship: String)
  /// A delete rule forbids the deletion: `count` records of another model refer to this one.
  case restricted(model: String, key: String, by: String, count: Int)
  /// The record is at another revision than the expected one.
  case revisionMismatch(model: String, key: String, expected: String, current: String)
  /// A stored value does not fit its Swift type: null in a required column, an enum case unknown to
  /// this program, text that is no date. For a value outside of tables, `table` is empty and
  /// `column` the Swift type. For an expression, `table` is `a statement` and `column` its name
  /// there.
  case unreadable(table: String, column: String, value: String)
  /// The record was made by an initializer or decoded, and belongs to no store.
  case notFromStore(model: String)
  /// The record was read inside a commit that failed, after changes of that commit: it shows data
  /// that was never written. Read it again to change it.
  case notCommitted(model: String)
  /// The relationship was not among those that were loaded with the record.
  case notLoaded(model: String, relationship: String)
  /// A required reference leads to a record that was deleted, or is not received yet.
  case dangling(model: String, relationship: String, target: String)
  /// A reference field is a part of the record's own key, and the other record differs there.
  case fixedReference(model: String, relationship: String, field: String)
  /// The store was closed.
  case closed
  /// The transaction is used outside of its closure. Nothing was read or written.
  case ended
  /// The store was opened for reading only.
  case readOnly
  /// The write is complete, but a resolver's decisions on open conflicts failed: these stay open.
  /// It is thrown once for each of them.
  case unresolved(String)
  /// The declared models do not fit the node's schema, or are invalid by themselves.
  case models(String)
  /// Any other error: its code, and in words its object, its place and the next step.
  case failed(ErrorCode, String)
}

extension StoreError: CustomStringConvertible {
  /// The error in words. It is meant for people; programs switch over the cases.
  public var description: String { notice.description }

  private var notice: Notice {
    switch self {
    case .notFound(let model, let key): Explanations.text(of: .notFound(model: model, key: key))
    case .alreadyExists(let model, let key): Explanations.text(of: .alreadyExists(model: model, key: key))
    case .invalid(let model, let key, let field, let value, let rule):
      Notice(
        Explanations.text(
          of: ValueError(model: model, key: key, field: field, valueText: value, rule: rule)))
    case .requiredReference(let model, let key, let relationship):
      Explanations.text(of: .requiredReference(model: model, key: key, relationship: relationship))
    case .restricted(let model, let key, let by, let count):
      Explanations.text(of: .restricted(model: model, key: key, by: by, count: count))
    case .revisionMismatch(let model, let key, let expected, let current):
      Explanations.text(
        of: .revisionMismatch(model: model, key: key, expected: expected, current: current))
    case .unreadable("", let column, let value):
      "\(column.isEmpty ? "a value that is read" : column) cannot be \(value)"
    case .unreadable(Self.noTable, let column, let value):
      "\(column) is \(value), which its Swift type cannot show"
    case .unreadable(let table, let column, let value):
      "\(table).\(column) holds \(value), which its Swift type cannot show"
    case .notFromStore(let model): "this \(model) comes from no store; fetch it to ask for its relationships"
    case .notCommitted(let model):
      "this \(model) shows a commit that was not made; read it again to change it"
    case .notLoaded(let model, let relationship):
      "\(relationship) of this \(model) was not loaded; fetch it, or name it in `including`"
    case .dangling(let model, let relationship, let target):
      "\(relationship) of this \(model) leads to \(target), which is not here"
    case .fixedReference(let model, let relationship, let field):
      "\(field) is a part of the key of this \(model): \(relationship) can only be a record with the same value there"
    case .closed: "the store is closed"
    case .ended: "the transaction has ended; use it inside of the closure that it was given to"
    case .readOnly: "the store was opened for reading only"
    case .unresolved(let what): "a conflict stays open, because the resolver's decision cannot be: \(what)"
    case .models(let what), .failed(_, let what): Notice(what)
    }
  }
}

extension StoreError {
  /// The name in `unreadable` of a table for expressions: no table can have it.
  static let noTable = "a statement"
}

extension StoreError: LocalizedError {
  /// The same words, where an app shows `localizedDescription`.
  public var errorDescription: String? { description }
}

extension StoreError {
  init(_ error: NodeError) {
    switch error {
    case .mutation(.notFound(let model, let key)): self = .notFound(model: model, key: key)
    case .mutation(.alreadyExists(let model, let key)): self = .alreadyExists(model: model, key: key)
    case .mutation(.requiredReference(let model, let key, let relationship)):
      self = .requiredReference(model: model, key: key, relationship: relationship)
    case .mutation(.restricted(let model, let key, let by, let count)):
      self = .restricted(model: model, key: key, by: by, count: count)
    case .mutation(.revisionMismatch(let model, let key, let expected, let current)):
      self = .revisionMismatch(model: model, key: key, expected: expected, current: current)
    case .mutation(.value(let error)):
      self = .invalid(
        model: error.model, key: error.key, field: error.field, value: error.value, rule: error.rule)
    case .schema, .refusedSchema: self = .models(Explanations.text(of: error).description)
    case .tables(let error): self.init(error)
    default: self = .failed(error.code, Self.words(error))
    }
  }

  init(_ error: TablesError) {
    // SQLite has no separate code for this.
    if case .sqlite(_, _, let message) = error, let start = message.firstRange(of: "no such table: ") {
      self = .models(
        "no model has the table \(message[start.upperBound...]): it was not among those that the store was opened with"
      )
    } else if case .sqlite(_, let code, let message) = error, code == Self.wrongStatement {
      self = .failed(error.code, "SQLite refuses the statement: \(message)")
    } else {
      self = .failed(error.code, Self.words(.tables(error)))
    }
  }

  /// SQLite's code for an invalid statement, and only for that: SQLITE_ERROR.
  private static let wrongStatement: Int32 = 1

  /// Translates an error of a body: the library's to `StoreError`, others unchanged.
  static func translated(_ error: any Error) -> any Error {
    switch error {
    case let error as NodeError: StoreError(error)
    case let error as TablesError: StoreError(error)
    default: error
    }
  }

  static func wrapping<Result>(_ body: () throws(NodeError) -> Result) throws(StoreError) -> Result {
    do throws(NodeError) { return try body() } catch { throw StoreError(error) }
  }

  static func reading<Result>(_ body: () throws(TablesError) -> Result) throws(StoreError) -> Result {
    do throws(TablesError) { return try body() } catch { throw StoreError(error) }
  }
}
