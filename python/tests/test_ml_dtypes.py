"""The narrow types of ml_dtypes in and out (08-python-api.md sections 13.2, 14.1)."""

import builtins

import processes
import pytest

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

import hurray  # noqa: E402
from hurray import ColMajorLayout, CopyRequiredError, StridedLayout, Tensor, UnsupportedError  # noqa: E402

#: our names, and those of ml_dtypes
SHARED = {
    "bfloat16": "bfloat16", "float8_e4m3": "float8_e4m3fn", "float8_e5m2": "float8_e5m2",
    "float8_e8m0": "float8_e8m0fnu",
}  # fmt: skip
PACKED = {
    "int4": "int4", "uint4": "uint4", "int2": "int2", "uint2": "uint2", "float4_e2m1": "float4_e2m1fn",
    "float6_e2m3": "float6_e2m3fn", "float6_e3m2": "float6_e3m2fn",
}  # fmt: skip


def theirs(name):
    found = getattr(ml_dtypes, (SHARED | PACKED)[name], None)
    if found is None:
        pytest.skip(f"this ml_dtypes has no {name}")
    return np.dtype(found)


def every_code(name, shape=None):
    """All bit patterns of the type, each in a byte of its own."""
    dtype, width = theirs(name), getattr(hurray.dtype, name).bit_width
    if width == 16:
        return np.arange(2**16, dtype=np.uint16).view(dtype)
    return np.arange(2**width, dtype=np.uint8).view(dtype)


def aligned(a):
    with hurray.aligned_allocator():
        return np.array(a, order="K")


def unpacked(raw, width, count):
    """The codes of packed elements: element i at bit i * width, low bits first."""
    bits = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")[: count * width]
    return np.packbits(bits.reshape(count, width), axis=1, bitorder="little")[:, 0]


# ---- as wide here as there --------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHARED)
def test_types_of_whole_bytes_are_shared(name):
    a = aligned(every_code(name))
    t = hurray.from_numpy(a, copy=False)
    assert t.dtype is getattr(hurray.dtype, name) and t.nbytes == a.nbytes
    for out in (t.to_numpy(), t.to_numpy(copy=False), np.asarray(t), t.__array__()):
        assert out.dtype == a.dtype and np.shares_memory(out, a)
        assert out.tobytes() == a.tobytes()
    copy = np.array(t)
    assert copy.dtype == a.dtype and not np.shares_memory(copy, a)
    back = hurray.from_numpy(t.to_numpy())
    assert back.dtype is t.dtype and bytes(memoryview(back.buffer(0))) == a.tobytes()
    for refused in (memoryview, np.from_dlpack if name != "bfloat16" else memoryview):
        with pytest.raises(builtins.BufferError, match=name):
            refused(t)
    assert not hasattr(t, "__array_interface__")


@pytest.mark.parametrize("name", SHARED)
def test_types_of_whole_bytes_in_every_order(name):
    a = aligned(every_code(name)[:240].reshape(12, 20))
    for source in (a, a.T, np.asfortranarray(a), a[::-1, ::2], a[3], a[:, :1], np.broadcast_to(a[0], (3, 20)), a[:0]):
        for copy in (None, True):
            t = hurray.from_numpy(source, copy=copy)
            assert t.to_numpy().tobytes() == source.tobytes() and t.shape == source.shape
    assert hurray.from_numpy(a.T, copy=False).layout == ColMajorLayout()
    assert hurray.from_numpy(a[:, ::2], copy=False).layout == StridedLayout((20, 2))


def test_byte_order_of_bfloat16():
    a = every_code("bfloat16")
    swapped = a.view(np.uint16).byteswap().view(a.dtype.newbyteorder())
    if swapped.dtype.byteorder not in "<>":
        pytest.skip("this ml_dtypes has one byte order")
    assert hurray.from_numpy(swapped).to_numpy().tobytes() == a.tobytes()


# ---- packed here ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 33])
@pytest.mark.parametrize("name", PACKED)
def test_narrow_types_are_packed(name, count):
    own = getattr(hurray.dtype, name)
    a = np.resize(every_code(name), count)
    for copy in (None, True):
        t = hurray.from_numpy(a, copy=copy)
        assert t.dtype is own and t.shape == (count,)
        assert t.nbytes == hurray.buffer_size_bytes(own, count)
        raw = bytes(memoryview(t.buffer(0)))
        assert (unpacked(raw, own.bit_width, count) == a.view(np.uint8)).all()
        spare = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")
        assert not spare[count * own.bit_width :].any()
        out = t.to_numpy()
        assert out.dtype == a.dtype and out.tobytes() == a.tobytes() and out.flags.writeable
    if count:
        with pytest.raises(CopyRequiredError, match=name):
            hurray.from_numpy(a, copy=False)


@pytest.mark.parametrize("name", PACKED)
def test_negative_and_other_values(name):
    dtype = theirs(name)
    values = [-1, 1, 0, 1.5, -2] if not name.startswith("u") else [0, 1, 2, 3, 1]
    a = np.array(values).astype(dtype)
    t = hurray.from_numpy(a)
    assert (t.to_numpy() == a).all()
    assert (hurray.from_numpy(a[0]).to_numpy() == a[0]).all()  # a scalar of the type


@pytest.mark.parametrize("name", PACKED)
def test_narrow_types_in_every_order(name):
    a = np.resize(every_code(name), 35).reshape(5, 7)
    for source, layout in (
        (a, "row_major"), (np.asfortranarray(a), "col_major"), (a.T, "col_major"), (a[::2, ::-1], "row_major"),
        (np.broadcast_to(a[0], (3, 7)), "row_major"), (a[1:2, 3:4], "row_major"),
    ):  # fmt: skip
        t = hurray.from_numpy(source)
        assert t.layout.name == layout
        assert t.to_numpy().tobytes() == source.tobytes()


@pytest.mark.parametrize("name", PACKED)
def test_packed_and_unpacked_are_told_apart(name):
    own = getattr(hurray.dtype, name)
    a = np.resize(every_code(name), 11)
    t = hurray.from_numpy(a)
    # What hands out an array without a copy cannot; what is asked for a copy unpacks.
    for call in (lambda: np.asarray(t), lambda: t.__array__(), lambda: np.asarray(t, copy=None)):
        with pytest.raises(UnsupportedError, match=name):
            call()
    for call in (lambda: t.to_numpy(copy=False), lambda: t.__array__(copy=False)):
        with pytest.raises(CopyRequiredError, match=name):
            call()
    for call in (memoryview, lambda t: t.__dlpack__(), np.from_dlpack):
        with pytest.raises(builtins.BufferError, match=name):
            call(t)
    for out in (np.array(t), t.__array__(copy=True), t.to_numpy(), t.to_numpy(copy=True)):
        assert out.dtype == a.dtype and out.tobytes() == a.tobytes()
    # The bytes are bytes, and as many as the packed elements need.
    raw = t.buffer(0)
    assert raw.dtype is hurray.uint8 and raw.size == hurray.buffer_size_bytes(own, 11) < a.nbytes
    packed = Tensor(bytes(memoryview(raw)), own, (11,))
    assert packed.to_numpy().tobytes() == a.tobytes()


@pytest.mark.parametrize("name", PACKED)
def test_packed_tensors_with_strides(name):
    own = getattr(hurray.dtype, name)
    codes = every_code(name)
    a = np.resize(codes, 24)
    packed = bytes(memoryview(hurray.from_numpy(a).buffer(0)))
    t = Tensor(packed, own, (4, 3), layout=StridedLayout((6, 2)))
    assert t.to_numpy().tobytes() == a.reshape(4, 6)[:, ::2].tobytes()
    back = Tensor(packed, own, (8,), layout=StridedLayout((-1,)), byte_offset=12 * own.bit_width // 8)
    assert back.to_numpy().tobytes() == a[12:4:-1].tobytes()


# ---- asarray, saving, what is missing ---------------------------------------------------------------


def test_asarray():
    t = hurray.asarray([1.5, -2.0], dtype=hurray.bfloat16)
    assert t.dtype is hurray.bfloat16 and t.to_numpy().astype(np.float32).tolist() == [1.5, -2]
    assert hurray.asarray(t, dtype=hurray.float32).to_numpy().tolist() == [1.5, -2]
    wide = np.array([1.0, 1 + 2**-9], np.float32)
    assert hurray.asarray(wide, dtype=hurray.bfloat16).to_numpy().tobytes() == \
        wide.astype(ml_dtypes.bfloat16).tobytes()  # fmt: skip
    narrow = np.array([1, -3], ml_dtypes.int4)
    assert hurray.asarray(narrow).dtype is hurray.dtype.int4
    assert hurray.asarray(narrow, dtype=hurray.int32).to_numpy().tolist() == [1, -3]
    assert hurray.asarray(hurray.asarray(narrow), dtype=hurray.int32).to_numpy().tolist() == [1, -3]
    same = hurray.asarray(narrow)
    assert hurray.asarray(same, dtype=hurray.dtype.int4) is same
    for name in (*PACKED, "float8_e4m3"):
        with pytest.raises(UnsupportedError, match="Tier 2"):
            hurray.asarray([1.0], dtype=getattr(hurray.dtype, name))


@pytest.mark.parametrize("name", SHARED | PACKED)
def test_arrays_are_written_as_they_are_taken(name, tmp_path):
    a = np.resize(every_code(name), 35).reshape(5, 7)
    arrays = {"c": a, "f": np.asfortranarray(a), "s": a[:, ::2], "e": a[:0], "0": a[0, 0:1].reshape(())}
    hurray.save(tmp_path / "x.hrry", arrays)
    for key, t in hurray.load(tmp_path / "x.hrry").items():
        assert t.dtype is getattr(hurray.dtype, name)
        assert t.to_numpy().tobytes() == arrays[key].tobytes() and t.shape == arrays[key].shape


@pytest.mark.parametrize(
    "name", "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz int1 uint1 complex32 bcomplex32".split()
)  # fmt: skip
def test_types_without_a_counterpart_are_named(name):
    if not hasattr(ml_dtypes, name):
        pytest.skip(f"this ml_dtypes has no {name}")
    a = np.zeros(3, getattr(ml_dtypes, name))
    for call in (hurray.from_numpy, hurray.asarray, hurray.StreamWriter().write):
        with pytest.raises(UnsupportedError, match=rf"dtype.*{name}"):
            call(a)


def test_without_ml_dtypes():
    processes.run(
        """
        sys.modules["ml_dtypes"] = None
        t = hurray.Tensor(bytes(4), hurray.bfloat16, (2,))
        packed = hurray.Tensor(bytes(1), hurray.dtype.int4, (2,))
        for call in (lambda: np.asarray(t), t.to_numpy, packed.to_numpy, lambda: np.array(packed),
                     lambda: hurray.asarray([1.0], dtype=hurray.bfloat16)):
            try:
                call()
            except hurray.UnsupportedError as error:
                assert "ml_dtypes" in str(error) and ("bfloat16" in str(error) or "int4" in str(error)), error
            else:
                raise AssertionError(call)
        assert bytes(memoryview(t.buffer(0))) == bytes(4)
        assert hurray.asarray([True]).to_numpy().tolist() == [True]
        """
    )
