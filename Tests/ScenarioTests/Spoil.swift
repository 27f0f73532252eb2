import Foundation
import GRDB

/// Changes a node's tables while no node has it open.
enum Spoil {
  static func execute(_ sql: String, in path: String) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.write { try $0.execute(sql: sql) }
    try queue.close()
  }
}
