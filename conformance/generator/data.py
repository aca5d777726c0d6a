"""Tensors with data: the worked examples of parts 02 and 03, and every layout with every class of element."""

import math
import struct

from . import formulas
from .descriptors import PRIVATE_FLOAT, PRIVATE_NIBBLE
from .formulas import DTYPES, packed
from .wire import (
    Tensor, col, composite, coo, csc, csf, csr, hilbert, i32, level, morton, mxfp, nf4, paged, per_block, per_channel,
    per_tensor, row, strided, tiled, u16, u32, u64)


def u64s(*values):
    return b"".join(u64(v) for v in values)


def pack_codes(bits, codes):
    """Elements one after the other, least significant bit first."""
    whole = 0
    for i, code in enumerate(codes):
        whole |= (code & (1 << bits) - 1) << (bits * i)
    return whole.to_bytes(packed(bits, len(codes)), "little")


def pattern(bits, n, seed=1):
    """n codes that differ from their neighbours in every bit position sooner or later."""
    state, codes = seed * 2654435761 % 2**32 or 1, []
    for _ in range(n):
        code = 0
        for _ in range(-(-bits // 32)):
            state ^= state << 13 & 0xFFFFFFFF
            state ^= state >> 17
            state ^= state << 5 & 0xFFFFFFFF
            code = code << 32 | state
        codes.append(code & (1 << bits) - 1)
    return codes


def dtype_bits(kind):
    return kind[1]["bit_width"] if isinstance(kind, tuple) else DTYPES[kind].bits


def tensor(kind, shape, layout, buffers, **more):
    name, ext = kind if isinstance(kind, tuple) else (kind, None)
    return Tensor(name, shape, layout, buffers=buffers, extension=ext, **more)


def dense(kind, shape, layout, codes=None, seed=1, **more):
    """Every slot of the extent filled, those outside of the shape too, which nobody may look at."""
    bits = dtype_bits(kind)
    if 0 in shape:
        return tensor(kind, shape, layout, [b""], **more)
    lo, hi = formulas.dense_range(layout, shape)
    before, after = formulas.extent(bits, lo, hi)
    whole = 0
    codes = codes or pattern(bits, hi - lo + 1, seed)
    for e, code in zip(range(lo, hi + 1), codes, strict=True):
        whole |= (code & (1 << bits) - 1) << (8 * before + bits * e)
    return tensor(kind, shape, layout, [whole.to_bytes(before + after, "little")], byte_offset=before, **more)


# M of 02-layouts.md section 9: [4, 6], (0,4)=7, (1,0)=-2, (1,3)=9, (1,5)=4, (3,3)=1.
M_ENTRIES = [((0, 4), 7), ((1, 0), -2), ((1, 3), 9), ((1, 5), 4), ((3, 3), 1)]
TREE_ENTRIES = [((0, 0, 1), 13), ((1, 2, 1), 14), ((0, 1, 4), 10), ((2, 1, 4), 11), ((2, 3, 4), 12)]


def matrix_m(kind, codes, which):
    """M as COO, CSR or CSC with the five `codes` in row order."""
    bits = dtype_bits(kind)
    where = [index for index, _ in M_ENTRIES]
    if which == "coo":
        return tensor(kind, (4, 6), coo(5), [pack_codes(bits, codes), u64s(*(i for at in where for i in at))])
    if which == "coo_unsorted":
        order = [3, 0, 4, 2, 1]
        return tensor(kind, (4, 6), coo(5, False), [
            pack_codes(bits, [codes[k] for k in order]), u64s(*(i for k in order for i in where[k]))])
    if which == "csr":
        return tensor(kind, (4, 6), csr(5), [
            pack_codes(bits, codes), u64s(*(c for _, c in where)), u64s(0, 1, 4, 4, 5)])
    order = sorted(range(5), key=lambda k: where[k][::-1])
    return tensor(kind, (4, 6), csc(5), [
        pack_codes(bits, [codes[k] for k in order]), u64s(*(where[k][0] for k in order)), u64s(0, 1, 1, 1, 3, 4, 5)])


def tree(kind, codes):
    """The worked CSF tensor; codes in leaf order."""
    return tensor(kind, (3, 4, 5), csf(5, 2, 0, 1), [
        pack_codes(dtype_bits(kind), codes), u64s(0, 2), u64s(1, 4), u64s(0, 2, 4), u64s(0, 1, 0, 2),
        u64s(0, 1, 2, 3, 5), u64s(0, 2, 1, 1, 3)])


def cache(kind, index="uint32", **more):
    """The worked cache: three sequences of 3, 0 and 5 tokens, one page shared."""
    pool = pack_codes(dtype_bits(kind), pattern(dtype_bits(kind), 144, 5))
    width = u32 if index == "uint32" else u64
    return tensor(kind, (8, 3, 4), paged(2, 6, 3, "value", 7, index), [
        pool, b"".join(width(n) for n in (4, 1, 4, 0, 5)), b"".join(width(n) for n in (0, 2, 2, 5))],
        tokens=[3, 0, 5], **more)


KINDS = {"bool": "bool", "i2": "int2", "u2": "uint2", "f4": "float4_e2m1", "i4": "int4", "u4": "uint4",
         "f6e2m3": "float6_e2m3", "f6e3m2": "float6_e3m2", "i8": "int8", "e4m3": "float8_e4m3",
         "e5m2": "float8_e5m2", "e8m0": "float8_e8m0", "u16": "uint16", "f16": "float16", "bf16": "bfloat16",
         "i32": "int32", "f32": "float32", "u64": "uint64", "i64": "int64", "f64": "float64", "f128": "float128",
         "c64": "complex64", "c128": "complex128", "private24": PRIVATE_FLOAT, "private4": PRIVATE_NIBBLE}
FEW = {k: KINDS[k] for k in ("bool", "i2", "u4", "f6e2m3", "i8", "bf16", "f64", "c128", "private24")}

DENSE = {
    "row_major": (row(), (3, 5)), "col_major": (col(), (3, 5)), "strided_reversed": (strided(-5, 1), (3, 5)),
    "strided_broadcast": (strided(0, -2), (3, 4)), "tiled": (tiled((2, 3), inner="col_major"), (5, 7)),
    "tiled_strided": (tiled((2, 3), outer_strides=[-4, 1], inner_strides=[1, -2]), (4, 6)),
    "tiled_nested": (tiled((8, 4), inner_tiled=level((4, 2), outer="col_major")), (10, 9)),
    "tiled_three_levels": (tiled((4, 4), outer="col_major", inner_tiled=level(
        (2, 4), inner_tiled=level((1, 2), outer="col_major"))), (5, 6)),
    "morton": (morton(2, 2), (4, 4)), "morton_unequal": (morton(1, 3), (2, 6)),
    "morton_3d": (morton(2, 1, 3), (3, 2, 5)), "hilbert": (hilbert(2, 2), (4, 4)),
    "hilbert_3d": (hilbert(1, 3), (2, 2, 2)), "hilbert_order_3": (hilbert(3, 2), (8, 8)),
}
SPARSE = ("coo", "coo_unsorted", "csr", "csc")


def plain():
    """name, tensor: every element type row-major; every layout with an element of each class."""
    for short, kind in KINDS.items():
        yield f"row_major_{short}", dense(kind, (3, 5), row())
        yield f"scalar_{short}", dense(kind, (), row(), seed=3)
    for where, (layout, shape) in DENSE.items():
        if where != "row_major":
            for short, kind in FEW.items():
                yield f"{where}_{short}", dense(kind, shape, layout)
    for short, kind in FEW.items():
        bits = dtype_bits(kind)
        for which in SPARSE:
            yield f"{which}_{short}", matrix_m(kind, pattern(bits, 5, 7), which)
        yield f"csf_{short}", tree(kind, pattern(bits, 5, 9))
        yield f"paged_{short}", cache(kind)
    yield "paged_u64_f32", cache("float32", "uint64")
    codes = [v & 0xFFFF for _, v in M_ENTRIES]
    for which in SPARSE:
        yield f"worked_m_{which}", matrix_m("int16", codes, which)
    yield "worked_csf", tree("int16", [13, 14, 10, 11, 12])
    yield "worked_reversed_i16", Tensor("int16", (4, 3), strided(-8, -2), 60, buffers=[
        b"".join(u16(n) for n in range(32))])
    yield "worked_private24", tensor(PRIVATE_FLOAT, (6,), row(), [bytes(range(18))], role="base", shard=((6,), (0,)),
                                     statistics={"nnz": 3})
    # Section 2.3 of part 01, by its bytes.
    for name, kind, n, raw in (("bool", "bool", 10, "46 03"), ("int4", "int4", 5, "7D 18 02"),
                               ("uint2", "uint2", 5, "72 01"), ("int2", "int2", 5, "4E 03"),
                               ("e2m3", "float6_e2m3", 5, "ED 84 1B 21 00 00"),
                               ("e3m2", "float6_e3m2", 5, "ED 84 1B 21 00 00")):
        yield f"packing_{name}", tensor(kind, (n,), row(), [bytes.fromhex(raw)])
    # Every code of the types that have few.
    for short in ("f4", "f6e2m3", "f6e3m2", "e4m3", "e5m2", "e8m0", "i2", "i4"):
        bits = dtype_bits(KINDS[short])
        yield f"every_{short}", dense(KINDS[short], (1 << bits,), row(), list(range(1 << bits)))
    edge16 = [0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01]
    yield "edges_f16", dense("float16", (10,), row(), edge16)
    yield "edges_bf16", dense("bfloat16", (9,), row(), [
        0x0000, 0x8000, 0x0001, 0x007F, 0x0080, 0x7F7F, 0x7F80, 0xFF80, 0x7FC1])
    yield "edges_f32", dense("float32", (9,), row(), [
        0, 0x80000000, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000])
    yield "edges_i64", dense("int64", (4,), row(), [0, 1, 2**63, 2**64 - 1])
    yield "edges_u64", dense("uint64", (3,), row(), [2**53, 2**53 + 1, 2**64 - 1])
    # Nothing, or nothing stored.
    yield "empty_f32", dense("float32", (0, 4), row())
    yield "empty_tiled", dense("int4", (5, 0), tiled((2, 3)))
    yield "empty_morton", dense("bool", (0, 4), morton(2, 2))
    yield "coo_nothing", tensor("float32", (2, 3), coo(0), [b"", b""])
    yield "csr_nothing", tensor("int8", (2, 3), csr(0), [b"", b"", u64s(0, 0, 0)])
    yield "csr_no_rows", tensor("int8", (0, 3), csr(0), [b"", b"", u64s(0)])
    yield "csc_no_rows", tensor("int8", (0, 2), csc(0), [b"", b"", u64s(0, 0, 0)])
    yield "csf_nothing", tensor("int8", (2, 1, 2), csf(0, 0, 1, 2), [
        b"", u64s(0, 0), b"", u64s(0), b"", u64s(0), b""])
    yield "csf_node_without_leaf", tensor("int8", (2, 2, 2), csf(1, 0, 1, 2), [
        b"\x05", u64s(0, 2), u64s(0, 1), u64s(0, 0, 1), u64s(1), u64s(0, 1), u64s(0)])
    yield "csf_rank_4", tensor("uint8", (2, 3, 2, 2), csf(3, 3, 1, 0, 2), [
        b"\1\2\3", u64s(0, 2), u64s(0, 1), u64s(0, 1, 2), u64s(2, 0), u64s(0, 1, 3), u64s(1, 0, 1), u64s(0, 1, 2, 3),
        u64s(0, 1, 1)])
    yield "coo_explicit_zero", tensor("float32", (2, 2), coo(2), [bytes(8), u64s(0, 1, 1, 0)])
    yield "coo_rank_3", tensor("int16", (2, 2, 3), coo(3), [
        b"".join(u16(n) for n in (1, 2, 3)), u64s(0, 0, 2, 0, 1, 0, 1, 1, 1)])
    yield "coo_larger_buffers", tensor("int16", (2, 2), coo(1), [b"\1\0\xee\xee\xee", u64s(1, 1, 9) + b"\xaa"])
    yield "paged_one_sequence", tensor("uint8", (3, 1, 2), paged(2, 2, 1), [
        bytes(range(8)), u32(1) + u32(0), u32(0) + u32(2)], tokens=[3])
    yield "paged_no_sequences", tensor("uint8", (0, 1, 2), paged(2, 1, 0), [bytes(4), b"", u32(0)], tokens=[])
    yield "row_major_offset", Tensor("uint16", (2, 2), row(), 6, buffers=[bytes(range(16))])
    yield "row_major_unaligned_offset", Tensor("float64", (2,), row(), 3, buffers=[bytes(range(20))])
    yield "unused_bits_set", tensor("int2", (3,), row(), [b"\xf9"])


def halves(*values):
    return b"".join(struct.pack("<e", v) for v in values)


def brains(*values):
    return b"".join(struct.pack("<f", v)[2:] for v in values)


def floats(*values):
    return b"".join(struct.pack("<f", v) for v in values)


def quantized():
    """name, tensor: every scheme by every rule of 03-quantization.md sections 5 to 9."""
    yield "tensor_worked", dense("uint8", (2,), row(), [200, 120], quantization=per_tensor(0.0625, 120))
    for dtype, low, high in (("int8", -128, 127), ("uint8", 0, 255), ("int16", -32768, 32767), ("uint16", 0, 65535),
                             ("int32", -2**31, 2**31 - 1), ("uint32", 0, 2**31 - 1), ("int4", -8, 7),
                             ("uint4", 0, 15), ("int2", -2, 1), ("uint2", 0, 3)):
        bits = DTYPES[dtype].bits
        codes = pattern(bits, 4, 3) + [1 << bits - 1, (1 << bits) - 1, (1 << bits - 1) - 1, 0]
        yield f"tensor_{dtype}_low", dense(dtype, (8,), row(), codes, quantization=per_tensor(0.1, low))
        yield f"tensor_{dtype}_high", dense(dtype, (2, 4), col(), codes, quantization=per_tensor(-3.5, high))
    yield "tensor_q6_signed", dense("int32", (2,), row(), [2**31 - 1, 2**31], quantization=per_tensor(1.0, -2**31))
    yield "tensor_q6_unsigned", dense("uint32", (2,), row(), [4 * 10**9, 5], quantization=per_tensor(1.0, 5))
    yield "tensor_overflow", dense("int32", (3,), row(), [2**31 - 1, 2**31, 0],
                                   quantization=per_tensor(3e38, 0))
    yield "tensor_subnormal", dense("int8", (4,), row(), [1, 0xFF, 3, 0], quantization=per_tensor(2.0**-149, 0))
    yield "tensor_scalar", dense("int4", (), row(), [0xD], quantization=per_tensor(2.0, -3))
    base = dense("int8", (3, 4), row(), seed=11)
    yield "channel_rows", base.quantized_with(per_channel(0, 1), [floats(0.5, -2.0, 0.1)])
    yield "channel_columns_zero", base.quantized_with(per_channel(1, 1, 2), [
        floats(0.5, 2.0, 0.1, 1e-3), b"".join(i32(z) for z in (-128, 127, 0, 5))])
    yield "channel_zero_first", base.quantized_with(per_channel(1, 2, 1), [
        b"".join(i32(z) for z in (1, 2, 3, 4)), floats(0.5, 2.0, 0.1, 1e-3)])
    yield "channel_shared", base.quantized_with(per_channel(0, 1, 1), [
        floats(0.5, 2.0, 0.25) + b"".join(i32(z) for z in (7, -7, 100))])
    line = dense("int4", (2, 5, 3), row(), seed=12)
    blocks = 18
    yield "block_partial", line.quantized_with(per_block(1, 2, 1), [floats(*(0.25 * (k + 1) for k in range(blocks)))])
    tail = line.replace(buffers=[line.buffers[0] + b"\0"])
    tail.handles = [type(line.handles[0])(16)]
    yield "block_partial_tail", tail.quantized_with(per_block(1, 2, 1), [
        floats(*(0.25 * (k + 1) for k in range(blocks)))])
    yield "block_columns", dense("uint8", (4, 3), row(), seed=13).quantized_with(
        per_block(0, 2, 1, 2, "float16"), [halves(1, 2, 3, 4, 5, 6), b"".join(i32(z) for z in (0, 1, 2, 3, 4, 255))])
    yield "block_brain", dense("int8", (2, 8), col(), seed=14).quantized_with(
        per_block(1, 4, 1, None, "bfloat16"), [brains(0.5, -1.5, 3e38, 1e-38)])
    yield "block_gptq_zero_16", dense("uint4", (1, 4), row(), [0, 5, 15, 8]).quantized_with(
        per_block(1, 2, 1, 2, "float16"), [halves(0.5, 0.25), i32(16) + i32(-2**31)])
    yield "block_shared_unaligned", dense("int8", (10,), row(), seed=15).quantized_with(
        per_block(0, 2, 1, 1, "float16"), [halves(1, 2, 3, 4, 5) + b"".join(i32(z) for z in (1, -1, 2, -2, 3))])
    yield "block_whole_line", dense("uint2", (2, 4), row(), seed=16).quantized_with(
        per_block(1, 4, 1), [floats(1.0, 10.0)])
    yield "nf4_every_code", dense("uint4", (16,), row(), list(range(16))).quantized_with(
        nf4(0, 8, 1), [floats(2.5, 0.0)])
    yield "nf4_partial", dense("uint4", (2, 12), row(), seed=17).quantized_with(
        nf4(1, 8, 1), [floats(1.0, 0.5, 3.25, 1e-40)])
    for dtype in ("int8", "int4", "float8_e4m3", "float8_e5m2", "float4_e2m1", "float6_e2m3", "float6_e3m2"):
        bits = DTYPES[dtype].bits
        codes = list(range(256 >> 8 - bits)) if bits == 8 else list(range(1 << bits)) * (256 >> bits)
        yield f"mxfp_{dtype}", dense(dtype, (2, 128), row(), codes).quantized_with(
            mxfp(1, 16, 1), [bytes([0x7F, 0x7D, 0x00, 0x01, 0xFE, 0x80, 0x60, 0x10] * 2)])
    yield "mxfp_worked", dense("float4_e2m1", (32,), row(), [6, 0xB] + [0] * 30).quantized_with(
        mxfp(0, 32, 1), [b"\x7d"])
    yield "mxfp_columns", dense("int8", (16, 2), col(), seed=18).quantized_with(mxfp(0, 16, 1), [b"\x7e\x81"])

    four = floats(1.0, 2.0, 0.5, 0.25)
    for where, t in (("strided", dense("int8", (3, 4), strided(-4, 1), seed=19)),
                     ("broadcast", dense("int8", (3, 4), strided(0, 1), seed=20)),
                     ("tiled", dense("int8", (3, 4), tiled((2, 3)), seed=21)),
                     ("morton", dense("int8", (3, 4), morton(2, 2), seed=22)),
                     ("hilbert", dense("int8", (4, 4), hilbert(2, 2), seed=23))):
        rows = t.shape[0]
        yield f"{where}_channel", t.quantized_with(per_channel(1, 1), [four])
        yield f"{where}_block", t.quantized_with(per_block(1, 2, 1, 2), [
            floats(*(0.5 * (k + 1) for k in range(2 * rows))), b"".join(i32(k - 3) for k in range(2 * rows))])
    for which, own in (("coo", 2), ("coo_unsorted", 2), ("csr", 3), ("csc", 3)):
        t = matrix_m("int8", [7, 0xFE, 9, 4, 1], which)
        yield f"{which}_tensor", t.quantized_with(per_tensor(0.5, 3))
        yield f"{which}_channel", t.quantized_with(per_channel(1, own, own + 1), [
            floats(*(0.5 * (k + 1) for k in range(6))), b"".join(i32(k) for k in range(6))])
        yield f"{which}_block", t.quantized_with(per_block(1, 4, own, None, "float16"), [
            halves(*(k + 0.5 for k in range(8)))])
    yield "csf_channel", tree("int8", [13, 14, 10, 11, 12]).quantized_with(per_channel(2, 7), [
        floats(1, 2, 3, 4, 0.125)])
    pages = cache("int8")
    yield "paged_tensor", pages.quantized_with(per_tensor(0.5, 1))
    yield "paged_heads", pages.quantized_with(per_channel(1, 3), [floats(1, 2, 3)])
    yield "paged_elements", pages.quantized_with(per_channel(2, 3, 4), [
        floats(1, 2, 3, 4), b"".join(i32(z) for z in (1, 2, 3, 4))])
    yield "paged_slots", pages.quantized_with(per_block(0, 2, 3, None, "float16"), [
        halves(*(k + 1 for k in range(12)))])
    yield "paged_slots_zero", pages.quantized_with(per_block(0, 2, 3, 4), [
        floats(*(k + 1 for k in range(12))), b"".join(i32(k - 6) for k in range(12))])
    # Slots 4, 5 of page 2 and 6, 7 of page 3 hold no token: their scales may be anything.
    odd = [1.0] * 12
    odd[4], odd[5], odd[6], odd[7] = 0.0, math.inf, math.nan, -0.0
    yield "paged_unused_scales", pages.quantized_with(per_block(0, 2, 3), [floats(*odd)])
    yield "empty_channel", dense("int8", (3, 0), row()).quantized_with(per_channel(0, 1), [floats(1, 2, 3)])


# ------------------------------------------------------------------------------------------------
# Composites


def boxed(head_shape, offset, t):
    return t.replace(shard=(list(head_shape), list(offset)))


def head(dtype, shape, rule, members, op=None, **more):
    count = more.pop("count", len(members))
    name, ext = dtype if isinstance(dtype, tuple) else (dtype, None)
    roled = members
    if rule == "overlay":
        roled = [m.replace(role="base" if k == 0 else "correction") if m.role is None else m
                 for k, m in enumerate(members)]
    return Tensor(name, shape, composite(rule, count, op), buffers=[], extension=ext, members=roled, **more)


def partition_30(kind="int16"):
    """The worked partition of [6, 5]."""
    return head(kind, (6, 5), "partition", [
        boxed((6, 5), (0, 0), dense(kind, (6, 2), row(), seed=31)),
        boxed((6, 5), (0, 2), dense(kind, (4, 3), col(), seed=32)),
        boxed((6, 5), (4, 2), dense(kind, (2, 3), tiled((2, 2)), seed=33))])


def base_of(kind, shape, codes):
    return boxed(shape, (0,) * len(shape), dense(kind, shape, row(), codes))


def composites():
    """name, head with its members."""
    yield "partition_worked", partition_30()
    for short, kind in FEW.items():
        yield f"partition_{short}", partition_30(kind)
    yield "partition_of_one", head("float32", (2, 3), "partition", [
        boxed((2, 3), (0, 0), dense("float32", (2, 3), row()))])
    yield "partition_scalar", head("int8", (), "partition", [boxed((), (), dense("int8", (), row(), [5]))])
    yield "partition_of_nothing", head("int8", (0, 4), "partition", [])
    yield "partition_empty_members", head("int8", (0, 4), "partition", [
        boxed((0, 4), (0, 1), dense("int8", (0, 2), row()))])
    yield "partition_with_empty_member", head("int8", (4,), "partition", [
        boxed((4,), (0,), dense("int8", (2,), row())), boxed((4,), (1,), dense("int8", (0,), row())),
        boxed((4,), (2,), dense("int8", (2,), row(), seed=2))])
    yield "partition_sparse_members", head("int16", (4, 12), "partition", [
        boxed((4, 12), (0, 0), matrix_m("int16", [1, 2, 3, 4, 5], "csr")),
        boxed((4, 12), (0, 6), matrix_m("int16", [6, 7, 8, 9, 10], "coo_unsorted"))])
    yield "partition_any_order", head("int8", (6,), "partition", [
        boxed((6,), (4,), dense("int8", (2,), row(), seed=3)), boxed((6,), (0,), dense("int8", (1,), row(), seed=4)),
        boxed((6,), (1,), dense("int8", (3,), row(), seed=5))])
    q = dense("int8", (2,), row(), [3, 0x80], quantization=per_tensor(0.1, 1))
    for kind in ("float16", "bfloat16", "float32", "float64"):
        yield f"partition_quantized_{kind}", head(kind, (4,), "partition", [
            boxed((4,), (0,), q), boxed((4,), (2,), dense(kind, (2,), row(), seed=6))])
    inner = head("int8", (2, 2), "partition", [
        boxed((2, 2), (0, 0), dense("int8", (2, 1), row(), [1, 2])),
        boxed((2, 2), (0, 1), dense("int8", (2, 1), row(), [3, 4]))])
    yield "partition_nested", head("int8", (2, 4), "partition", [
        inner.replace(shard=([2, 4], [0, 2])), boxed((2, 4), (0, 0), dense("int8", (2, 2), row(), [5, 6, 7, 8]))])
    yield "partition_of_overlay", head("int8", (4,), "partition", [
        head("int8", (2,), "overlay", [
            base_of("int8", (2,), [1, 2]), boxed((2,), (1,), dense("int8", (1,), row(), [9]))], "replace").replace(
                shard=([4], [2])),
        boxed((4,), (0,), dense("int8", (2,), row(), [3, 4]))])

    base = base_of("float16", (4, 6), pattern(16, 24, 41))
    fix = boxed((4, 6), (1, 2), dense("float16", (2, 3), row(), [0x3C00] * 6))
    m = boxed((4, 6), (0, 0), matrix_m("float16", [0x4000, 0, 0x8000, 0x7BFF, 0x3555], "coo"))
    yield "overlay_replace", head("float16", (4, 6), "overlay", [base, fix], "replace")
    yield "overlay_replace_sparse", head("float16", (4, 6), "overlay", [base, fix, m], "replace")
    yield "overlay_add", head("float16", (4, 6), "overlay", [base, fix, m], "add")
    yield "overlay_add_rounds_every_step", head("float16", (1,), "overlay", [
        base_of("float16", (1,), [0x6800]), base_of("float16", (1,), [0x3C00]).replace(),
        base_of("float16", (1,), [0x3C00])], "add")
    yield "overlay_base_only", head("int32", (3,), "overlay", [base_of("int32", (3,), [1, 2, 3])], "add")
    yield "overlay_sparse_base", head("int16", (4, 6), "overlay", [
        boxed((4, 6), (0, 0), matrix_m("int16", [7, 0xFFFE, 9, 4, 1], "csr")),
        boxed((4, 6), (3, 3), dense("int16", (1, 2), row(), [100, 200]))], "add")
    for kind, codes, more in (("int8", [127, 128, 5], [1, 255, 251]), ("uint4", [15, 0, 7], [1, 15, 8]),
                              ("int64", [2**63 - 1, 2**63, 0], [1, 2**64 - 1, 1]),
                              ("uint32", [2**32 - 1, 0, 1], [1, 2**32 - 1, 1])):
        yield f"overlay_add_wraps_{kind}", head(kind, (3,), "overlay", [
            base_of(kind, (3,), codes), base_of(kind, (3,), more)], "add")
    wide = [struct.unpack("<Q", struct.pack("<ff", x, -x))[0] for x in (1.5, 3e38)]
    yield "overlay_add_complex64", head("complex64", (2,), "overlay", [
        base_of("complex64", (2,), wide), base_of("complex64", (2,), wide)], "add")
    for kind, codes in (("bfloat16", [0x3F80, 0x7F7F, 0x0001]), ("float32", [0x3F800000, 0x7F7FFFFF, 1]),
                        ("float64", [0x3FF0000000000000, 0x7FEFFFFFFFFFFFFF, 1])):
        yield f"overlay_add_{kind}", head(kind, (3,), "overlay", [
            base_of(kind, (3,), codes), base_of(kind, (3,), codes)], "add")
    quantized_base = dense("uint4", (1, 4), row(), [0, 5, 15, 8], shard=((1, 4), (0, 0))).quantized_with(
        per_block(1, 2, 1, None, "float16"), [halves(0.3, 0.25)])
    minimum = dense("float32", (1, 4), strided(1, 0), [0x3DCCCCCD], shard=((1, 4), (0, 0)))
    yield "overlay_add_q4_1", head("float32", (1, 4), "overlay", [quantized_base, minimum], "add")
    yield "overlay_quantized_to_f16", head("float16", (1, 4), "overlay", [
        quantized_base, boxed((1, 4), (0, 1), dense("float16", (1, 1), row(), [0x3C00]))], "replace")
    private = [dense(PRIVATE_FLOAT, (2,), row(), seed=s, shard=((2,), (0,))) for s in (51, 52)]
    yield "overlay_private_type", head(PRIVATE_FLOAT, (2,), "overlay", private, "replace")

    yield "group_worked", head("float32", (2,), "group", [dense("int8", (2,), row(), [0x05, 0xFB])])
    yield "group_of_nothing", head("float32", (), "group", [])
    yield "group_of_everything", head("float32", (), "group", [
        cache("float16"), tree("int16", [13, 14, 10, 11, 12]), dense("float32", (0,), row()),
        dense("int8", (2,), row(), shard=((8,), (3,))), q, dense("bool", (), row())])
    deep = dense("int8", (1,), row(), [1])
    for depth in range(8):
        deep = head("int8", (depth,), "group", [deep, dense("int8", (1,), row(), [depth])])
    yield "group_depth_8", deep
    yield "group_of_composites", head("float32", (), "group", [
        partition_30("int8"), head("int8", (2,), "overlay", [base_of("int8", (2,), [1, 2])], "replace"),
        head("int8", (), "group", [])])


def bad_composites():
    """name, row, head, and the frame (from 0) whose arrival shows it; None: the close."""
    m1 = lambda member: head("int8", (4,), "partition", [member, boxed((4,), (2,), dense("int8", (2,), row()))])
    two = dense("int8", (2,), row())
    yield "M1_no_shard", "M1", m1(two), 1
    yield "M1_parent_shape", "M1", m1(boxed((5,), (0,), two)), 1
    yield "M1_parent_rank", "M1", head("int8", (4,), "partition", [
        boxed((4, 1), (0, 0), dense("int8", (2, 1), row())), boxed((4,), (2,), two)]), 1
    yield "M1_overlay_no_shard", "M1", head("int8", (2,), "overlay", [two], "replace"), 1
    yield "M1_second_member", "M1", head("int8", (4,), "partition", [
        boxed((4,), (0,), two), boxed((6,), (2,), two)]), 2
    yield "M1_nested_head", "M1", head("int8", (4,), "partition", [
        head("int8", (2,), "partition", [boxed((2,), (0,), two)]), boxed((4,), (2,), two)]), 1
    yield "M1_member_of_nested_head", "M1", head("int8", (4,), "partition", [
        head("int8", (2,), "partition", [boxed((4,), (0,), two)]).replace(shard=([4], [0])),
        boxed((4,), (2,), two)]), 2
    yield "M2_type", "M2", m1(boxed((4,), (0,), dense("uint8", (2,), row()))), 1
    yield "M2_overlay_type", "M2", head("float32", (2,), "overlay", [
        base_of("float16", (2,), [1, 2])], "add"), 1
    yield "M2_quantized_under_int8", "M2", m1(boxed((4,), (0,), dense(
        "int8", (2,), row(), quantization=per_tensor(1.0)))), 1
    yield "M2_quantized_under_float8", "M2", head("float8_e5m2", (2,), "partition", [
        boxed((2,), (0,), dense("int8", (2,), row(), quantization=per_tensor(1.0)))]), 1
    other = (PRIVATE_FLOAT[0], PRIVATE_FLOAT[1] | {"exponent_bias": 63})
    yield "M2_private_section", "M2", head(PRIVATE_FLOAT, (2,), "partition", [
        boxed((2,), (0,), dense(other, (2,), row()))]), 1
    yield "M2_nested_head", "M2", head("int8", (2,), "partition", [
        head("uint8", (2,), "partition", [boxed((2,), (0,), dense("uint8", (2,), row()))]).replace(
            shard=([2], [0]))]), 1
    yield "M3_partition", "M3", m1(boxed((4,), (0,), two).replace(role="base")), 1
    yield "M3_group", "M3", head("int8", (), "group", [two.replace(role="correction")]), 1
    overlay = [base_of("int8", (2,), [1, 2]), boxed((2,), (0,), dense("int8", (1,), row()))]
    raw = lambda members: Tensor("int8", (2,), composite("overlay", len(members), "add"), buffers=[],
                                 members=members)
    yield "M4_base_without_role", "M4", raw(overlay), 1
    yield "M4_base_is_correction", "M4", raw([overlay[0].replace(role="correction"),
                                              overlay[1].replace(role="correction")]), 1
    yield "M4_second_base", "M4", raw([overlay[0].replace(role="base"), overlay[1].replace(role="base")]), 2
    yield "M4_correction_without_role", "M4", raw([overlay[0].replace(role="base"), overlay[1]]), 2
    yield "M5_base_too_small", "M5", head("int8", (4,), "overlay", [boxed((4,), (0,), two)], "add"), 1
    yield "M5_base_elsewhere", "M5", head("int8", (4,), "overlay", [boxed((4,), (2,), two)], "replace"), 1
    yield "M6_partition_in_overlay", "M6", raw([
        overlay[0].replace(role="base"),
        head("int8", (2,), "partition", [boxed((2,), (0,), two)]).replace(shard=([2], [0]))]), 2
    deep = two
    for _ in range(9):
        deep = head("int8", (), "group", [deep])
    yield "M7_depth_9", "M7", deep, 8
    yield "C2_overlap", "C2", head("int8", (4,), "partition", [
        boxed((4,), (0,), dense("int8", (3,), row())), boxed((4,), (2,), two)]), None
    yield "C2_same_box", "C2", head("int8", (2,), "partition", [boxed((2,), (0,), two), boxed((2,), (0,), two)]), None
    yield "C2_overlap_with_right_volume", "C2", head("int8", (2, 2), "partition", [
        boxed((2, 2), (0, 0), dense("int8", (2, 1), row())), boxed((2, 2), (0, 0), dense("int8", (1, 2), row()))]), None
    yield "C2_scalar_twice", "C2", head("int8", (), "partition", [
        boxed((), (), dense("int8", (), row())), boxed((), (), dense("int8", (), row()))]), None
    yield "C3_gap", "C3", head("int8", (5,), "partition", [boxed((5,), (0,), two), boxed((5,), (3,), two)]), None
    yield "C3_no_members", "C3", head("int8", (4,), "partition", []), None
    yield "C3_scalar_of_none", "C3", head("int8", (), "partition", []), None
    yield "C3_nested", "C3", head("int8", (), "group", [
        head("int8", (4,), "partition", [boxed((4,), (0,), two)])]), None


def torn():
    """name, head that promises more members than there are."""
    two = dense("int8", (2,), row())
    yield "C1_head_alone", head("float32", (2,), "group", [], count=1)
    yield "C1_one_of_two", head("int8", (4,), "partition", [boxed((4,), (0,), two)], count=2)
    yield "C1_four_billion", head("float32", (), "group", [], count=2**32 - 2)
    yield "C1_nested", head("int8", (), "group", [head("int8", (), "group", [two], count=2)], count=1)
    yield "C1_after_nested", head("int8", (), "group", [head("int8", (), "group", [two])], count=2)


# ------------------------------------------------------------------------------------------------
# Data that breaks a rule of class D


def bad_data():
    """name, row, tensor, buffer, position of the offending number in that buffer (in numbers; None: the buffer
    is too short)."""
    m = [index for index, _ in M_ENTRIES]
    flat = [i for at in m for i in at]

    def with_coo(flat_indices, is_sorted=True):
        return tensor("int16", (4, 6), coo(5, is_sorted), [bytes(10), u64s(*flat_indices)])

    def put(values, at, x):
        return values[:at] + [x] + values[at + 1:]

    yield "O3_row", "O3", with_coo(put(flat, 8, 4)), 1, 8
    yield "O3_column", "O3", with_coo(put(flat, 3, 6)), 1, 3
    yield "O3_huge", "O3", with_coo(put(flat, 9, 2**64 - 1)), 1, 9
    yield "O3_unsorted", "O3", with_coo(put(flat, 0, 2**63), False), 1, 0
    yield "O4_unsorted_twice", "O4", with_coo([1, 0, 0, 4, 1, 3, 0, 4, 3, 3], False), 1, 6
    yield "O5_twice", "O5", with_coo([0, 4, 1, 0, 1, 0, 1, 5, 3, 3]), 1, 4
    yield "O5_descends", "O5", with_coo([1, 0, 0, 4, 1, 3, 1, 5, 3, 3]), 1, 2
    yield "O5_second_dimension", "O5", with_coo([0, 4, 1, 3, 1, 0, 1, 5, 3, 3]), 1, 5

    col_, ptr = [4, 0, 3, 5, 3], [0, 1, 4, 4, 5]
    row_, cptr = [1, 1, 3, 0, 1], [0, 1, 1, 1, 3, 4, 5]

    def with_csr(c=col_, p=ptr):
        return tensor("int16", (4, 6), csr(5), [bytes(10), u64s(*c), u64s(*p)])

    def with_csc(c=row_, p=cptr):
        return tensor("int16", (4, 6), csc(5), [bytes(10), u64s(*c), u64s(*p)])

    for which, make, p, others, limit in (("csr", with_csr, ptr, col_, 6), ("csc", with_csc, cptr, row_, 4)):
        n = len(p) - 1
        yield f"R2_{which}_start", "R2", make(p=put(p, 0, 1)), 2, 0
        yield f"R2_{which}_end", "R2", make(p=put(p, n, 4)), 2, n
        yield f"R2_{which}_end_beyond", "R2", make(p=put(p, n, 6)), 2, n
        yield f"R2_{which}_descends", "R2", make(p=put(p, 1, 5)), 2, 2
        yield f"R2_{which}_huge", "R2", make(p=put(p, 2, 2**64 - 1)), 2, 2
        yield f"R3_{which}", "R3", make(c=put(others, 4, limit)), 1, 4
        yield f"R3_{which}_huge", "R3", make(c=put(others, 0, 2**63)), 1, 0
    yield "R4_csr_twice", "R4", with_csr(c=[4, 0, 3, 3, 3]), 1, 3
    yield "R4_csr_descends", "R4", with_csr(c=[4, 3, 0, 5, 3]), 1, 2
    yield "R4_csc_twice", "R4", with_csc(c=[1, 1, 1, 0, 1]), 1, 2
    yield "R4_csc_descends", "R4", with_csc(c=[1, 3, 1, 0, 1]), 1, 2

    good = [[0, 2], [1, 4], [0, 2, 4], [0, 1, 0, 2], [0, 1, 2, 3, 5], [0, 2, 1, 1, 3]]

    def with_csf(buffer, at, x, nnz=5):
        lists = [list(v) for v in good]
        lists[buffer - 1][at] = x
        return tensor("int16", (3, 4, 5), csf(nnz, 2, 0, 1), [bytes(2 * nnz)] + [u64s(*v) for v in lists])

    yield "F3_root_start", "F3", with_csf(1, 0, 1), 1, 0
    yield "F3_root_beyond_coordinates", "F3", with_csf(1, 1, 3), 1, 1
    yield "F3_root_huge", "F3", with_csf(1, 1, 2**64 - 1), 1, 1
    yield "F3_inner_start", "F3", with_csf(3, 0, 1), 3, 0
    descending = with_csf(3, 0, 0)
    descending.buffers[3] = u64s(0, 3, 2)
    yield "F3_inner_descends", "F3", descending, 3, 2
    yield "F3_inner_beyond", "F3", with_csf(3, 2, 5), 3, 2
    yield "F3_leaves_end", "F3", with_csf(5, 4, 4), 5, 4
    yield "F3_leaves_beyond", "F3", with_csf(5, 4, 6), 5, 4
    yield "F3_leaves_descend", "F3", with_csf(5, 2, 4), 5, 3
    short = with_csf(1, 0, 0)
    short = tensor("int16", (3, 4, 5), csf(5, 2, 0, 1), short.buffers[:3] + [u64s(0, 2)] + short.buffers[4:])
    yield "F3_pointers_missing", "F3", short, 3, None
    yield "F4_root", "F4", with_csf(2, 1, 5), 2, 1
    yield "F4_inner", "F4", with_csf(4, 3, 3), 4, 3
    yield "F4_leaf", "F4", with_csf(6, 4, 4), 6, 4
    yield "F4_huge", "F4", with_csf(6, 0, 2**64 - 1), 6, 0
    yield "F5_root_twice", "F5", with_csf(2, 1, 1), 2, 1
    yield "F5_inner_descends", "F5", with_csf(4, 0, 2), 4, 1
    yield "F5_leaves_twice", "F5", with_csf(6, 4, 1), 6, 4
    yield "F6_node_without_leaf", "F6", tensor("int8", (2, 1, 2), csf(0, 0, 1, 2), [
        b"", u64s(0, 1), u64s(0), u64s(0, 0), b"", u64s(0), b""]), 1, 1

    def with_cache(table=(4, 1, 4, 0, 5), start=(0, 2, 2, 5), tokens=8, index="uint32"):
        width = u32 if index == "uint32" else u64
        return tensor("int8", (tokens, 3, 4), paged(2, 6, 3, "value", 7, index), [
            bytes(144), b"".join(width(n) for n in table), b"".join(width(n) for n in start)])

    yield "K5_start", "K5", with_cache(start=(1, 2, 2, 5)), 2, 0
    yield "K5_descends", "K5", with_cache(start=(0, 3, 2, 5)), 2, 2
    yield "K5_beyond_table", "K5", with_cache(start=(0, 2, 2, 6)), 2, 3
    yield "K5_huge", "K5", with_cache(start=(0, 2, 2, 2**64 - 1), index="uint64"), 2, 3
    yield "K6_page", "K6", with_cache(table=(4, 1, 6, 0, 5)), 1, 2
    yield "K6_page_huge", "K6", with_cache(table=(4, 1, 4, 0, 2**32 - 1)), 1, 4
    yield "K6_page_u64", "K6", with_cache(table=(2**32 + 4, 1, 4, 0, 5), index="uint64"), 1, 0
    yield "K7_tokens", "K7", with_cache(tokens=11), 2, 3

    base = dense("int8", (3, 4), row())
    for name, x in (("0", 0.0), ("negative_0", -0.0), ("inf", math.inf), ("nan", math.nan)):
        yield f"B7_channel_{name}", "B7", base.quantized_with(per_channel(0, 1), [floats(1.0, x, 2.0)]), 1, 1
    yield "B7_block_f16_inf", "B7", base.quantized_with(per_block(1, 4, 1, None, "float16"), [
        halves(1, 2, math.inf)]), 1, 2
    yield "B7_block_f16_0", "B7", base.quantized_with(per_block(1, 4, 1, None, "float16"), [halves(0, 2, 1)]), 1, 0
    yield "B7_block_bf16_nan", "B7", base.quantized_with(per_block(1, 4, 1, None, "bfloat16"), [
        brains(1, math.nan, 1)]), 1, 1
    nibbles = dense("uint4", (16,), row())
    for name, x in (("negative", -1.0), ("inf", math.inf), ("nan", math.nan)):
        yield f"B7_nf4_{name}", "B7", nibbles.quantized_with(nf4(0, 8, 1), [floats(1.0, x)]), 1, 1
    yield "B7_mxfp_ff", "B7", dense("int8", (32,), row()).quantized_with(mxfp(0, 16, 1), [b"\x7f\xff"]), 1, 1
    full = tensor("int8", (4, 1, 2), paged(2, 3, 1), [bytes(12), u32(2) + u32(0), u32(0) + u32(2)])
    yield "B7_paged_slot", "B7", full.quantized_with(per_block(0, 2, 3), [floats(1, 1, 0, 0, 1, 0)]), 3, 5
    for dtype, low, high in (("int8", -129, 128), ("uint8", -1, 256), ("int16", -32769, 32768),
                             ("uint16", -1, 65536), ("uint32", -1, None), ("int4", -9, 8), ("uint4", -1, 16),
                             ("int2", -3, 2), ("uint2", -1, 4)):
        for word, z in (("low", low), ("high", high)):
            if z is not None:
                yield f"B8_{dtype}_{word}", "B8", dense(dtype, (3, 4), row()).quantized_with(
                    per_channel(0, 1, 2), [floats(1, 2, 3), i32(0) + i32(z) + i32(0)]), 2, 1
    yield "B8_shared", "B8", base.quantized_with(per_channel(0, 1, 1), [
        floats(1, 2, 3) + i32(0) + i32(0) + i32(128)]), 1, 5


def number_bytes(t, buffer):
    """Bytes of one number of an index or parameter buffer."""
    if buffer < t.layout.own_buffers(len(t.shape)):
        return 4 if t.layout.fields.get("block_table_index_type") == "uint32" else 8
    if buffer == t.quantization.get("zero_point_buffer_index"):
        return 4
    return formulas.scale_type(t.quantization).bits // 8
