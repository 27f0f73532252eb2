import StemmaEvents

/// Verified events from another node that are new here, in the order in which the sender got them.
package struct AdoptedEvents: Sendable {
  package var events: [Event]
  /// Author and message of each commit.
  package var messages: [CommitID: CommitMessage]

  package init(_ events: [Event], messages: [CommitID: CommitMessage] = [:]) {
    self.events = events
    self.messages = messages
  }
}
