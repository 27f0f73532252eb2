import HTTPTypes
import Hummingbird
import NIOCore

/// The page that shows a node in a browser: the files of `Page`, which need no token. The page
/// sends the token with each request for data.
enum PageFiles {
  private static let types = [
    "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
  ]

  /// Only files of this server run, are shown, or are asked for data.
  private static let policy = [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
    "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ].joined(separator: "; ")

  static func add(to router: Router<ServerContext>) {
    router.get("/") { _, _ in try response("index.html") }
    router.get("/ui/{file}") { _, context in try response(try context.parameters.require("file")) }
  }

  private static func response(_ name: String) throws -> Response {
    guard let bytes = files[name], let type = types[String(name.split(separator: ".").last ?? "")] else {
      throw Problem(.notFound)
    }
    var headers: HTTPFields = [.contentType: type, .cacheControl: "no-cache"]
    for (name, value) in [
      ("Content-Security-Policy", policy), ("X-Content-Type-Options", "nosniff"),
      ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
      ("Cross-Origin-Resource-Policy", "same-origin"),
    ] {
      if let field = HTTPField.Name(name) { headers[field] = value }
    }
    return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }

  private static let files: [String: [UInt8]] = [
    "api.js": PackageResources.api_js,
    "app.js": PackageResources.app_js,
    "author.js": PackageResources.author_js,
    "candidate.js": PackageResources.candidate_js,
    "changes.js": PackageResources.changes_js,
    "chart.js": PackageResources.chart_js,
    "compare.js": PackageResources.compare_js,
    "conflicts.js": PackageResources.conflicts_js,
    "dom.js": PackageResources.dom_js,
    "edit.js": PackageResources.edit_js,
    "event.js": PackageResources.event_js,
    "events.js": PackageResources.events_js,
    "files.js": PackageResources.files_js,
    "filters.js": PackageResources.filters_js,
    "format.js": PackageResources.format_js,
    "graph.js": PackageResources.graph_js,
    "icon.svg": PackageResources.icon_svg,
    "index.html": PackageResources.index_html,
    "keys.js": PackageResources.keys_js,
    "linediff.js": PackageResources.linediff_js,
    "list.js": PackageResources.list_js,
    "merge.js": PackageResources.merge_js,
    "notice.js": PackageResources.notice_js,
    "overview.js": PackageResources.overview_js,
    "panel.js": PackageResources.panel_js,
    "peers.js": PackageResources.peers_js,
    "queue.js": PackageResources.queue_js,
    "record.js": PackageResources.record_js,
    "records.js": PackageResources.records_js,
    "route.js": PackageResources.route_js,
    "shell.js": PackageResources.shell_js,
    "sql.js": PackageResources.sql_js,
    "stream.js": PackageResources.stream_js,
    "style.css": PackageResources.style_css,
    "theme.js": PackageResources.theme_js,
    "timeline.js": PackageResources.timeline_js,
    "virtual.js": PackageResources.virtual_js,
  ]
}
