import StemmaEvents
import StemmaSchema

/// The reason why a mutation cannot be performed. Its write leaves no trace.
package enum MutationError: Error {
  case notJSON(JSONError)
  case wrongShape(String)
  case unknownOperation(String)
  case unknownModel(String, known: [String])
  case unknownField(model: String, field: String, known: [String])
  case unknownRelationship(model: String, name: String, known: [String])
  case value(ValueError)
  case missingKey(model: String, parts: [String])
  case missingField(model: String, key: String, field: String)
  case keyFieldAssigned(model: String, key: String, field: String)
  case alreadyExists(model: String, key: String)
  case notFound(model: String, key: String)
  case requiredReference(model: String, key: String, relationship: String)
  /// The link would change a reference field that is part of the record's key.
  case fixedReference(model: String, key: String, field: String)
  case notLinked(model: String, key: String, relationship: String)
  case danglingReference(model: String, key: String, relationship: String, target: String)
  case restricted(model: String, key: String, by: String, count: Int)
  case outsideScope(partition: String)
  case revisionMismatch(model: String, key: String, expected: String, current: String)
  /// - Parameter kind: the requested kind; nil: any.
  case noConflict(model: String, key: String, field: String?, kind: String?)
  case noCandidate(model: String, key: String, field: String?, asked: String, count: Int)
  case severalConflicts(model: String, key: String, names: [String])
}
