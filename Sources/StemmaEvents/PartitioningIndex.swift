extension RandomAccessCollection {
  /// The first index whose element satisfies `belongsInSecond`, or the end. The elements that
  /// satisfy it must follow all others. O(log n) calls.
  @inlinable
  package func partitioningIndex<Failure: Error>(
    where belongsInSecond: (Element) throws(Failure) -> Bool
  ) throws(Failure) -> Index {
    var (low, count) = (startIndex, self.count)
    while count > 0 {
      let middle = index(low, offsetBy: count / 2)
      if try belongsInSecond(self[middle]) {
        count /= 2
      } else {
        low = index(after: middle)
        count -= count / 2 + 1
      }
    }
    return low
  }
}
