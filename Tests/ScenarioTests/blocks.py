"""Blocks of events, as docs/FORMAT.md describes them."""
import datetime, hashlib, itertools, re, struct, time, zlib
OPERATIONS = ["create", "update", "delete", "link", "unlink", "resolve"]

class Reader:
    def __init__(self, data, at=0): self.data, self.at = data, at
    def take(self, n): self.at += n; return self.data[self.at - n:self.at]
    def fixed(self, n=8): return int.from_bytes(self.take(n), "big")
    def varint(self): n = self.fixed(1); return n if n < 128 else n - 128 + (self.varint() << 7)
    def zigzag(self): n = self.varint(); return n >> 1 ^ -(n & 1)
    def counted(self): return self.take(self.varint())
    def many(self, n, read): return [read() for _ in range(n)]
    def list(self, read): return self.many(self.varint(), read)
def fixed(n, size=8): return n.to_bytes(size, "big")
def varint(n): return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
def zigzag(n): return varint((n << 1 ^ n >> 63) & 2**64 - 1)
def counted(data): return varint(len(data)) + data

def read_block(reader):
    """The relative position and the content of each event."""
    count = reader.take(2) and reader.varint()
    sizes = reader.many(3, lambda: (size := reader.varint(), size & 1 and reader.varint()))
    k, m, v = [Reader(zlib.decompress(reader.take(stored), -15) if stored else reader.take(size >> 1))
               for size, stored in sizes]
    origins, names, partitions = k.list(lambda: k.take(8).hex()), k.list(lambda: k.counted().decode()), [""]
    for _ in range(k.varint()):
        partitions.append((partitions[-1].encode()[:k.varint()] + k.counted()).decode())
    shapes, runs, keys, place = k.list(lambda: shape(k, names)), k.list(lambda: k.many(4, k.varint)), [], 1
    shared, lengths = [iter(k.many(sum(run[2] for run in runs), k.varint)) for _ in range(2)]
    for step, model, n, form in runs:
        place, rest = place + step, b""
        for _ in range(n):
            rest = rest[:next(shared)] + k.take(next(lengths))
            last = list(key_parts(rest)) if form < 4 else [uuid(rest) if form >= 8 else rest.hex()]
            keys.append((partitions[place], names[model], leading_part(partitions[place], form & 3) + last))
    rows = list(zip(*[m.many(count, m.zigzag if n in (0, 4, 6) else m.varint) for n in range(8)]))
    kinds = dict.fromkeys(field for _, fields in shapes for field in fields if field[1])
    users = {field: sum(field in shapes[row[1]][1] for row in rows) for field in kinds}
    values = {field: iter(column(v, field[1], n)) for field, n in users.items()}
    number, position, sequences = -1, -1, {}
    for step, shape_number, origin, gap, _, _, _, more in rows:
        number, position = number + step + 1, position + more + 1
        (partition, model, key), (operation, fields) = keys[number], shapes[shape_number]
        stream = partition, origins[origin]
        sequences[stream] = sequences.get(stream, 0) + gap + 1
        yield position, {
            "event": f"{stream[1]}:{sequences[stream]}", "model": model, "key": key,
            "operation": OPERATIONS[operation],
            "fields": {field[0]: next(values[field]) if field[1] else None for field in fields}}
def shape(k, names):
    head = k.fixed(1)
    if head & 128: k.varint()
    return head & 127, [(names[n >> 3], n & 7) for n in k.list(k.varint)]
def leading_part(partition, form):
    text = re.sub("%(..)", lambda match: chr(int(match[1], 16)), partition.partition("=")[2])
    return [] if form == 0 else [text] if form == 1 else [int(text)] if form == 2 else [text == "true"]
def key_parts(key):
    while key:
        text = re.match(rb"\x02(?:[^\0]|\0\xff)*\0", key, re.S)
        tag, size = key[0], text.end() - 1 if text else {0x21: 8, 0x26: 0, 0x27: 0}.get(key[0], abs(key[0] - 20))
        part, n, key = key[1:1 + size], int.from_bytes(key[1:1 + size], "big"), key[1 + size:]
        if tag == 2: yield part[:-1].replace(b"\0\xff", b"\0").decode()
        elif tag == 0x21: yield struct.unpack(">d", fixed(n ^ (1 << 63 if n >> 63 else 2**64 - 1)))[0]
        else: yield tag == 0x27 if tag > 0x21 else n if tag >= 20 else n + 1 - 256**size
def column(v, kind, n):
    encoding = v.fixed(1)
    if kind == 1: return [byte == 1 for byte in v.take(n)]
    if kind == 3 and encoding: scale = 10**v.fixed(1); return [m / scale for m in v.many(n, v.zigzag)]
    if kind == 3: return [struct.unpack(">d", v.take(8))[0] for _ in range(n)]
    if encoding == 3: return [uuid(v.take(16)) for _ in range(n)]
    if encoding > 3:
        numbers = column(v, 2, n)
        return list(map(moment, [encoding] * n, numbers, v.many(n, v.zigzag) if encoding == 7 else [0] * n))
    if kind > 3: return [text.hex() if encoding else text.decode() for text in map(v.take, v.many(n, v.varint))]
    steps = v.many(n, v.zigzag)
    return [(i + 2**63) % 2**64 - 2**63 for i in itertools.accumulate(steps)] if encoding else steps
def uuid(data): return re.sub("^(.{8})(.{4})(.{4})(.{4})", r"\1-\2-\3-\4-", data.hex())
def moment(encoding, number, minutes):
    unit, width = [(1000, 19), (1, 23), (86_400_000, 10), (1000, 19)][encoding - 4]
    date = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=number * unit, minutes=minutes)
    zone = ["Z", "Z", "", "+-"[minutes < 0] + "%02d:%02d" % divmod(abs(minutes), 60)][encoding - 4]
    return date.isoformat("T", "milliseconds")[:width] + zone

def write_block(origin, partition, model, key, field, value):
    """A block of one event, which creates a record, and the digest of the event."""
    model, field, key = model.encode(), field.encode(), b"".join(map(key_part, key))
    kind = {type(None): 0, bool: 1, int: 2, float: 3, str: 4}[type(value)]
    data = [b"", bytes([value is True]), kind == 2 and zigzag(value), kind == 3 and struct.pack(">d", value),
            kind == 4 and counted(value.encode())][kind]
    ms = int(time.time() * 1000)
    k = (varint(1) + origin + varint(2) + counted(model) + counted(field) + varint(1) + varint(0) + counted(partition)
         + bytes([1, 0, 1]) + varint(1 << 3 | kind) + bytes([1, 0, 0, 1, 0, 0]) + counted(key))
    m = bytes(4) + zigzag(ms) + bytes([0]) + zigzag(1) + bytes(5)
    v = b"\0" + data if kind else b""
    block = b"\1\1" + varint(1) + b"".join(varint(len(stream) << 1) for stream in (k, m, v)) + k + m + v
    form = (b"\1" + counted(partition) + counted(model) + counted(key) + bytes([0, 0]) + origin + varint(1) + varint(1)
            + fixed(ms << 16) + origin + varint(1) + bytes([0, 0, 1]) + counted(field) + bytes([kind]) + data)
    return block, hashlib.sha256(form).digest()[:16]
def key_part(part):
    if isinstance(part, bool): return bytes([0x26 + part])
    if isinstance(part, str): return b"\2" + part.encode().replace(b"\0", b"\0\xff") + b"\0"
    if isinstance(part, float):
        n = int.from_bytes(struct.pack(">d", part), "big")
        return b"\x21" + fixed(n ^ (2**64 - 1 if n >> 63 else 1 << 63))
    size = (abs(part).bit_length() + 7) // 8
    return bytes([20 + size if part >= 0 else 20 - size]) + ((part - (part < 0)) % 256**size).to_bytes(size, "big")
