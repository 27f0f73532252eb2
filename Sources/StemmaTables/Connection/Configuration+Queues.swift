import CStemma
import GRDB

extension Configuration {
  /// Of a connection whose queue stays, if this process keeps queues (`stemma_keep_queues`).
  static func keepingQueue() -> Configuration {
    var configuration = Configuration()
    // Runs on the queue of each connection, those of a pool included, before anything is read.
    configuration.prepareDatabase { _ in stemma_keep_current_queue() }
    return configuration
  }
}
