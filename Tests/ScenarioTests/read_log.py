"""Prints what `stemma log --reverse --ndjson` prints. Written from docs/FORMAT.md alone: python3 read_log.py NODE"""
import datetime, hashlib, itertools, json, pathlib, re, struct, sys, zlib
class Bytes:
    def __init__(self, data, at=0): self.data, self.at = data, at
    def take(self, n): self.at += n; return self.data[self.at - n:self.at]
    def fixed(self, n=8): return int.from_bytes(self.take(n), "big")
    def varint(self): n = self.fixed(1); return n if n < 128 else n - 128 + (self.varint() << 7)
    def zigzag(self): n = self.varint(); return n >> 1 ^ -(n & 1)
    def text(self): return self.take(self.varint()).decode()
    def many(self, n, read): return [read() for _ in range(n)]
    def list(self, read): return self.many(self.varint(), read)
def by_row(rows): return dict(zip((i + n for i, n in enumerate(itertools.accumulate(row[0] for row in rows))), rows))
def varint(n): return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
def fixed(n): return n.to_bytes(8, "big")
def counted(data): return varint(len(data)) + data
def event_id(pair): return fixed(pair[0]) + varint(pair[1])
def uuid(data): return re.sub("^(.{8})(.{4})(.{4})(.{4})", r"\1-\2-\3-\4-", data.hex())
def crc(data, state=2**32 - 1):
    for bit in (byte >> place & 1 for byte in data for place in range(8)): state = state >> 1 ^ 0x82F63B78 * (state & 1 ^ bit)
    return state ^ 2**32 - 1
def time(form, number, minutes=0):
    scale, width = [(1000, 19), (1, 23), (86400000, 10), (1000, 19)][form - 4]
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(minutes=minutes, milliseconds=number * scale)
    zone = "" if form == 6 else "Z" if form < 7 else "+-"[minutes < 0] + "%02d:%02d" % divmod(abs(minutes), 60)
    return moment.isoformat("T", "milliseconds")[:width] + zone
def shown(kind, value): return str(value) if kind == 2 and abs(value) >= 2**53 else json.loads(value) if kind == 5 else value
def canonical(kind, value):
    if kind == 2: return varint((value << 1 ^ value >> 63) & 2**64 - 1)
    return struct.pack(">d", value) if kind == 3 else counted(value.encode()) if kind > 3 else bytes([value][:kind])
def leading_part(partition, kind):
    text = re.sub(b"%(..)", lambda match: bytes.fromhex(match[1].decode()), partition.partition(b"=")[2])
    if kind != 2: return [b"", b"\2" + text.replace(b"\0", b"\0\xff") + b"\0", b"", b"\x27" if text == b"true" else b"\x26"][kind]
    n, size = int(text), (abs(int(text)).bit_length() + 7) // 8
    return bytes([20 + size if n >= 0 else 20 - size]) + ((n - (n < 0)) % 256**size).to_bytes(size, "big")
def key_parts(key):
    while key:
        text = re.match(rb"\x02(?:[^\0]|\0\xff)*\0", key, re.S)
        tag, size = key[0], text.end() - 1 if text else {0x21: 8, 0x26: 0, 0x27: 0}.get(key[0], abs(key[0] - 20))
        part, n, key = key[1:1 + size], int.from_bytes(key[1:1 + size], "big"), key[1 + size:]
        if tag == 2: yield part[:-1].replace(b"\0\xff", b"\0").decode()
        elif tag == 0x21: yield struct.unpack(">d", fixed(n ^ (1 << 63 if n >> 63 else 2**64 - 1)))[0]
        else: yield tag == 0x27 if tag > 0x21 else shown(2, n if tag >= 20 else n + 1 - 256**size)
def column(reader, kind, n):
    encoding = reader.fixed(1)
    if kind == 1: return [byte == 1 for byte in reader.take(n)]
    if kind == 3 and encoding: power = 10**reader.fixed(1); return [m / power for m in reader.many(n, reader.zigzag)]
    if kind == 3: return [struct.unpack(">d", reader.take(8))[0] for _ in range(n)]
    if encoding == 3: return [uuid(reader.take(16)) for _ in range(n)]
    if encoding > 3: return list(map(time, [encoding] * n, column(reader, 2, n), reader.many(n, reader.zigzag if encoding == 7 else int)))
    if kind > 3: return [t.hex() if encoding else t.decode() for t in map(reader.take, reader.many(n, reader.varint))]
    return [(i + 2**63) % 2**64 - 2**63 for i in itertools.accumulate(reader.many(n, reader.zigzag), None if encoding else lambda _, i: i)]
def block(reader, base, number=-1, ms=0):  # position and line of each event
    count, sizes = reader.take(2) and reader.varint(), [(n >> 1, n & 1 and reader.varint()) for n in map(Bytes.varint, [reader] * 3)]
    k, m, v = [Bytes(zlib.decompress(reader.take(packed), -15) if packed else reader.take(n)) for n, packed in sizes]
    origins, names, partitions, shapes, keys, place = k.list(k.fixed), k.list(k.text), [b""], [], [], 1
    for _ in range(k.varint()): partitions.append(partitions[-1][:k.varint()] + k.take(k.varint()))
    for head in map(k.fixed, [1] * k.varint()):
        shapes.append((head & 127, names[k.varint()] if head & 128 else "", [(names[n >> 3], n & 7) for n in k.list(k.varint)]))
    runs = k.list(lambda: k.many(4, k.varint))
    shared, lengths = [iter(k.many(sum(run[2] for run in runs), k.varint)) for _ in range(2)]
    for step, model, n, form in runs:
        place, rest = place + step, b""
        for _ in range(n):
            rest = rest[:next(shared)] + k.take(next(lengths))
            packed = rest if form < 4 else b"\2" + (uuid(rest) if form >= 8 else rest.hex()).encode() + b"\0"
            keys.append((partitions[place], names[model], leading_part(partitions[place], form & 3) + packed))
    last, commits, heads, columns = {}, {}, {}, [m.many(count, m.zigzag if n in (0, 4, 6) else m.varint) for n in range(8)]
    gaps, versions, widths = [m.many(n, m.varint) for n in [m.varint()] * 3]
    entries = zip(m.many(sum(widths), lambda: origins[m.varint()]), m.many(sum(widths), m.varint))
    contexts = by_row([(gap, version, dict(itertools.islice(entries, n))) for gap, version, n in zip(gaps, versions, widths)])
    foreign, causes = [by_row(m.list(lambda: m.many(width, m.varint))) for width in (3, 4)]
    notes = {(origins[m.varint()], m.varint()): {name: m.text() for flags in [m.fixed(1)]
             for bit, name in enumerate(["author", "message", "source"]) if flags >> bit & 1} for _ in range(m.varint())}
    fields = dict.fromkeys(field for shape in shapes for field in shape[2] if field[1])
    values = {field: iter(column(v, field[1], sum(field in shapes[n][2] for n in columns[1]))) for field in fields}
    for row, (step, shape, writer, gap, elapsed, counter, commit, more) in enumerate(zip(*columns)):
        number, base, ms, origin = number + step + 1, base + more + 1, ms + elapsed, origins[writer]
        (partition, model, key), (operation, relation, fields) = keys[number], shapes[shape]
        last[partition, origin], commits[origin] = last.get((partition, origin), 0) + gap + 1, commits.get(origin, 0) + commit
        commit = (origins[foreign[row][1]], foreign[row][2]) if row in foreign else (origin, commits[origin])
        dot, (version, context) = (origin, last[partition, origin]), contexts[row][1:] if row in contexts else heads.get(number, (1, {}))
        heads[number], context = (version + 1, {**context, origin: dot[1]}), sorted(context.items())
        assigned = [(name, kind, next(values[name, kind]) if kind else None) for name, kind in fields]
        cause = [(partitions[p] if p else partition, (origins[o], n)) for _, p, o, n in [causes[row]]] if row in causes else []
        form = b"\1" + counted(partition) + counted(model.encode()) + counted(key) + bytes([operation, relation > ""])
        form += (counted(relation.encode()) if relation else b"") + event_id(dot) + varint(version) + fixed(ms << 16 | counter)
        form += event_id(commit) + varint(len(context)) + b"".join(map(event_id, context)) + varint(len(cause))
        form += b"".join(counted(where) + event_id(of) for where, of in cause) + varint(len(assigned))
        form += b"".join(counted(name.encode()) + bytes([kind]) + canonical(kind, value) for name, kind, value in assigned)
        name, parts, fields = MODELS.get(model, (model, None, {}))
        yield base - 1, {
            "event": show(origin, ":", dot[1]), "partition": partition.decode(), "position": str(base - 1),
            "digest": hashlib.sha256(form).hexdigest()[:32], "time": time(5, ms) if ms % 1000 else time(4, ms // 1000),
            "timestamp": shown(2, ms << 16 | counter), "op": "create update delete link unlink resolve".split()[operation],
            "model": name, "key": dict(zip(parts, key_parts(key))) if parts else list(key_parts(key)),
            **({"relationship": relation} if relation else {}), "fields": {fields.get(f, f): shown(kind, v) for f, kind, v in assigned},
            "version": version, "context": {show(id): n for id, n in context}, "origin": f"{origin:016x}",
            "sequence": dot[1], "commit": show(commit[0], ".", commit[1]), **{"cause": {
                "event": show(of[0], ":", of[1]), "partition": where.decode()} for where, of in cause}, **notes.get(commit, {})}
def show(origin, mark="", number=""): return NAMES.get(f"{origin:016x}", f"{origin:016x}") + mark + str(number)
home, MODELS = pathlib.Path(sys.argv[1]), {}
mark, schema = json.loads((home / "stemma.json").read_bytes()), (home / "schema.graphql").read_text()
NAMES = {**mark["names"], **dict.fromkeys(mark["origins"], mark["name"])}
for name, stored, body in re.findall(r'^type (\w+) @model(?: @mapsTo\(name: "(\w+)"\))?.*?\{\n(.*?)^\}', schema, re.M | re.S):
    key = re.search(r"^  (\w+):.*@primaryKey(?:\(sortKeyFields: \[(.*?)\]\))?", body, re.M)
    fields = {of: field for field, of in re.findall(r'^  (\w+):.*@mapsTo\(name: "(\w+)"\)', body, re.M)}
    MODELS[stored or name] = name, [key[1]] + re.findall(r"\w+", key[2] or ""), fields
manifest, events = Bytes((home / "log/manifest").read_bytes(), 40), []
journal, _, _, _, segments, _ = [manifest.fixed(n) for n in (8, 8, 4, 4, 4, 4)]
for number, _, base, _, digest in manifest.many(segments, lambda: (*manifest.many(4, manifest.fixed), manifest.take(32))):
    data = (home / f"log/{number:08}.segment").read_bytes(); assert hashlib.sha256(data[:-44]).digest() == digest
    blocks = Bytes(data[:int.from_bytes(data[-108:-100], "big")], 44)
    while blocks.at < len(blocks.data): events += block(blocks, base)
while (path := home / f"log/{journal:08}.journal").exists():
    end, chain, journal = 48, (data := path.read_bytes())[44:48], journal + 1
    while data[end:end + 4] == b"FRM1" and data[end + 16:end + 20] == chain:
        at, end, chain = end, end + 32 + int.from_bytes(data[end + 4:end + 8], "big"), data[end + 28:end + 32]
        if crc(data[16:32] + fixed(at) + data[at:at + 28] + data[at + 32:end]).to_bytes(4, "big") != chain: break
        events += block(Bytes(data[:end], at + 32), int.from_bytes(data[32:40], "big"))
for _, event in sorted(events, key=lambda event: event[0]): print(json.dumps(event, ensure_ascii=False, separators=(",", ":")))
