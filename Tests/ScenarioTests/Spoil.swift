import Foundation
import GRDB

/// Changes a node's tables without the node's knowledge.
enum Spoil {
  static func execute(_ sql: String, in path: String) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.write { try $0.execute(sql: sql) }
    try queue.close()
  }
}
