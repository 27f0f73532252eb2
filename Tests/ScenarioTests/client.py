"""Prints the events of one partition of a server, or pushes one event that creates a record.

    python3 client.py URL PARTITION
    python3 client.py URL PARTITION --push MODEL KEY-JSON FIELD VALUE

Written from docs/PROTOCOL.md alone, and `blocks.py` from docs/FORMAT.md. VALUE is JSON, or else a
text. The environment variable STEMMA_TOKEN can hold the token.
"""
import hashlib, json, os, secrets, sys, urllib.error, urllib.request
from blocks import Reader, counted, fixed, read_block, varint, write_block
GREETING, OFFER, REQUEST, CHUNK, END, ACKNOWLEDGMENT, REFUSAL, HOLDING = 1, 2, 3, 4, 5, 6, 7, 9

def http(resource, body=None):
    headers = {"Content-Type": "application/vnd.stemma.messages"}
    if "STEMMA_TOKEN" in os.environ: headers["Authorization"] = "Bearer " + os.environ["STEMMA_TOKEN"]
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{URL}/v1/{resource}", body, headers)) as answer:
            return answer.read()
    except urllib.error.HTTPError as error: sys.exit(f"{resource}: {error} {error.read().decode()}")
    except urllib.error.URLError as error: sys.exit(f"{URL}: {error.reason}")

# Messages
CRC = list(range(256))
for _ in range(8): CRC = [n >> 1 ^ 0x82F63B78 * (n & 1) for n in CRC]

def crc(data):
    state = 2**32 - 1
    for byte in data: state = state >> 8 ^ CRC[(state ^ byte) & 255]
    return fixed(state ^ 2**32 - 1, 4)

def message(kind, fields):
    content = bytes([kind]) + fields
    return fixed(len(content) + 4, 4) + content + crc(content)

def messages(data):
    stream = Reader(data)
    while stream.at < len(data):
        content = Reader(stream.take(stream.fixed(4))[:-4])
        kind = content.fixed(1)
        if kind == REFUSAL: sys.exit(f"refused, code {content.fixed(1)}: {content.data[2:]}")
        yield kind, content

def greeting(log, origins):
    schema = http("schema")
    return message(GREETING, varint(1) + log + counted(b"client.py") + origins
                   + hashlib.sha256(schema).digest() + counted(schema) + SCOPE + bytes([0]) + varint(0))

# Pull
def pull():
    own = greeting(secrets.token_bytes(8), varint(0))
    batch, kind = b"", None
    for kind, content in messages(http("pull", own + message(REQUEST, SCOPES + varint(0)))):
        if kind != CHUNK: continue
        content.varint()
        is_last = content.fixed(1)
        batch += content.data[content.at:]
        if is_last:
            for _, event in sorted(events(batch), key=lambda event: event[0]):
                print(json.dumps(event, ensure_ascii=False))
            batch = b""
    if kind != END: sys.exit("the answer ended early")

def events(batch):
    if hashlib.sha256(batch[:-36]).digest() != batch[-32:]: sys.exit("a corrupt batch")
    end = len(batch) - 40 - int.from_bytes(batch[-40:-36], "big")
    footer, content, is_sealed = Reader(batch, end), Reader(batch, 24), batch[9] == 1
    footer.varint()
    footer.list(lambda: (footer.counted(), footer.take(8), footer.varint(), footer.varint(), footer.take(32)))
    if is_sealed: end -= footer.varint() + footer.varint()
    while content.at < end and (is_sealed or content.varint()): yield from read_block(content)

# Push
def push(model, key, field, value):
    log, origin, zero = secrets.token_bytes(8), secrets.token_bytes(8), bytes(16)
    try: value = json.loads(value)
    except ValueError: pass
    block, digest = write_block(origin, PARTITION, model, json.loads(key), field, value)
    header = b"STEMMA-P" + bytes([1, 0, 0, 0])
    stream = counted(PARTITION) + origin + varint(1) + varint(1) + zero + digest
    footer = varint(1) + varint(1) + stream
    batch = header + crc(header) + log + counted(block) + varint(0) + footer + fixed(len(footer), 4)
    batch += crc(batch) + hashlib.sha256(batch).digest()
    held = varint(1) + counted(PARTITION) + varint(1) + origin + varint(1) + digest
    body = greeting(log, varint(1) + origin + bytes([1]) + counted(b"client.py")) + message(OFFER, SCOPES)
    body += message(HOLDING, SCOPES + held) + message(CHUNK, varint(0) + bytes([1]) + batch)
    body += message(END, varint(1) + varint(1) + varint(0))
    answers = list(messages(http("push", body)))
    if not answers or answers[-1][0] != ACKNOWLEDGMENT or origin + varint(1) + digest not in answers[-1][1].data:
        sys.exit("the server did not acknowledge the event")

URL, PARTITION, *command = sys.argv[1:]
PARTITION = PARTITION.encode()
SCOPE = varint(1) + counted(PARTITION)
SCOPES = varint(1) + SCOPE
push(*command[1:]) if command else pull()
