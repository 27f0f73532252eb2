extension SchemaReader {
  /// The place of a relationship: model, then relationship.
  struct RelationshipPath: Equatable {
    var model: Int
    var relationship: Int
  }

  /// Finds the reference fields of every relationship, and creates the implied ones.
  ///
  /// Explicit ones come first, because implied ones share their fields. An implicit `@hasMany` has
  /// those of the only explicit `@belongsTo` on the other side. An implicit `@belongsTo` has those
  /// of the only `@hasMany` or `@hasOne` there. An implicit `@hasOne` and its only `@belongsTo` are
  /// one relationship, as in Gen 2: the model that belongs to the other stores the reference. The
  /// rest get new fields, under Amplify's names; a `@hasOne` then stores them in its own model, as
  /// in Gen 1.
  mutating func readRelationships() {
    for path in relationshipPaths { readExplicit(path) }
    readManyToMany()
    for path in relationshipPaths where isOpen(path, .hasMany) { readImplicitHasMany(path) }
    for path in relationshipPaths where isOpen(path, .hasOne) { readImplicitHasOne(path) }
    for path in relationshipPaths where isOpen(path, .belongsTo) { readImplicitBelongsTo(path) }
    for path in relationshipPaths { settleRequirement(path) }
  }

  var relationshipPaths: [RelationshipPath] {
    models.indices.flatMap { model in
      models[model].relationships.indices.map { RelationshipPath(model: model, relationship: $0) }
    }
  }

  subscript(path: RelationshipPath) -> RelationshipDraft {
    get { models[path.model].relationships[path.relationship] }
    set { models[path.model].relationships[path.relationship] = newValue }
  }

  private func isOpen(_ path: RelationshipPath, _ kind: Relationship.Kind) -> Bool {
    self[path].kind == kind && !self[path].isBroken && self[path].referenceFields.isEmpty
      && targetIndex(path) != nil && !models[path.model].keyFields.isEmpty
  }

  /// The other side's model, if it exists and has a key.
  private func targetIndex(_ path: RelationshipPath) -> Int? {
    modelNames[self[path].target].flatMap { models[$0].keyFields.isEmpty ? nil : $0 }
  }

  private func label(_ path: RelationshipPath) -> String {
    "`\(models[path.model].name).\(self[path].name)`"
  }

  // MARK: Explicit

  private mutating func readExplicit(_ path: RelationshipPath) {
    let draft = self[path]
    guard !draft.isBroken, draft.kind != .manyToMany, let target = targetIndex(path),
      !models[path.model].keyFields.isEmpty
    else { return }
    let directive = draft.directive
    let names = directive.argument("fields").map { _ in strings("fields", of: directive) }
    let references = directive.argument("references").map { _ in strings("references", of: directive) }
    if names != nil, references != nil {
      error(
        directive.name.place, "\(label(path)) has both `fields` and `references`",
        "keep `fields` for fields of `\(models[path.model].name)`, "
          + "`references` for fields of `\(draft.kind == .belongsTo ? models[path.model].name : draft.target)`"
      )
      self[path].isBroken = true
      return
    }
    // Both are absent or valid; an invalid one is reported already.
    if names == .some(nil) || references == .some(nil) {
      self[path].isBroken = true
      return
    }
    let place =
      directive.argument("fields")?.value.place ?? directive.argument("references")?.value.place
      ?? directive.name.place
    switch draft.kind {
    case .belongsTo:
      guard let fields = names ?? references, let fields else { return }
      setReferences(fields, path, storedOn: path.model, keyOf: target, place)
    case .hasOne:
      if let names, let names {
        setReferences(names, path, storedOn: path.model, keyOf: target, place)
      } else if let references, let references {
        setReferences(references, path, storedOn: target, keyOf: path.model, place)
      }
    case .hasMany:
      if let references, let references {
        setReferences(references, path, storedOn: target, keyOf: path.model, place)
      } else if names != nil || directive.argument("indexName") != nil {
        readIndexedHasMany(path, target: target, fields: names.flatMap { $0 }, place)
      }
    case .manyToMany: break
    }
  }

  /// Gen 1's `@hasMany(indexName:, fields:)`: `fields` repeats the declaring model's key. The
  /// children are found by one of their indexes, or by their key if no index is named.
  private mutating func readIndexedHasMany(
    _ path: RelationshipPath, target: Int, fields: [String]?, _ place: Place
  ) {
    let key = models[path.model].key.map(\.name)
    if let fields, fields != key {
      error(
        place, "`fields` of \(label(path)) is not the key of `\(models[path.model].name)`",
        "write `fields: [\(key.map { "\"\($0)\"" }.joined(separator: ", "))]`")
      self[path].isBroken = true
      return
    }
    let child = models[target].name
    let indexed: [String]
    if let argument = self[path].directive.argument("indexName") {
      guard let name = string("indexName", of: self[path].directive) else {
        self[path].isBroken = true
        return
      }
      guard let index = models[target].indexes.first(where: { $0.name == name }) else {
        let names = models[target].indexes.map { "`\($0.name)`" }.joined(separator: ", ")
        error(
          argument.value.place, "`\(child)` has no index `\(name)` for \(label(path))",
          "add `@index(name: \"\(name)\")` to the field of `\(child)` that holds the key of "
            + "`\(models[path.model].name)`" + (names.isEmpty ? "" : ", or name one of \(names)"))
        self[path].isBroken = true
        return
      }
      indexed = index.fields
    } else {
      indexed = models[target].key.map(\.name)
    }
    guard indexed.count >= key.count else {
      error(
        place,
        "the index of `\(child)` for \(label(path)) has fewer fields than the key of "
          + "`\(models[path.model].name)`", "add the others with `sortKeyFields`")
      self[path].isBroken = true
      return
    }
    setReferences(Array(indexed.prefix(key.count)), path, storedOn: target, keyOf: path.model, place)
  }

  /// Amplify's validations: the fields exist, and agree with the key in count, types and order.
  private mutating func setReferences(
    _ names: [String], _ path: RelationshipPath, storedOn holder: Int, keyOf parent: Int, _ place: Place
  ) {
    self[path].isBroken = true
    let key = models[parent].key
    let owner = models[holder].name
    let keyText = key.map(\.name).joined(separator: ", ")
    guard names.count == key.count else {
      error(
        place,
        "\(label(path)) names \(names.count) reference field\(names.count == 1 ? "" : "s"), but the key of "
          + "`\(models[parent].name)` has \(key.count) part\(key.count == 1 ? "" : "s") (\(keyText))",
        "name one field of `\(owner)` for each part, in this order")
      return
    }
    var fields: [Field] = []
    for (name, part) in zip(names, key) {
      guard let field = models[holder].field(name) else {
        let type = SDL.typeText(part.type)
        let isRelationship = models[holder].relationship(name) != nil
        error(
          place,
          isRelationship
            ? "`\(name)` of `\(owner)` is a relationship and holds no key"
            : "`\(owner)` has no field `\(name)` for \(label(path))",
          isRelationship ? "name a field of type \(type)" : "add `\(name): \(type)` to `\(owner)`")
        return
      }
      fields.append(field)
    }
    for (field, part) in zip(fields, key) where field.type.isList || field.type.base != part.type.base {
      let isPermuted =
        fields.map { SDL.typeText($0.type) }.sorted() == key.map { SDL.typeText($0.type) }.sorted()
      error(
        place,
        "reference field `\(field.name)` of `\(owner)` is \(SDL.typeText(field.type)), but "
          + "`\(part.name)` in the key of `\(models[parent].name)` is \(SDL.typeText(part.type))",
        isPermuted
          ? "name the fields in the order of the key: \(keyText)"
          : "write `\(field.name): \(SDL.typeText(part.type))`")
      return
    }
    let free = fields.filter { !models[holder].isKeyPart($0.name) }
    guard agreeOnRequirement(free, path, place) else { return }
    self[path].referenceFields = names
    self[path].storesReference =
      holder == path.model && self[path].kind != .hasMany
      && (self[path].kind == .belongsTo || self[path].directive.argument("references") == nil)
    self[path].isBroken = false
  }

  // MARK: Implicit

  private mutating func readImplicitHasMany(_ path: RelationshipPath) {
    guard let child = targetIndex(path) else { return }
    let parent = models[path.model].name
    let claimed = claimedFields(ofParent: path.model, child: child)
    let facing = models[child].relationships.filter {
      $0.kind == .belongsTo && $0.target == parent && !$0.referenceFields.isEmpty
        && !claimed.contains($0.referenceFields)
    }
    if facing.count > 1 {
      let names = facing.map { "`\(models[child].name).\($0.name)`" }.joined(separator: ", ")
      error(
        self[path].place, "\(label(path)) could be the other side of \(names)",
        "write `@hasMany(references: [\(quoted(facing[0].referenceFields))])`, or the fields of another")
      self[path].isBroken = true
    } else if let other = facing.first {
      self[path].referenceFields = other.referenceFields
    } else {
      let inverse = openBelongsTo(onModel: child, to: parent)
      makeFields(
        path, on: child, keyOf: path.model, prefix: [parent, self[path].name],
        isRequired: inverse.count == 1 && inverse[0].isMarkedRequired)
    }
  }

  private mutating func readImplicitHasOne(_ path: RelationshipPath) {
    guard let target = targetIndex(path) else { return }
    let (parent, child) = (models[path.model].name, models[target].name)
    let claimed = claimedFields(ofParent: path.model, child: target)
    let facing = models[target].relationships.filter {
      $0.kind == .belongsTo && $0.target == parent && !$0.isBroken && !claimed.contains($0.referenceFields)
    }
    let siblings = models[path.model].relationships.indices
      .map { RelationshipPath(model: path.model, relationship: $0) }
      .filter { self[$0].target == child && isOpen($0, .hasOne) }
    // A `@hasMany` without its own `@belongsTo` uses an open one.
    let named = models[target].relationships.filter { $0.kind == .belongsTo }.map(\.referenceFields)
    guard facing.count == 1, let inverse = facing.first, siblings.count == 1,
      !inverse.referenceFields.isEmpty || claimed.allSatisfy(named.contains)
    else {
      self[path].storesReference = true
      makeFields(
        path, on: path.model, keyOf: target, prefix: [parent, self[path].name],
        isRequired: self[path].isMarkedRequired)
      return
    }
    if inverse.referenceFields.isEmpty {
      makeFields(
        path, on: target, keyOf: path.model, prefix: [child, inverse.name],
        isRequired: inverse.isMarkedRequired)
    } else {
      self[path].referenceFields = inverse.referenceFields
    }
  }

  private mutating func readImplicitBelongsTo(_ path: RelationshipPath) {
    guard let parent = targetIndex(path) else { return }
    self[path].storesReference = true
    let model = models[path.model].name
    let claimed = models[path.model].relationships
      .filter { $0.kind == .belongsTo && $0.target == models[parent].name && $0.name != self[path].name }
      .map(\.referenceFields)
    let facing = models[parent].relationships.filter {
      ($0.kind == .hasMany || $0.kind == .hasOne) && !$0.storesReference && $0.target == model
        && !$0.referenceFields.isEmpty && !claimed.contains($0.referenceFields)
    }
    if facing.count > 1 {
      let names = facing.map { "`\(models[parent].name).\($0.name)`" }.joined(separator: ", ")
      error(
        self[path].place, "\(label(path)) could be the other side of \(names)",
        "write `@belongsTo(fields: [\(quoted(facing[0].referenceFields))])`, or the fields of another")
      self[path].isBroken = true
    } else if let other = facing.first {
      self[path].referenceFields = other.referenceFields
    } else {
      makeFields(
        path, on: path.model, keyOf: parent, prefix: [model, self[path].name],
        isRequired: self[path].isMarkedRequired)
    }
  }

  private func quoted(_ names: [String]) -> String { names.map { "\"\($0)\"" }.joined(separator: ", ") }

  /// The child's reference fields that the parent's relationships use already.
  private func claimedFields(ofParent parent: Int, child: Int) -> [[String]] {
    models[parent].relationships
      .filter { $0.target == models[child].name && !$0.storesReference && !$0.referenceFields.isEmpty }
      .map(\.referenceFields)
  }

  private func openBelongsTo(onModel index: Int, to parent: String) -> [RelationshipDraft] {
    models[index].relationships.filter {
      $0.kind == .belongsTo && $0.target == parent && $0.referenceFields.isEmpty && !$0.isBroken
    }
  }

  /// Creates the implied reference fields, or uses declared ones of the same names. If some are
  /// declared, the others are equally required: the canonical text declares all of them.
  private mutating func makeFields(
    _ path: RelationshipPath, on holder: Int, keyOf parent: Int, prefix: [String], isRequired: Bool
  ) {
    let key = models[parent].key
    let names = key.map { Naming.referenceField(prefix[0], prefix[1], $0.name) }
    var free: [Field] = []
    for (name, part) in zip(names, key) {
      if let declared = models[holder].field(name) {
        guard declared.type == part.type else {
          error(
            self[path].place,
            "reference field `\(name)` of `\(models[holder].name)` is \(SDL.typeText(declared.type)), but "
              + "`\(part.name)` in the key of `\(models[parent].name)` is \(SDL.typeText(part.type))",
            "write `\(name): \(SDL.typeText(part.type))`")
          self[path].isBroken = true
          return
        }
        if !models[holder].isKeyPart(name) { free.append(declared) }
      } else if models[holder].relationship(name) != nil || !isName(name) {
        error(
          self[path].place, "\(label(path)) needs a reference field, but `\(name)` cannot be one",
          "name reference fields explicitly")
        self[path].isBroken = true
        return
      }
    }
    guard agreeOnRequirement(free, path, self[path].place) else {
      self[path].isBroken = true
      return
    }
    for (name, part) in zip(names, key) where models[holder].field(name) == nil {
      let field = Field(name: name, type: part.type, isRequired: free.first?.isRequired ?? isRequired)
      models[holder].fields.append(FieldDraft(field: field, place: self[path].place))
    }
    self[path].referenceFields = names
  }

  /// Whether the reference fields are all required, or none; reports an error if not.
  private mutating func agreeOnRequirement(_ free: [Field], _ path: RelationshipPath, _ place: Place) -> Bool
  {
    guard let optional = free.first(where: { !$0.isRequired }), free.contains(where: \.isRequired) else {
      return true
    }
    error(
      place, "reference fields of \(label(path)) are partly required: `\(optional.name)` is not",
      "make all of \(free.map(\.name).joined(separator: ", ")) required, or none")
    return false
  }

  /// A relationship is required if its field is marked so, or its reference fields outside of the
  /// key are. The two differ in Amplify's own schemas, so a difference is a warning.
  private mutating func settleRequirement(_ path: RelationshipPath) {
    let draft = self[path]
    guard draft.storesReference, !draft.isBroken, !draft.referenceFields.isEmpty else { return }
    let free = draft.referenceFields.filter { !models[path.model].isKeyPart($0) }
    let areRequired = free.allSatisfy { models[path.model].field($0)?.isRequired == true }
    self[path].isRequired = draft.isMarkedRequired || areRequired
    guard draft.isMarkedRequired != areRequired else { return }
    let names = (free.isEmpty ? draft.referenceFields : free).map { "`\($0)`" }.joined(separator: ", ")
    if areRequired {
      warn(
        draft.place, "\(label(path)) is required, because \(names) is",
        "write `\(draft.name): \(draft.target)!`")
    } else {
      warn(draft.place, "\(label(path)) is required, but \(names) is not", "add `!` to its type")
    }
  }
}
