import ArgumentParser
import StemmaEvents
import StemmaHub
import StemmaNode
import StemmaReplication

struct HubCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hub",
    abstract: "Prepare and examine a hub: a bucket or folder through which nodes agree.",
    discussion: """
      Examples:
        stemma hub doctor s3://shop/hub --region eu-1
        stemma hub init s3://shop/hub --region eu-1
        stemma hub status file:///mnt/share/hub
      """,
    subcommands: [HubInit.self, HubDoctorCommand.self, HubStatus.self])
}

struct HubInit: ParsableCommand, NodelessCommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Make a hub.",
    discussion: """
      Nodes name it with `stemma remote add`, and push. With --key-file all that it has is sealed; the file is made if it is \
      not there, and every node needs a copy of it.
      Examples:
        stemma hub init file:///mnt/share/hub
        stemma hub init s3://shop/hub --region eu-1 --key-file hub.key
      """)
  @Argument(help: "s3://BUCKET/PREFIX or file:///FOLDER.") var url: String
  @OptionGroup var hub: HubOptions
  @OptionGroup var format: FormatOptions

  func run() throws {
    let address = try hub.hub(url)
    // A hub that is there has its key already.
    if let path = address.keyFile, try !HubDescription.isThere(at: address), try HubKey.make(path) {
      Output.warning("\(path) is the key of this hub: without a copy of it, what is pushed cannot be read")
    }
    let opened = try address.open()
    let (description, isNew) = try HubDescription.make(
      in: opened.store, .ordinary(), key: opened.key)
    if format.isJSON {
      Output.line(
        .object([
          ("hub", .string(description.hub)), ("address", .string(address.text)), ("isNew", .bool(isNew)),
        ]))
    } else {
      Output.line(printable(isNew ? "made a hub at \(address.text)" : "there is a hub at \(address.text)"))
    }
    Output.flush()
  }
}

struct HubDoctorCommand: ParsableCommand, NodelessCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Check whether a bucket or folder can be a hub.",
    discussion: """
      Writes and reads a few objects below doctor/, lets two writers race, and removes the objects. Exits with 1 if the \
      store does not do what a hub needs.
      Examples:
        stemma hub doctor s3://shop/hub --endpoint http://localhost:8333
        stemma hub doctor file:///mnt/share/hub --json
      """)
  @Argument(help: "s3://BUCKET/PREFIX or file:///FOLDER.") var url: String
  @OptionGroup var hub: HubOptions
  @OptionGroup var format: FormatOptions

  func run() throws {
    let findings = HubDoctor(try hub.hub(url).open().counted, .ordinary()).examine()
    let isFit = findings.allSatisfy { $0.failure == nil }
    if format.isJSON {
      let rows = findings.map { finding in
        JSON.object([
          ("requirement", .string(finding.requirement)), ("holds", .bool(finding.failure == nil)),
          ("failure", finding.failure.map { .string($0) } ?? .null),
          ("remark", finding.remark.map { .string($0) } ?? .null),
        ])
      }
      if format.json { Output.line(.array(rows)) } else { rows.forEach { Output.line($0) } }
    } else {
      for finding in findings {
        let word =
          finding.failure == nil ? Output.styled("ok    ", .green) : Output.styled("FAILS ", .red)
        let detail = (finding.failure ?? finding.remark).map { ": \($0)" } ?? ""
        Output.line(word + printable(finding.requirement + detail))
      }
      Output.line(isFit ? "this can be a hub" : "this cannot be a hub")
    }
    Output.flush()
    if !isFit { throw ExitCode.no }
  }
}

struct HubStatus: ParsableCommand, NodelessCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show what a hub has, and which nodes use it.",
    discussion: """
      Examples:
        stemma hub status file:///mnt/share/hub
        stemma hub status s3://shop/hub --region eu-1 --json
      """)
  @Argument(help: "s3://BUCKET/PREFIX, file:///FOLDER or https://HOST/PATH.") var url: String
  @OptionGroup var hub: HubOptions
  @OptionGroup var format: FormatOptions

  func run() throws {
    let overview = try HubOverview(try hub.hub(url))
    if format.isJSON {
      Output.line(overview.json)
    } else {
      let sealed = overview.isSealed ? ", sealed" : ""
      Output.line(
        "hub \(overview.id)\(sealed): \(counted(Int(overview.events), "event")) in "
          + "\(counted(overview.partitions, "partition")), \(counted(overview.objects, "object")), "
          + size(overview.objectBytes))
      var table = TextTable()
      for node in overview.nodes {
        table.append([
          node.name, counted(Int(node.manifests), "manifest"), node.scope?.joined(separator: " ") ?? "",
          node.unread.map { $0 == 0 ? "has read all" : "\($0) unread" } ?? "",
          node.time.map { Timestamp(milliseconds: $0).utcText } ?? "",
        ])
      }
      table.write()
    }
    Output.flush()
  }
}

struct Publish: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "publish", abstract: "Write the log to a folder that any web server can serve.",
    discussion: """
      The server needs range requests, and nothing else. `clone` and `pull` read it by its URL. Repeated, it writes only \
      what is new.
      Examples:
        stemma publish /var/www/shop
        stemma publish public --partition region=eu
      """)
  @Argument(help: "The folder, which is made if it is not there.", completion: .directory) var folder: String
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("Only these partitions; may be repeated.", valueName: "pattern"))
  var partition: [String] = []
  @Option(
    help: ArgumentHelp("Seal all of it with the key in this file.", valueName: "file"), completion: .file())
  var keyFile: String?
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.openForWriting(isQuiet: true)
    for notice in node.notices { Output.warning(notice) }
    let bar = ProgressBar("publishing")
    let report = try Publication(folder, keyFile: keyFile).publish(node, partitions: partition) {
      bar.update($0, of: $1)
    }
    bar.finish()
    for notice in report.notices { Output.warning(notice) }
    if let pushed = report.pushed {
      if format.isJSON {
        Output.line(pushed.json)
      } else {
        Output.line(printable("published \(pushed.text) in \(folder)"))
      }
    }
    Output.flush()
    if let missing = report.missing { throw missing }
  }
}
