import StemmaReplication
import Testing

@testable import StemmaHub

@Suite("Addresses of stores") struct StoreAddressTests {
  private let settings = AWSSettings(credentials: AWSCredentials(accessKey: "a", secretKey: "SECRET"))

  @Test("schemes")
  func schemes() throws {
    #expect(try StoreAddress("s3://bucket") == .s3(bucket: "bucket", prefix: ""))
    #expect(try StoreAddress("s3://bucket/a/b/") == .s3(bucket: "bucket", prefix: "a/b"))
    #expect(try StoreAddress("S3://bucket//a") == .s3(bucket: "bucket", prefix: "a"))
    #expect(try StoreAddress("file:///a/b%20c") == .folder("/a/b c"))
    #expect(try StoreAddress("https://host/a") == .web("https://host/a"))
    #expect(try StoreAddress("http://host:8080") == .web("http://host:8080"))
  }

  @Test(
    "what is no address is refused",
    arguments: [
      "", "bucket", "s3://", "s3:///prefix", "s3://user@bucket", "s3://bucket?x", "file://host/a", "file://a",
      "ftp://host", "https://", "https://user:secret@host/", "https://host:99999", "https://host/?q",
      "/folder",
    ])
  func refusals(_ text: String) throws {
    let error = #expect(throws: ObjectError.self) { try StoreAddress(text) }
    guard case .refused(let reason)? = error else { return #expect(Bool(false), "not refused") }
    #expect(!reason.contains("secret"))
  }

  @Test("options and settings choose the endpoint, and an endpoint the style of its paths")
  func styles() throws {
    typealias Options = StoreAddress.Options
    let address = try StoreAddress("s3://bucket/a")
    for options in [Options(), Options(endpoint: "https://host/base"), Options(region: "cn-north-1")] {
      #expect(try address.open(options, settings).name == "s3://bucket/a")
    }
    #expect(throws: ObjectError.self) { try address.open(Options(), AWSSettings()) }
    #expect(throws: ObjectError.self) { try address.open(Options(endpoint: "host"), settings) }
    #expect(throws: ObjectError.self) { try address.open(Options(region: "a/b"), settings) }
    #expect(throws: ObjectError.self) { try StoreAddress("s3://b:1/a").open(Options(), settings) }
    #expect(throws: ObjectError.self) { try StoreAddress("s3://bucket/a/../b").open(Options(), settings) }
    #expect(try StoreAddress("https://host/a/").open(Options(), settings).name == "https://host/a")
    #expect(try StoreAddress("file:///a/").open(Options(), settings).name == "/a")
  }

  @Test("hosts and paths of server URLs")
  func serverURLs() throws {
    let server = try ServerURL("HTTPS://host:443/a%20b/")
    #expect(server.authority == "host")
    #expect(server.url(server.path + "/k", query: "q=1") == "https://host/a%20b/k?q=1")
    #expect(try ServerURL("http://[::1]:9000").authority == "[::1]:9000")
  }
}
