"""The formulas of 02-layouts.md and 03-quantization.md, written a second time and slowly, from the text alone:
exact integers, Python floats where an operation is exact in them, one rounding where the format rounds.

Nothing here is shared with the C++ library: this is what its results are compared with.
"""

import itertools
import math
import struct
from fractions import Fraction

DYNAMIC = 2**64 - 1


class Dtype:
    """An element type of 01-descriptor.md section 2.2. `kind`: "float", "int", "uint", "bool", "complex",
    "bits" (elements that stay bit patterns: float128 and private types)."""

    def __init__(self, tag, name, bits, kind, exponent=0, mantissa=0, bias=0, special="none"):
        self.tag, self.name, self.bits, self.kind = tag, name, bits, kind
        self.exponent, self.mantissa, self.bias, self.special = exponent, mantissa, bias, special


DTYPES = {d.name: d for d in [
    Dtype(0x01, "float16", 16, "float", 5, 10, 15, "ieee"),
    Dtype(0x02, "bfloat16", 16, "float", 8, 7, 127, "ieee"),
    Dtype(0x03, "float32", 32, "float", 8, 23, 127, "ieee"),
    Dtype(0x04, "float64", 64, "float", 11, 52, 1023, "ieee"),
    Dtype(0x10, "int8", 8, "int"), Dtype(0x11, "uint8", 8, "uint"),
    Dtype(0x12, "int16", 16, "int"), Dtype(0x13, "uint16", 16, "uint"),
    Dtype(0x14, "int32", 32, "int"), Dtype(0x15, "uint32", 32, "uint"),
    Dtype(0x16, "int64", 64, "int"), Dtype(0x17, "uint64", 64, "uint"),
    Dtype(0x20, "bool", 1, "bool"),
    Dtype(0x40, "float8_e4m3", 8, "float", 4, 3, 7, "nan"),
    Dtype(0x41, "float8_e5m2", 8, "float", 5, 2, 15, "ieee"),
    Dtype(0x42, "float8_e8m0", 8, "float", 8, 0, 127, "exponent"),
    Dtype(0x43, "float4_e2m1", 4, "float", 2, 1, 1),
    Dtype(0x44, "float6_e2m3", 6, "float", 2, 3, 1),
    Dtype(0x45, "float6_e3m2", 6, "float", 3, 2, 3),
    Dtype(0x46, "float128", 128, "bits"),
    Dtype(0x48, "int4", 4, "int"), Dtype(0x49, "uint4", 4, "uint"),
    Dtype(0x4A, "int2", 2, "int"), Dtype(0x4B, "uint2", 2, "uint"),
    Dtype(0x50, "complex64", 64, "complex"), Dtype(0x51, "complex128", 128, "complex"),
]}
BY_TAG = {d.tag: d for d in DTYPES.values()}


def cdiv(a, b):
    return -(-a // b)


def packed(bits, n):
    """Bytes of n packed elements (01-descriptor.md section 2.4)."""
    return 3 * cdiv(n, 4) if bits == 6 else cdiv(n * bits, 8)


def indices(shape):
    """Every logical index, row-major."""
    return itertools.product(*(range(n) for n in shape))


# ------------------------------------------------------------------------------------------------
# Addresses


def row_strides(shape):
    strides = [1] * len(shape)
    for k in range(len(shape) - 2, -1, -1):
        strides[k] = strides[k + 1] * shape[k + 1]
    return strides


def col_strides(shape):
    strides = [1] * len(shape)
    for k in range(1, len(shape)):
        strides[k] = strides[k - 1] * shape[k - 1]
    return strides


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def order_strides(order, shape, own):
    return {"row_major": row_strides, "col_major": col_strides}.get(order, lambda _: own)(shape)


def tiled_offset(level, index, shape):
    tile = level["tile_shape"]
    grid = [cdiv(n, t) for n, t in zip(shape, tile, strict=True)]
    outer = [i // t for i, t in zip(index, tile, strict=True)]
    inner = [i % t for i, t in zip(index, tile, strict=True)]
    offset = math.prod(tile) * dot(
        outer, order_strides(level["outer_layout"], grid, level.get("outer_strides")))
    if level["inner_layout"] == "tiled":
        return offset + tiled_offset(level["inner_tiled"], inner, tile)
    return offset + dot(inner, order_strides(level["inner_layout"], tile, level.get("inner_strides")))


def morton_offset(bits, index):
    code = out = 0
    for b in range(max(bits)):
        for d, width in enumerate(bits):
            if b < width:
                code |= (index[d] >> b & 1) << out
                out += 1
    return code


def hilbert_twist(x, j, b):
    low = 2**b - 1
    if x[j] >> b & 1:
        x[0] ^= low
    else:
        swap = (x[0] ^ x[j]) & low
        x[0] ^= swap
        x[j] ^= swap


def hilbert_offset(order, index):
    x = list(index)
    r = len(x)
    for b in range(order - 1, 0, -1):
        for j in range(r):
            hilbert_twist(x, j, b)
    for j in range(1, r):
        x[j] ^= x[j - 1]
    g = 0
    for b in range(order - 1, 0, -1):
        if x[r - 1] >> b & 1:
            g ^= 2**b - 1
    code = 0
    for b in range(order - 1, -1, -1):
        for j in range(r):
            code = 2 * code + ((x[j] ^ g) >> b & 1)
    return code


def dense_offset(layout, index, shape):
    """Element offset of `index`, counted from the element at byte_offset."""
    f = layout.fields
    if layout.name == "row_major":
        return dot(index, row_strides(shape))
    if layout.name == "col_major":
        return dot(index, col_strides(shape))
    if layout.name == "strided":
        return dot(index, f["strides"])
    if layout.name == "tiled":
        return tiled_offset(f, index, shape)
    if layout.name == "morton":
        return morton_offset(f["morton_bits"], index)
    assert layout.name == "hilbert", layout.name
    return hilbert_offset(f["hilbert_order"], index)


def span(strides, sizes):
    reach = [s * (n - 1) for s, n in zip(strides, sizes, strict=True)]
    return sum(min(0, x) for x in reach), sum(max(0, x) for x in reach)


def tiled_range(level, shape):
    tile = level["tile_shape"]
    grid = [cdiv(n, t) for n, t in zip(shape, tile, strict=True)]
    glo, ghi = span(order_strides(level["outer_layout"], grid, level.get("outer_strides")), grid)
    if level["inner_layout"] == "tiled":
        clo, chi = tiled_range(level["inner_tiled"], tile)
    else:
        clo, chi = span(order_strides(level["inner_layout"], tile, level.get("inner_strides")), tile)
    slots = math.prod(tile)
    return slots * glo + clo, slots * ghi + chi


def dense_range(layout, shape):
    """Smallest and largest offset over all slots."""
    f = layout.fields
    if layout.name == "strided":
        return span(f["strides"], shape)
    if layout.name == "tiled":
        return tiled_range(f, shape)
    if layout.name == "morton":
        return 0, 2 ** sum(f["morton_bits"]) - 1
    if layout.name == "hilbert":
        return 0, 2 ** (f["hilbert_order"] * f["hilbert_rank"]) - 1
    return 0, math.prod(shape) - 1


def extent(bits, lo, hi):
    """Bytes before byte_offset and from it on (02-layouts.md section 3)."""
    if bits >= 8:
        return -lo * bits // 8, (hi + 1) * bits // 8
    if bits == 6:
        return -3 * (lo // 4), 3 * (hi // 4 + 1)
    return -(lo * bits // 8), hi * bits // 8 + 1


def least_buffers(layout, shape, bits, byte_offset=0):
    """Smallest size of each of the layout's own buffers, as far as the descriptor tells; what hangs on a
    dynamic size is 0, and so are the inner levels of a CSF tree and a block table."""
    f = layout.fields
    dynamic = DYNAMIC in shape
    if layout.name in ("row_major", "col_major", "strided", "tiled", "morton", "hilbert"):
        if dynamic or 0 in shape:
            return [byte_offset]
        return [byte_offset + extent(bits, *dense_range(layout, shape))[1]]
    if layout.name == "coo":
        return [packed(bits, f["nnz"]), 8 * f["nnz"] * len(shape)]
    if layout.name in ("csr", "csc"):
        lines = shape[0 if layout.name == "csr" else 1]
        return [packed(bits, f["nnz"]), 8 * f["nnz"], 0 if lines == DYNAMIC else 8 * (lines + 1)]
    if layout.name == "csf":
        sizes = [packed(bits, f["nnz"]), 16] + [0] * (2 * len(shape) - 1)
        sizes[-1] = 8 * f["nnz"]
        return sizes
    if layout.name == "block_paged":
        width = {"uint32": 4, "uint64": 8}[f["block_table_index_type"]]
        pool = 0 if DYNAMIC in shape[1:] else f["num_pages"] * f["page_size"] * shape[1] * shape[2]
        return [packed(bits, pool), 0, width * (f["num_seqs"] + 1)]
    return [] if layout.name == "composite" else [0]


# ------------------------------------------------------------------------------------------------
# Elements


def code_at(buffer, byte_offset, e, bits):
    """The bits of element offset e: bit 8*byte_offset + bits*e on, from the least significant."""
    first = 8 * byte_offset + bits * e
    assert first >= 0 and first + bits <= 8 * len(buffer), (first, bits, len(buffer))
    start, end = first // 8, cdiv(first + bits, 8)
    return int.from_bytes(buffer[start:end], "little") >> first % 8 & (1 << bits) - 1


def signed(code, bits):
    return code - (1 << bits) if code >> (bits - 1) else code


def float_value(d, code):
    """01-descriptor.md section 2.2; exact, since every type here fits in a Python float."""
    if d.special == "exponent":
        return math.nan if code == 0xFF else math.ldexp(1.0, code - d.bias)
    m = code & (1 << d.mantissa) - 1
    e = code >> d.mantissa & (1 << d.exponent) - 1
    sign = -1.0 if code >> (d.exponent + d.mantissa) else 1.0
    if d.special == "ieee" and e == (1 << d.exponent) - 1:
        return sign * math.inf if m == 0 else math.nan
    if d.special == "nan" and e == (1 << d.exponent) - 1 and m == (1 << d.mantissa) - 1:
        return math.nan
    significand = m if e == 0 else m + (1 << d.mantissa)
    return sign * math.ldexp(float(significand), max(e, 1) - d.bias - d.mantissa)


def value(d, code):
    """A number (complex: a pair of floats; "bits": the code) for a stored code."""
    if d.kind == "int":
        return signed(code, d.bits)
    if d.kind == "float":
        return float_value(d, code)
    if d.kind == "complex":
        half = DTYPES["float32" if d.bits == 64 else "float64"]
        return (float_value(half, code & (1 << half.bits) - 1), float_value(half, code >> half.bits))
    return code


def round_to(d, x):
    """`x` (exact) to the float type `d` with infinities: nearest, ties to even."""
    if isinstance(x, float) and not math.isfinite(x):
        return x
    exact = Fraction(x)
    if exact == 0:
        return x if isinstance(x, float) else 0.0
    magnitude, exponent = abs(exact), 1 - d.bias  # of the leading bit, subnormals included
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    step = Fraction(2) ** (exponent - d.mantissa)
    steps = magnitude / step
    whole = int(steps)
    rest = steps - whole
    if rest > Fraction(1, 2) or rest == Fraction(1, 2) and whole % 2 == 1:
        whole += 1
    rounded = whole * step
    if rounded >= Fraction(2) ** (2**d.exponent - 1 - d.bias):
        return math.copysign(math.inf, -1 if exact < 0 else 1)
    return math.copysign(float(rounded), -1 if exact < 0 else 1)


FLOAT32 = DTYPES["float32"]


def float32(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


# ------------------------------------------------------------------------------------------------
# Stored elements of a tensor


def words(buffer, width=8):
    return [int.from_bytes(buffer[i:i + width], "little") for i in range(0, len(buffer) - width + 1, width)]


def places(tensor):
    """Logical index -> element offset in buffer 0 of every element that is stored; a dense tensor stores all."""
    layout, shape, buffers = tensor.layout, tensor.shape, tensor.buffers
    f = layout.fields
    if layout.name == "coo":
        coordinates = words(buffers[1])
        r = len(shape)
        return {tuple(coordinates[j * r:j * r + r]): j for j in range(f["nnz"])}
    if layout.name in ("csr", "csc"):
        line, other = words(buffers[2]), words(buffers[1])
        found = {}
        for a in range(shape[0] if layout.name == "csr" else shape[1]):
            for j in range(line[a], line[a + 1]):
                found[(a, other[j]) if layout.name == "csr" else (other[j], a)] = j
        return found
    if layout.name == "csf":
        order, r = f["mode_order"], len(shape)
        found = {}

        def walk(level, parent, path):
            if level == r:
                found[tuple(path[order.index(k)] for k in range(r))] = parent
                return
            pos, crd = words(buffers[2 * level + 1]), words(buffers[2 * level + 2])
            for j in range(pos[parent], pos[parent + 1]):
                walk(level + 1, j, path + [crd[j]])

        walk(0, 0, [])
        return found
    return {index: dense_offset(layout, index, shape) for index in indices(shape)}


def paged_places(tensor):
    """(sequence, token, head, element) -> element offset, in iteration order; `tensor.tokens` counts the
    tokens of each sequence."""
    f = tensor.layout.fields
    _, heads, size = tensor.shape
    width = {"uint32": 4, "uint64": 8}[f["block_table_index_type"]]
    table, start = words(tensor.buffers[1], width), words(tensor.buffers[2], width)
    page_size = f["page_size"]
    found = {}
    for s, count in enumerate(tensor.tokens):
        for t in range(count):
            page = table[start[s] + t // page_size]
            for h in range(heads):
                for d in range(size):
                    found[s, t, h, d] = ((page * page_size + t % page_size) * heads + h) * size + d
    return found


# ------------------------------------------------------------------------------------------------
# Quantization

NF4 = [float32(int(word, 16)) for word in (
    "BF800000 BF3239B1 BF066B30 BECA32A0 BE91A24D BE3D353F BDBA7871 00000000 "
    "3DA2FAFF 3E24CAE3 3E7C04DD 3EAD033A 3EE1A4B8 3F1007AB 3F3913B3 3F800000").split()]


def block_of(shape, axis, block_size, index):
    nb = cdiv(shape[axis], block_size)
    outer = 0
    for k, n in enumerate(shape):
        if k != axis:
            outer = outer * n + index[k]
    return outer * nb + index[axis] // block_size


def block_count(shape, axis, block_size):
    return cdiv(shape[axis], block_size) * math.prod(n for k, n in enumerate(shape) if k != axis)


def parameter_count(q, layout, shape):
    """Entries of the scale array, zero points alike (03-quantization.md sections 4 and 9.3)."""
    if q["scheme"] == "per_channel_affine":
        return shape[q["axis"]]
    if layout.name == "block_paged":
        return layout.fields["num_pages"] * layout.fields["page_size"]
    return block_count(shape, q["axis"], q["block_size"])


SCALE_TYPES = {"per_channel_affine": "float32", "nf4": "float32", "mxfp": "float8_e8m0"}


def scale_type(q):
    return DTYPES[q.get("scale_type") or SCALE_TYPES[q["scheme"]]]


def dequantized(tensor, code, index, slot=None):
    """03-quantization.md section 7: float32. `index` is logical; `slot` is the page slot of a paged element."""
    q, d = tensor.quantization, tensor.dtype
    scheme = q["scheme"]
    stored = value(d, code)

    def affine(scale, zero_point):
        difference = round_to(FLOAT32, stored - zero_point)
        return round_to(FLOAT32, Fraction(difference) * Fraction(scale)) if difference else difference * scale

    if scheme == "per_tensor_affine":
        return affine(q["scale"], q["zero_point"])
    if scheme == "per_channel_affine":
        entry = index[q["axis"]]
    elif slot is not None:
        entry = slot
    else:
        entry = block_of(tensor.shape, q["axis"], q["block_size"], index)
    scales = tensor.buffers[q["scale_buffer_index"]]
    kind = scale_type(q)
    scale = float_value(kind, code_at(scales, 0, entry, kind.bits))
    if scheme == "nf4":
        return round_to(FLOAT32, NF4[code] * scale)
    if scheme == "mxfp":
        if isinstance(stored, float) and not math.isfinite(stored):
            return stored
        return round_to(FLOAT32, Fraction(stored) * Fraction(scale)) if stored else stored * scale
    zero_point = 0
    if not q["symmetric"]:
        where = q["zero_point_buffer_index"]
        start = 0
        if where == q["scale_buffer_index"]:
            start = kind.bits // 8 * parameter_count(q, tensor.layout, tensor.shape)
        zero_point = signed(code_at(tensor.buffers[where][start:], 0, entry, 32), 32)
    return affine(scale, zero_point)


# ------------------------------------------------------------------------------------------------
# Whole tensors


def stored_numbers(tensor):
    """Index -> number for what is stored, dequantized where the tensor is quantized."""
    bits = tensor.bits
    paged = tensor.layout.name == "block_paged"
    found = {}
    for index, e in (paged_places(tensor) if paged else places(tensor)).items():
        code = code_at(tensor.buffers[0], tensor.byte_offset, e, bits)
        if tensor.quantization is None:
            found[index] = value(tensor.dtype, code)
        elif paged:
            slot = e // (tensor.shape[1] * tensor.shape[2])
            found[index] = dequantized(tensor, code, (None, *index[2:]), slot)
        else:
            found[index] = dequantized(tensor, code, index)
    return found


def zero_of(d):
    return {"float": 0.0, "complex": (0.0, 0.0)}.get(d.kind, 0)


def numbers(tensor):
    """Every element in logical row-major order (paged: sequences, tokens, heads, head elements)."""
    found = stored_numbers(tensor)
    if tensor.layout.name == "block_paged":
        return list(found.values())
    zero = 0.0 if tensor.quantization else zero_of(tensor.dtype)
    return [found.get(index, zero) for index in indices(tensor.shape)]


def value_type(tensor_or_dtype, quantized=False):
    d = tensor_or_dtype
    if quantized:
        return "float32"
    if d.kind == "float":
        return "float64" if d.bits == 64 else "float32"
    return {"int": "int", "uint": "int", "bool": "int", "complex": d.name, "bits": "bits"}[d.kind]


def float_bits(kind, x):
    if math.isnan(x):
        return "nan"
    form, number = ("<f", "<I") if kind == "float32" else ("<d", "<Q")
    return f"{struct.unpack(number, struct.pack(form, x))[0]:0{8 if kind == 'float32' else 16}x}"


def shown(kind, x, bits):
    """One element as the manifest has it."""
    if kind == "int":
        return x if -2**53 < x < 2**53 else str(x)
    if kind == "bits":
        return f"{x:0{cdiv(bits, 4)}x}"
    if kind.startswith("complex"):
        half = "float32" if kind == "complex64" else "float64"
        return [float_bits(half, part) for part in x]
    return float_bits(kind, x)


def shown_values(tensor):
    kind = value_type(tensor.dtype, tensor.quantization is not None)
    return kind, [shown(kind, x, tensor.bits) for x in numbers(tensor)]


# ------------------------------------------------------------------------------------------------
# Composites


def as_head_type(head, member, x):
    """A quantized member decodes to float32 and is rounded once more to the head's type."""
    return round_to(head.dtype, x) if getattr(member, "quantization", None) is not None else x


def member_numbers(head, member):
    """Local index -> number of the elements that a member covers."""
    if member.layout.name == "composite":
        return dict(zip(indices(member.shape), materialized_numbers(member), strict=True))
    found = stored_numbers(member)
    return {index: as_head_type(head, member, x) for index, x in found.items()}


def add(d, a, b):
    if d.kind == "float":
        if not (math.isfinite(a) and math.isfinite(b)):
            return a + b
        exact = Fraction(a) + Fraction(b)
        return round_to(d, exact) if exact else a + b
    if d.kind == "complex":
        half = DTYPES["float32" if d.bits == 64 else "float64"]
        return (add(half, a[0], b[0]), add(half, a[1], b[1]))
    assert d.kind in ("int", "uint"), d.name
    total = (a + b) & (1 << d.bits) - 1
    return signed(total, d.bits) if d.kind == "int" else total


def materialized_numbers(head):
    f = head.layout.fields
    out = {}
    for k, member in enumerate(head.members):
        for index, x in member_numbers(head, member).items():
            at = tuple(i + o for i, o in zip(index, member.shard[1], strict=True))
            if f["composition_rule"] == "overlay" and f["combine_op"] == "add" and k > 0:
                out[at] = add(head.dtype, out.get(at, zero_of(head.dtype)), x)
            else:
                out[at] = x
    return [out.get(index, zero_of(head.dtype)) for index in indices(head.shape)]


def shown_materialized(head):
    kind = value_type(head.dtype)
    return kind, [shown(kind, x, head.bits) for x in materialized_numbers(head)]
