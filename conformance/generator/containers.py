"""Streams (05-stream.md) and files (04-file.md) around descriptors and data."""

import struct

from .wire import Parts, f64, i64, u8, u16, u32, u64

ALIGNMENT = 4096


def crc32c(raw):
    crc = 0xFFFFFFFF
    for byte in raw:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def table_entry(n):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    return n


TABLE = [table_entry(n) for n in range(256)]
assert [crc32c(x) for x in (b"123456789", bytes(32), b"\xff" * 32, bytes(range(32)), b"")] == [
    0xE3069283, 0x8A9136AA, 0x62A8AB43, 0x46DD794E, 0]


def walk(items):
    """Heads and members in pre-order."""
    for tensor in items:
        yield tensor
        yield from walk(tensor.members)


def data_parts(p, tensor, prefix=""):
    for i, raw in enumerate(tensor.buffers or []):
        if raw:
            p.put(f"{prefix}data[{i}]", raw)


def stream(*items):
    """Frames back to back. Field names begin with the frame's number: "1/shape[0]"."""
    p = Parts()
    for k, tensor in enumerate(walk(items)):
        assert [len(b) for b in tensor.buffers or []] == [h.byte_size for h in tensor.handles]
        p.extend((f"{k}/{name}", raw, note) for name, raw, note in tensor.parts())
        data_parts(p, tensor, f"{k}/")
    return p


def up(x, alignment):
    return -(-x // alignment) * alignment


KV_TAGS = {"string": 1, "int64": 2, "uint64": 3, "float64": 4, "bool": 5, "bytes": 6, "array": 7}


def kv_payload(kind, value):
    if kind in ("string", "bytes"):
        raw = value.encode() if isinstance(value, str) else value
        return u32(len(raw)) + raw
    if kind == "array":
        element, values = value
        return u8(KV_TAGS[element]) + u32(len(values)) + b"".join(kv_payload(element, v) for v in values)
    return {"int64": i64, "uint64": u64, "float64": f64, "bool": u8}[kind](value)


def kv_expect(kind, value):
    if kind == "array":
        return {"type": "array", "of": value[0], "value": [kv_expect(value[0], v)["value"] for v in value[1]]}
    if kind == "bytes":
        value = value.hex()
    elif kind == "float64":
        value = f64(value)[::-1].hex()
    elif kind in ("int64", "uint64"):
        value = value if -2**53 < value < 2**53 else str(value)
    return {"type": kind, "value": value}


def printable(name):
    """A tensor's name for a comment."""
    return ascii(name)[1:-1] if len(name) < 40 else f"{len(name)} characters"


class File:
    """Parts of a whole file. `names` are those of `walk(items)`; `kv` a list of (key, type, value), None for no
    section at all. The fields of the header are as the format's writer puts them unless given."""

    def __init__(self, items, names=None, kv=(), flags=None, hint=2**64 - 1, order=None, alignment=ALIGNMENT,
                 gap=b"", head_padding=8, spacing=0, container=(1, 0)):
        tensors = list(walk(items))
        names = names or given_names(items)
        assert len(names) == len(tensors), (names, len(tensors))
        if flags is None:
            flags = 4 | (1 if kv is not None else 0)
        p = self.parts = Parts()
        p.put("magic", b"HRRYFILE")
        p.put("container_version_major", u8(container[0]))
        p.put("container_version_minor", u8(container[1]))
        p.put("header.reserved", bytes(2))
        p.put("file_flags", u32(flags))
        p.put("data_buffer_alignment", u32(alignment))
        p.put("first_descriptor_offset", u64(64))
        p.put("tensor_count_hint", u64(hint), "unknown" if hint == 2**64 - 1 else "")
        p.put("header.reserved (end)", bytes(28))
        self.position = 64
        entries = []
        for name, tensor in zip(names, tensors, strict=True):
            prefix = f"{printable(name)}/"
            start = self.position
            for field, raw, note in tensor.parts():
                self.put(prefix + field, raw, note)
            length = self.position - start
            if tensor.layout.name == "composite":
                self.pad(head_padding)
                data_offset = end = self.position
            else:
                self.pad(alignment)
                data_offset = end = self.position
                for i, raw in enumerate(tensor.buffers):
                    self.pad(alignment)
                    if raw:
                        self.put(f"{prefix}data[{i}]", raw)
                    end = self.position
            entries.append((name, start, length, data_offset, end - data_offset))
            self.pad(8)
            if spacing:
                self.put("(gap)", bytes(spacing))
        self.kv_offset = self.kv_length = 0
        if kv is not None:
            self.kv_offset = self.position
            self.put("kv_count", u32(len(kv)))
            for i, (key, kind, value) in enumerate(kv):
                raw = key.encode()
                self.put(f"kv[{i}].key_length", u16(len(raw)))
                self.put(f"kv[{i}].key", raw, ascii(key))
                self.put(f"kv[{i}].value_tag", u8(KV_TAGS[kind]), kind)
                self.put(f"kv[{i}].value", kv_payload(kind, value), ascii(value) if len(ascii(value)) < 40 else "")
            self.kv_length = self.position - self.kv_offset
            self.pad(8)
        self.index_offset = self.position
        self.put("index_entry_count", u64(len(entries)))
        if order is not None:
            entries = [entries[k] for k in order]
        for i, (name, *numbers) in enumerate(entries):
            raw = name.encode()
            self.put(f"index[{i}].name_length", u16(len(raw)))
            self.put(f"index[{i}].name", raw, ascii(name))
            for field, value in zip(("descriptor_offset", "descriptor_length", "data_offset", "data_length"), numbers,
                                    strict=True):
                self.put(f"index[{i}].{field}", (u32 if field == "descriptor_length" else u64)(value), str(value))
            self.put(f"index[{i}].flags", u32(0))
        self.index_length = self.position - self.index_offset
        if gap:
            self.put("(gap)", gap)
        p.put("index_offset", u64(self.index_offset), str(self.index_offset))
        p.put("index_length", u64(self.index_length), str(self.index_length))
        p.put("kv_offset", u64(self.kv_offset), str(self.kv_offset))
        p.put("kv_length", u32(self.kv_length), str(self.kv_length))
        p.put("index_crc32c", bytes(4))
        p.put("trailer.reserved", bytes(4))
        p.put("trailer_magic", b"HRRY")
        self.names, self.tensors, self.kv, self.flags = names, tensors, kv, flags
        self.entries = entries
        if flags & 4:
            self.parts = summed(p)

    def put(self, name, raw, note=""):
        self.parts.put(name, raw, note)
        self.position += len(raw)

    def pad(self, alignment):
        size = up(self.position, alignment) - self.position
        if size:
            self.put("(padding)", bytes(size))


def summed(parts):
    """index_crc32c made right for the index as it stands between index_entry_count and the trailer, as far as
    index_length says."""
    start = parts.offset("index_entry_count")
    length = struct.unpack("<Q", parts[parts.find("index_length")][1])[0]
    return parts.swap({"index_crc32c": u32(crc32c(parts.raw()[start:start + length]))})


def given_names(items, prefix=""):
    names = []
    for k, tensor in enumerate(items):
        name = f"{prefix}{k}" if prefix else f"t{k}"
        names.append(name)
        names += given_names(tensor.members, f"{name}.")
    return names
