"""The valid descriptors: (name, tensor, options). Options are those of `manifest.json`: what has to be agreed on for
the vector to be valid."""

from . import formulas
from .formulas import DTYPES, DYNAMIC, packed
from .wire import (
    Handle, Layout, Tensor, col, composite, coo, csc, csf, csr, extension, f64, hilbert, level, morton, mxfp, nf4,
    opaque_scheme, paged, per_block, per_channel, per_tensor, private, row, strided, tiled)

NAN, INF = float("nan"), float("inf")

PRIVATE_FLOAT = (0xF3, extension(24, is_float=1, sign_bits=1, exponent_bits=8, mantissa_bits=15, exponent_bias=127,
                                 has_nan=1, has_inf=1))
PRIVATE_NIBBLE = (0xF0, extension(4, is_signed=1))

# One element type of every width, and of every kind that a decoder could treat apart.
CLASSES = {"bool": "bool", "i2": "int2", "f4": "float4_e2m1", "f6": "float6_e3m2", "i8": "int8", "bf16": "bfloat16",
           "f32": "float32", "u64": "uint64", "f128": "float128", "c64": "complex64", "c128": "complex128",
           "private24": PRIVATE_FLOAT, "private4": PRIVATE_NIBBLE}
FEW_CLASSES = {k: CLASSES[k] for k in ("bool", "i8", "c128")}


def eight_levels(rank=1, last=1):
    """Tiles of 128, 64, … 1 (times `last`) along every dimension: the deepest nesting."""
    inner = None
    for k in range(8):
        inner = level([last << k] * rank, outer="col_major" if k % 2 else "row_major", inner_tiled=inner)
    return Layout("tiled", **inner)


# Layout and shape; one of each tag, then variants that a decoder could treat apart.
MAIN = {
    "row_major": (row(), (3, 5)),
    "col_major": (col(), (3, 5)),
    "strided": (strided(-5, 1), (3, 5)),
    "tiled": (tiled((2, 3), inner="col_major"), (5, 7)),
    "morton": (morton(2, 2), (4, 3)),
    "hilbert": (hilbert(2, 2), (4, 4)),
    "coo": (coo(5), (4, 6)),
    "csr": (csr(5), (4, 6)),
    "csc": (csc(5), (4, 6)),
    "csf": (csf(5, 2, 0, 1), (3, 4, 5)),
    "paged": (paged(2, 6, 3, "value", 7), (8, 3, 4)),
    "partition": (composite("partition", 3), (6, 5)),
    "private": (private(0xF0, 0x1122334455667788, b"abc"), (2, 3)),
}
VARIANTS = {
    "tiled_strided": (tiled((2, 3), outer_strides=[-4, 1], inner_strides=[1, -2]), (4, 6)),
    "tiled_nested": (tiled((8, 8), inner_tiled=level((4, 2), outer="col_major")), (16, 24)),
    "tiled_eight": (eight_levels(), (200,)),
    "morton_unequal": (morton(1, 3), (2, 6)),
    "hilbert_3d": (hilbert(1, 3), (2, 2, 2)),
    "coo_unsorted": (coo(5, False), (4, 6)),
    "paged_u64": (paged(2, 6, 3, "fused", None, "uint64"), (8, 3, 4)),
    "overlay_add": (composite("overlay", 3, "add"), (6, 5)),
    "overlay_replace": (composite("overlay", 2, "replace"), (6, 5)),
    "group": (composite("group", 0), ()),
}
# Of the inner buffers, whose size only the data tells: those of the worked examples of 02-layouts.md.
INNER = {"csf": {2: 16, 3: 24, 4: 32, 5: 40}, "block_paged": {1: 20}}


def plain(layout, shape, kind, **sections):
    """A tensor whose buffers are as small as they may be."""
    dtype, ext = kind if isinstance(kind, tuple) else (kind, None)
    bits = ext["bit_width"] if ext else DTYPES[dtype].bits
    byte_offset = 0
    if layout.name in ("strided", "tiled") and DYNAMIC not in shape and 0 not in shape:
        byte_offset = formulas.extent(bits, *formulas.dense_range(layout, shape))[0]
    t = Tensor(dtype, shape, layout, byte_offset, extension=ext, **sections)
    for i, size in INNER.get(layout.name, {}).items():
        wide = layout.name == "block_paged" and layout.fields["block_table_index_type"] == "uint64"
        t.handles[i] = Handle(2 * size if wide else size)
    if layout.name == "extension":
        t.handles = [Handle(64), Handle(0)]
    return t


def agreed_layout(layout):
    if layout.name != "extension":
        return {}
    return {"agreed": {"layouts": [[layout.tag, layout.fields["extension_layout_id"]]]}}


def a_shard(shape):
    return ([2 * n + 1 for n in shape], [k % 2 * (n + 1) for k, n in enumerate(shape)])


def some_statistics(layout):
    nnz = layout.fields.get("nnz", 3)
    return {"nnz": nnz, "sparsity_ratio": 0.5, "value_min": -2.0, "value_max": 4.0, "value_abs_max": 4.0,
            "value_mean": 0.25, "value_stddev": 1.5, "nm_n": 2, "nm_m": 4, "has_nan": 0, "has_inf": 1}


def can_shard(layout):
    return layout.name not in ("csf", "block_paged")


def some_quantization(layout, shape, kind, k):
    """A scheme that the type and the shape allow; another one for each `k`."""
    if layout.name == "composite" or not shape:
        return None
    own = layout.own_buffers(len(shape))
    axis = 1 if layout.name == "block_paged" else len(shape) - 1
    schemes = []
    if kind in ("int8", "int2"):
        schemes = [per_tensor(0.5, 1), per_channel(axis, own), per_channel(axis, own, own + 1)]
        if layout.name != "block_paged" and shape[axis] >= 4:
            schemes += [per_block(axis, 4, own, own + 1, "float16"), per_block(axis, 4, own, None, "bfloat16")]
    elif kind in ("float4_e2m1", "float6_e3m2") and shape[0] == 16:
        schemes = [mxfp(0, 16, own)]
    return schemes[k % len(schemes)] if schemes else None


def matrix():
    """Every layout with every class of element type, alone and with every section that the pair may have, so
    that each triple of layout, type and section occurs."""
    count = 0
    for layouts, classes in ((MAIN, CLASSES), (VARIANTS, FEW_CLASSES)):
        for where, (layout, shape) in layouts.items():
            for short, kind in classes.items():
                options = agreed_layout(layout)
                t = plain(layout, shape, kind)
                yield f"matrix_{where}_{short}", t, options
                q = some_quantization(layout, shape, kind, count)
                count += 1
                if q is not None:
                    t = t.quantized_with(q)
                t = t.replace(statistics=some_statistics(layout),
                              shard=a_shard(shape) if can_shard(layout) else None,
                              role=None if layout.name == "composite" else ("base", "correction")[count % 2])
                yield f"matrix_{where}_{short}_sections", t, options


def each_section():
    """Every layout with each section alone."""
    for where, (layout, shape) in (MAIN | VARIANTS).items():
        options = agreed_layout(layout)
        t = plain(layout, shape, "int8")
        if can_shard(layout):
            yield f"section_{where}_shard", t.replace(shard=a_shard(shape)), options
        yield f"section_{where}_statistics", t.replace(statistics=some_statistics(layout)), options
        if layout.name != "composite":
            yield f"section_{where}_member", t.replace(role="base"), options
        yield f"section_{where}_extension", plain(layout, shape, PRIVATE_FLOAT), options


AFFINE = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int4", "uint4", "int2", "uint2"]
BLOCK = ["int8", "uint8", "int4", "uint4", "int2", "uint2"]
MX = ["int8", "int4", "float8_e4m3", "float8_e5m2", "float4_e2m1", "float6_e2m3", "float6_e3m2"]
ZERO_POINTS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535),
               "int32": (-2**31, 2**31 - 1), "uint32": (0, 2**31 - 1), "int4": (-8, 7), "uint4": (0, 15),
               "int2": (-2, 1), "uint2": (0, 3)}
QUANTIZED_LAYOUTS = {
    "row_major": (row(), (4, 32)), "col_major": (col(), (4, 32)), "strided": (strided(-32, 1), (4, 32)),
    "tiled": (tiled((2, 16), inner="col_major"), (4, 32)), "morton": (morton(2, 5), (4, 32)),
    "hilbert": (hilbert(5, 2), (32, 32)), "coo": (coo(5), (4, 32)), "csr": (csr(5), (4, 32)),
    "csc": (csc(5), (4, 32)), "csf": (csf(5, 2, 0, 1), (3, 4, 32)),
}


def quantized():
    """Each scheme with each storage type it allows, and with each layout."""
    for dtype in AFFINE:
        low, high = ZERO_POINTS[dtype]
        t = plain(row(), (4, 32), dtype)
        yield f"quantized_tensor_{dtype}", t.quantized_with(per_tensor(0.0625, low)), {}
        yield f"quantized_tensor_{dtype}_high", t.quantized_with(per_tensor(-3.0, high)), {}
        yield f"quantized_channel_{dtype}", t.quantized_with(per_channel(0, 1)), {}
        yield f"quantized_channel_{dtype}_zero", t.quantized_with(per_channel(1, 1, 2)), {}
    for dtype in BLOCK:
        t = plain(row(), (4, 32), dtype)
        for kind in ("float16", "bfloat16", "float32"):
            yield f"quantized_block_{dtype}_{kind}", t.quantized_with(per_block(1, 8, 1, None, kind)), {}
            yield f"quantized_block_{dtype}_{kind}_zero", t.quantized_with(per_block(0, 2, 1, 2, kind)), {}
    yield "quantized_nf4", plain(row(), (4, 32), "uint4").quantized_with(nf4(1, 8, 1)), {}
    for dtype in MX:
        yield f"quantized_mxfp_{dtype}", plain(row(), (4, 32), dtype).quantized_with(mxfp(1, 32, 1)), {}
    for where, (layout, shape) in QUANTIZED_LAYOUTS.items():
        own, axis = layout.own_buffers(len(shape)), len(shape) - 1
        for short, dtype, q in (
                ("tensor", "uint8", per_tensor(0.5, 128)), ("channel", "int16", per_channel(axis, own)),
                ("channel_zero", "int4", per_channel(0, own, own + 1)),
                ("block", "int8", per_block(axis, 32, own, None, "float16")),
                ("block_zero", "uint4", per_block(axis, 16, own, own + 1, "bfloat16")),
                ("nf4", "uint4", nf4(axis, 8, own)), ("mxfp4", "float4_e2m1", mxfp(axis, 32, own)),
                ("mxfp6", "float6_e2m3", mxfp(axis, 16, own)), ("mxfp8", "float8_e4m3", mxfp(axis, 32, own))):
            yield f"quantized_{where}_{short}", plain(layout, shape, dtype).quantized_with(q), {}
    pool = plain(paged(2, 6, 3), (8, 3, 4), "int8")
    for short, q in (("tensor", per_tensor(0.5)), ("heads", per_channel(1, 3)), ("elements", per_channel(2, 3, 4)),
                     ("slots", per_block(0, 2, 3, None, "float16")), ("slots_zero", per_block(0, 2, 3, 4))):
        yield f"quantized_paged_{short}", pool.quantized_with(q), {}
    # K <= n[0] is waived: fewer tokens than a page holds.
    few = plain(paged(16, 1, 1), (3, 2, 4), "int8")
    few.handles[1] = Handle(4)
    yield "quantized_paged_small_batch", few.quantized_with(per_block(0, 16, 3)), {}

    t = plain(row(), (4, 32), "int8")
    shared = per_block(1, 8, 1, 1, "float16")
    yield "quantized_shared_parameters", t.quantized_with(shared), {}
    odd = plain(row(), (10,), "int8").quantized_with(per_block(0, 2, 1, 1, "float16"))
    assert odd.handles[1].byte_size == 30
    yield "quantized_shared_unaligned", odd, {}
    larger = t.quantized_with(shared)
    larger.handles[1] = Handle(4096)
    yield "quantized_shared_larger", larger, {}
    yield "quantized_zero_points_first", t.replace().quantized_with(per_channel(1, 2, 1)), {}
    yield "quantized_surplus", t.quantized_with(per_tensor(0.5) | {"surplus": b"\1\2\3"}), {}
    yield "quantized_surplus_block", t.quantized_with(per_block(1, 8, 1) | {"surplus": bytes(8)}), {}
    yield "quantized_partial_block", plain(row(), (2, 5, 3), "int4").quantized_with(per_block(1, 2, 1)), {}
    tail = plain(row(), (2, 5, 3), "int4")
    tail.handles = [Handle(16)]
    yield "quantized_partial_block_tail", tail.quantized_with(per_block(1, 2, 1)), {}
    yield "quantized_whole_line", plain(row(), (3, 64), "uint8").quantized_with(per_block(1, 64, 1)), {}
    yield "quantized_scalar", plain(row(), (), "int8").quantized_with(per_tensor(2.0, -3)), {}
    yield "quantized_negative_scale", t.quantized_with(per_tensor(-0.5)), {}
    yield "quantized_subnormal_scale", t.quantized_with(per_tensor(2.0**-149)), {}
    yield "quantized_empty_axis", plain(row(), (3, 0), "int8").quantized_with(per_channel(1, 1)), {}
    yield "quantized_empty_other", plain(row(), (3, 0), "int8").quantized_with(per_channel(0, 1)), {}
    yield "quantized_empty_block", plain(row(), (3, 0), "int8").quantized_with(per_block(1, 8, 1)), {}
    yield "quantized_empty_nf4", plain(row(), (0, 3), "uint4").quantized_with(nf4(0, 64, 1)), {}
    yield "quantized_empty_mxfp", plain(row(), (0, 32), "int8").quantized_with(mxfp(1, 32, 1)), {}
    dynamic = Tensor("int8", (DYNAMIC, 32), row(), handles=[Handle(0)])
    yield "quantized_dynamic_tensor", dynamic.replace(quantization=per_tensor(0.5)), {}
    yield "quantized_dynamic_channel", dynamic.replace(
        quantization=per_channel(1, 1), handles=[Handle(0), Handle(128)]), {}
    yield "quantized_dynamic_block", dynamic.replace(
        quantization=per_block(1, 8, 1, 2), handles=[Handle(0), Handle(4), Handle(12)]), {}
    yield "quantized_sharded", plain(row(), (4, 32), "int8", shard=((8, 64), (4, 32))).quantized_with(
        per_block(1, 32, 1)), {}


def existing():
    """Vectors that came first, by their names."""
    yield "row_major_f32_3x4", Tensor(shape=(3, 4))
    yield "bool_packed_10", Tensor("bool", (10,))
    yield "strided_f32_3x4", Tensor(shape=(3, 4), layout=strided(4, 1))
    yield "empty_f32_0x4", Tensor(shape=(0, 4), handles=[Handle(0, 64)])
    yield "csr_f32_3x3", Tensor(shape=(3, 3), layout=csr(2))
    yield "composite_head_partition", Tensor("float32", (8, 8), composite("partition", 2))
    for d in DTYPES.values():
        yield f"dtype_{d.name}", Tensor(d.name, (3, 5))
        yield f"col_major_{d.name}", Tensor(d.name, (3, 5), col())
        yield f"scalar_{d.name}", Tensor(d.name)
        layout = strided(-1)
        before, after = formulas.extent(d.bits, -6, 0)
        yield f"reversed_{d.name}", Tensor(d.name, (7,), layout, before)
    yield "offset_f32_5x7x2", Tensor(shape=(5, 7, 2), byte_offset=64, handles=[Handle(344, 128)])
    yield "reversed_i16_4x3", Tensor("int16", (4, 3), strided(-8, -2), 60, [Handle(64)])
    yield "broadcast_f32_1000x4", Tensor(shape=(1000, 4), layout=strided(0, 1))
    yield "strided_f32_5x2", Tensor(shape=(5, 2), layout=strided(-3, 1), byte_offset=48)
    yield "rank_64", Tensor(shape=(1,) * 64)
    yield "rank_64_strided_everything", Tensor(
        shape=(1,) * 64, layout=strided(*range(-32, 32)), shard=((2,) * 64, (1,) * 64), statistics={"nnz": 1})
    yield "rank_9_shard", Tensor(shape=(1,) * 9, shard=((3,) * 9, (2,) * 9))
    yield "scalar_shard", Tensor(shard=((), ()))
    yield "shard_f32_6x10", Tensor(shape=(6, 10), shard=((12, 10), (6, 0)))
    yield "dynamic_f32", Tensor(shape=(DYNAMIC, 512), handles=[Handle(0)])
    yield "dynamic_empty", Tensor(shape=(0, DYNAMIC), handles=[Handle(0)])
    yield "dynamic_csr", Tensor(shape=(DYNAMIC, 4), layout=csr(1))
    yield "empty_zero_wins", Tensor(shape=(2**60, 2**60, 0))
    yield "empty_csr_4x0", Tensor(shape=(4, 0), layout=csr(0))
    yield "larger_buffer", Tensor(shape=(2,), handles=[Handle(4096, 4096)])
    yield "statistics_all", Tensor(shape=(6,), statistics={
        "nnz": 3, "sparsity_ratio": 0.5, "value_min": -2.0, "value_max": 4.0, "value_abs_max": 4.0,
        "value_mean": 0.5833333333333334, "value_stddev": 1.8352263954, "nm_n": 2, "nm_m": 4, "has_nan": 0,
        "has_inf": 1})
    yield "statistics_under_clear_bits", Tensor(shape=(6,), statistics={
        "computed_mask": 0, "nnz": 77, "sparsity_ratio": -5.0, "value_stddev": -1.0, "nm_n": 9, "nm_m": 1,
        "has_nan": 200, "has_inf": 3})
    yield "statistics_nan", Tensor(shape=(6,), statistics={
        "sparsity_ratio": NAN, "value_min": -INF, "value_max": INF, "value_abs_max": INF, "value_mean": NAN,
        "value_stddev": NAN})
    yield "csr_statistics", Tensor(shape=(3, 3), layout=csr(2), shard=((6, 3), (3, 0)), statistics={"nnz": 2})
    yield "cuda_event_unified", Tensor(shape=(2,), handles=[Handle(8, 256, 1, 1, 2)])
    yield "rocm_consumer_stream", Tensor(shape=(2,), handles=[Handle(8, 64, 2, 2, 0)])
    yield "private_device", Tensor(shape=(2,), handles=[Handle(8, 64, 0xF2, 0, 0)])
    for device, classes in enumerate(([0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2], [0, 1, 2, 3], [0],
                                      [0, 1, 2], [0, 1, 2, 3], [0, 1, 2])):
        for memory_class in classes:
            yield f"device_{device}_class_{memory_class}", Tensor(
                shape=(2,), handles=[Handle(8, 64, device, 0, memory_class)])


def big_csf():
    """128 of 131 handles hang on data; what the descriptor tells is there."""
    t = Tensor("int8", (2,) * 64, csf(3, *reversed(range(64))))
    for i in range(2, 128):
        t.handles[i] = Handle(24)
    return t


def edges():
    """Empty tensors, scalars, the largest ranks, dynamic sizes, devices, sizes at a limit."""
    for where, (layout, shape) in MAIN.items():
        if layout.name in ("hilbert", "extension", "composite", "csf", "block_paged", "coo", "csr", "csc"):
            continue
        yield f"empty_{where}", plain(layout, (0,) + shape[1:], "float32"), {}
        yield f"dynamic_{where}", Tensor("float32", (DYNAMIC,) + shape[1:], layout, handles=[Handle(0)]), {}
        yield f"empty_{where}_larger", Tensor("float32", (0,) + shape[1:], layout, handles=[Handle(64)]), {}
    yield "empty_coo", Tensor("int16", (0, 6), coo(0)), {}
    yield "empty_coo_nnz_0", Tensor("int16", (4, 6), coo(0)), {}
    yield "empty_csr", Tensor("int16", (0, 6), csr(0)), {}
    yield "empty_csc", Tensor("int16", (4, 0), csc(0)), {}
    nothing = Tensor("int16", (3, 0, 5), csf(0, 0, 1, 2))
    nothing.handles[3] = nothing.handles[5] = Handle(8)
    yield "empty_csf", nothing, {}
    yield "empty_paged", Tensor("float16", (0, 3, 4), paged(16, 0, 0)), {}
    yield "empty_paged_pool_kept", Tensor("float16", (0, 3, 4), paged(2, 6, 0)), {}
    yield "empty_partition", Tensor("float16", (0, 4), composite("partition", 0)), {}
    yield "dynamic_coo", Tensor("int16", (DYNAMIC, 6), coo(2)), {}
    yield "dynamic_csc", Tensor("int16", (4, DYNAMIC), csc(2)), {}
    yield "dynamic_csr_columns", Tensor("int16", (4, DYNAMIC), csr(2)), {}
    dynamic_tree = Tensor("int16", (3, DYNAMIC, 5), csf(5, 2, 0, 1))
    for i, size in INNER["csf"].items():
        dynamic_tree.handles[i] = Handle(size)
    yield "dynamic_csf", dynamic_tree, {}
    yield "dynamic_paged_tokens", plain(paged(2, 6, 3), (DYNAMIC, 3, 4), "float16"), {}
    yield "dynamic_paged_no_sequences", Tensor("float16", (DYNAMIC, 3, 4), paged(2, 6, 0)), {}
    yield "dynamic_paged_heads", plain(paged(2, 6, 3), (8, DYNAMIC, 4), "float16"), {}
    yield "dynamic_hilbert", Tensor("float32", (DYNAMIC, 4), hilbert(2, 2), handles=[Handle(0)]), {}
    yield "dynamic_group", Tensor("float32", (DYNAMIC,), composite("group", 2)), {}
    yield "scalar_partition", Tensor("float32", (), composite("partition", 1)), {}
    yield "scalar_overlay", Tensor("float32", (), composite("overlay", 1, "add")), {}
    yield "scalar_private_layout", Tensor("float32", (), private(0xFE, 0), handles=[Handle(0)]), agreed_layout(
        private(0xFE, 0))
    yield "scalar_private_type", plain(row(), (), PRIVATE_FLOAT), {}

    # The largest descriptors of 01-descriptor.md section 6: every section, three buffers (or as many as there are).
    every = {"shard": ((2,) * 64, (1,) * 64), "statistics": {"nnz": 1}, "role": "base",
             "extension": PRIVATE_FLOAT[1], "quantization": opaque_scheme(0xF0, bytes(20))}
    scheme = {"agreed": {"schemes": [0xF0]}}
    three = [Handle(3), Handle(8), Handle(0)]
    yield "rank_64_sections", Tensor(0xF3, (1,) * 64, row(), handles=three, **every), scheme
    yield "rank_64_strided_sections", Tensor(0xF3, (1,) * 64, strided(*range(64)), handles=three, **every), scheme
    yield "rank_63_morton_sections", Tensor(
        0xF3, (1,) * 62 + (0,), morton(*(1,) * 63), handles=three, **every | {
            "shard": ((2,) * 63, (1,) * 63)}), scheme
    yield "rank_64_csf_sections", big_csf().replace(
        dtype=formulas.Dtype(0xF3, "0xf3", 24, "bits"), handles=[Handle(9)] + big_csf().handles[1:] + three[1:],
        **every | {"shard": None, "statistics": {"nnz": 3}}), scheme
    deep = Tensor(0xF3, (1,) * 64, strided_levels(), handles=three, **every)
    yield "rank_64_tiled_eight_sections", deep, scheme
    yield "rank_64_tiled_eight_255_buffers", deep.replace(handles=three + [Handle(0)] * 252), scheme
    t = Tensor("int8", (1,) * 64, row(), shard=every["shard"], statistics={"nnz": 1}, role="base")
    yield "rank_64_quantized", t.quantized_with(per_channel(63, 1, 2)), {}
    yield "rank_64_col_major", Tensor(shape=(1,) * 64, layout=col()), {}
    yield "rank_64_tiled", plain(tiled((1,) * 64), (1,) * 64, "float32"), {}
    yield "rank_63_morton", plain(morton(*(1,) * 63), (2,) * 62 + (0,), "int8", shard=((2,) * 63, (0,) * 63)), {}
    yield "rank_64_coo", Tensor("int8", (1,) * 64, coo(1)), {}
    yield "rank_64_csf", big_csf(), {}
    quantized_tree = big_csf()
    yield "rank_64_csf_quantized", quantized_tree.quantized_with(per_channel(0, 129, 130)), {}
    yield "rank_64_group", Tensor("int8", (7,) * 64, composite("group", 0)), {}
    # Too large to exist here: the sizes are declared only.
    yield "rank_62_hilbert", Tensor("bool", (2,) * 62, hilbert(1, 62)), {}
    yield "rank_63_hilbert_dynamic", Tensor("bool", (DYNAMIC,) + (2,) * 62, hilbert(1, 63), handles=[Handle(0)]), {}
    yield "morton_63_bits", Tensor("bool", (1, 2**62), morton(1, 62)), {}
    yield "hilbert_order_31", Tensor("bool", (2**31, 2**31), hilbert(31, 2)), {}
    yield "largest_count", Tensor("bool", (2**31 - 1, 2**32), row()), {}
    yield "largest_bytes", Tensor("int8", (2**62,), row(), 2**62 - 1), {}
    yield "sum_of_sizes_at_limit", Tensor("int8", (2**62,), row(), handles=[Handle(2**63 - 1)]), {}
    yield "huge_coo", Tensor("int8", (2**63, 2**63, 2**40), coo(3)), {}
    yield "huge_csr_columns", Tensor("int8", (2, 2**64 - 2), csr(3)), {}
    yield "huge_partition_volume", Tensor("int8", (2**64 - 2, 2**63), composite("partition", 2**32 - 2)), {}
    yield "strided_limits", Tensor("int8", (2, 2), strided(-2**62, 2**62 - 2), 2**62, handles=[Handle(2**63 - 1)]), {}
    yield "strided_of_one", Tensor("int8", (1, 1), strided(-2**63, 2**63 - 1)), {}
    yield "tiled_larger_than_shape", plain(tiled((8, 8)), (3, 5), "bfloat16"), {}
    yield "tiled_every_inner_order", plain(tiled((4, 4), outer="col_major", inner_tiled=level(
        (2, 4), outer_strides=[1, 1], inner_strides=[4, -1])), (6, 6), "int8"), {}
    yield "morton_wider_than_shape", plain(morton(3, 3, 1), (3, 5, 2), "float64"), {}
    yield "paged_num_pages_u64", Tensor("bool", (4, 1, 1), paged(1, 2**33, 1, index="uint64")), {}
    yield "paged_num_pages_u32", Tensor("bool", (4, 1, 1), paged(1, 2**32 - 1, 1)), {}
    yield "paged_huge_page_of_nothing", Tensor("float32", (4, 0, 128), paged(2**32 - 1, 2**20, 1)), {}
    yield "private_layout_no_data", Tensor(shape=(3,), layout=private(0xF7, 2**64 - 1), handles=[Handle(12)]), {
        "agreed": {"layouts": [[0xF7, str(2**64 - 1)]]}}
    yield "private_layout_quantized", Tensor(
        "int8", (3,), private(), handles=[Handle(3), Handle(4), Handle(12)],
        quantization=per_channel(0, 2)), agreed_layout(private())
    yield "private_memory_class", Tensor(shape=(2,), handles=[Handle(8, 64, 0xF1, 0, 0xF5)]), {
        "agreed": {"memory_classes": [0xF5]}}
    for width in (1, 2, 4, 8, 16, 24, 128, 2**32 - 8):
        n = 3 if width < 2**20 else 1
        yield f"extension_{width}_bits", Tensor(0xF9, (n,), row(), extension=extension(width)), {}
    yield "extension_unsigned_float", Tensor(0xF9, (3,), row(), extension=extension(
        8, is_float=1, exponent_bits=8, exponent_bias=127, has_nan=1)), {}
    yield "extension_widths_need_not_add_up", Tensor(0xF9, (3,), row(), extension=extension(
        32, is_float=1, sign_bits=1, exponent_bits=5, mantissa_bits=10, exponent_bias=2**32 - 1, has_inf=1)), {}
    for device in range(9):
        for mode in (1, 2):
            if device:
                yield f"device_{device}_sync_{mode}", Tensor(shape=(2,), handles=[Handle(8, 64, device, mode)]), {}
    yield "device_mixed_sync", Tensor(shape=(3, 3), layout=csr(2), handles=[
        Handle(8, 64, 1, 0, 2), Handle(16, 256, 1, 1, 2), Handle(32, 4096, 1, 2, 2)]), {}
    yield "device_alignment_2_31", Tensor(shape=(2,), handles=[Handle(8, 2**31, 1)]), {}
    yield "statistics_each_bit_nnz", Tensor(shape=(6,), statistics={"nnz": 2**64 - 1}), {}
    yield "statistics_each_bit_sparsity", Tensor(shape=(6,), statistics={"sparsity_ratio": 1.0}), {}
    yield "statistics_negative_zero", Tensor(shape=(6,), statistics={
        "sparsity_ratio": -0.0, "value_stddev": -0.0, "value_mean": f64(NAN)[:7] + b"\xff"}), {}
    yield "statistics_nm_none", Tensor(shape=(6,), statistics={"nm_n": 0, "nm_m": 0}), {}
    yield "shard_whole", Tensor(shape=(2, 3), shard=((2, 3), (0, 0))), {}
    yield "shard_at_limit", Tensor("bool", (2**63 - 1,), row(), shard=((2**64 - 2,), (2**63 - 1,))), {}
    yield "shard_empty", Tensor(shape=(0, 3), shard=((4, 3), (4, 0))), {}


def strided_levels():
    """Eight levels with both stride lists at each, where they may be: the longest layout there is."""
    inner = None
    for _ in range(8):
        if inner is None:
            inner = level((1,) * 64, outer_strides=[1] * 64, inner_strides=[1] * 64)
        else:
            inner = level((1,) * 64, outer_strides=[1] * 64, inner_tiled=inner)
    return Layout("tiled", **inner)


def worked():
    """01-descriptor.md section 7, and one descriptor for each of the field examples of parts 02 and 03."""
    yield "worked_a", Tensor(shape=(5, 7, 2), byte_offset=64, handles=[Handle(344, 128)]), {}
    yield "worked_b", Tensor("int16", (4, 3), strided(-8, -2), 60, [Handle(64)]), {}
    c = Tensor("int8", (6, 10), row(), handles=[Handle(60, 256, 1, 0, 2)], shard=((12, 10), (6, 0)))
    c = c.quantized_with(per_channel(0, 1))
    c.handles[1] = Handle(24, 256, 1, 0, 2)
    yield "worked_c", c, {}
    yield "worked_d", Tensor(0xF3, (6,), row(), extension=PRIVATE_FLOAT[1], shard=((6,), (0,)), role="base",
                             statistics={"nnz": 3, "sparsity_ratio": 0.5, "value_min": -2.0, "value_max": 4.0,
                                         "value_abs_max": 4.0, "value_mean": 3.5 / 6,
                                         "value_stddev": bytes.fromhex("B14D7C3F165DFD3F"), "has_nan": 0,
                                         "has_inf": 0}), {}
    yield "worked_strided_int4", Tensor("int4", (3, 2), strided(-2, 1), 2), {}
    yield "worked_strided_six_bits", Tensor("float6_e2m3", (6,), strided(-1), 6), {}
    yield "worked_overlay_add", Tensor("float32", (4,), composite("overlay", 3, "add")), {}
    yield "worked_nf4", Tensor("uint4", (64,), row()).quantized_with(nf4(0, 64, 1)), {}
    yield "worked_channel_csr", Tensor("int8", (4, 6), csr(5)).quantized_with(per_channel(0, 3)), {}
    yield "worked_mxfp", Tensor("float4_e2m1", (2, 32), row()).quantized_with(mxfp(1, 32, 1)), {}
    yield "worked_block", Tensor("int8", (2, 32), row()).quantized_with(per_block(1, 32, 1, None, "float16")), {}
    yield "worked_tensor", Tensor("uint8", (2,), row()).quantized_with(per_tensor(0.0625, 120)), {}
    yield "worked_channel", Tensor("uint8", (2, 3), row()).quantized_with(per_channel(1, 1, 2)), {}


def valid():
    for name, tensor in existing():
        yield name, tensor, {}
    yield from worked()
    yield from edges()
    yield from matrix()
    yield from each_section()
    yield from quantized()


def newer():
    """A newer minor version: read, and not written back."""
    yield "minor_1_surplus", Tensor(shape=(2,), version=(1, 1), surplus=b"\1\2\3"), {}
    yield "minor_1_plain", Tensor(shape=(2,), version=(1, 1)), {}
    yield "minor_255_quantized", Tensor("int8", (4,), row(), version=(1, 255), surplus=bytes(5)).quantized_with(
        per_tensor(0.5) | {"surplus": b"\xff"}), {}


def opaque():
    """What permissive mode lets through: metadata that can be reached, and the same bytes again."""
    for tag in (0x05, 0x18, 0x21, 0x3F, 0x47, 0x4C, 0x80, 0xEF):
        yield f"10_type_{tag:02x}", Tensor(tag, (2, 3), row(), handles=[Handle(24)]), {}
    yield "10_type_quantized", Tensor(0x18, (4,), row(), handles=[Handle(4)], quantization=per_tensor(0.5, 2**31 - 1)), {}
    yield "10_type_csr", Tensor(0x4C, (3, 3), csr(2), handles=[Handle(3), Handle(16), Handle(32)]), {}
    for tag in (0x0C, 0x3F, 0x41, 0x7F, 0x80, 0xEF):
        yield f"13_layout_{tag:02x}", Tensor(
            shape=(2, 3), layout=Layout("unknown", tag=tag, raw_bytes=bytes(range(40)))), {}
    yield "13_layout_no_tail", Tensor(shape=(), layout=Layout("unknown", tag=0x0C, raw_bytes=b"")), {}
    yield "13_layout_flags", Tensor("int8", (2,), Layout("unknown", tag=0x0C, raw_bytes=b"\xff" * 5),
                                    quantization={}, role="base", shard=()), {}
    yield "27_mode_order_twice", plain(csf(5, 0, 1, 1), (3, 4, 5), "int16"), {}
    yield "27_mode_order_out_of_range", plain(csf(5, 0, 1, 3), (3, 4, 5), "int16"), {}
    yield "34_private_layout", plain(*MAIN["private"], "float32"), {}
    yield "34_private_layout_sections", plain(
        *MAIN["private"], "int8", role="base", statistics={"nnz": 3}, shard=((2, 3), (0, 0))).quantized_with(
            per_tensor(0.5)).replace(handles=[Handle(6), Handle(0), Handle(9)]), {}
    for tag in (0x06, 0x3F, 0x40, 0x5F, 0x60, 0x7F, 0x80, 0xEF, 0xF0, 0xFE):
        yield f"47_scheme_{tag:02x}", Tensor(
            "int8", (8,), row(), handles=[Handle(8)], quantization=opaque_scheme(tag, bytes(range(12)))), {}
    yield "47_scheme_header_only", Tensor(
        "float64", (8,), row(), handles=[Handle(64), Handle(4), Handle(0)],
        quantization=opaque_scheme(0x60, b"", version=0, flags=0xFFFF)), {}
    yield "47_scheme_csr", Tensor("float16", (3, 3), csr(2), handles=[Handle(4), Handle(16), Handle(32), Handle(7)],
                                  quantization=opaque_scheme(0xF1, b"\1\2\3\4\5", version=9)), {}
    yield "30_private_rule", Tensor("float32", (4,), Layout(
        "composite", composition_rule=0xF0, combine_op=7, member_count=2)), {"agreed": {"rules": [0xF0]}}


def agreed():
    """Strict mode, with a private value that the caller listed."""
    yield "scheme_f0", Tensor("int8", (8,), row(), handles=[Handle(8), Handle(4)],
                              quantization=opaque_scheme(0xF0, b"private")), {"agreed": {"schemes": [0xF0]}}


def dropped_groups():
    """Row 58 in permissive mode: the offending group is dropped, the rest is as it was."""
    base = {"nnz": 3, "sparsity_ratio": 0.5, "value_mean": 1.0, "value_stddev": 1.0, "nm_n": 1, "nm_m": 2,
            "has_nan": 0, "has_inf": 0}
    for name, change, bit in (
            ("58_sparsity_above", {"sparsity_ratio": 1.5}, 1), ("58_sparsity_below", {"sparsity_ratio": -0.1}, 1),
            ("58_stddev", {"value_stddev": -1.0}, 3), ("58_nm", {"nm_n": 3}, 4), ("58_has_nan", {"has_nan": 2}, 5),
            ("58_has_inf", {"has_inf": 255}, 5)):
        yield name, Tensor(shape=(6,), statistics=base | change), bit
