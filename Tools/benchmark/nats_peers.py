"""The same events in NATS JetStream: a read of one subject, and a mirror on a second server.

usage: nats_peers.py NATS-SERVER LINES FOLDER TENANT ROUNDS

Publishes each line of LINES to the subject `tenant.NAME` of a stream in files. Prints one JSON
object: the events and the best seconds of both. The read is by an ephemeral push consumer without
acknowledgments, over a bare socket that parses only the lengths of messages. A leaf node connects
the second server. Needs the package nats-py. The servers end with this program.
"""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import nats
from nats.js.api import ExternalStream, StreamConfig, StreamSource

STREAM = "EVENTS"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    def __init__(self, program, folder, name, leaf):
        os.makedirs(f"{folder}/{name}")
        self.port = free_port()
        path = f"{folder}/{name}/configuration"
        with open(path, "w") as file:
            file.write(
                f'server_name: {name}\nlisten: "127.0.0.1:{self.port}"\nleafnodes {{ {leaf} }}\n'
                f'jetstream {{ store_dir: "{folder}/{name}/store", domain: {name} }}\n'
            )
        self.process = subprocess.Popen(
            [program, "-c", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    async def client(self):
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return await nats.connect(f"nats://127.0.0.1:{self.port}", allow_reconnect=False)
            await asyncio.sleep(0.05)
        raise SystemExit("nats-server does not answer")


async def wait_for(stream, name, count):
    """Returns when the stream has as many messages."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        if (await stream.stream_info(name)).state.messages >= count:
            return
        await asyncio.sleep(0.005)
    raise SystemExit(f"{name} did not get {count} messages")


def read(port, subject, count):
    """Seconds of a read of `count` messages by a new consumer."""
    request = {
        "stream_name": STREAM,
        "config": {
            "deliver_subject": "read.messages", "deliver_policy": "all", "ack_policy": "none",
            "max_deliver": 1, "filter_subject": subject, "replay_policy": "instant",
            "mem_storage": True, "num_replicas": 1, "inactive_threshold": 1_000_000_000,
        },
    }
    text = json.dumps(request).encode()
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nSUB read.messages 1\r\n')
    began = time.monotonic()
    connection.sendall(
        b"PUB $JS.API.CONSUMER.CREATE.%s read.answer %d\r\n%s\r\n" % (STREAM.encode(), len(text), text)
    )
    data, place, seen = bytearray(), 0, 0
    while seen < count:
        part = connection.recv(1 << 20)
        if not part:
            raise SystemExit("nats-server ended the connection")
        data += part
        while (end := data.find(b"\r\n", place)) >= 0:
            if data[place : place + 4] != b"MSG ":
                place = end + 2
                continue
            size = int(data[data.rindex(b" ", place, end) : end])
            if len(data) < end + 4 + size:
                break
            place = end + 4 + size
            seen += 1
    seconds = time.monotonic() - began
    connection.close()
    return seconds


async def measure(first, second, lines, tenant, rounds):
    """Publishes, and returns the figures."""
    source = await first.client()
    events = source.jetstream()
    await events.add_stream(StreamConfig(name=STREAM, subjects=["tenant.*"]))
    key = re.compile(rb'"tenant":"([^"]*)"')
    total = few = 0
    with open(lines, "rb") as file:
        for line in file:
            name = key.search(line).group(1).decode()
            await source.publish("tenant." + name, line)
            total += 1
            few += name == tenant
            if total % 1000 == 0:
                await source.flush(60)
    await wait_for(events, STREAM, total)
    target = await second.client()
    copies = target.jetstream()
    mirror = StreamSource(name=STREAM, external=ExternalStream(api="$JS.first.API"))
    best = {"events": total, "few": few, "read": float("inf"), "mirror": float("inf")}
    for _ in range(rounds):
        for _ in range(3):
            best["read"] = min(best["read"], read(first.port, "tenant." + tenant, few))
        began = time.monotonic()
        await copies.add_stream(StreamConfig(name="COPY", mirror=mirror))
        await wait_for(copies, "COPY", total)
        best["mirror"] = min(best["mirror"], time.monotonic() - began)
        await copies.delete_stream("COPY")
    await source.close()
    await target.close()
    return best


def main():
    program, lines, folder, tenant, rounds = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    leaf = free_port()
    servers = []
    try:
        servers.append(Server(program, folder, "first", f'listen: "127.0.0.1:{leaf}"'))
        remote = f'remotes: [{{ url: "nats-leaf://127.0.0.1:{leaf}" }}]'
        servers.append(Server(program, folder, "second", remote))
        figures = asyncio.run(measure(*servers, lines, tenant, int(rounds)))
    finally:
        for server in servers:
            server.process.kill()
        for server in servers:
            server.process.wait()
    # Last, because the reader of the line ends this program.
    print(json.dumps(figures))


main()
