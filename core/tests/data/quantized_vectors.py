"""Writes quantized.txt: quantized tensors and the float32 bits that they stand for.

    python quantized_vectors.py > quantized.txt

An oracle that shares nothing with the library: descriptors are put together from the tables of
01-descriptor.md and 02-layouts.md, values are exact fractions by the formulas of
03-quantization.md, rounded to float32 once at the end. Each case is a name, a descriptor, its
buffers in order, for paged tensors the tokens of each sequence, and the expected elements row by
row ("nan" for any NaN).
"""

import itertools
import random
import struct
import sys
from fractions import Fraction

NO_BUFFER = 0xFFFFFFFF
F16, BF16, F32, E8M0 = 0x01, 0x02, 0x03, 0x42

# tag: (name, bits, signed)
INTEGERS = {
    0x10: ("int8", 8, True), 0x11: ("uint8", 8, False), 0x12: ("int16", 16, True),
    0x13: ("uint16", 16, False), 0x14: ("int32", 32, True), 0x15: ("uint32", 32, False),
    0x48: ("int4", 4, True), 0x49: ("uint4", 4, False), 0x4A: ("int2", 2, True),
    0x4B: ("uint2", 2, False),
}
# tag: (name, bits, exponent bits, mantissa bits, bias, infinity code, first NaN code)
FLOATS = {
    0x40: ("float8_e4m3", 8, 4, 3, 7, None, 0x7F), 0x41: ("float8_e5m2", 8, 5, 2, 15, 0x7C, 0x7D),
    0x43: ("float4_e2m1", 4, 2, 1, 1, None, None), 0x44: ("float6_e2m3", 6, 2, 3, 1, None, None),
    0x45: ("float6_e3m2", 6, 3, 2, 3, None, None),
    F16: ("float16", 16, 5, 10, 15, 0x7C00, 0x7C01),
    BF16: ("bfloat16", 16, 8, 7, 127, 0x7F80, 0x7F81),
    F32: ("float32", 32, 8, 23, 127, 0x7F800000, 0x7F800001),
}
NF4 = [0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F, 0xBDBA7871, 0,
       0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A, 0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3,
       0x3F800000]
INF = "inf"
NAN = "nan"


def width(tag):
    return (INTEGERS.get(tag) or FLOATS[tag])[1]


# Values


def float_value(tag, code):
    """(negative, magnitude): a fraction, INF or NAN."""
    _, bits, e, m, bias, infinity, nan = FLOATS[tag]
    negative, magnitude = code >> (bits - 1) == 1, code & ((1 << (bits - 1)) - 1)
    if nan is not None and magnitude >= nan:
        return negative, NAN
    if infinity is not None and magnitude == infinity:
        return negative, INF
    exponent, mantissa = magnitude >> m, Fraction(magnitude & ((1 << m) - 1), 1 << m)
    if exponent == 0:
        return negative, mantissa * Fraction(2) ** (1 - bias)
    return negative, (1 + mantissa) * Fraction(2) ** (exponent - bias)


def integer_value(tag, code):
    _, bits, signed = INTEGERS[tag]
    return code - (1 << bits) if signed and code >> (bits - 1) else code


def to_float32(negative, magnitude):
    """Bits of the nearest float32, ties to even."""
    sign = 0x80000000 if negative else 0
    if magnitude == INF:
        return sign | 0x7F800000
    if magnitude == 0:
        return sign
    exponent = -126
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    units = magnitude / Fraction(2) ** (exponent - 23)
    whole = units.numerator // units.denominator
    rest = units - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2):
        whole += 1
    if whole < 1 << 23:
        return sign | whole
    # A carry to 2^24 raises the exponent by itself.
    bits = ((exponent + 127) << 23) + (whole - (1 << 23))
    return sign | min(bits, 0x7F800000)


def times(a, b):
    """Product of (negative, magnitude) pairs, as float32 bits or NAN."""
    negative = a[0] != b[0]
    if NAN in (a[1], b[1]):
        return NAN
    if INF in (a[1], b[1]):
        return NAN if 0 in (a[1], b[1]) else to_float32(negative, INF)
    return to_float32(negative, a[1] * b[1])


def dequantize(scheme, tag, code, scale_type, scale, zero):
    if scheme == 5:
        value = (
            float_value(tag, code)
            if tag in FLOATS
            else (integer_value(tag, code) < 0, Fraction(abs(integer_value(tag, code))))
        )
        return times((False, Fraction(2) ** (scale - 127)), value)
    factor = float_value(scale_type, scale)
    if scheme == 4:
        return times(factor, float_value(F32, NF4[code]))
    difference = integer_value(tag, code) - zero
    rounded = to_float32(difference < 0, Fraction(abs(difference)))
    return times(factor, float_value(F32, rounded))


# Layouts: each gives its tag, its field bytes, and the element offset of an index.


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def row_strides(n):
    strides = [1] * len(n)
    for k in range(len(n) - 2, -1, -1):
        strides[k] = strides[k + 1] * n[k + 1]
    return strides


def col_strides(n):
    return row_strides(n[::-1])[::-1]


def u64(*values):
    return b"".join(struct.pack("<Q", v) for v in values)


def i64(*values):
    return b"".join(struct.pack("<q", v) for v in values)


def u32(*values):
    return b"".join(struct.pack("<I", v) for v in values)


class RowMajor:
    tag = 1
    name = "row_major"

    def fields(self, n):
        return b""

    def offset(self, i, n):
        return dot(i, row_strides(n))

    def slots(self, n):
        every = [self.offset(i, n) for i in itertools.product(*map(range, n))]
        return min([0, *every]), max([0, *every])


class ColumnMajor(RowMajor):
    tag = 2
    name = "col_major"

    def offset(self, i, n):
        return dot(i, col_strides(n))


class Strided(RowMajor):
    tag = 3

    def __init__(self, name, strides):
        self.name, self.strides = name, strides

    def fields(self, n):
        return i64(*self.strides)

    def offset(self, i, n):
        return dot(i, self.strides)


class Tiled(RowMajor):
    tag = 4

    def __init__(self, name, *levels):
        """Levels of (tile, outer tag, inner tag) from outside in; inner 4 where one follows."""
        self.name, self.levels = name, levels

    def fields(self, n):
        return b"".join(u64(*tile) + bytes([outer, inner, 0, 0]) for tile, outer, inner in self.levels)

    def offset(self, i, n, level=0):
        tile, outer, inner = self.levels[level]
        grid = [-(-a // b) for a, b in zip(n, tile, strict=True)]
        t = [a // b for a, b in zip(i, tile, strict=True)]
        c = [a % b for a, b in zip(i, tile, strict=True)]
        size = 1
        for b in tile:
            size *= b
        order = {1: row_strides, 2: col_strides}
        within = self.offset(c, tile, level + 1) if inner == 4 else dot(c, order[inner](tile))
        return size * dot(t, order[outer](grid)) + within

    def slots(self, n):
        size = 1
        for a, b in zip(n, self.levels[0][0], strict=True):
            size *= -(-a // b) * b
        return 0, size - 1


class Morton(RowMajor):
    tag = 5
    name = "morton"

    def bits(self, n):
        return [max(1, (a - 1).bit_length()) for a in n]

    def fields(self, n):
        return u32(*self.bits(n))

    def offset(self, i, n):
        e = out = 0
        bits = self.bits(n)
        for b in range(max(bits)):
            for d in range(len(n)):
                if b < bits[d]:
                    e |= ((i[d] >> b) & 1) << out
                    out += 1
        return e

    def slots(self, n):
        return 0, (1 << sum(self.bits(n))) - 1


class Hilbert(RowMajor):
    tag = 0x40
    name = "hilbert"

    def order(self, n):
        return (n[0] - 1).bit_length()

    def fields(self, n):
        return u32(self.order(n), len(n))

    def offset(self, i, n):
        x, r, p = list(i), len(n), self.order(n)
        for b in range(p - 1, 0, -1):
            for j in range(r):
                low = (1 << b) - 1
                if x[j] >> b & 1:
                    x[0] ^= low
                else:
                    s = (x[0] ^ x[j]) & low
                    x[0] ^= s
                    x[j] ^= s
        for j in range(1, r):
            x[j] ^= x[j - 1]
        g = 0
        for b in range(p - 1, 0, -1):
            if x[r - 1] >> b & 1:
                g ^= (1 << b) - 1
        x = [a ^ g for a in x]
        e = 0
        for b in range(p - 1, -1, -1):
            for j in range(r):
                e = 2 * e + (x[j] >> b & 1)
        return e


# Sparse layouts: buffers beside the values, from the sorted or unsorted list of stored indices.


class Coo:
    tag = 6

    def __init__(self, is_sorted):
        self.sorted, self.name = is_sorted, "coo_sorted" if is_sorted else "coo"

    def order(self, stored):
        return sorted(stored) if self.sorted else stored

    def fields(self, n, stored):
        return u64(len(stored)) + bytes([self.sorted]) + bytes(7)

    def buffers(self, n, stored):
        return [u64(*itertools.chain(*stored))]


class Compressed:
    def __init__(self, tag):
        self.tag, self.name = tag, {7: "csr", 8: "csc"}[tag]
        self.major = tag - 7

    def order(self, stored):
        return sorted(stored, key=lambda i: (i[self.major], i[1 - self.major]))

    def fields(self, n, stored):
        return u64(len(stored)) + bytes(8)

    def buffers(self, n, stored):
        starts = [sum(i[self.major] < k for i in stored) for k in range(n[self.major] + 1)]
        return [u64(*(i[1 - self.major] for i in stored)), u64(*starts)]


class Csf:
    tag = 9
    name = "csf"
    mode_order = (2, 0, 1)

    def order(self, stored):
        return sorted(stored, key=lambda i: [i[d] for d in self.mode_order])

    def fields(self, n, stored):
        return u64(len(stored)) + u32(*self.mode_order) + bytes(8)

    def buffers(self, n, stored):
        permuted = [tuple(i[d] for d in self.mode_order) for i in stored]
        made, parents = [], [()]
        for level in range(len(n)):
            nodes = list(dict.fromkeys(i[: level + 1] for i in permuted))
            starts = [sum(c[:level] < parent for c in nodes) for parent in parents] + [len(nodes)]
            made += [u64(*starts), u64(*(c[level] for c in nodes))]
            parents = nodes
        return made


# Descriptors


def packed(codes, bits, padding=0):
    """Bytes of packed codes; whole groups of four for 6 bits."""
    number = 0
    for k, code in enumerate(codes):
        number |= code << (bits * k)
    count = len(codes)
    size = 3 * -(-count // 4) if bits == 6 else -(-count * bits // 8)
    return number.to_bytes(size, "little") + bytes(padding)


def handle(data):
    return struct.pack("<QIBBBB", len(data), 64 if data else 1, 0, 0, 0, 0)


def descriptor(tag, layout_tag, n, byte_offset, fields, buffers, quantization):
    body = struct.pack("<IBBI", 1, tag, layout_tag, len(n)) + u64(*n) + u64(byte_offset) + fields
    body += bytes([len(buffers)]) + b"".join(map(handle, buffers))
    body += u32(len(quantization)) + quantization
    return b"HRRY" + bytes([1, 0]) + u32(10 + len(body)) + body


class Case:
    """A scheme over a storage type, with parameters drawn for so many entries."""

    def __init__(self, rng, scheme, tag, axis=None, block=None, scale_type=F32, zeros=False,
                 shared=False, extremes=False):
        self.rng, self.scheme, self.tag, self.axis, self.block = rng, scheme, tag, axis, block
        self.scale_type = E8M0 if scheme == 5 else F32 if scheme in (1, 2, 4) else scale_type
        self.with_zeros, self.shared = zeros, shared
        self.extremes = extremes

    def draw_scale(self):
        rng = self.rng
        if self.scheme == 5:
            return rng.choice([0, 1, 16, 17, 120, 126, 127, 128, 254, rng.randrange(255)])
        _, bits, e, m, _, infinity, _ = FLOATS[self.scale_type]
        if self.extremes:
            code = rng.choice([1, 2, infinity - 1, infinity - 2, (1 << m) - 1, 1 << m,
                               rng.randrange(1, infinity)])
        else:
            code = (((1 << (e - 1)) - 1 - rng.randrange(8)) << m) | rng.randrange(1 << m)
        if self.scheme == 4:
            return rng.choice([0, code, code, code])
        return code | (rng.randrange(2) << (bits - 1))

    def draw_zero(self):
        rng = self.rng
        if self.scheme == 3 and self.extremes:
            return rng.choice([-(2**31), 2**31 - 1, 16, -1, 2**24 + 1, rng.randrange(-(2**31), 2**31)])
        _, bits, signed = INTEGERS[self.tag]
        low = -(1 << (bits - 1)) if signed else 0
        high = min(low + (1 << bits) - 1, 2**31 - 1)
        return rng.choice([low, high, rng.randint(low, high), rng.randint(low, high)])

    def draw_code(self):
        bits = width(self.tag)
        return self.rng.choice([0, (1 << bits) - 1, 1 << (bits - 1)] +
                               [self.rng.randrange(1 << bits) for _ in range(5)])

    def parameters(self, entries):
        """Draws them; returns the buffers that hold them."""
        self.scales = [self.draw_scale() for _ in range(entries)]
        self.zeros = [self.draw_zero() if self.with_zeros else 0 for _ in range(entries)]
        if self.scheme == 1:
            return []
        bits = 8 if self.scale_type == E8M0 else width(self.scale_type)
        scales = packed(self.scales, bits)
        zeros = struct.pack(f"<{entries}i", *self.zeros)
        if not self.with_zeros:
            return [scales]
        return [scales + zeros] if self.shared else [scales, zeros]

    def section(self, own_buffers):
        """`own_buffers`: how many the layout has; parameters follow them."""
        flags = int(self.scheme in (2, 3) and not self.with_zeros)
        header = struct.pack("<BBH", self.scheme, 1, flags)
        if self.scheme == 1:
            return header + u32(self.scales[0]) + struct.pack("<i", self.zeros[0]) + bytes(4)
        zero_buffer = own_buffers + (0 if self.shared else 1) if self.with_zeros else NO_BUFFER
        if self.scheme == 2:
            return header + u32(self.axis, own_buffers, zero_buffer) + bytes([F32, 0, 0, 0])
        if self.scheme == 3:
            return (header + u32(self.axis, self.block, own_buffers, zero_buffer)
                    + bytes([self.scale_type, 0, 0, 0]))
        return header + u32(self.axis, self.block, own_buffers)

    def entries(self, n):
        if self.scheme == 1:
            return 1
        if self.scheme == 2:
            return n[self.axis]
        lines = 1
        for k, a in enumerate(n):
            if k != self.axis:
                lines *= a
        return lines * -(-n[self.axis] // self.block)

    def entry(self, i, n):
        if self.scheme == 1:
            return 0
        if self.scheme == 2:
            return i[self.axis]
        outer = 0
        for k in range(len(n)):
            if k != self.axis:
                outer = outer * n[k] + i[k]
        return outer * -(-n[self.axis] // self.block) + i[self.axis] // self.block

    def value(self, code, entry):
        return dequantize(self.scheme, self.tag, code, self.scale_type, self.scales[entry],
                          self.zeros[entry])

    def name(self):
        storage = (INTEGERS.get(self.tag) or FLOATS[self.tag])[0]
        return f"scheme{self.scheme}_{storage}" + ("" if self.axis is None else f"_axis{self.axis}")


def write(out, name, blob, buffers, expected, tokens=None):
    out.write(f"case {name}\ndescriptor {blob.hex()}\n")
    for data in buffers:
        out.write(f"buffer {data.hex()}\n")
    if tokens is not None:
        out.write("tokens" + "".join(f" {t}" for t in tokens) + "\n")
    values = [v if v == NAN else f"{v:08x}" for v in expected]
    out.write(f"expected {' '.join(values)}\n")


def dense(out, case, n, layout, gap=0, tail=0):
    """`gap`: bytes before the elements; `tail`: after them."""
    low, high = layout.slots(n)
    bits = width(case.tag)
    lead = -(-(-low) // 4) * 4  # whole groups of every width
    codes = [case.draw_code() for _ in range(lead + high + 1)]
    arrays = case.parameters(case.entries(n))
    byte_offset = gap + lead * bits // 8
    data = bytes(case.rng.randrange(256) for _ in range(gap)) + packed(codes, bits, tail)
    buffers = [data, *arrays]
    blob = descriptor(case.tag, layout.tag, n, byte_offset, layout.fields(n), buffers,
                      case.section(1))
    expected = [case.value(codes[lead + layout.offset(i, n)], case.entry(i, n))
                for i in itertools.product(*map(range, n))]
    write(out, f"{layout.name}_{case.name()}", blob, buffers, expected)


def sparse(out, case, n, layout, nnz):
    every = list(itertools.product(*map(range, n)))
    stored = layout.order(case.rng.sample(every, nnz))
    codes = [case.draw_code() for _ in stored]
    own = [packed(codes, width(case.tag)), *layout.buffers(n, stored)]
    arrays = case.parameters(case.entries(n))
    blob = descriptor(case.tag, layout.tag, n, 0, layout.fields(n, stored), own + arrays,
                      case.section(len(own)))
    at = dict(zip(stored, codes, strict=True))
    expected = [case.value(at[i], case.entry(i, n)) if i in at else 0 for i in every]
    write(out, f"{layout.name}_{case.name()}", blob, own + arrays, expected)


def paged(out, case, heads, size, page_size, pages, table, sequences, tokens, wide):
    """`table`: pages of all sequences; `sequences`: where each one's begin."""
    n = [sum(tokens), heads, size]
    codes = [case.draw_code() for _ in range(pages * page_size * heads * size)]
    index = u64 if wide else u32
    own = [packed(codes, width(case.tag)), index(*table), index(*sequences)]
    entries = pages * page_size if case.scheme == 3 else case.entries(n)
    arrays = case.parameters(entries)
    used = {table[start + t // page_size] * page_size + t % page_size
            for start, count in zip(sequences, tokens, strict=False) for t in range(count)}
    if case.scheme == 3:  # slots without a token hold anything: NaN scales here
        for slot in set(range(entries)) - used:
            bad = bytearray(arrays[0])
            bad[4 * slot : 4 * slot + 4] = u32(0x7FC00000)
            arrays[0] = bytes(bad)
    fields = (struct.pack("<IQII", page_size, pages, 0, len(tokens)) + bytes([1]) + u32(7)
              + bytes([wide]) + bytes(6))
    blob = descriptor(case.tag, 0x0A, n, 0, fields, own + arrays, case.section(3))
    expected = []
    for start, count in zip(sequences, tokens, strict=False):
        for t, h, d in itertools.product(range(count), range(heads), range(size)):
            slot = table[start + t // page_size] * page_size + t % page_size
            entry = {1: 0, 2: (None, h, d)[case.axis or 0], 3: slot}[case.scheme]
            expected.append(case.value(codes[(slot * heads + h) * size + d], entry))
    write(out, f"paged_{case.name()}", blob, own + arrays, expected, tokens)


def main(out):
    rng = random.Random(20)

    def case(*args, **named):
        return Case(rng, *args, **named)

    row = RowMajor()
    for k, tag in enumerate(INTEGERS):
        dense(out, case(1, tag, zeros=True), [3, 5], row, gap=k % 4)
        dense(out, case(1, tag, zeros=True, extremes=True), [7], row)
        dense(out, case(2, tag, axis=k % 2, zeros=True), [3, 5], row, gap=k % 3)
        dense(out, case(2, tag, axis=1 - k % 2, extremes=True), [5, 3], row)
    dense(out, case(1, 0x10, zeros=True), [], row)
    blocked = [tag for tag in INTEGERS if INTEGERS[tag][1] <= 8]
    for k, tag in enumerate(blocked):
        kind = (F16, BF16, F32)
        dense(out, case(3, tag, axis=1, block=2, scale_type=kind[k % 3], zeros=True, shared=True),
              [2, 5, 3], row)
        dense(out, case(3, tag, axis=1, block=8, scale_type=kind[(k + 1) % 3]), [2, 19], row, tail=2)
        dense(out, case(3, tag, axis=0, block=4, scale_type=kind[(k + 2) % 3], zeros=True,
                        extremes=True, shared=k % 2 == 0), [7, 5], row, gap=1)
    dense(out, case(3, 0x48, axis=1, block=32, scale_type=F16), [2, 64], row)
    dense(out, case(3, 0x49, axis=0, block=16, scale_type=BF16, zeros=True), [18, 3], row)
    dense(out, case(4, 0x49, axis=1, block=8), [2, 9, 2], row)
    dense(out, case(4, 0x49, axis=1, block=16, extremes=True), [3, 17], row, gap=5)
    dense(out, case(4, 0x49, axis=0, block=8), [9, 3], row)
    for tag in (0x10, 0x48, 0x40, 0x41, 0x43, 0x44, 0x45):
        dense(out, case(5, tag, axis=1, block=16), [2, 32], row)
        dense(out, case(5, tag, axis=0, block=16), [16, 3], row, gap=3)

    layouts = [
        ColumnMajor(), Strided("reversed", [-20, -4, 1]), Strided("broadcast", [0, 3, 1]),
        Strided("gaps", [50, 5, 2]), Tiled("tiled", ([2, 2, 2], 1, 2)),
        Tiled("nested", ([2, 4, 2], 2, 4), ([1, 2, 2], 1, 1)), Morton(),
    ]
    for layout in layouts:
        dense(out, case(1, 0x4A, zeros=True), [2, 5, 3], layout, gap=1)
        dense(out, case(2, 0x48, axis=1, zeros=True), [2, 5, 3], layout)
        dense(out, case(3, 0x49, axis=1, block=2, scale_type=F16, zeros=True, shared=True),
              [2, 5, 3], layout)
        dense(out, case(4, 0x49, axis=1, block=8), [1, 9, 2], layout)
        dense(out, case(5, 0x45, axis=1, block=16), [1, 16, 2], layout)
    hilbert = Hilbert()
    dense(out, case(1, 0x11, zeros=True), [4, 4], hilbert)
    dense(out, case(3, 0x48, axis=0, block=2, scale_type=BF16), [4, 4], hilbert)
    dense(out, case(4, 0x49, axis=1, block=8), [8, 8], hilbert)

    for layout, n in ((Coo(True), [3, 9]), (Coo(False), [3, 9]), (Compressed(7), [3, 9]),
                      (Compressed(8), [3, 9]), (Csf(), [2, 9, 2])):
        nnz = 7
        sparse(out, case(1, 0x11, zeros=True), n, layout, nnz)
        sparse(out, case(2, 0x4A, axis=0, zeros=True), n, layout, nnz)
        sparse(out, case(3, 0x48, axis=1, block=4, scale_type=F16, zeros=True), n, layout, nnz)
        sparse(out, case(4, 0x49, axis=1, block=8), n, layout, nnz)
    sparse(out, case(5, 0x44, axis=1, block=16), [3, 16], Compressed(7), 9)

    batch = {"heads": 3, "size": 2, "page_size": 2, "pages": 6, "table": [4, 1, 4, 0, 5],
             "sequences": [0, 2, 2, 5], "tokens": [3, 0, 5]}
    paged(out, case(1, 0x11, zeros=True), **batch, wide=False)
    paged(out, case(2, 0x48, axis=1, zeros=True), **batch, wide=True)
    paged(out, case(2, 0x10, axis=2), **batch, wide=False)
    paged(out, case(3, 0x49, axis=0, block=2, zeros=True), **batch, wide=False)
    paged(out, case(3, 0x4A, axis=0, block=2), **batch, wide=True)


if __name__ == "__main__":
    main(sys.stdout)
