import ArgumentParser
import Foundation
import StemmaNode

extension CompletionKind {
  /// The models of the node that the command line names, or that the shell stands in.
  static var modelNames: CompletionKind { .custom { words, _, _ in nodeNames(words).models } }

  static var remoteNames: CompletionKind { .custom { words, _, _ in nodeNames(words).remotes } }

  /// Without a node there is nothing to offer: a completion never fails.
  private static func nodeNames(_ words: [String]) -> (models: [String], remotes: [String]) {
    var directory = ProcessInfo.processInfo.environment["STEMMA_NODE"] ?? ""
    for (word, next) in zip(words, words.dropFirst()) where word == "-C" { directory = next }
    do { return try Node.names(near: directory.isEmpty ? "." : directory) } catch { return ([], []) }
  }
}
