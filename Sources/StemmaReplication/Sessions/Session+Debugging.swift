import StemmaEvents

extension Session {
  /// Traps if the session's state is inconsistent or breaks one of the invariants of `Session`. For
  /// tests: compares all version vectors at every call.
  package func checkInvariants() {
    if case .over = state { return }
    if case .waitingForGreeting = state {
      precondition(peer == nil && summary == SessionSummary(), "nothing is known before the greeting")
    } else {
      precondition(peer != nil && summary.peer == peer, "nothing goes on before the greeting")
    }
    precondition(opened || remaining.isEmpty, "tasks are those of the side that opened")
    precondition(remaining.count <= 1, "a sync is two transfers")
    checkSummary()
    switch state {
    case .waitingToBegin: precondition(opened, "the side that opened begins")
    case .idle: precondition(!opened, "the side that was called waits")
    case .waitingForRequest(let scope):
      precondition(opened && scope == run, "what was offered is what this run is about")
    case .receiving(let receiving):
      receiving.checkInvariants()
      precondition(receiving.next == nil, "a batch waits only for the one before")
      // All events that were read are durable: no others are acknowledged, and no batch is early.
      precondition(
        receiving.versionVector.covers(receiving.reader.versionVector), "a batch waits for the one before")
    case .adopting(let receiving):
      receiving.checkInvariants()
      precondition(receiving.batches > 0, "there is a batch to adopt")
      precondition(receiving.next == nil || receiving.parts.isEmpty, "one batch waits at most")
    case .shipping(let shipping):
      precondition(shipping.end == nil && shipping.held.isEmpty, "the end comes last")
    case .waitingForAcknowledgement(let shipping):
      precondition(shipping.end?.batches == shipping.batches, "the end counts what was sent")
      precondition(shipping.end?.events == shipping.summary.events, "the end counts what was sent")
    case .waitingForGreeting, .over: break
    }
  }

  private func checkSummary() {
    precondition(summary.pulled?.direction ?? .received == .received, "what was pulled was received")
    precondition(summary.pushed?.direction ?? .sent == .sent, "what was pushed was sent")
    let own = Set(node.greeting.ownOrigins)
    precondition(summary.originsToRetire.allSatisfy(own.contains), "a session retires own origins")
    precondition(summary.originsToRetire == Set(summary.originsToRetire).sorted(), "each is named once")
  }
}

extension Session.Receiving {
  fileprivate func checkInvariants() {
    let scope = request.scope
    for versionVector in [request.versionVector, reader.versionVector, versionVector] {
      versionVector.checkInvariants()
    }
    precondition(summary.direction == .received, "what comes is received")
    precondition(partBytes == parts.reduce(0) { $0 + $1.count }, "each part counts")
    precondition(partBytes <= ReplicationLimits.batch, "a batch is limited")
    for (part, next) in zip(parts, parts.dropFirst()) {
      precondition(part.count + next.count > ReplicationLimits.chunk, "short chunks take no array each")
    }
    precondition(reader.versionVector.covers(request.versionVector), "reading only adds")
    precondition(versionVector.covers(request.versionVector), "what is held stays held")
    for partition in Set(versionVector.partitions.keys).union(reader.versionVector.partitions.keys) {
      precondition(scope.contains(partition), "only what was asked for is received")
    }
    precondition(summary.events == 0 || batches > 0, "events come in batches")
    precondition(summary.partitions == Set(summary.partitions).sorted(), "each partition is named once")
  }
}
