import Testing

@Suite("@Selection")
struct SelectionTests {
  @Test("a key of several parts gives its parts, and is made of optional ones")
  func parts() {
    expectExpansion(
      of: """
        @Selection struct ID: Hashable {
          let courseID: Int
          let studentID: Int
        }
        """,
      as: """
        struct ID: Hashable {
          let courseID: Int
          let studentID: Int
        }

        extension ID: Stemma.TableKey {
          init?(optionalParts: (Int?, Int?)) {
            guard let part0 = optionalParts.0, let part1 = optionalParts.1 else {
              return nil
            }
            self.courseID = part0
            self.studentID = part1
          }
          var parts: (Int, Int) {
            (self.courseID, self.studentID)
          }
          func write(to record: inout Stemma.RecordWriter) {
            record.key(self.courseID)
            record.key(self.studentID)
          }
        }
        """)
  }

  @Test("the harness notices a wrong expansion")
  func harness() {
    withKnownIssue {
      expectExpansion(of: "@HasMany(\"a\") var a: Related<B>", as: "var a: Related<B>")
    }
  }
}
