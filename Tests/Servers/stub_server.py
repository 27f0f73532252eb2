"""A server of S3 and of web pages that fails as the last part of the path says.

It prints its port. The behaviors are in `Connection.answer`; other paths are objects in memory.
It honors `Range` and `If-None-Match: *`. The latter is ignored in the bucket `ignoring`.
"""
import hashlib
import re
import socket
import socketserver
import struct
import threading
import time
from urllib.parse import parse_qs, unquote, urlsplit

objects = {}
lock = threading.Lock()
REASONS = {200: "OK", 206: "Partial Content"}


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            while self.request_once():
                pass
        except (ConnectionError, ValueError):
            pass

    def request_once(self):
        line = self.rfile.readline().decode()
        if not line:
            return False
        self.method, target, _ = line.split()
        self.headers = {}
        while (header := self.rfile.readline().decode().strip()):
            name, value = header.split(":", 1)
            self.headers[name.lower()] = value.strip()
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = urlsplit(target)
        self.path = unquote(parts.path)
        self.query = parse_qs(parts.query, keep_blank_values=True)
        return self.answer(self.path.rsplit("/", 1)[-1]) is not False

    def send(self, status, body=b"", headers=(), length=None):
        """A complete answer, or one that announces another length."""
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Other')}", *headers]
        if status != 204:
            lines.append(f"Content-Length: {len(body) if length is None else length}")
        self.wfile.write("\r\n".join(lines + ["", ""]).encode() + body)
        self.wfile.flush()

    def error(self, status, code, message="a message"):
        body = f"<?xml version='1.0'?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>"
        self.send(status, body.encode() if code else b"", ["Date: Sun, 06 Nov 1994 08:49:37 GMT"])

    def answer(self, name):
        if self.query.get("list-type"):
            return self.list(self.query["prefix"][0], self.query.get("start-after", [""])[0])
        if match := re.fullmatch(r"status-(\d+)(-\w+)?", name):
            return self.error(int(match[1]), (match[2] or "-")[1:])
        if name == "page-404":
            return self.send(404, b"<!DOCTYPE html><html>nothing here")
        if name == "echo":
            shown = "&amp;".join(self.headers.values())
            return self.error(403, "AccessDenied", shown)
        if name == "redirect":
            return self.send(301, b"", ["Location: /elsewhere"])
        if name == "region":
            return self.send(301, b"", ["x-amz-bucket-region: eu-west-3"])
        if name == "whole":
            return self.send(200, b"0123456789")
        if name == "shifted":
            return self.send(206, b"0123", ["Content-Range: bytes 1-4/10"])
        if name == "unnamed":
            return self.send(206, b"0123")
        if name == "longer":
            return self.send(206, b"0123456789", ["Content-Range: bytes 0-3/10"])
        if name == "shorter":
            return self.send(206, b"01", ["Content-Range: bytes 0-3/10"])
        if name == "huge":
            self.send(200, b"0" * 1000, length=2 << 30)
            return self.wait()
        if name == "endless":
            self.wfile.write(b"HTTP/1.1 206 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                self.wfile.write(b"1000\r\n" + b"0" * 4096 + b"\r\n")
        if name == "endless-error":
            self.wfile.write(b"HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                self.wfile.write(b"1000\r\n" + b"0" * 4096 + b"\r\n")
        if name == "no-answer":
            objects[self.path] = self.body
            return False
        if name == "half-head":
            objects[self.path] = self.body
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Le")
            return False
        if name == "half-body":
            self.send(200, b"0" * 50, length=100)
            return False
        if name == "half-chunk":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n0000")
            return False
        if name == "reset":
            objects[self.path] = self.body
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.request.close()
            return False
        if name == "garbage":
            self.wfile.write(b"220 mail.example ESMTP\r\n")
            return False
        if name == "silent":
            objects[self.path] = self.body
            return self.wait()
        if name == "drip":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while True:
                self.wfile.write(b"0")
                time.sleep(0.05)
        return self.object(name)

    def wait(self):
        """Until the client closes the connection."""
        while self.rfile.read(1):
            pass
        return False

    def object(self, name):
        with lock:
            stored = objects.get(self.path)
            if self.method == "PUT":
                is_conditional = "if-none-match" in self.headers and name != "unconditional" \
                    and not self.path.startswith("/ignoring/")
                if stored is not None and is_conditional:
                    return self.error(412, "PreconditionFailed")
                objects[self.path] = self.body
                return self.send(200, b"", ['ETag: "tag"'])
            if self.method == "DELETE":
                objects.pop(self.path, None)
                return self.send(204)
        if stored is None:
            return self.error(404, "NoSuchKey")
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", ""))
        if not match:
            return self.send(200, stored)
        first, last = int(match[1]), min(int(match[2]), len(stored) - 1)
        if first >= len(stored):
            return self.error(416, "InvalidRange")
        return self.send(206, stored[first:last + 1], [f"Content-Range: bytes {first}-{last}/{len(stored)}"])

    def list(self, prefix, after):
        def contents(key, tag=None):
            return f"<Contents><Key>{key}</Key><ETag>&quot;{tag or 't&amp;' + key}&quot;</ETag></Contents>"

        def document(inner, truncated="false"):
            return f"<?xml version='1.0'?><!-- c --><ListBucketResult xmlns='x'><Name>b</Name><Prefix/>" \
                f"<IsTruncated>{truncated}</IsTruncated>{inner}</ListBucketResult>"

        kind = prefix.rstrip("/").rsplit("/", 1)[-1]
        if kind == "plain":
            text = document(contents(prefix + "a") + contents(prefix + "%62"))
        elif kind == "encoded":
            text = document("<EncodingType>url</EncodingType>" + contents(prefix + "%61b"))
        elif kind == "unsorted":
            text = document("".join(contents(prefix + k) for k in ["b", "a/x", "a-x"]))
        elif kind == "backward":
            text = document(contents(prefix + ("a" if after else "b")), "true")
        elif kind == "foreign":
            # A marker of a folder fills the first page.
            text = document(contents(prefix + "z"), "false") if after else document(contents(prefix), "true")
        elif kind == "other":
            text = document(contents("another/key"))
        elif kind == "stuck":
            text = document("", "true")
        elif kind == "cut":
            text = document(contents(prefix + "a"))[:-30]
        elif kind == "entity":
            text = "<!DOCTYPE x [<!ENTITY a 'b'>]>" + document(contents(prefix + "&a;"))
        elif kind == "page":
            text = "<html><body>Welcome<br></body></html>"
        elif kind == "huge":
            return self.send(200, b"0" * 1000, length=17 << 20)
        elif kind == "denied":
            return self.error(403, "AccessDenied")
        elif kind == "busy":
            return self.error(503, "SlowDown")
        else:
            with lock:
                known = {path.removeprefix(self.path): body for path, body in objects.items()
                         if path.startswith(self.path + prefix)}
            text = document("".join(contents(key, hashlib.md5(body).hexdigest())
                                    for key, body in sorted(known.items()) if key > after))
        return self.send(200, text.encode(), ["Content-Type: application/xml"])


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64


server = Server(("127.0.0.1", 0), Connection)
print(server.server_address[1], flush=True)
server.serve_forever()
