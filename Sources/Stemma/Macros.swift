/// Makes a struct a model: its stored properties are columns, its relationship properties lead to other models.
///
/// A property named `id` is the primary key, unless another is marked with `@Column(primaryKey: true)`. A key of
/// several parts is a nested `@Selection struct`, whose properties become columns.
///
/// A model whose key is called `id` is `Identifiable`.
///
/// - Parameters:
///   - name: the table's name; without it, the model's in lower camel case and plural.
///   - model: the model's name in the schema; without it, the type's. A type that was renamed keeps its records with
///     it.
///   - policy: how concurrent writes of a record are merged.
///   - deletes: what is shown when a record was deleted here and changed there.
///   - partition: the leading key parts that name the partition a record is in; `[]` for one partition of all records.
///     Without it, the first part of a key of several, unless it is an `id`.
@attached(
  member,
  names: named(Draft), named(Columns), named(Relationships), named(_record), named(init), arbitrary)
@attached(
  extension, conformances: Table, RefusedTable, Identifiable,
  names: named(PrimaryKey), named(Draft), named(Columns), named(Relationships), named(modelName),
  named(description), named(columns), named(relationships), named(primaryKey),
  named(init), named(write))
@attached(memberAttribute)
public macro Table(
  _ name: String = "", model: String = "", policy: ConflictPolicy = .automerge,
  deletes: DeletePolicy = .byVersion, partition: [String]? = nil
) = #externalMacro(module: "StemmaMacros", type: "TableMacro")

/// What `@Table` puts on each property that is a column, so that a copy of a row knows what was set in it. `first` is the
/// column's number without the key; `parts` are the properties of a group, each with its representation, if it has one.
@attached(accessor, names: named(didSet), named(willSet))
public macro _Tracked(_ first: Int, _ parts: String...) =
  #externalMacro(module: "StemmaMacros", type: "TrackedMacro")

/// What a draft has in the place of a key part that it leaves out, of a type that only the compiler knows.
@freestanding(expression)
public macro _minted<Part>() -> Part = #externalMacro(module: "StemmaMacros", type: "MintedMacro")

/// Says how a property is stored.
///
/// - Parameters:
///   - name: the column's name. A property that was renamed keeps its values with `@Column("old") var new`.
///   - primaryKey: whether it is the primary key; `false` keeps a property `id` from being it.
@attached(peer)
public macro Column(_ name: String = "", primaryKey: Bool = false) =
  #externalMacro(module: "StemmaMacros", type: "MarkerMacro")

/// Says how a property is stored: `@Column(as: [Tag].JSONRepresentation.self) var tags: [Tag]`.
///
/// - Parameter representation: the type whose values are stored in the place of the property's; of an optional property
///   an optional one.
@attached(peer)
public macro Column<Representation: ColumnRepresentation>(
  _ name: String = "", as representation: Representation.Type
) = #externalMacro(module: "StemmaMacros", type: "MarkerMacro")

/// Leaves a property out of the table. It has a default value, which a record that is read has.
@attached(peer)
public macro Ephemeral() = #externalMacro(module: "StemmaMacros", type: "MarkerMacro")

/// An index: on a struct, of the properties that are named; on a property, of this one and those that are named.
@attached(peer)
public macro Index(_ fields: String..., name: String = "") =
  #externalMacro(module: "StemmaMacros", type: "MarkerMacro")

/// Makes a struct a ``Selection``: a group of columns of the table that it is nested in, or what a statement selects. A
/// Hashable one without optional properties can be the table's key.
@attached(member, names: named(init), named(Columns), named(_Types), named(_Defaults))
@attached(
  extension, conformances: TableKey, Selection, names: named(init), named(parts), named(write))
public macro Selection() = #externalMacro(module: "StemmaMacros", type: "SelectionMacro")

/// The record that reference fields of this one lead to: `try await member.team`. One field for each part of the
/// other model's key, in its order.
@attached(accessor)
public macro BelongsTo(_ fields: String...) =
  #externalMacro(module: "StemmaMacros", type: "BelongsToMacro")

/// As above, with the fields as key paths: `@BelongsTo(\Member.teamId)`.
@attached(accessor)
public macro BelongsTo<Row: Table>(_ fields: PartialKeyPath<Row>...) =
  #externalMacro(module: "StemmaMacros", type: "BelongsToMacro")

/// The records whose reference fields lead to this one, fetched when they are asked for.
@attached(accessor)
public macro HasMany(_ fields: String..., onDelete: DeleteRule = .standard) =
  #externalMacro(module: "StemmaMacros", type: "HasManyMacro")

/// As above, with the fields as key paths: `@HasMany(\Member.teamId)`.
@attached(accessor)
public macro HasMany<Row: Table>(_ fields: PartialKeyPath<Row>..., onDelete: DeleteRule = .standard) =
  #externalMacro(module: "StemmaMacros", type: "HasManyMacro")

/// The one record whose reference fields lead to this one. Of several, which two nodes can make without knowing of each
/// other, the one whose reference was written last in the order of merging; the others are listed as conflicts.
@attached(accessor)
public macro HasOne(_ fields: String..., onDelete: DeleteRule = .standard) =
  #externalMacro(module: "StemmaMacros", type: "HasOneMacro")

/// As above, with the fields as key paths: `@HasOne(\Cart.customerId)`.
@attached(accessor)
public macro HasOne<Row: Table>(_ fields: PartialKeyPath<Row>..., onDelete: DeleteRule = .standard) =
  #externalMacro(module: "StemmaMacros", type: "HasOneMacro")

/// The records on the far side of a join model, which belongs to both sides.
///
/// - Parameter by: the join model's relationship to this side; needed where both sides are of one model.
@attached(accessor)
public macro ManyToMany<Join: Table>(through join: Join.Type, by: String = "") =
  #externalMacro(module: "StemmaMacros", type: "HasManyMacro")

/// Refused: a relationship through a join model names it.
@attached(accessor)
public macro ManyToMany(by: String = "") = #externalMacro(module: "StemmaMacros", type: "HasManyMacro")
