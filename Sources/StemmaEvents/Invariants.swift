/// Returns true, or `check` traps. For `assert`, which evaluates it in debug builds only.
///
///     assert(holds(checkInvariants))
package func holds(_ check: () -> Void) -> Bool {
  check()
  return true
}
