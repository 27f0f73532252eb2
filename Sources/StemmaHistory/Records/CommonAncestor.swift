import StemmaEvents
import StemmaMerge
import StemmaNode
import StemmaSchema

extension ConflictDescription {
  /// The value of its fields in the state that the writers of all candidates had seen, in
  /// the form of a candidate's value. Nil if they had seen no record, and for a conflict between
  /// records.
  ///
  /// - Parameter life: of the record in conflict.
  package func ancestor(in life: RecordLife) throws(NodeError) -> JSON? {
    guard kind == .value || kind == .delete else { return nil }
    let history = life.history
    let writers = candidates.compactMap { history.index(of: $0.id).map { history.events[$0] } }
    let seen = history.events.filter { event in
      writers.allSatisfy { $0.id != event.id && $0.hasSeen(event) }
    }
    let state: RecordState
    do throws(MergeError) { state = try RecordState.fold(seen, life.rules) } catch {
      throw .merge(error, life.model, life.key)
    }
    guard !seen.isEmpty, state.exists(life.rules) else { return nil }
    if kind == .delete { return .bool(true) }
    func value(_ name: String) -> JSON {
      state.value(of: life.model.field(named: name)?.storedName ?? name, life.rules).json
    }
    if let field, fields == [field] { return value(field) }
    return .object(fields.map { ($0, value($0)) })
  }
}
