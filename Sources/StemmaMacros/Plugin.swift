import SwiftCompilerPlugin
import SwiftSyntaxMacros

@main
struct StemmaPlugin: CompilerPlugin {
  let providingMacros: [any Macro.Type] = [
    TableMacro.self, MarkerMacro.self, SelectionMacro.self, BelongsToMacro.self, HasManyMacro.self,
    HasOneMacro.self, TrackedMacro.self, MintedMacro.self,
  ]
}
