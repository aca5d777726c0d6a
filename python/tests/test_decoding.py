"""Values of packed, quantized, tiled and sparse tensors: `dequantize`, `to_dense`, `validate`, `to_numpy`
(09-models-and-frameworks.md section 5, 08-python-api.md sections 14.1, 14.2, 19.5), bit for bit."""

import builtins
import json
import math
import struct
import sys
import threading

import pytest

np = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import hurray  # noqa: E402
from hurray import (  # noqa: E402
    CopyRequiredError,
    InvalidDescriptorError,
    RowMajorLayout,
    Statistics,
    UnsupportedError,
)
from made import FOLDER, containers, data, formulas, made, tensor, u64s, wire  # noqa: E402

MANIFEST = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))["vectors"]
PLAIN = dict(data.plain())
QUANTIZED = dict(data.quantized())


def bits(a):
    return np.ascontiguousarray(a).reshape(-1).view(np.uint8).tolist()


def same(a, b):
    assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
    assert bits(a) == bits(b)


ML_DTYPES = {
    "float8_e4m3": "float8_e4m3fn", "float8_e8m0": "float8_e8m0fnu", "float4_e2m1": "float4_e2m1fn",
    "float6_e2m3": "float6_e2m3fn", "float6_e3m2": "float6_e3m2fn",
} | {name: name for name in ("bfloat16", "float8_e5m2", "int4", "uint4", "int2", "uint2")}  # fmt: skip


def numpy_type(dtype):
    """NumPy's type for one of ours, or that of ml_dtypes."""
    if dtype.name in ML_DTYPES:
        return np.dtype(getattr(pytest.importorskip("ml_dtypes"), ML_DTYPES[dtype.name]))
    return np.dtype(dtype.name)


def array_of(codes, dtype, shape):
    """Stored codes as an array, one per item."""
    kind = numpy_type(dtype)
    raw = b"".join(int(code).to_bytes(kind.itemsize, "little") for code in codes)
    return np.frombuffer(raw, kind).reshape(shape)


def expected_codes(t):
    """Row-major codes of a generator's tensor; 0 where a sparse one stores nothing."""
    found = {
        index: formulas.code_at(t.buffers[0], t.byte_offset, e, t.bits)
        for index, e in formulas.places(t).items()
    }
    return [found.get(index, 0) for index in formulas.indices(t.shape)]


def expected_floats(t):
    return np.array(formulas.numbers(t), np.float32).reshape(t.shape)


def same_floats(found, expected):
    """Bit for bit, but for NaN, whose payload the format leaves open."""
    assert found.shape == expected.shape and found.dtype == expected.dtype == np.float32
    nan = np.isnan(expected)
    assert (np.isnan(found) == nan).all()
    assert bits(found[~nan]) == bits(expected[~nan])


# ---- every vector -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n, t in PLAIN.items() if t.layout.name != "block_paged"])
def test_values_of_every_layout_and_type(name):
    source = PLAIN[name]
    t = made(source)
    private = source.dtype.tag >= 0xF0
    dense = t.to_dense()
    assert isinstance(dense.layout, RowMajorLayout) and dense.shape == t.shape
    assert dense.dtype is t.dtype and not dense.readonly and dense.quantization is None
    row_major = source.layout.name == "row_major"
    assert (dense is t) == row_major
    codes = expected_codes(source)
    packed = data.pack_codes(source.bits, codes)
    if not row_major:
        assert bytes(memoryview(dense.buffer(0))) == packed
        assert dense.device is hurray.device.cpu and dense.buffer_handles[0].alignment in (1, 64)
    if private or source.dtype.name == "float128":
        for call in (t.to_numpy, lambda: np.array(t), t.__array__):
            with pytest.raises(UnsupportedError):
                call()
        return
    expected = array_of(codes, t.dtype, t.shape)
    same(dense.to_numpy(), expected)
    if source.layout.name in data.SPARSE + ("csf",):
        return
    same(t.to_numpy(), expected)
    same(np.array(t), expected)
    same(t.to_numpy(copy=True), expected)
    if t.size:  # `storage` says nothing about tensors that are values
        same(t.to_numpy(storage=True), expected)


@pytest.mark.parametrize("name", QUANTIZED)
def test_values_of_every_scheme(name):
    source = QUANTIZED[name]
    t = made(source)
    if source.layout.name == "block_paged" and len(source.tokens) > 1:
        with pytest.raises(UnsupportedError, match=r"block_paged.*tokens.*buffer\(0\)"):
            t.dequantize()
        return
    values = t.dequantize()
    assert values.dtype is hurray.float32 and isinstance(values.layout, RowMajorLayout)
    assert values.shape == t.shape and values.quantization is None and not values.readonly
    same_floats(values.to_numpy(), expected_floats(source))
    if source.layout.name in ("row_major", "col_major", "strided", "tiled", "morton", "hilbert"):
        codes = t.to_numpy(storage=True)
        same(codes, array_of(expected_codes(source), t.dtype, t.shape))
    with pytest.raises(UnsupportedError, match=r"dequantize\(\)|layout|buffer\(i\)|block_paged"):
        t.to_dense()


@pytest.mark.parametrize(
    "entry", [e for e in MANIFEST if e["outcome"] == "data_invalid"], ids=lambda e: e["name"]
)
def test_contents_that_break_a_rule(entry):
    text = (FOLDER / f"{entry['name']}.txt").read_text(encoding="utf-8")
    (sentence,) = (line[7:] for line in text.splitlines() if line.startswith("error: "))
    (t,) = hurray.StreamReader(wire.parse(text))
    t.validate(data=False)
    with pytest.raises(InvalidDescriptorError) as caught:
        t.validate()
    assert sentence in str(caught.value)
    with pytest.raises((InvalidDescriptorError, UnsupportedError)) as again:
        t.dequantize() if t.quantization is not None or "B" in entry["name"] else t.to_dense()
    if isinstance(again.value, InvalidDescriptorError):
        assert sentence in str(again.value)


def test_contents_that_break_no_rule():
    for source in (*PLAIN.values(), *QUANTIZED.values()):
        assert made(source).validate() is None


# ---- packed types of every length ------------------------------------------------------------------

PACKED = "bool int2 uint2 int4 uint4 float4_e2m1 float6_e2m3 float6_e3m2".split()


@pytest.mark.parametrize("name", PACKED)
def test_packed_elements_of_every_length(name):
    random = np.random.default_rng(3)
    dtype = getattr(hurray.dtype, name)
    width = dtype.bit_width
    for count in [*range(0, 140), 1000, 4096, 70_001]:
        codes = random.integers(0, 1 << width, count, np.uint8)
        slots = np.unpackbits(codes[:, None], axis=1, bitorder="little", count=width).reshape(-1)
        raw = np.zeros(hurray.buffer_size_bytes(dtype, count), np.uint8)
        whole = np.packbits(slots, bitorder="little")
        raw[: whole.size] = whole
        t = tensor(name, (count,), [raw])
        if name == "bool" and count == 1:
            continue
        a = t.to_numpy()
        assert a.dtype == numpy_type(dtype) and a.flags.writeable
        assert (a.view(np.uint8) == codes).all()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_packed_elements_under_strides(draw):
    name = draw.draw(st.sampled_from(PACKED))
    shape = draw.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    strides = draw.draw(st.lists(st.integers(-9, 9), min_size=len(shape), max_size=len(shape)))
    source = data.dense(name, shape, wire.strided(*strides), seed=draw.draw(st.integers(1, 1000)))
    t = made(source)
    if name == "bool" and len(source.buffers[0]) in (math.prod(shape), 1 + source.byte_offset):
        return  # perhaps of doubtful origin (D22)
    try:
        a = t.to_numpy()
    except UnsupportedError as error:
        assert name == "bool" and "one byte per element" in str(error)
        return
    same(a, array_of(expected_codes(source), t.dtype, t.shape))


# ---- quantization against NumPy ---------------------------------------------------------------------


def stored(dtype, count, random):
    """Random codes: packed bytes, and the integers (or floats) that they are."""
    width = dtype.bit_width
    codes = random.integers(0, 1 << min(width, 63), count, np.uint64)
    raw = np.zeros(hurray.buffer_size_bytes(dtype, count), np.uint8)
    slots = codes[:, None] >> np.arange(width, dtype=np.uint64) & 1
    whole = np.packbits(slots.astype(np.uint8).reshape(-1), bitorder="little")
    raw[: whole.size] = whole
    if dtype.name.startswith("float"):
        values = codes.astype(np.uint8).view(numpy_type(dtype)).astype(np.float32)
    else:
        values = codes.astype(np.int64)
        if dtype.is_signed:
            values = np.where(values >> (width - 1) != 0, values - (1 << width), values)
    return raw, values


def by_blocks(shape, axis, block):
    """For each element, row by row, the number of its block (03-quantization.md section 5)."""
    index = np.indices(shape)
    count = -(-shape[axis] // block)
    line = np.zeros(shape, np.int64)
    for k, n in enumerate(shape):
        if k != axis:
            line = line * n + index[k]
    return line * count + index[axis] // block


SHAPES = [(7,), (1, 33), (5, 64), (33, 17), (4, 3, 50), (2, 130, 3), (300, 129)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", "int8 uint8 int16 uint16 int32 uint32 int4 uint4 int2 uint2".split())
def test_affine_schemes(name, shape):
    random = np.random.default_rng(hash(shape) % 2**32)
    dtype = getattr(hurray.dtype, name)
    raw, codes = stored(dtype, math.prod(shape), random)
    codes = codes.reshape(shape)
    low, high = (-128, 127) if name == "int8" else (0, 3) if dtype.bit_width == 2 else (0, 7)
    low = max(low, -(1 << (dtype.bit_width - 1))) if dtype.is_signed else 0
    high = min(high, (1 << (dtype.bit_width - dtype.is_signed)) - 1)

    def check(q, parameters, scale, zero):
        t = tensor(name, shape, [raw, *parameters], quantization=q)
        expected = np.float32(scale) * (codes - zero).astype(np.float32)
        assert expected.dtype == np.float32
        same(t.dequantize().to_numpy(), expected)

    for zero in (0, low, high):
        q = wire.per_tensor(0.0371, zero)
        check(q, [], np.float32(q["scale"]), zero)
    for axis in range(len(shape)):
        along = [1] * len(shape)
        along[axis] = shape[axis]
        scales = random.normal(size=shape[axis]).astype(np.float32)
        zeros = random.integers(low, high + 1, shape[axis]).astype(np.int32)
        check(wire.per_channel(axis, 1), [scales], scales.reshape(along), 0)
        check(wire.per_channel(axis, 1, 2), [scales, zeros], scales.reshape(along),
              zeros.astype(np.int64).reshape(along))
        check(wire.per_channel(axis, 1, 1), [np.concatenate([scales, zeros.view(np.float32)])],
              scales.reshape(along), zeros.astype(np.int64).reshape(along))
        if dtype.bit_width > 8:
            continue
        for block in (2, 16, 64):
            if block > shape[axis]:
                continue
            where = by_blocks(shape, axis, block)
            count = int(where.max()) + 1
            zeros = random.integers(-(2**31), 2**31, count).astype(np.int32)
            for kind, stored_scales in (
                ("float32", random.normal(size=count).astype(np.float32)),
                ("float16", random.normal(size=count).astype(np.float16)),
                ("bfloat16", (random.normal(size=count).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)),
            ):  # fmt: skip
                scales = stored_scales.astype(np.float32)
                if kind == "bfloat16":
                    scales = (stored_scales.astype(np.uint32) << 16).view(np.float32)
                check(wire.per_block(axis, block, 1, None, kind), [stored_scales], scales[where], 0)
                check(wire.per_block(axis, block, 1, 2, kind), [stored_scales, zeros], scales[where],
                      zeros.astype(np.int64)[where])


@pytest.mark.parametrize("name", "int8 int4 float8_e4m3 float8_e5m2 float4_e2m1 float6_e2m3 float6_e3m2".split())
@pytest.mark.parametrize("shape, axis", [((5, 64), 1), ((64, 7), 0), ((3, 32, 5), 1), ((130, 96), 1)])
def test_mxfp(name, shape, axis):
    random = np.random.default_rng(5)
    dtype = getattr(hurray.dtype, name)
    raw, codes = stored(dtype, math.prod(shape), random)
    where = by_blocks(shape, axis, 32)
    exponents = random.integers(0, 255, int(where.max()) + 1, np.uint8)
    exponents[:2] = (0, 254)
    t = tensor(name, shape, [raw, exponents], quantization=wire.mxfp(axis, 32, 1))
    with np.errstate(over="ignore"):
        exact = np.ldexp(codes.astype(np.float64).reshape(shape), exponents.astype(np.int32)[where] - 127)
        expected = exact.astype(np.float32)
    same_floats(t.dequantize().to_numpy(), expected)


def test_nf4():
    table = np.array(formulas.NF4, np.float32)
    random = np.random.default_rng(6)
    for shape, axis, block in (((8,), 0, 8), ((3, 70), 1, 16), ((70, 3), 0, 64), ((130, 64), 1, 64)):
        raw, codes = stored(hurray.dtype.uint4, math.prod(shape), random)
        where = by_blocks(shape, axis, block)
        scales = np.abs(random.normal(size=int(where.max()) + 1)).astype(np.float32)
        scales[0] = 0
        t = tensor("uint4", shape, [raw, scales], quantization=wire.nf4(axis, block, 1))
        same(t.dequantize().to_numpy(), scales[where] * table[codes.reshape(shape)])


def test_dequantize_against_ml_dtypes():
    """The float32 values of an unscaled MXFP tensor are those that ml_dtypes gives its codes."""
    pytest.importorskip("ml_dtypes")
    for name in ("float8_e4m3", "float8_e5m2", "float4_e2m1", "float6_e2m3", "float6_e3m2"):
        dtype = getattr(hurray.dtype, name)
        codes = np.arange(256, dtype=np.uint8) & ((1 << dtype.bit_width) - 1)
        raw = data.pack_codes(dtype.bit_width, codes.tolist())
        t = tensor(name, (256,), [raw, b"\x7f" * 8], quantization=wire.mxfp(0, 32, 1))
        same_floats(t.dequantize().to_numpy(), codes.view(numpy_type(dtype)).astype(np.float32))


# ---- to_dense ---------------------------------------------------------------------------------------


def test_to_dense_of_large_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    random = np.random.default_rng(8)
    for kind in ("uint8", "int16", "float32", "float64", "complex128"):
        for rows, columns, density in ((1, 1000, 0.5), (300, 70, 0.02), (257, 1025, 0.3), (500, 3, 0.0)):
            matrix = sparse.random(rows, columns, density, "csr", random_state=random)
            matrix.data = random.integers(1, 100, matrix.nnz).astype(kind)
            for layout, form in ((wire.csr, matrix.tocsr()), (wire.csc, matrix.tocsc())):
                form.sort_indices()
                t = tensor(
                    kind,
                    matrix.shape,
                    [form.data, form.indices.astype(np.uint64), form.indptr.astype(np.uint64)],
                    layout(matrix.nnz),
                )
                same(t.to_dense().to_numpy(), matrix.toarray())
            form = matrix.tocoo()
            where = np.stack([form.row, form.col], axis=1).astype(np.uint64)
            for order in (np.arange(form.nnz), random.permutation(form.nnz)):
                t = tensor(kind, matrix.shape, [form.data[order], where[order]], wire.coo(form.nnz, False))
                same(t.to_dense().to_numpy(), matrix.toarray())


def test_to_dense_keeps_what_is_still_true():
    statistics = {"nnz": 5, "sparsity_ratio": 19 / 24, "value_min": -2.0, "value_max": 9.0, "value_abs_max": 9.0}
    source = data.matrix_m("int16", [7, -2 & 0xFFFF, 9, 4, 1], "csr").replace(
        statistics=statistics, shard=((8, 6), (4, 0)))  # fmt: skip
    dense = made(source).to_dense()
    assert dense.shard == hurray.Shard((8, 6), (4, 0))
    assert dense.statistics == Statistics(
        nnz=5, sparsity_ratio=19 / 24, value_min=-2.0, value_max=9.0, value_abs_max=9.0
    )
    # An explicit zero counts as stored there, and as a zero here.
    zero = data.matrix_m("int16", [7, 0, 9, 4, 1], "csr").replace(statistics=statistics)
    assert made(zero).to_dense().statistics == Statistics(value_min=-2.0, value_max=9.0, value_abs_max=9.0)
    quantized = data.matrix_m("int8", [7, 0, 9, 4, 1], "csr").replace(
        statistics=statistics, shard=((8, 6), (4, 0)), quantization=wire.per_tensor(1.0))  # fmt: skip
    values = made(quantized).dequantize()
    assert values.shard == hurray.Shard((8, 6), (4, 0))
    assert values.statistics == Statistics(value_min=-2.0, value_max=9.0, value_abs_max=9.0)


def test_row_major_tensors_are_dense():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = hurray.from_numpy(a, copy=True)
    assert t.to_dense() is t
    larger = tensor("uint8", (2,), [b"\1\2\3\4"])
    assert larger.to_dense() is larger
    assert hurray.zeros((0, 3)).to_dense().shape == (0, 3)
    column = hurray.from_numpy(np.asfortranarray(a))
    assert column.layout == hurray.ColMajorLayout()
    same(column.to_dense().to_numpy(), a)
    assert not np.shares_memory(column.to_dense().to_numpy(), column.to_numpy())


def test_shapes_that_nobody_can_have():
    huge = tensor("float32", (2**40, 2**30), [b"", b""], wire.coo(0))
    with pytest.raises(MemoryError, match="shape"):
        huge.to_dense()
    quantized = tensor("int8", (2**40, 2**30), [b"", b""], wire.coo(0), quantization=wire.per_tensor(1.0))
    with pytest.raises(MemoryError, match="shape"):
        quantized.dequantize()
    for exponent in (45, 50):
        with pytest.raises(MemoryError):
            tensor("float64", (2**exponent,), [b"", b""], wire.coo(0)).to_dense()
    assert huge.validate() is None


def test_results_take_their_own_memory_only():
    """Nothing else grows with the shape: a small matrix of few elements has a small result."""
    t = tensor("float32", (1000, 1000), [b"\0\0\x80\x3f", u64s(5), u64s(*([0] * 500), *([1] * 501))], wire.csr(1))
    dense = t.to_dense()
    assert dense.nbytes == 4_000_000 and dense.to_numpy().sum() == 1
    assert dense.to_numpy()[499, 5] == 1


def test_unstored_elements_without_a_zero():
    t = tensor("float8_e8m0", (2, 3), [b"\x7f", u64s(1, 2)], wire.coo(1))
    with pytest.raises(UnsupportedError, match="no zero"):
        t.to_dense()


# ---- refusals ---------------------------------------------------------------------------------------

AFFINE = wire.per_tensor(0.5, 3)
CSR = data.matrix_m("float32", [1, 2, 3, 4, 5], "csr")
EXTENSION = data.PRIVATE_FLOAT


def event(dtype="float32", layout=None, **more):
    return tensor(dtype, (2, 2), [bytes(16)], layout, placement=(1, 1, 0), **more)


ARRAY, BUFFER = (UnsupportedError,), (builtins.BufferError, UnsupportedError)
INTERFACE = (UnsupportedError, AttributeError)


def ways(t):
    return {
        "array": (lambda: t.__array__(), ARRAY),
        "array copy": (lambda: t.__array__(copy=True), ARRAY),
        "to_numpy": (t.to_numpy, ARRAY),
        "interface": (lambda: t.__array_interface__, INTERFACE),
        "buffer": (lambda: memoryview(t), BUFFER),
        "dlpack": (lambda: t.__dlpack__(max_version=(1, 1)), BUFFER),
    }


REFUSED = {
    "sync mode": (lambda: event(), "buffer 0 has sync mode 'event'"),
    "sync mode before all else": (
        lambda: tensor("int8", (4, 6), [bytes(5), u64s(*range(5)), u64s(0, 1, 4, 4, 5)], wire.csr(5),
                       quantization=AFFINE, placement=(1, 2, 0)),
        "buffer 0 has sync mode 'consumer_stream'"),
    "device before layout": (
        lambda: tensor("float32", (4, 6), [bytes(20), u64s(4, 0, 3, 5, 3), u64s(0, 1, 4, 4, 5)], wire.csr(5),
                       placement=(1, 0, 0)),
        r"kind='cuda'.*cpu.*to_cpu\(\)"),
    "coo": (lambda: made(data.matrix_m("float32", [1, 2, 3, 4, 5], "coo")), "coo"),
    "csr": (lambda: made(CSR), "csr"),
    "csc": (lambda: made(data.matrix_m("float32", [1, 2, 3, 4, 5], "csc")), "csc"),
    "csf": (lambda: made(data.tree("float32", [1, 2, 3, 4, 5])), "csf"),
    "block-paged": (lambda: made(data.cache("float32")), "block_paged"),
    "private layout": (lambda: tensor("int8", (2,), [bytes(3)], wire.private()), "extension.*0xF0"),
    "layout before quantization": (
        lambda: made(QUANTIZED["csr_channel" if "csr_channel" in QUANTIZED else next(
            n for n, t in QUANTIZED.items() if t.layout.name == "csr")]), "csr"),
    "dynamic shape": (lambda: tensor("float32", (2, None), [bytes(16)]), "dynamic"),
    "extension type": (
        lambda: tensor(EXTENSION[0], (2,), [bytes(6)], extension=EXTENSION[1]), "private.*0xF3"),
    "per-tensor": (lambda: tensor("int8", (2,), [bytes(2)], quantization=AFFINE), "per_tensor_affine"),
    "per-channel": (
        lambda: tensor("int8", (2,), [bytes(2), bytes([0, 0, 128, 63] * 2)], quantization=wire.per_channel(0, 1)),
        "per_channel_affine"),
    "per-block": (
        lambda: tensor("int4", (4,), [bytes(2), bytes([0, 0, 128, 63] * 2)], quantization=wire.per_block(0, 2, 1)),
        r"per_block_affine.*dequantize\(\).*storage=True"),
    "nf4": (lambda: made(QUANTIZED["nf4_partial"]), "nf4"),
    "mxfp": (lambda: made(QUANTIZED["mxfp_float4_e2m1"]), "mxfp"),
    "private scheme": (
        lambda: tensor("int8", (2,), [bytes(2), b"\1"], quantization=wire.opaque_scheme(0xF0, b"abc")), "extension"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused_by_every_way(what):
    make, fragment = REFUSED[what]
    t = make()
    for way, (use, classes) in ways(t).items():
        with pytest.raises(classes[0], match=fragment) as caught:
            use()
        for cls in classes:
            assert isinstance(caught.value, cls), way
        # No refusal of one protocol escapes as another's.
        assert isinstance(caught.value, builtins.BufferError) == (builtins.BufferError in classes), way
    assert not hasattr(t, "__array_interface__")
    for call in (np.asarray, np.array):
        with pytest.raises(UnsupportedError, match=fragment):
            call(t)


@pytest.mark.parametrize("what", ["sync mode", "device before layout"])
def test_values_are_refused_for_the_same_reasons(what):
    make, fragment = REFUSED[what]
    for use in ("dequantize", "to_dense", "validate"):
        with pytest.raises(UnsupportedError, match=fragment):
            getattr(make(), use)()
    assert make().validate(data=False) is None


GATHERED = {
    "tiled": lambda kind: data.dense(kind, (5, 7), wire.tiled((2, 3), inner="col_major")),
    "morton": lambda kind: data.dense(kind, (3, 2), wire.morton(2, 1)),
    "hilbert": lambda kind: data.dense(kind, (4, 4), wire.hilbert(2, 2)),
}


@pytest.mark.parametrize("layout", GATHERED)
def test_tiles_and_curves_are_copied_in_logical_order(layout):
    source = GATHERED[layout]("int16")
    t = made(source)
    expected = array_of(expected_codes(source), t.dtype, t.shape)
    for a in (t.__array__(), t.__array__(copy=True), t.to_numpy(), np.asarray(t), np.array(t)):
        same(a, expected)
        assert a.flags.writeable and a.flags.c_contiguous and not np.shares_memory(a, t.buffer(0).to_numpy())
    assert t.__array__(np.float64).tolist() == expected.tolist()
    assert np.asarray(t, dtype=np.int32).dtype == np.int32
    for copy in (lambda: t.__array__(copy=False), lambda: t.to_numpy(copy=False),
                 lambda: t.__array__(np.float64, copy=False)):  # fmt: skip
        with pytest.raises(CopyRequiredError, match=layout):
            copy()
    for way in ("interface", "buffer", "dlpack"):
        use, classes = ways(t)[way]
        with pytest.raises(classes[0], match=layout) as caught:
            use()
        assert all(isinstance(caught.value, cls) for cls in classes)
    # Packed: only where a copy was asked for (Y32), and the layout comes before the element type.
    packed = made(GATHERED[layout]("int4"))
    expected = array_of(expected_codes(GATHERED[layout]("int4")), packed.dtype, packed.shape)
    for a in (packed.to_numpy(), np.array(packed), packed.__array__(copy=True)):
        same(a, expected)
    with pytest.raises(UnsupportedError, match="int4"):
        np.asarray(packed)
    with pytest.raises(CopyRequiredError, match="int4"):
        packed.to_numpy(copy=False)
    with pytest.raises(builtins.BufferError, match=layout):
        memoryview(packed)
    flags = made(GATHERED[layout]("bool"))
    with pytest.raises(builtins.BufferError, match="bool.*DLPack"):
        flags.__array__()
    same(flags.to_numpy(), array_of(expected_codes(GATHERED[layout]("bool")), flags.dtype, flags.shape))


def test_codes_on_purpose():
    """Y31: `to_numpy(storage=True)` shares what can be shared."""
    t = tensor("uint8", (2, 3), [bytes(range(6))], quantization=AFFINE)
    codes = t.to_numpy(storage=True)
    assert codes.dtype == np.uint8 and codes.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.shares_memory(codes, t.buffer(0).to_numpy())
    codes[0, 0] = 7
    assert t.dequantize().to_numpy()[0, 0] == 2.0
    assert not np.shares_memory(t.to_numpy(storage=True, copy=True), t.buffer(0).to_numpy())
    t = made(QUANTIZED["nf4_partial"])
    assert t.to_numpy(storage=True).dtype == numpy_type(hurray.dtype.uint4)
    with pytest.raises(CopyRequiredError, match="uint4"):
        t.to_numpy(storage=True, copy=False)
    for source in (t for t in QUANTIZED.values() if t.layout.name in ("csr", "coo", "block_paged")):
        with pytest.raises(UnsupportedError, match=source.layout.name):
            made(source).to_numpy(storage=True)
    with pytest.raises(UnsupportedError, match=r"private.*buffer\(0\)"):
        REFUSED["private scheme"][0]().to_numpy(storage=True)
    watch = t.to_numpy(storage=True)
    del t
    assert watch.shape == (2, 12)


def test_bool_of_doubtful_origin_in_every_layout():
    """D22: the bytes as uint8 where they have the tensor's shape, else `buffer(0)`."""
    for layout, shape, size in (
        (wire.col(), (2, 3), 6), (wire.tiled((2, 2)), (4, 4), 16), (wire.morton(2, 1), (3, 2), 8),
        (wire.hilbert(1, 2), (2, 2), 4), (wire.row(), (5,), 5),
    ):  # fmt: skip
        raw = bytes(i % 3 for i in range(size))
        source = wire.Tensor("bool", shape, layout, buffers=[raw])
        t = made(source)
        for use in (t.to_numpy, t.to_dense, lambda: np.array(t)):
            with pytest.raises(UnsupportedError, match=f"{size} bytes.*one byte per element"):
                use()
        expected = array_of(expected_codes(source.replace(dtype=formulas.DTYPES["uint8"], bits=8)),
                            hurray.uint8, shape)  # fmt: skip
        same(t.to_numpy(storage=True), expected)
    # As many bytes as elements, and fewer than places: not one byte for each of them.
    short = tensor("bool", (3, 3), [bytes(9)], wire.tiled((2, 2)))
    for t in (short, tensor("bool", (2, 2), [bytes(4)], wire.strided(2, 1))):
        with pytest.raises(UnsupportedError, match=r"buffer\(0\)"):
            t.to_numpy(storage=True)
    sparse = tensor("bool", (2, 3), [b"\1\1", u64s(0, 1, 1, 2)], wire.coo(2))
    with pytest.raises(UnsupportedError, match="one byte per element"):
        sparse.to_dense()


def test_what_is_no_quantized_tensor_says_what_to_call():
    with pytest.raises(UnsupportedError, match=r"float64.*not quantized.*to_numpy\(\).*to_dense\(\)"):
        hurray.zeros((2,)).dequantize()
    with pytest.raises(UnsupportedError, match=r"per_tensor_affine.*dequantize\(\)"):
        tensor("int8", (2,), [bytes(2)], quantization=AFFINE).to_dense()
    with pytest.raises(UnsupportedError, match=r"block_paged.*buffer\(0\)"):
        made(data.cache("float32")).to_dense()
    for make in (REFUSED["private layout"][0], REFUSED["private scheme"][0]):
        for use in ("to_dense", "dequantize", "validate"):
            with pytest.raises(UnsupportedError, match=r"buffer\(i\)"):
                getattr(make(), use)()
    for t in (REFUSED["dynamic shape"][0](), tensor("int8", (None, 2), [bytes(4)], quantization=AFFINE)):
        with pytest.raises(UnsupportedError, match="dynamic"):
            t.dequantize() if t.quantization is not None else t.to_dense()
        assert t.validate() is None
    with pytest.raises(TypeError):
        hurray.zeros((2,)).validate(True)
    with pytest.raises(TypeError):
        hurray.zeros((2,)).validate(data="yes")


def test_the_error_names_buffer_entry_and_byte():
    t = tensor("float32", (4, 6), [bytes(20), u64s(4, 0, 3, 6, 3), u64s(0, 1, 4, 4, 5)], wire.csr(5))
    for use in (t.validate, t.to_dense):
        with pytest.raises(InvalidDescriptorError, match=r"col_indices\[3\].*at most 5.*found 6.*byte 24"):
            use()
    scales = struct.pack("<2f", 1.0, 0.0)
    t = tensor("int8", (2, 2), [bytes(4), scales], quantization=wire.per_channel(0, 1))
    for use in (t.validate, t.dequantize):
        with pytest.raises(InvalidDescriptorError, match=r"scale\[1\].*other than 0.*byte 4"):
            use()


# ---- lifetimes, threads -----------------------------------------------------------------------------


def test_results_are_independent_of_their_source():
    t = tensor("int8", (2,), [b"\1\2"], quantization=wire.per_tensor(1.0))
    values = t.dequantize()
    before = values.to_numpy().copy()
    t.to_numpy(storage=True)[:] = 9
    del t
    same(values.to_numpy(), before)


@pytest.mark.parametrize("what", ["dequantize", "to_dense", "to_numpy", "validate"])
def test_other_threads_run_meanwhile(what):
    if what == "dequantize":
        t = tensor("int4", (1 << 22,), [bytes(1 << 21)], quantization=AFFINE)
    elif what == "validate":
        t = tensor("int8", (1 << 20,), [bytes(1 << 20), np.arange(1 << 20, dtype=np.uint64)], wire.coo(1 << 20))
    else:
        t = tensor("int4", (1 << 11, 1 << 11), [bytes(1 << 21)], wire.tiled((64, 64)))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # a thread gets its turn only from who gives the GIL away
    try:
        for _ in range(1000):
            turns = []
            gate = threading.Lock()
            gate.acquire()
            worker = threading.Thread(target=lambda: (gate.acquire(), turns.append(None)))
            worker.start()
            gate.release()
            getattr(t, what)()
            seen = len(turns)
            worker.join()
            if seen:
                break
        assert seen
    finally:
        sys.setswitchinterval(interval)
