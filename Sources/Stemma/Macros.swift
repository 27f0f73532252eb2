/// Makes a struct a model: stored properties are columns, relationship properties lead to models.
///
/// A property named `id` is the primary key, unless `@Column(primaryKey: true)` marks another one.
/// A key of several parts is a nested `@Selection struct`, whose properties become columns.
///
/// A model whose key is called `id` is `Identifiable`.
///
/// - Parameters:
///   - name: the table's name; without it, the model's in lower camel case and plural.
///   - model: the model's name in the schema; without it, the type's. A renamed type keeps its
///     records with it.
///   - policy: how concurrent writes of a record are merged.
///   - deletes: what is shown for a record that was deleted and changed concurrently.
///   - partition: the leading key parts that name a record's partition; `[]` for one partition.
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

/// `@Table` adds this to column properties, so that a copy of a row records what was set in it.
/// Column `first` is counted without the key; `parts` are a group's properties and representations.
@attached(accessor, names: named(didSet), named(willSet))
public macro _Tracked(_ first: Int, _ parts: String...) =
  #externalMacro(module: "StemmaMacros", type: "TrackedMacro")

/// The placeholder in a draft for an omitted key part whose type only the compiler knows.
@freestanding(expression)
public macro _minted<Part>() -> Part = #externalMacro(module: "StemmaMacros", type: "MintedMacro")

/// Says how a property is stored.
///
/// - Parameters:
///   - name: the column's name. A renamed property keeps its values with `@Column("old") var new`.
///   - primaryKey: whether it is the primary key; `false` keeps a property `id` from being it.
@attached(peer)
public macro Column(_ name: String = "", primaryKey: Bool = false) =
  #externalMacro(module: "StemmaMacros", type: "MarkerMacro")

/// Says how a property is stored: `@Column(as: [Tag].JSONRepresentation.self) var tags: [Tag]`.
///
/// - Parameter representation: the type whose values are stored instead of the property's; an
///   optional one for an optional property.
@attached(peer)
public macro Column<Representation: ColumnRepresentation>(
  _ name: String = "", as representation: Representation.Type
) = #externalMacro(module: "StemmaMacros", type: "MarkerMacro")

/// Leaves a property out of the table. It needs a default value, which every record read has.
@attached(peer)
public macro Ephemeral() = #externalMacro(module: "StemmaMacros", type: "MarkerMacro")

/// An index: on a struct, of the named properties; on a property, of this one and the named ones.
@attached(peer)
public macro Index(_ fields: String..., name: String = "") =
  #externalMacro(module: "StemmaMacros", type: "MarkerMacro")

/// Makes a struct a ``Selection``: a group of columns of the enclosing table, or a statement's
/// output. A Hashable one without optional properties can be the table's key.
@attached(member, names: named(init), named(Columns), named(_Types), named(_Defaults))
@attached(
  extension, conformances: TableKey, Selection, names: named(init), named(parts), named(write))
public macro Selection() = #externalMacro(module: "StemmaMacros", type: "SelectionMacro")

/// The record that this one's reference fields lead to: `try await member.team`. It takes one field
/// for each part of the other model's key, in its order.
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

/// A to-one relationship stored on the other model. If concurrent writes create several, the merge
/// winner is returned and the others are listed as conflicts.
@attached(accessor)
public macro HasOne(_ fields: String..., onDelete: DeleteRule = .standard) =
  #externalMacro(module: "StemmaMacros", type: "HasOneMacro")

/// As above, with the fields as key paths: `@HasOne(\Cart.customerId)`.
@attached(accessor)
public macro HasOne<Row: Table>(_ fields: PartialKeyPath<Row>..., onDelete: DeleteRule = .standard) =
  #externalMacro(module: "StemmaMacros", type: "HasOneMacro")

/// The records on the far side of a join model, which belongs to both sides.
///
/// - Parameter by: the join model's relationship to this side; needed if both are of one model.
@attached(accessor)
public macro ManyToMany<Join: Table>(through join: Join.Type, by: String = "") =
  #externalMacro(module: "StemmaMacros", type: "HasManyMacro")

/// Refused: a relationship through a join model names it.
@attached(accessor)
public macro ManyToMany(by: String = "") = #externalMacro(module: "StemmaMacros", type: "HasManyMacro")
