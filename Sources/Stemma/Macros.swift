/// Makes a struct a model: its stored properties are columns, its relationship properties lead to other models.
///
/// A property named `id` is the primary key, unless another is marked with `@Column(primaryKey: true)`. A key of
/// several parts is a nested `@Selection struct`, whose properties become columns.
///
/// - Parameter name: the table's name; without it, the type's in lower camel case and plural.
@attached(
  member,
  names: named(Draft), named(PrimaryKey), named(primaryKey), named(Columns), named(Relationships),
  named(_record), arbitrary)
@attached(
  extension, conformances: Table,
  names: named(modelName), named(description), named(columns), named(relationships), named(primaryKey),
  named(PrimaryKey), named(init), named(write))
public macro Table(_ name: String = "") = #externalMacro(module: "StemmaMacros", type: "TableMacro")

/// Says how a property is stored.
@attached(peer)
public macro Column(_ name: String = "", primaryKey: Bool = false) =
  #externalMacro(module: "StemmaMacros", type: "MarkerMacro")

/// Makes a struct of values a key of several parts.
@attached(extension, conformances: TableKey, names: named(init), named(parts), named(write))
public macro Selection() = #externalMacro(module: "StemmaMacros", type: "SelectionMacro")

/// The record that reference fields of this one lead to: `try await member.team`.
@attached(accessor)
public macro BelongsTo(_ fields: String...) =
  #externalMacro(module: "StemmaMacros", type: "BelongsToMacro")

/// The records whose reference fields lead to this one, fetched when they are asked for.
@attached(accessor)
public macro HasMany(_ fields: String...) = #externalMacro(module: "StemmaMacros", type: "HasManyMacro")

/// The one record whose reference fields lead to this one.
@attached(accessor)
public macro HasOne(_ fields: String...) = #externalMacro(module: "StemmaMacros", type: "HasOneMacro")
