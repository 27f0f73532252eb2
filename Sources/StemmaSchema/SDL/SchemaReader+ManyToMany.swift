extension SchemaReader {
  /// Builds the join model of each `@manyToMany(relationName:)`, named as the relation.
  ///
  /// Its key has the reference fields of both sides, in the order of their model names. For a model
  /// related to itself, the fields' names decide. So both sides of the text and all readers agree
  /// on the order.
  mutating func readManyToMany() {
    var relations: [String: [RelationshipPath]] = [:]
    var order: [String] = []
    for path in relationshipPaths where self[path].kind == .manyToMany {
      guard let name = string("relationName", of: self[path].directive) else {
        self[path].isBroken = true
        continue
      }
      if relations[name] == nil { order.append(name) }
      relations[name, default: []].append(path)
    }
    for name in order { makeJoinModel(name, relations[name] ?? []) }
  }

  private mutating func makeJoinModel(_ name: String, _ paths: [RelationshipPath]) {
    let place = self[paths[0]].directive.argument("relationName")?.value.place ?? self[paths[0]].place
    guard paths.count == 2 else {
      error(
        place, "relation `\(name)` is used \(paths.count == 1 ? "once" : "\(paths.count) times")",
        "use `@manyToMany(relationName: \"\(name)\")` on exactly two fields, one of each model")
      return
    }
    guard paths.allSatisfy({ !self[$0].isBroken && !models[$0.model].keyFields.isEmpty }) else { return }
    let (first, second) = (paths[0], paths[1])
    guard self[first].target == models[second.model].name, self[second].target == models[first.model].name
    else {
      error(
        place,
        "the two sides of relation `\(name)` do not face each other: `\(models[first.model].name)` names "
          + "`\(self[first].target)`, `\(models[second.model].name)` names `\(self[second].target)`",
        "let each side's type be the other's model")
      return
    }
    guard isName(name) else {
      error(place, "`\(name)` cannot name a join model", "use letters, digits and _, a letter first")
      return
    }
    guard modelNames[name] == nil, enums[name] == nil, !embeddedNames.contains(name),
      Scalar(rawValue: name) == nil
    else {
      error(
        place, "join model `\(name)` has the name of another type",
        "rename the relation, or drop it and use `@hasMany` of `\(name)` on both sides")
      return
    }
    let sides = paths.sorted {
      (models[$0.model].name, self[$0].name) < (models[$1.model].name, self[$1].name)
    }
    let isReflexive = first.model == second.model
    var join = ModelDraft(name: name, place: place)
    for side in sides {
      let model = models[side.model]
      let prefix =
        isReflexive
        ? Naming.referenceField(model.name, self[side].name) : Naming.referenceField(model.name)
      let names = Naming.joinFields(prefix: prefix, keyParts: model.key.map(\.name))
      for (name, part) in zip(names, model.key) {
        join.keyFields.append(join.fields.count)
        join.fields.append(
          FieldDraft(field: Field(name: name, type: part.type, isRequired: true), place: place))
      }
      var inverse = RelationshipDraft(
        name: prefix, place: place, kind: .belongsTo, directive: self[side].directive, target: model.name,
        isMarkedRequired: true)
      inverse.storesReference = true
      inverse.referenceFields = names
      inverse.isRequired = true
      join.relationships.append(inverse)
      self[side].referenceFields = names
      self[side].joinModel = name
      if side == sides[1] {
        join.indexes = [Index(name: "by\(Naming.capital(prefix))", fields: names)]
      }
    }
    join.partitionDepth = Self.standardPartitionDepth(key: join.key)
    modelNames[name] = models.count
    models.append(join)
  }
}
