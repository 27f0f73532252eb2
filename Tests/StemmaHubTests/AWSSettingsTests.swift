import StemmaReplication
import Testing

@testable import StemmaHub

@Suite("Credentials and settings of AWS") struct AWSSettingsTests {
  private let credentialsFile = """
    # a comment
    [default]
    aws_access_key_id = D1
    aws_secret_access_key=D2=with=signs
    [ work ]
    aws_access_key_id = W1
    aws_secret_access_key = W2
    aws_session_token = W3
    [half]
    aws_access_key_id = H1
    """
  private let configFile = """
    [default]
    region = eu-west-1
    s3 =
      endpoint_url = https://nested.example
    [profile work]
    region = eu-north-1
    endpoint_url = https://work.example
    [profile config]
    aws_access_key_id = C1
    aws_secret_access_key = C2
    [profile role]
    role_arn = arn:aws:iam::1:role/x
    [other]
    region = nowhere
    """

  private func find(_ profile: String? = nil, _ environment: [String: String] = [:]) throws -> AWSSettings {
    try AWSCredentials.find(
      profile: profile, environment: environment, credentialsFile: credentialsFile, configFile: configFile)
  }

  @Test("keys of the environment precede those of files, unless a profile is named")
  func environment() throws {
    let variables = [
      "AWS_ACCESS_KEY_ID": "E1", "AWS_SECRET_ACCESS_KEY": "E2", "AWS_SESSION_TOKEN": "E3",
      "AWS_PROFILE": "work",
    ]
    let environment = AWSCredentials(accessKey: "E1", secretKey: "E2", sessionToken: "E3")
    let work = AWSCredentials(accessKey: "W1", secretKey: "W2", sessionToken: "W3")
    #expect(try find(nil, variables).credentials == environment)
    // The other settings are those of the profile.
    #expect(try find(nil, variables).region == "eu-north-1")
    #expect(try find("work", variables).credentials == work)
    #expect(try find(nil, ["AWS_PROFILE": "work"]).credentials == work)
    #expect(try find(nil, ["AWS_PROFILE": ""]).credentials?.accessKey == "D1")
    // A token of the environment does not go with keys of a file.
    #expect(try find(nil, ["AWS_SESSION_TOKEN": "E3"]).credentials?.sessionToken == nil)
    #expect(throws: ObjectError.self) { try find(nil, ["AWS_ACCESS_KEY_ID": "E1"]) }
    #expect(throws: ObjectError.self) { try find(nil, ["AWS_SECRET_ACCESS_KEY": "E2"]) }
  }

  @Test("profiles are sections of two files")
  func profiles() throws {
    #expect(try find().credentials == AWSCredentials(accessKey: "D1", secretKey: "D2=with=signs"))
    #expect(try find("config").credentials == AWSCredentials(accessKey: "C1", secretKey: "C2"))
    for absent in ["none", "other", "profile work"] {
      #expect(throws: ObjectError.self, "\(absent)") { try find(absent) }
    }
    #expect(throws: ObjectError.self) { try find("half") }
    #expect(throws: ObjectError.self) { try find("role") }
    let nothing = try AWSCredentials.find(
      profile: nil, environment: [:], credentialsFile: nil, configFile: nil)
    #expect(nothing == AWSSettings())
  }

  @Test("regions and endpoints")
  func places() throws {
    #expect(try find().region == "eu-west-1")
    #expect(try find().endpoint == nil)
    #expect(try find("work").endpoint == "https://work.example")
    #expect(try find(nil, ["AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"]).region == "a")
    #expect(try find(nil, ["AWS_DEFAULT_REGION": "b"]).region == "b")
    #expect(try find("work", ["AWS_ENDPOINT_URL": "x"]).endpoint == "x")
    #expect(try find("work", ["AWS_ENDPOINT_URL": "x", "AWS_ENDPOINT_URL_S3": "y"]).endpoint == "y")
  }

  @Test("no description has a secret, and unprintable keys are refused")
  func secrets() throws {
    let credentials = AWSCredentials(accessKey: "open", secretKey: "SECRET", sessionToken: "TOKEN")
    var text = "\(credentials) \(String(reflecting: credentials)) \(AWSSettings(credentials: credentials))"
    dump(credentials, to: &text)
    dump(
      S3Store.Configuration(bucket: "b", isPathStyle: true, credentials: credentials), to: &text)
    #expect(text.contains("open"))
    #expect(!text.contains("SECRET") && !text.contains("TOKEN"))
    for value in ["a\nb", "ä", "a b"] {
      let error = #expect(throws: ObjectError.self) {
        try find(nil, ["AWS_ACCESS_KEY_ID": "E1", "AWS_SECRET_ACCESS_KEY": value])
      }
      #expect(error?.reason.contains(value) == false)
    }
  }
}
