"""The buffer protocol and `__array_interface__` (08-python-api.md section 14.3): every flag of PEP 3118."""

import builtins
import ctypes
import gc
import itertools
import struct
import sys
import weakref

import pytest

np = pytest.importorskip("numpy")

import hurray  # noqa: E402
from hurray import StridedLayout, UnsupportedError  # noqa: E402
from made import tensor, wire  # noqa: E402


class PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)), ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]  # fmt: skip


get_buffer = ctypes.pythonapi.PyObject_GetBuffer
get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(PyBuffer), ctypes.c_int]
release_buffer = ctypes.pythonapi.PyBuffer_Release
release_buffer.argtypes = [ctypes.POINTER(PyBuffer)]
release_buffer.restype = None

WRITABLE, FORMAT, ND = 0x1, 0x4, 0x8
STRIDES = 0x10 | ND
C, F, ANY = 0x20 | STRIDES, 0x40 | STRIDES, 0x80 | STRIDES
INDIRECT = 0x100 | STRIDES


def aligned(shape, dtype):
    memory = np.zeros(int(np.prod(shape)) * np.dtype(dtype).itemsize + 128, np.uint8)
    start = -memory.ctypes.data % 64
    a = memory[start : start + memory.size - 128].view(dtype).reshape(shape)
    a[...] = np.arange(a.size).reshape(shape)
    return a


def shared(a):
    return hurray.from_numpy(a, copy=False)


SOURCES = {
    "row-major": lambda: aligned((3, 4), "f4"),
    "column-major": lambda: aligned((4, 3), "i2").T,
    "steps": lambda: aligned((4, 6), "f8")[:, ::2],
    "reversed": lambda: aligned((64,), "u1")[::-1],
    "broadcast": lambda: np.lib.stride_tricks.as_strided(aligned((4,), "c8"), (3, 4), (0, 8), writeable=True),
    "one line": lambda: aligned((5,), "i8"),
    "one row": lambda: aligned((1, 5), "u4"),
    "scalar": lambda: aligned((), "f2"),
    "nothing": lambda: aligned((0, 3), "u2"),
}


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("name", SOURCES)
def test_every_request(name, readonly):
    a = SOURCES[name]()
    if readonly:
        a.flags.writeable = False
    t = shared(a)
    if a.size == 0 and readonly:
        return  # an own, empty tensor
    assert t.readonly == readonly
    empty = a.size == 0
    c_order, f_order = a.flags.c_contiguous or empty, a.flags.f_contiguous or empty
    for orders in range(5):
        for access, letters in itertools.product((0, WRITABLE), (0, FORMAT)):
            for shape in ((0, ND, STRIDES, INDIRECT), (C,), (F,), (ANY,), (C | INDIRECT,))[orders]:
                flags = access | letters | shape
                met = (
                    not (access and readonly)
                    and (c_order or shape & STRIDES == STRIDES)
                    and (c_order or shape & C != C)
                    and (f_order or shape & F != F)
                    and (c_order or f_order or shape & ANY != ANY)
                )
                view = PyBuffer()
                before = sys.getrefcount(t)
                if not met:
                    with pytest.raises(builtins.BufferError) as caught:
                        get_buffer(t, view, flags)
                    assert isinstance(caught.value, UnsupportedError)
                    assert ("read-only" if access and readonly else "contiguous") in str(caught.value)
                    del caught
                    assert sys.getrefcount(t) == before
                    continue
                get_buffer(t, view, flags)
                assert sys.getrefcount(t) == before + 1 and view.obj is t
                assert view.len == a.size * a.itemsize and view.itemsize == a.itemsize
                assert view.ndim == a.ndim and bool(view.readonly) == readonly and not view.suboffsets
                assert (view.format is not None) == bool(letters)
                if letters:
                    assert np.dtype(a.dtype.char) == a.dtype and struct_size(view.format) == a.itemsize
                assert bool(view.shape) == bool(shape & ND)
                assert bool(view.strides) == (shape & STRIDES == STRIDES)
                if view.shape:
                    assert tuple(view.shape[: a.ndim]) == a.shape
                if view.strides and not empty:
                    assert tuple(view.strides[: a.ndim]) == a.strides
                if not empty:
                    assert view.buf == a.__array_interface__["data"][0]
                release_buffer(view)
                assert sys.getrefcount(t) == before


def struct_size(letters):
    letters = letters.decode()
    if letters.startswith("Z"):
        return 2 * struct.calcsize(letters[1:])
    return struct.calcsize(letters)


def test_each_get_has_one_release():
    a = aligned((4,), "f4")
    watch = weakref.ref(a)
    t = shared(a)
    del a
    views = [memoryview(t) for _ in range(50)]
    arrays = [np.asarray(t) for _ in range(50)]
    count = sys.getrefcount(t)
    for view in views:
        view.release()
        view.release()
    assert sys.getrefcount(t) == count - 50
    del arrays
    gc.collect()
    assert sys.getrefcount(t) == count - 100
    last = memoryview(t)[1:3]
    del t
    gc.collect()
    assert watch() is not None and last.tolist() == [1, 2]
    last.release()
    gc.collect()
    assert watch() is None


def test_views_cast_slice_and_write():
    t = hurray.zeros((2, 3), dtype=hurray.int32)
    view = memoryview(t)
    assert (view.format, view.shape, view.strides, view.nbytes) == ("i", (2, 3), (12, 4), 24)
    view[1, 2] = 7
    flat = view.cast("B")
    flat[0] = 9
    assert t.to_numpy().tolist() == [[9, 0, 0], [0, 0, 7]]
    assert bytes(t) == t.to_numpy().tobytes() and bytearray(t)[20] == 7
    with pytest.raises(TypeError):
        view.toreadonly()[0, 0] = 1


def test_numpy_takes_the_buffer_protocol_first():
    """`np.asarray` of a strided, of a column-major and of a read-only tensor."""
    for name, make in SOURCES.items():
        a = make()
        t = shared(a)
        b = np.asarray(t)
        assert b.dtype == a.dtype and b.shape == a.shape and (b == a).all(), name
        if a.size:
            assert b.strides == a.strides and np.shares_memory(a, b)
        assert isinstance(b.base, memoryview)


def test_ranks_up_to_64():
    t = hurray.Tensor(bytes(4), hurray.float32, (1,) * 64)
    view = memoryview(t)
    assert view.ndim == 64 and view.shape == (1,) * 64


def test_sizes_that_nobody_counts():
    t = hurray.Tensor(b"", hurray.float32, (0, 2**62))
    with pytest.raises(builtins.BufferError, match="2\\*\\*63"):
        memoryview(t)
    assert not hasattr(t, "__array_interface__")


def test_strided_tensors_with_an_offset():
    a = np.arange(12, dtype="<i2")
    t = hurray.Tensor(a.tobytes(), hurray.int16, (3, 2), layout=StridedLayout([-4, -1]), byte_offset=22)
    expected = a[::-1].reshape(3, 4)[:, :2]
    assert (np.asarray(t) == expected).all()
    view = memoryview(t)
    assert view.strides == (-8, -2) and view.tolist() == expected.tolist()
    assert not view.c_contiguous
    interface = t.__array_interface__
    assert interface["strides"] == (-8, -2) and interface["typestr"] == "<i2"
    assert interface["data"] == (t.buffer(0).__array_interface__["data"][0] + 22, False)


INTERFACE_TYPES = {
    "int8": "|i1", "uint8": "|u1", "int16": "<i2", "uint16": "<u2", "int32": "<i4", "uint32": "<u4", "int64": "<i8",
    "uint64": "<u8", "float16": "<f2", "float32": "<f4", "float64": "<f8", "complex64": "<c8",
    "complex128": "<c16",
}  # fmt: skip


@pytest.mark.parametrize("name", INTERFACE_TYPES)
def test_interface(name):
    t = hurray.zeros((2, 3), dtype=hurray.Dtype.from_name(name))
    interface = t.__array_interface__
    assert interface == {
        "version": 3,
        "shape": (2, 3),
        "typestr": INTERFACE_TYPES[name],
        "data": (t.to_numpy().ctypes.data, False),
        "strides": None,
    }


@pytest.mark.parametrize(
    "name",
    "bool bfloat16 float128 float8_e4m3 float8_e5m2 float8_e8m0 float4_e2m1 float6_e2m3 float6_e3m2 int4 uint4 int2"
    " uint2".split(),
)  # fmt: skip
def test_types_that_cannot_be_shared(name):
    size = hurray.buffer_size_bytes(getattr(hurray.dtype, name), 8)
    t = tensor(name, (8,), [bytes(size)])
    for use, also in (
        (lambda: memoryview(t), builtins.BufferError),
        (lambda: t.__array_interface__, AttributeError),
    ):
        with pytest.raises(UnsupportedError, match=name) as caught:
            use()
        assert isinstance(caught.value, also)
        if name == "bool":
            for way in ("to_numpy()", "np.array(t)", "to_torch(copy=True)", "DLPack"):
                assert way in str(caught.value)
    raw = memoryview(t.buffer(0))
    assert raw.format == "B" and raw.nbytes == size


def test_buffers_of_any_tensor_are_bytes():
    """What a layout or scheme keeps from the protocols is in the buffers."""
    for source in (
        wire.Tensor("int8", (2,), buffers=[b"\1\2"], quantization=wire.per_tensor(0.5)),
        wire.Tensor("float32", (2, 3), wire.coo(1), buffers=[b"abcd", bytes(16)]),
        wire.Tensor("int8", (2,), wire.private(), buffers=[b"\1\2\3", b""]),
    ):
        t = tensor(source.dtype.name, source.shape, source.buffers, source.layout, quantization=source.quantization)
        assert [bytes(t.buffer(i)) for i in range(t.buffer_count)] == source.buffers
