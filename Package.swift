// swift-tools-version:6.2

import CompilerPluginSupport
import PackageDescription

/// All targets are built in Swift 6 mode with warnings as errors.
let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let sqlite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let syntax: [Target.Dependency] = [
  .product(name: "SwiftSyntax", package: "swift-syntax"),
  .product(name: "SwiftParser", package: "swift-syntax"),
  .product(name: "SwiftSyntaxBuilder", package: "swift-syntax"),
  .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
  .product(name: "SwiftDiagnostics", package: "swift-syntax"),
  .product(name: "SwiftCompilerPlugin", package: "swift-syntax"),
]
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let network: [Target.Dependency] = [
  .product(name: "Hummingbird", package: "hummingbird"),
  .product(name: "HummingbirdCore", package: "hummingbird"),
  .product(name: "AsyncHTTPClient", package: "async-http-client"),
  .product(name: "HTTPTypes", package: "swift-http-types"),
  .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
  .product(name: "NIOCore", package: "swift-nio"),
  .product(name: "NIOHTTP1", package: "swift-nio"),
  .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
  .product(name: "NIOPosix", package: "swift-nio"),
  .product(name: "NIOSSL", package: "swift-nio-ssl"),
  .product(name: "Logging", package: "swift-log"),
  lifecycle,
  .product(name: "UnixSignals", package: "swift-service-lifecycle"),
]
let objectClient: [Target.Dependency] = [
  .product(name: "AsyncHTTPClient", package: "async-http-client"),
  .product(name: "NIOCore", package: "swift-nio"),
  .product(name: "NIOHTTP1", package: "swift-nio"),
]
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

/// With `STEMMA_OPTIMIZED`, debug builds optimize the modules in which tests spend most of their
/// time and keep assertions. Tests then take a third of the time. It is off by default: packages
/// cannot depend on unsafe flags, and each change would recompile the whole module.
let optimized: [SwiftSetting] =
  Context.environment["STEMMA_OPTIMIZED"] == nil
  ? []
  : [
    .unsafeFlags(
      ["-O", "-wmo", "-num-threads", "2", "-assert-config", "Debug"], .when(configuration: .debug))
  ]

func module(
  _ name: String, _ dependencies: [Target.Dependency] = [], isHot: Bool = false, resources: [Resource] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies, resources: resources,
    swiftSettings: strict + (isHot ? optimized : []))
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

let package = Package(
  name: "stemma",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "Stemma", targets: ["Stemma"]),
    .library(name: "StemmaHTTP", targets: ["StemmaHTTP"]),
    .library(name: "StemmaHub", targets: ["StemmaHub"]),
    .executable(name: "stemma", targets: ["StemmaTool"]),
  ],
  dependencies: [
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/swiftlang/swift-syntax", "600.0.1"..<"604.0.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    .systemLibrary(
      name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .target(name: "CStemma"),

    module("StemmaSchema", isHot: true),
    module("StemmaEvents", ["StemmaSchema", "CZlib", "CStemma", crypto], isHot: true),
    module("StemmaMerge", ["StemmaSchema", "StemmaEvents"], isHot: true),
    module("StemmaLog", ["StemmaEvents", "CStemma", crypto], isHot: true),
    module("StemmaTables", ["StemmaMerge", "StemmaLog", "CStemma", grdb, sqlite, crypto], isHot: true),
    module("StemmaReplication", ["StemmaLog", crypto], isHot: true),
    module("StemmaNode", ["StemmaReplication", "StemmaTables"], isHot: true),
    module("StemmaImport", ["StemmaNode", "CZlib"], isHot: true),
    module("StemmaHistory", ["StemmaNode"], isHot: true),
    module("StemmaSync", ["StemmaNode"]),
    module(
      "StemmaHTTP", ["StemmaSync", "StemmaHistory", crypto] + network,
      resources: [.embedInCode("openapi.json"), .embedInCode("Page")]),
    module("StemmaHub", ["StemmaSync", crypto] + objectClient),
    module("StemmaSimulation", ["StemmaMerge", "StemmaLog", "StemmaReplication"], isHot: true),
    .macro(name: "StemmaMacros", dependencies: syntax, swiftSettings: strict),
    module("Stemma", ["StemmaNode", "StemmaHistory", "StemmaSync", "StemmaMacros", grdb, sqlite, lifecycle]),

    .executableTarget(
      name: "StemmaTool",
      dependencies: [
        "StemmaSchema", "StemmaEvents", "StemmaLog", "StemmaTables", "StemmaReplication", "StemmaNode",
        "StemmaImport", "StemmaHistory", "StemmaSync", "StemmaHTTP", "StemmaHub", "CStemma", argumentParser,
        .product(name: "Logging", package: "swift-log"),
      ], path: "Tools/stemma",
      swiftSettings: strict),
    .executableTarget(
      name: "git-history", dependencies: ["StemmaEvents", argumentParser, crypto], path: "Tools/git-history",
      swiftSettings: strict),
    .target(
      name: "Measuring", dependencies: [sqlite, argumentParser], path: "Tools/measuring",
      swiftSettings: strict),
    .executableTarget(
      name: "benchmark",
      dependencies: [
        "Measuring", "StemmaEvents", "StemmaLog", "StemmaReplication", "StemmaNode", "StemmaImport",
        "StemmaHistory", "StemmaHTTP", "StemmaHub", "CZlib", sqlite, argumentParser,
      ],
      path: "Tools/benchmark", exclude: ["nats_peers.py"],
      swiftSettings: strict),
    .executableTarget(
      name: "benchmark-library",
      dependencies: ["Measuring", "Stemma", "StemmaNode", "StemmaImport", grdb, sqlite, argumentParser],
      path: "Tools/benchmark-library",
      swiftSettings: strict),
    .executableTarget(
      name: "simulate", dependencies: ["StemmaSimulation", "CStemma", argumentParser], path: "Tools/simulate",
      swiftSettings: strict),
    // A sample of an app that uses the library.
    .executableTarget(
      name: "reminders", dependencies: ["Stemma", "StemmaHTTP"], path: "Tools/reminders",
      swiftSettings: strict),

    tests("StemmaSchemaTests", ["StemmaSchema", "StemmaSimulation"]),
    tests("StemmaEventsTests", ["StemmaSchema", "StemmaEvents", "StemmaSimulation"]),
    tests("StemmaMergeTests", ["StemmaMerge", "StemmaSimulation"]),
    tests("StemmaLogTests", ["StemmaEvents", "StemmaLog", "StemmaSimulation"]),
    tests(
      "StemmaTablesTests",
      ["StemmaSchema", "StemmaEvents", "StemmaMerge", "StemmaLog", "StemmaTables", "StemmaSimulation"]),
    tests(
      "StemmaReplicationTests",
      ["StemmaSchema", "StemmaEvents", "StemmaLog", "StemmaReplication", "StemmaSimulation"]),
    tests(
      "StemmaMacrosTests",
      [
        "StemmaMacros", .product(name: "SwiftSyntaxMacrosGenericTestSupport", package: "swift-syntax"),
        .product(name: "SwiftSyntaxMacroExpansion", package: "swift-syntax"),
        .product(name: "SwiftParser", package: "swift-syntax"),
      ]),
    // Declarations that are only compiled.
    .target(name: "Shapes", dependencies: ["Stemma"], path: "Tests/Shapes", swiftSettings: strict),
    .target(
      name: "MainActorShapes", dependencies: ["Stemma"], path: "Tests/MainActorShapes",
      swiftSettings: strict + [.defaultIsolation(MainActor.self)]),
    // Declarations generated from the schemas in the same directory.
    .target(
      name: "Generated", dependencies: ["Stemma"], path: "Tests/Generated", exclude: ["Odd.graphql"],
      swiftSettings: strict),
    tests(
      "StemmaTests",
      [
        "Stemma", "StemmaImport", "StemmaHistory", "StemmaHTTP", "StemmaHub", "StemmaSimulation", "Shapes",
        "MainActorShapes", "Generated", "reminders", .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ]),
    tests("GitHistoryTests", ["StemmaSchema", "git-history"]),
    tests(
      "StemmaNodeTests",
      [
        "StemmaSchema", "StemmaEvents", "StemmaMerge", "StemmaLog", "StemmaTables", "StemmaReplication",
        "StemmaNode", "StemmaImport", "StemmaHistory", "StemmaSimulation",
      ]),
    // Object stores and web servers that tests start.
    .target(
      name: "Servers", dependencies: ["StemmaReplication", "StemmaHub"], path: "Tests/Servers",
      exclude: ["moto_setup.py", "stub_server.py"], swiftSettings: strict),
    tests("StemmaHubTests", ["StemmaReplication", "StemmaHub", "StemmaSimulation", "Servers"]),
    tests("HabitTests", []),
    // The measuring programs are only compiled.
    tests("MeasuringTests", ["Measuring", "benchmark", "benchmark-library"]),
    tests(
      "ScenarioTests",
      [
        grdb, "Stemma", "StemmaEvents", "StemmaReplication", "StemmaNode", "StemmaImport", "StemmaHistory",
        "StemmaHub", "StemmaSimulation", "StemmaTool", "Servers",
      ],
      exclude: ["Golden", "blocks.py", "client.py", "read_log.py", "records.py"]),
  ],
  swiftLanguageModes: [.v6]
)

/// Selects the test targets of the test product. Macro tests are built for the host, like the
/// macros, and so is every other target in their product. A package that uses the library could
/// then not reuse those builds. `STEMMA_TESTS` is `macros`, `others` (all but the macro tests) or a
/// list such as `StemmaNodeTests,ScenarioTests`. Without it, one product holds all tests.
if let tests = Context.environment["STEMMA_TESTS"] {
  let names = Set(tests.split(separator: ",").map(String.init))
  package.targets.removeAll { target in
    guard target.type == .test else { return false }
    let isOfMacros = target.name == "StemmaMacrosTests"
    return !(names.contains(target.name) || names.contains(isOfMacros ? "macros" : "others"))
  }
}

/// Adds `swift package generate-documentation` if `STEMMA_DOCUMENTATION` is set. The plugin is a
/// dependency of this package that its users do not need.
if Context.environment["STEMMA_DOCUMENTATION"] != nil {
  package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.4.0"))
}
