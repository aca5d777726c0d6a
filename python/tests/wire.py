"""Descriptors, frames and files made byte by byte, as the format pages say, without the library."""

import os
import struct

_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    _TABLE.append(_byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


UINT8 = 0x11
UINT16 = 0x13
FLOAT32 = 0x03


def handle(size, alignment=64, device=0, sync=0, memory_class=0):
    return struct.pack("<QIBBBB", size, alignment, device, sync, memory_class, 0)


def descriptor(dtype, shape, size, **declared):
    """Row-major, one buffer of `size` bytes."""
    body = struct.pack("<IBBB3x", 0, dtype, 0x01, len(shape))
    body += (
        struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<QB", 0, 1) + handle(size, **declared)
    )
    return b"HRRY\x01\x00" + struct.pack("<I", len(body) + 10) + body


def file_around(path, tensors):
    """Writes a file of `(name, descriptor, data length)`; the data are a hole that is never written."""
    index = struct.pack("<Q", len(tensors))
    position = 64
    with open(path, "wb") as out:
        out.write(struct.pack("<8sBBxxIIQQ28x", b"HRRYFILE", 1, 0, 4, 4096, 64, 2**64 - 1))
        for name, encoded, length in tensors:
            out.seek(position)
            out.write(encoded)
            data = -(-(position + len(encoded)) // 4096) * 4096
            name = name.encode()
            index += struct.pack("<H", len(name)) + name
            index += struct.pack("<QIQQI", position, len(encoded), data, length, 0)
            position = -(-(data + length) // 8) * 8
        out.truncate(position)
        out.seek(position)
        out.write(index)
        out.write(struct.pack("<QQQIII4s", position, len(index), 0, 0, crc32c(index), 0, b"HRRY"))
    return os.path.getsize(path)


def annotated(text):
    """The bytes of lines such as `0008  01 00 00 00   what they are`; `00 × 28` and `00 … 00` repeat."""
    data = bytearray()
    pending = False
    for line in text.strip().splitlines():
        offset, rest = line.split("  ", 1)
        offset = int(offset, 16)
        if pending:
            data.extend(bytes(offset - len(data)))
            pending = False
        assert offset == len(data), line
        hexes = rest.strip().split("   ", 1)[0]
        if "×" in hexes:
            data.extend(bytes(int(hexes.split("×")[1])))
        elif "…" in hexes:
            pending = True
        else:
            data.extend(bytes.fromhex(hexes))
    return bytes(data)
