"""NumPy in and out: exact values, or one named error (08-python-api.md sections 13, 14, 19.8)."""

import array
import builtins
import gc
import struct
import sys
import weakref

import pytest

np = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import hurray  # noqa: E402
from hurray import (
    ColMajorLayout,
    CopyRequiredError,
    RowMajorLayout,
    StridedLayout,
    UnsupportedError,
)  # noqa: E402

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
# 2.0 tells `__array__` that a copy is wanted; 2.1 asks for capsules with a version.
NUMPY = tuple(int(part) for part in np.__version__.split(".")[:2])


def aligned(shape, dtype, offset=0):
    """An array that starts `offset` bytes behind a multiple of 4096."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(size + 8192, np.uint8)
    start = -memory.ctypes.data % 4096 + offset
    return memory[start : start + size].view(dtype).reshape(shape)


def bits(a):
    return np.ascontiguousarray(a).tobytes()


def same(a, b):
    """Equal bit for bit, in shape, type and value."""
    b = b.astype(b.dtype.newbyteorder("=")) if b.dtype.byteorder not in "=|" else b
    assert a.shape == b.shape and a.dtype == b.dtype, (a.dtype, b.dtype)
    assert bits(a) == bits(b)


def measured(address, size):
    if size == 0:
        return 1
    return min(address & -address, 4096)


# ---- arrays of every kind ---------------------------------------------------------------------------


@st.composite
def arrays(draw):
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    if dtype.itemsize > 1 and draw(st.booleans()):
        dtype = dtype.newbyteorder(draw(st.sampled_from("<>")))
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    offset = draw(st.sampled_from([0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 2048]))
    base = aligned(shape, dtype, offset)
    seed = draw(st.integers(0, 2**32 - 1))
    if base.size:
        flat = np.random.default_rng(seed).integers(0, 256, base.nbytes, np.uint8)
        raw = base.reshape(-1).view(np.uint8)
        raw[:] = flat if dtype != np.bool_ else flat % 3  # any byte but 0 is true
    a = base
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(
            st.sampled_from(
                ["transpose", "reverse", "step", "broadcast", "fortran", "newaxis", "index"]
            )
        )
        if kind == "transpose":
            a = a.T
        elif kind == "reverse" and a.ndim:
            a = a[::-1]
        elif kind == "step" and a.ndim:
            a = a[..., ::2]
        elif kind == "broadcast" and a.size < 500:
            a = np.broadcast_to(a, (3, *a.shape))
        elif kind == "fortran":
            a = np.asfortranarray(a)
        elif kind == "newaxis" and a.ndim < 6:
            a = a[:, None] if a.ndim else a[None]
        elif kind == "index" and a.ndim and a.shape[0]:
            a = a[0]
    a = np.asarray(a)
    if draw(st.booleans()):
        a = a.view()
        a.flags.writeable = False
    return a


def qualifies(a):
    """Section 13.1: whether `copy=None` shares."""
    return (
        a.size > 0
        and a.dtype != np.bool_
        and a.dtype.isnative
        and (a.flags.c_contiguous or a.flags.f_contiguous)
        and a.ctypes.data % 64 == 0
    )


def lowest(a):
    return a.ctypes.data + sum(min(0, s * (n - 1)) for s, n in zip(a.strides, a.shape))


def truth_about(t, a):
    """The founding rules, for one tensor that came from `a`."""
    assert t.shape == a.shape and t.ndim == a.ndim and t.size == a.size
    assert t.dtype.name == a.dtype.newbyteorder("=").name
    (handle,) = t.buffer_handles
    assert handle.device is t.device is hurray.device.cpu
    assert handle.sync_mode == "producer_synced" and handle.byte_size == t.nbytes
    assert handle.is_empty == (t.nbytes == 0)
    raw = np.asarray(t.buffer(0))
    assert raw.nbytes == t.nbytes
    if t.nbytes:
        address = raw.ctypes.data
        assert address % handle.alignment == 0 and handle.alignment >= 64
        assert handle.alignment & (handle.alignment - 1) == 0
    else:
        assert handle.alignment == 1


@settings(max_examples=400, deadline=None)
@given(arrays())
def test_from_numpy_copy_none(a):
    before = bits(a)
    t = hurray.from_numpy(a)
    truth_about(t, a)
    shares = a.size > 0 and np.shares_memory(np.asarray(t.buffer(0)), a)
    assert shares == qualifies(a)
    if shares:
        assert t.readonly == (not a.flags.writeable)
        assert t.buffer_handles[0].alignment == measured(a.ctypes.data, a.nbytes)
    else:
        assert not t.readonly
        assert t.buffer_handles[0].alignment == (64 if t.nbytes else 1)
    fortran = a.size and a.flags.f_contiguous and not a.flags.c_contiguous
    assert t.layout == (ColMajorLayout() if fortran else RowMajorLayout())
    same(t.to_numpy(), a if a.dtype != np.bool_ else a.view(np.uint8) != 0)
    assert bits(a) == before


@settings(max_examples=400, deadline=None)
@given(arrays())
def test_from_numpy_copy_false(a):
    try:
        t = hurray.from_numpy(a, copy=False)
    except CopyRequiredError as error:
        assert a.size and not qualifies(a)
        contiguous = a.flags.c_contiguous or a.flags.f_contiguous
        if contiguous and a.dtype.isnative and a.dtype != np.bool_:
            found = measured(a.ctypes.data, a.nbytes)
            assert f"{found}-byte aligned" in str(error) and "64" in str(error)
            assert "copy=None" in str(error) and "aligned_allocator()" in str(error)
        return
    truth_about(t, a)
    if a.size == 0:
        return
    assert np.shares_memory(np.asarray(t.buffer(0)), a)
    assert t.readonly == (not a.flags.writeable)
    assert t.buffer_handles[0].alignment == measured(lowest(a), t.nbytes)
    if not (a.flags.c_contiguous or a.flags.f_contiguous):
        assert isinstance(t.layout, StridedLayout)
        assert t.descriptor.byte_offset == a.ctypes.data - lowest(a)
    same(t.to_numpy(), a)
    same(np.asarray(t), a)


@settings(max_examples=200, deadline=None)
@given(arrays())
def test_from_numpy_copy_true(a):
    t = hurray.from_numpy(a, copy=True)
    truth_about(t, a)
    assert not t.readonly
    assert t.buffer_handles[0].alignment == (64 if t.nbytes else 1)
    if a.size:
        assert not np.shares_memory(np.asarray(t.buffer(0)), a)
    expected = a if a.dtype != np.bool_ else a.view(np.uint8) != 0
    same(t.to_numpy(), expected)
    none = hurray.from_numpy(a)
    assert t.descriptor.differences(none.descriptor) == ()


@settings(max_examples=200, deadline=None)
@given(arrays())
def test_strided_tensors_out(a):
    """What is shared under copy=False goes out by every protocol with the same values."""
    try:
        t = hurray.from_numpy(a, copy=False)
    except CopyRequiredError:
        return
    if t.dtype is hurray.bool or a.size == 0:
        return
    for b in (
        np.asarray(t),
        t.to_numpy(),
        t.__array__(),
        np.asarray(Interface(t)),
        *([np.from_dlpack(t)] if NUMPY >= (2, 1) else []),
    ):
        same(b, a)
        assert np.shares_memory(b, a) and b.flags.writeable == (not t.readonly)
    copy = np.array(t)
    same(copy, a)
    assert not np.shares_memory(copy, a) and copy.flags.writeable
    own = hurray.asarray(t, copy=True)
    same(np.asarray(own), a)
    assert not np.shares_memory(np.asarray(own), a) and not own.readonly
    assert own.buffer_handles[0].alignment == 64
    # A simple, writable view: of writable, C-contiguous memory only.
    if t.readonly or not a.flags.c_contiguous:
        with pytest.raises(
            (builtins.BufferError, TypeError)
        ):  # struct reports a refusal as TypeError
            struct.pack_into("0s", t, 0, b"")
    else:
        struct.pack_into("0s", t, 0, b"")


class Interface:
    """An object that offers `__array_interface__` and nothing else."""

    def __init__(self, t):
        self.tensor = t
        self.__array_interface__ = t.__array_interface__


# ---- single cases -----------------------------------------------------------------------------------


def test_types_in_both_directions():
    for name in TYPES:
        a = np.ones((2, 3), name)
        t = hurray.from_numpy(a)
        assert t.dtype.name == name
        same(t.to_numpy(), a)
    for alias in (np.intc, np.uintc, np.int_, np.uint, np.longlong, np.ulonglong, np.intp):
        a = np.arange(6, dtype=alias).reshape(2, 3)
        assert hurray.from_numpy(a).dtype.bit_width == a.itemsize * 8
        assert (hurray.from_numpy(a).to_numpy() == a).all()


@pytest.mark.parametrize(
    "a",
    [
        np.array([None]), np.array(["text"]), np.array([b"bytes"]), np.zeros(2, "i4,f8"),
        np.array(["2020-01-01"], "M8[D]"), np.zeros(2, "m8[s]"), np.zeros(2, "V3"),
    ],
    ids=lambda a: str(a.dtype),
)  # fmt: skip
def test_types_that_have_no_counterpart(a):
    for copy in (None, True, False):
        with pytest.raises(UnsupportedError, match="dtype"):
            hurray.from_numpy(a, copy=copy)


def test_longdouble():
    a = np.ones(2, np.longdouble)
    if np.finfo(np.longdouble).nmant == 112:
        assert hurray.from_numpy(a).dtype is hurray.dtype.float128
    else:
        with pytest.raises(UnsupportedError, match="dtype"):
            hurray.from_numpy(a)


def test_masked_arrays_and_subclasses(tmp_path):
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    for call in (hurray.from_numpy, hurray.asarray):
        with pytest.raises(UnsupportedError, match="mask"):
            call(masked)
    mapped = np.memmap(tmp_path / "m", np.float32, "w+", shape=(4,))
    mapped[:] = range(4)
    t = hurray.from_numpy(mapped)
    same(t.to_numpy(), np.arange(4, dtype=np.float32))
    assert t.buffer_handles[0].alignment == 4096 and not t.readonly
    matrix = np.asarray([[1, 2]]).view(np.recarray)
    assert hurray.from_numpy(matrix).shape == (1, 2)


def test_scalars():
    t = hurray.from_numpy(np.float32(2.5))
    assert t.shape == () and t.dtype is hurray.float32 and float(t.to_numpy()) == 2.5
    with pytest.raises(CopyRequiredError):
        hurray.from_numpy(np.float32(2.5), copy=False)
    assert hurray.from_numpy(np.array(7)).shape == ()


def test_from_numpy_takes_arrays_only():
    for wrong in ([1, 2], 3, b"bytes", hurray.zeros((2,)), None):
        with pytest.raises(TypeError):
            hurray.from_numpy(wrong)
    for wrong in (1, 0, "yes", np.True_):
        with pytest.raises(TypeError, match="copy"):
            hurray.from_numpy(np.zeros(2), copy=wrong)


def test_strides_that_are_no_multiple_of_the_item_size():
    packed = np.zeros(5, [("flag", "u1"), ("value", "<f4")])
    packed["value"] = range(5)
    a = packed["value"]
    assert a.strides == (5,)
    same(hurray.from_numpy(a).to_numpy(), np.arange(5, dtype=np.float32))
    with pytest.raises(CopyRequiredError, match="item size"):
        hurray.from_numpy(a, copy=False)


def test_handles_pin_nothing():
    a = aligned((64,), np.float32)
    t = hurray.from_numpy(a, copy=False)
    assert sys.getrefcount(a) == 3
    count = sys.getrefcount(t)
    handles, d, layout = t.buffer_handles, t.descriptor, t.layout
    assert sys.getrefcount(t) == count
    gone = weakref.ref(t)
    del t
    assert gone() is None and sys.getrefcount(a) == 2
    assert handles[0].byte_size == 256 and d.shape == (64,) and layout.name == "row_major"


def test_lifetimes_of_what_is_shared():
    a = aligned((64,), np.float32)
    watch = weakref.ref(a)
    t = hurray.from_numpy(a, copy=False)
    view, interface, memory, capsule = np.asarray(t), Interface(t), memoryview(t), t.__dlpack__()
    buffer = t.buffer(0)
    del a, t
    view[3] = 7
    gc.collect()
    assert watch() is not None
    assert memory[3] == 7 and np.asarray(buffer).view(np.float32)[3] == 7
    held = [view, interface, memory, buffer, capsule]
    del view, interface, memory, buffer, capsule
    while held:
        assert watch() is not None
        held.pop()
        gc.collect()
    assert watch() is None


def test_writes_are_seen():
    t = hurray.zeros((4,), dtype=hurray.int32)
    np.asarray(t)[1] = 5
    memoryview(t)[2] = 6
    np.asarray(Interface(t))[3] = 7
    assert t.to_numpy().tolist() == [0, 5, 6, 7]


def test_readonly():
    a = aligned((4,), np.float32)
    a.flags.writeable = False
    t = hurray.from_numpy(a)
    assert t.readonly and t.buffer(0).readonly and t.to_cpu() is t
    for out in (np.asarray(t), t.to_numpy(), np.asarray(t.buffer(0))):
        assert not out.flags.writeable
    assert memoryview(t).readonly and t.__array_interface__["data"][1] is True
    with pytest.raises(builtins.BufferError, match="read-only"):
        t.__dlpack__()
    if NUMPY >= (2, 1):
        assert not np.from_dlpack(t).flags.writeable
    else:
        with pytest.raises(builtins.BufferError, match="read-only"):
            np.from_dlpack(t)
    assert not hurray.from_numpy(a, copy=True).readonly


def test_array_protocol():
    t = hurray.asarray(np.arange(4, dtype=np.float32))
    assert t.__array__(np.float64).dtype == np.float64
    with pytest.raises(CopyRequiredError):
        t.__array__(np.float64, copy=False)
    assert np.shares_memory(t.__array__(np.float32, copy=False), t.__array__())
    assert not np.shares_memory(t.__array__(copy=True), t.__array__())
    assert np.asarray(t, dtype=np.int8).tolist() == [0, 1, 2, 3]
    interface = t.__array_interface__
    assert (
        interface["version"],
        interface["shape"],
        interface["typestr"],
        interface["strides"],
    ) == (3, (4,), "<f4", None)
    assert hurray.zeros((2,), dtype=hurray.int8).__array_interface__["typestr"] == "|i1"


@pytest.mark.parametrize(
    "name, letter", list(zip(TYPES[1:], "b h i lq B H I LQ e f d Zf Zd".split()))
)
def test_buffer_protocol_formats(name, letter):
    view = memoryview(hurray.zeros((2, 3), dtype=hurray.Dtype.from_name(name)))
    assert view.format in ([letter] if letter.startswith("Z") else letter)
    assert view.itemsize == np.dtype(name).itemsize and view.shape == (2, 3) and not view.readonly


def test_bool():
    values = np.arange(30).reshape(5, 6) % 4 == 1
    for a, layout in (
        (values, "row_major"),
        (np.asfortranarray(values), "col_major"),
        (values[:, ::-2], "row_major"),
    ):
        t = hurray.from_numpy(a)
        assert t.layout.name == layout and t.nbytes == -(-a.size // 8)
        same(t.to_numpy(), a)
        if NUMPY >= (2, 0):
            same(np.array(t), a)
        else:
            with pytest.raises(builtins.BufferError, match="to_numpy"):
                np.array(t)
        same(t.__array__(copy=True), a)
        raw = np.unpackbits(np.asarray(t.buffer(0)), bitorder="little")
        assert (
            raw[: a.size].astype(bool).tolist()
            == a.ravel("A" if layout == "col_major" else "C").tolist()
        )
        assert not raw[a.size :].any()
        with pytest.raises(builtins.BufferError, match="bool.*DLPack"):
            np.asarray(t)
        with pytest.raises(builtins.BufferError, match="bool"):
            memoryview(t)
        with pytest.raises(builtins.BufferError, match="bool"):
            t.__dlpack__()
        with pytest.raises(CopyRequiredError):
            t.to_numpy(copy=False)
        assert not hasattr(t, "__array_interface__")
        with pytest.raises(CopyRequiredError):
            hurray.from_numpy(a, copy=False)
    raw = np.array([0, 1, 2, 255], np.uint8).view(bool)
    assert hurray.from_numpy(raw).to_numpy().tolist() == [False, True, True, True]


def test_strided_bool_tensors():
    bits_of = b"\x2d\x01"  # 1 0 1 1 0 1 0 0 1
    for strides, offset, shape in (
        ((1,), 0, (9,)),
        ((-1,), 1, (9,)),
        ((3, 1), 0, (3, 3)),
        ((1, 3), 0, (3, 3)),
        ((0,), 0, (4,)),
    ):
        t = hurray.Tensor(
            bits_of, hurray.bool, shape, layout=StridedLayout(strides), byte_offset=offset
        )
        packed = np.unpackbits(np.frombuffer(bits_of, np.uint8), bitorder="little")
        expected = np.zeros(shape, bool)
        for index in np.ndindex(shape):
            expected[index] = packed[8 * offset + sum(i * s for i, s in zip(index, strides))]
        same(t.to_numpy(), expected)
        assert str(t) == str(expected)


def test_bool_of_doubtful_origin():
    """D22: one byte per element, or packed with room to spare? Nothing guesses."""
    t = hurray.Tensor(bytes([1, 0, 1, 1]), hurray.bool, (2, 2))
    uses = [t.to_numpy, lambda: t.__array__(copy=True), lambda: hurray.asarray(t, dtype=hurray.int8)]
    if NUMPY >= (2, 0):
        uses.append(lambda: np.array(t))
    for use in uses:
        with pytest.raises(UnsupportedError, match="4 bytes"):
            use()
    assert t.to_numpy(storage=True).tolist() == [[1, 0], [1, 1]]
    assert t.to_numpy(storage=True).dtype == np.uint8
    assert np.asarray(t.buffer(0)).tolist() == [1, 0, 1, 1]
    assert repr(t).startswith("hurray.Tensor(shape=(2, 2), dtype=bool")
    assert hurray.Tensor(b"\x05", hurray.bool, (3,)).to_numpy().tolist() == [True, False, True]
    assert hurray.Tensor(b"\x01", hurray.bool, (1,)).to_numpy().tolist() == [True]


# ---- asarray ----------------------------------------------------------------------------------------


def test_asarray():
    t = hurray.zeros((2,))
    assert hurray.asarray(t) is t and hurray.asarray(t, dtype=hurray.float64, copy=False) is t
    assert hurray.asarray(t, device=hurray.device.cpu) is t
    assert hurray.asarray(t, copy=True) is not t
    assert hurray.asarray([1, 2, 3]).dtype is hurray.int64
    assert hurray.asarray([[1.5], [2]]).shape == (2, 1)
    assert hurray.asarray(3).shape == () and hurray.asarray(True).dtype is hurray.bool
    assert hurray.asarray([1, 2], dtype=hurray.float32).to_numpy().tolist() == [1, 2]
    assert hurray.asarray(t, dtype=hurray.int8).dtype is hurray.int8
    assert hurray.asarray(np.ones(3), dtype=hurray.bool).to_numpy().all()
    assert hurray.asarray(
        hurray.asarray([True, False]), dtype=hurray.int32
    ).to_numpy().tolist() == [1, 0]
    assert hurray.asarray([1j], dtype=hurray.dtype.complex64).dtype is hurray.dtype.complex64
    for source in ([1, 2], 3, np.float32(1)):
        with pytest.raises(CopyRequiredError):
            hurray.asarray(source, copy=False)
    with pytest.raises(CopyRequiredError):
        hurray.asarray(t, dtype=hurray.float32, copy=False)
    with pytest.raises(UnsupportedError, match="Tier 2"):
        hurray.asarray([1], dtype=hurray.dtype.int4)
    with pytest.raises(UnsupportedError):
        hurray.asarray(["text"])
    with pytest.raises(UnsupportedError, match="cuda"):
        hurray.asarray([1], device=hurray.device.cuda)
    for wrong in ({"dtype": np.float32}, {"device": "cpu"}, {"copy": 1}):
        with pytest.raises(TypeError):
            hurray.asarray([1], **wrong)


def test_asarray_of_buffers():
    assert hurray.asarray(b"abc").to_numpy().tolist() == [97, 98, 99]
    assert hurray.asarray(array.array("d", [1, 2])).dtype is hurray.float64
    source = bytearray(aligned((64,), np.uint8))
    t = hurray.asarray(memoryview(aligned((4, 16), np.uint8)), copy=False)
    assert t.shape == (4, 16) and not t.readonly
    t = hurray.asarray(source)
    assert t.size == 64
    shared = memoryview(aligned((8,), np.float32)).toreadonly()
    t = hurray.asarray(shared, copy=False)
    assert t.readonly and t.dtype is hurray.float32
    del t
    shared.release()  # the export is gone
    values = memoryview(np.arange(12, dtype=">i4").reshape(3, 4)[::-1, ::2])
    same(hurray.asarray(values).to_numpy(), np.asarray(values).astype("i4"))
    with pytest.raises(UnsupportedError, match="format"):
        hurray.asarray(
            array.array("u", "ab") if sys.version_info < (3, 13) else array.array("w", "ab")
        )


def test_asarray_of_objects_with_array():
    class Thing:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3, dtype=np.int16)

    assert hurray.asarray(Thing()).dtype is hurray.int16


def test_asarray_keeps_the_declared_memory_class():
    pinned = hurray.Device("cpu", 0, "host_pinned")
    t = hurray.asarray([1, 2], device=pinned)
    assert t.device is pinned and t.buffer_handles[0].device is pinned
    same(t.to_numpy(), np.array([1, 2]))
    gpu = hurray.zeros((2,), device=hurray.device.cuda)
    back = hurray.asarray(gpu, device=hurray.device.cpu)
    assert back.device is hurray.device.cpu and back.to_numpy().tolist() == [0, 0]


def test_empty_and_huge_shapes():
    for shape in ((0,), (0, 3), (3, 0, 2)):
        t = hurray.from_numpy(np.zeros(shape, np.float32), copy=False)
        assert (
            np.asarray(t).shape
            == np.asarray(Interface(t)).shape
            == np.from_dlpack(t).shape
            == shape
        )
        assert t.buffer_handles[0].alignment == 1
    t = hurray.Tensor(b"", hurray.float32, (0, 2**62))
    with pytest.raises((UnsupportedError, builtins.BufferError, ValueError)):
        np.asarray(t)
    repr(t)
    deep = hurray.Tensor(bytes(4), hurray.float32, (1,) * 64)
    assert memoryview(deep).ndim == 64
    repr(deep)


def test_masks_inside_lists_are_refused_too():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for value in ([masked], (1, [masked]), [[[masked]]], [np.zeros(2), masked]):
        for dtype in (None, hurray.float32):
            with pytest.raises(UnsupportedError, match="its mask would be lost"):
                hurray.asarray(value, dtype=dtype)
    assert hurray.asarray([np.zeros(2), [1, 2]]).shape == (2, 2)


def test_tensors_are_assigned_to_parts_of_arrays():
    array = np.zeros((2, 3))
    array[1] = hurray.asarray([1.0, 2.0, 3.0])
    array[0, :1] = hurray.full([1], 7.5)
    with pytest.raises(TypeError, match=r"np.asarray\(t\).item\(\)"):  # NumPy asks for float(t)
        array[0, 1] = hurray.full([], 49, dtype=hurray.uint8)
    assert array.tolist() == [[7.5, 0.0, 0.0], [1.0, 2.0, 3.0]]


@pytest.mark.parametrize("value", [{}, {1}, 2**70, lambda: 1])
def test_objects_are_not_said_to_need_a_cast(value):
    with pytest.raises(UnsupportedError, match="these are Python objects"):
        hurray.asarray(value)
