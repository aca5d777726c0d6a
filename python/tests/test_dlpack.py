"""DLPack both ways, with hand-made capsules for what no installed library makes."""

import builtins
import ctypes
import gc
import inspect
import sys
import threading
import weakref

import processes
import pytest
import wire

np = pytest.importorskip("numpy")

from dlpack_structures import (  # noqa: E402
    PLAIN,
    VERSIONED,
    Exporter,
    aligned,
    capsule_name,
    rename_capsule,
    taken,
)

import hurray  # noqa: E402
from hurray import (
    ColMajorLayout,
    CopyRequiredError,
    Device,
    StridedLayout,
    Tensor,
    UnsupportedError,
)  # noqa: E402


# ---- in ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, (1, 0), (1, 1), (1, 9)])
@pytest.mark.parametrize("copy", [None, False, True])
def test_import_shares_or_copies_and_gives_back_once(version, copy):
    memory = aligned(256)
    x = Exporter(memory, (4, 16), 2, 32, version=version)
    t = hurray.from_dlpack(x, copy=copy)
    assert x.calls == [{"max_version": (1, 1)}]
    assert capsule_name(x.capsule).startswith(b"used_dltensor")
    assert t.shape == (4, 16) and t.dtype is hurray.float32 and t.device is hurray.device.cpu
    assert bytes(memoryview(t)) == memory.tobytes()
    shared = copy is not True
    assert np.shares_memory(np.asarray(t), memory) == shared and x.deleted == (not shared)
    assert t.buffer_handles[0].alignment == (4096 if shared else 64)
    view = np.asarray(t)
    del t
    assert x.deleted == (not shared)
    del view
    gc.collect()
    assert x.deleted == 1


def test_import_measures_and_refuses():
    x = Exporter(aligned(256, 4), (64,), 2, 32)
    with pytest.raises(CopyRequiredError, match="4-byte aligned.*64"):
        hurray.from_dlpack(x, copy=False)
    assert x.deleted == 1
    t = hurray.from_dlpack(Exporter(aligned(256, 4), (64,), 2, 32))
    assert t.buffer_handles[0].alignment == 64
    memory = aligned(1024)
    t = hurray.from_dlpack(Exporter(memory, (64,), 2, 32, offset=64), copy=False)
    assert t.buffer_handles[0].alignment == 64
    assert np.asarray(t).ctypes.data == memory.ctypes.data + 64


def test_import_strides():
    memory = aligned(4 * 24)
    a = memory.view(np.float32)
    cases = {
        (2, 3, 4): ((12, 4, 1), "row_major"), (4, 6): ((1, 4), "col_major"), (3, 4): ((8, 2), "row_major"),
        (1, 6): ((999, 1), "row_major"), (5, 4): ((0, 1), "row_major"),
    }  # fmt: skip
    for shape, (strides, layout) in cases.items():
        expected = np.lib.stride_tricks.as_strided(a, shape, [s * 4 for s in strides])
        t = hurray.from_dlpack(Exporter(memory, shape, 2, 32, strides=strides))
        assert t.layout.name == layout
        assert (t.to_numpy() == expected).all()
    t = hurray.from_dlpack(Exporter(memory, (3, 4), 2, 32, strides=(8, 2)), copy=False)
    assert t.layout == StridedLayout((8, 2)) and (np.asarray(t) == a.reshape(3, 8)[:, ::2]).all()
    t = hurray.from_dlpack(Exporter(memory, (4,), 2, 32, strides=(-1,), offset=12), copy=False)
    assert t.descriptor.byte_offset == 12 and (np.asarray(t) == a[3::-1]).all()
    assert (
        hurray.from_dlpack(Exporter(memory, (4, 6), 2, 32, strides=(1, 4))).layout
        == ColMajorLayout()
    )
    with pytest.raises(builtins.BufferError):
        hurray.from_dlpack(Exporter(memory, (2, 2), 2, 32, strides=(2**62, 1)))


def test_import_flags_and_types():
    memory = aligned(64)
    assert hurray.from_dlpack(Exporter(memory, (16,), 2, 32, flags=1)).readonly
    assert not hurray.from_dlpack(Exporter(memory, (16,), 2, 32, version=None)).readonly
    types = {
        (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64", (1, 8): "uint8", (1, 16): "uint16",
        (1, 32): "uint32", (1, 64): "uint64", (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
        (4, 16): "bfloat16", (5, 64): "complex64", (5, 128): "complex128", (10, 8): "float8_e4m3",
        (12, 8): "float8_e5m2", (14, 8): "float8_e8m0", (15, 6): "float6_e2m3", (16, 6): "float6_e3m2",
        (17, 4): "float4_e2m1", (0, 4): "int4", (1, 4): "uint4", (0, 2): "int2", (1, 2): "uint2",
    }  # fmt: skip
    for (code, bits), name in types.items():
        t = hurray.from_dlpack(Exporter(memory, (4,), code, bits))
        assert t.dtype.name == name
        assert bytes(memoryview(t.buffer(0)))[: 4 * bits // 8] == memory.tobytes()[: 4 * bits // 8]
    for code, bits, lanes in (
        (3, 64, 1),
        (2, 128, 1),
        (7, 8, 1),
        (2, 32, 2),
        (17, 4, 2),
        (6, 1, 1),
        (99, 8, 1),
    ):
        x = Exporter(memory, (2,), code, bits, lanes=lanes)
        with pytest.raises(UnsupportedError, match=f"code {code}, {bits} bits, {lanes} lanes"):
            hurray.from_dlpack(x)
        assert x.deleted == 1


def test_import_of_bool_and_packed_types():
    memory = aligned(64)
    memory[:5] = [0, 1, 2, 255, 0]
    t = hurray.from_dlpack(Exporter(memory, (5,), 6, 8))
    assert t.dtype is hurray.bool and t.to_numpy().tolist() == [False, True, True, True, False]
    with pytest.raises(CopyRequiredError):
        hurray.from_dlpack(Exporter(memory, (5,), 6, 8), copy=False)
    codes = aligned(64)
    codes[:] = np.arange(64) % 4
    padded = hurray.from_dlpack(Exporter(codes, (7,), 1, 2, flags=4))
    assert bytes(memoryview(padded.buffer(0))) == bytes([0b11100100, 0b100100])
    shared = hurray.from_dlpack(Exporter(codes, (8,), 1, 4), copy=False)
    assert shared.nbytes == 4 and np.shares_memory(np.asarray(shared.buffer(0)), codes)
    with pytest.raises(UnsupportedError):
        hurray.from_dlpack(Exporter(codes, (2, 4), 1, 4, strides=(1, 2)))
    for count, needs_copy in ((1, True), (2, True), (3, False), (4, False), (5, True), (7, False)):
        x = Exporter(memory, (count,), 15, 6)
        if needs_copy:
            with pytest.raises(CopyRequiredError):
                hurray.from_dlpack(Exporter(memory, (count,), 15, 6), copy=False)
        t = hurray.from_dlpack(x, copy=None if needs_copy else False)
        assert t.nbytes == 3 * -(-count // 4)


def test_import_addresses():
    memory = aligned(64)
    t = hurray.from_dlpack(Exporter(memory, (0, 5), 2, 32, null=True))
    assert t.shape == (0, 5) and t.buffer_handles[0].alignment == 1
    x = Exporter(memory, (2,), 2, 32, null=True)
    with pytest.raises(UnsupportedError, match="address"):
        hurray.from_dlpack(x)
    assert x.deleted == 1
    empty = Exporter(memory, (0,), 2, 32)
    hurray.from_dlpack(empty)
    gc.collect()
    assert empty.deleted == 1
    assert hurray.from_dlpack(Exporter(memory, (), 2, 32)).shape == ()
    assert hurray.from_dlpack(Exporter(memory, (4,), 2, 32, deleter=False)).size == 4


def test_import_refuses_what_is_not_a_capsule_of_version_1():
    memory = aligned(64)
    x = Exporter(memory, (2,), 2, 32, version=(2, 0))
    with pytest.raises(builtins.BufferError, match="2.0") as info:
        hurray.from_dlpack(x)
    assert x.deleted == 1 and not isinstance(info.value, hurray.BufferError)
    used = Exporter(memory, (2,), 2, 32, name=b"used_dltensor_versioned")
    with pytest.raises(builtins.BufferError):
        hurray.from_dlpack(used)
    assert used.deleted == 0
    for shape in ((-1,),):
        with pytest.raises(builtins.BufferError):
            hurray.from_dlpack(Exporter(memory, shape, 2, 32))
    with pytest.raises(UnsupportedError):
        hurray.from_dlpack(Exporter(memory, (1,) * 65, 2, 32))

    class Other:
        def __dlpack__(self, **_):
            return 3

    with pytest.raises(builtins.BufferError):
        hurray.from_dlpack(Other())
    for wrong in (3, None, [1], hurray.zeros((2,)).__dlpack__()):
        with pytest.raises(TypeError):
            hurray.from_dlpack(wrong)


def test_import_falls_back_to_the_call_without_arguments():
    class Old:
        def __init__(self):
            self.inner = Exporter(aligned(64), (4,), 2, 32, version=None)

        def __dlpack__(self):
            return self.inner.__dlpack__()

    assert hurray.from_dlpack(Old()).size == 4

    class Broken:
        def __dlpack__(self, **_):
            raise ZeroDivisionError

    with pytest.raises(UnsupportedError, match="Broken .*ZeroDivisionError$"):
        hurray.from_dlpack(Broken())


def test_import_devices():
    memory = aligned(256)
    for kind, number in (
        ("metal", 8),
        ("vulkan", 7),
        ("hexagon", 16),
        ("level_zero", 14),
        ("opencl", 4),
        ("webgpu", 15),
    ):
        x = Exporter(memory, (4,), 2, 32, device=(number, 3))
        t = hurray.from_dlpack(x)
        assert t.device == Device(kind, 3) and t.buffer_handles[0].device is t.device
        assert t.__dlpack_device__() == (number, 3)
        for refused in (
            t.to_numpy,
            lambda: memoryview(t),
            t.to_cpu,
            lambda: hurray.asarray(t, copy=True),
        ):
            with pytest.raises(UnsupportedError):
                refused()
        managed, capsule = taken(t)
        assert managed.tensor.data == memory.ctypes.data and managed.tensor.device_type == number
        del t, capsule
        gc.collect()
        assert x.deleted == 1
        with pytest.raises(UnsupportedError):
            hurray.from_dlpack(Exporter(memory, (4,), 2, 32, device=(number, 3)), copy=True)
    on_metal = hurray.from_dlpack(Exporter(memory, (4,), 2, 32, device=(8, 0)))
    for stream in (None, -1, 0, 1, 2**63):  # nothing is waited for: the data is complete
        on_metal.__dlpack__(stream=stream)
    with pytest.raises(builtins.BufferError, match="stream -2"):
        on_metal.__dlpack__(stream=-2)
    for wanted in ((8, 0), (1, 0), (8, 1)):
        if wanted == (8, 0):
            on_metal.__dlpack__(dl_device=wanted)
            continue
        with pytest.raises(builtins.BufferError, match=r"\(8, 0\)"):
            on_metal.__dlpack__(dl_device=wanted)
    with pytest.raises(builtins.BufferError, match="metal"):
        on_metal.__dlpack__(copy=True)
    for number in (2, 3, 10, 11, 13):  # streams that have to be waited for
        x = Exporter(memory, (4,), 2, 32, device=(number, 0))
        with pytest.raises(UnsupportedError):
            hurray.from_dlpack(x)
        assert x.deleted == 1
    with pytest.raises(UnsupportedError, match="99"):
        hurray.from_dlpack(Exporter(memory, (4,), 2, 32, device=(99, 0)))
    hurray.from_dlpack(Exporter(memory, (4,), 2, 32), device=hurray.device.cpu)
    with pytest.raises(UnsupportedError):
        hurray.from_dlpack(Exporter(memory, (4,), 2, 32), device=hurray.device.metal)
    with pytest.raises(UnsupportedError):
        hurray.from_dlpack(np.zeros(4), device=hurray.device.metal)
    with pytest.raises(TypeError):
        hurray.from_dlpack(np.zeros(4), device="cpu")


def test_numpy_arrays_are_taken_as_by_from_numpy():
    a = np.arange(4, dtype=">f4")
    assert hurray.from_dlpack(a).to_numpy().tolist() == [0, 1, 2, 3]
    with pytest.raises(CopyRequiredError, match="byte order"):
        hurray.from_dlpack(a, copy=False)


# ---- out --------------------------------------------------------------------------------------------


def test_export_versions():
    t = hurray.zeros((2, 3), dtype=hurray.float32)
    for wanted, got in (((1, 0), (1, 0)), ((1, 1), (1, 1)), ((1, 7), (1, 1)), ((2, 3), (1, 1))):
        managed, capsule = taken(t, max_version=wanted)
        assert (managed.major, managed.minor, managed.flags) == (*got, 0)
    for wanted in (None, (0, 8)):
        managed, capsule = taken(t, max_version=wanted)
        assert capsule_name(capsule) == PLAIN
    for wrong in ((1,), "1.0", 1, [1, 0]):
        with pytest.raises(TypeError):
            t.__dlpack__(max_version=wrong)


def test_export_keywords():
    t = hurray.zeros((2,))

    class Name(str):
        pass

    for name in ("max_version", "".join(["max_", "version"]), Name("max_version")):
        assert capsule_name(t.__dlpack__(**{name: (1, 0), "stream": None})) == VERSIONED
    with pytest.raises(TypeError, match="no positional arguments"):
        t.__dlpack__(None)
    for wrong in ("version", "\udc80", ""):
        with pytest.raises(TypeError, match="no keyword .*, but stream, max_version, dl_device and copy"):
            t.__dlpack__(**{wrong: None})
    for wrong in ((1,), [1, 0], (1, 0, 0), 1, (1.0, 0), ("1", 0)):
        with pytest.raises(TypeError, match="max_version"):
            t.__dlpack__(max_version=wrong)
    for wrong in ((-1, 0), (1, 1 << 32), (1 << 70, 0)):
        with pytest.raises(OverflowError, match="max_version"):
            t.__dlpack__(max_version=wrong)
    assert capsule_name(t.__dlpack__(max_version=(True, np.int64(1)))) == VERSIONED
    with pytest.raises(TypeError):
        t.__dlpack_device__(0)
    for unbound in (Tensor.__dlpack__, Tensor.__dlpack_device__):
        for wrong in (None, np.zeros(2), Tensor.__new__(Tensor)):
            with pytest.raises(TypeError):
                unbound(wrong)
    assert list(inspect.signature(t.__dlpack__).parameters) == ["stream", "max_version", "dl_device", "copy"]
    assert "DLPack" in Tensor.__dlpack__.__doc__


def test_export_fields():
    memory = aligned(256)
    for a in (
        memory.view(np.float32).reshape(8, 8),
        memory.view(np.int16).reshape(8, 16).T,
        memory[254::-2],
        memory.view(np.float64)[3:9],
    ):
        t = (
            hurray.from_numpy(a, copy=False)
            if a.ctypes.data % 64 == 0 or a.strides[0] < 0
            else hurray.from_numpy(a)
        )
        managed, capsule = taken(t)
        x = managed.tensor
        assert x.data == np.asarray(t).ctypes.data and x.byte_offset == 0
        assert (x.device_type, x.device_id) == t.__dlpack_device__() == (1, 0)
        assert tuple(x.shape[: x.ndim]) == a.shape
        assert tuple(s * a.itemsize for s in x.strides[: x.ndim]) == np.asarray(t).strides
    managed, capsule = taken(hurray.zeros((0, 3)))
    assert managed.tensor.data is None and managed.tensor.ndim == 2 and managed.tensor.strides
    managed, capsule = taken(hurray.zeros(()))
    assert managed.tensor.ndim == 0 and managed.tensor.data


CODES = {
    "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64), "uint8": (1, 8), "uint16": (1, 16),
    "uint32": (1, 32), "uint64": (1, 64), "float16": (2, 16), "float32": (2, 32), "float64": (2, 64),
    "bfloat16": (4, 16), "complex64": (5, 64), "complex128": (5, 128),
}  # fmt: skip
NEWER = {
    "float8_e4m3": (10, 8), "float8_e5m2": (12, 8), "float8_e8m0": (14, 8), "float6_e2m3": (15, 6),
    "float6_e3m2": (16, 6), "float4_e2m1": (17, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", hurray.dtype.__all__)
def test_export_types(name):
    t = Tensor(bytes(64), hurray.Dtype.from_name(name), (4,))
    for version in (None, (1, 0), (1, 1)):
        expected = CODES.get(name) or (NEWER.get(name) if version == (1, 1) else None)
        if expected:
            managed, capsule = taken(t, max_version=version)
            assert (managed.tensor.code, managed.tensor.bits, managed.tensor.lanes) == (
                *expected,
                1,
            )
        else:
            with pytest.raises(builtins.BufferError, match=name) as info:
                t.__dlpack__(max_version=version)
            assert isinstance(info.value, UnsupportedError) and not isinstance(
                info.value, hurray.BufferError
            )


def test_export_arguments():
    t = hurray.zeros((2,))
    for stream in (None, -1):
        t.__dlpack__(stream=stream)
    for stream in (0, 1, 2, -2, 2**70):
        with pytest.raises(builtins.BufferError):
            t.__dlpack__(stream=stream)
    with pytest.raises(TypeError):
        t.__dlpack__(stream="1")
    t.__dlpack__(dl_device=(1, 0))
    for device in ((1, 1), (2, 0)):
        with pytest.raises(builtins.BufferError):
            t.__dlpack__(dl_device=device)
    with pytest.raises(TypeError):
        t.__dlpack__(dl_device=1)
    with pytest.raises(TypeError):
        t.__dlpack__(None)
    managed, capsule = taken(t, copy=True, max_version=(1, 1))
    assert managed.flags == 2 and managed.tensor.data != np.asarray(t).ctypes.data
    managed, capsule = taken(t, copy=False)
    assert managed.tensor.data == np.asarray(t).ctypes.data


def test_export_of_read_only_tensors():
    a = aligned(64)
    a.flags.writeable = False
    t = hurray.from_numpy(a, copy=False)
    for version in (None, (0, 5)):
        with pytest.raises(builtins.BufferError, match="read-only"):
            t.__dlpack__(max_version=version)
    managed, capsule = taken(t, max_version=(1, 0))
    assert managed.flags == 1
    managed, capsule = taken(t, max_version=(1, 0), copy=True)
    assert managed.flags == 2
    taken(t, copy=True)


def test_export_of_elements_at_odd_addresses():
    t = Tensor(bytes(16), hurray.float32, (2,), byte_offset=1)
    with pytest.raises(builtins.BufferError, match="multiple of 4"):
        t.__dlpack__()
    with pytest.raises(builtins.BufferError, match="copy=False.*multiple of 4") as info:
        t.__dlpack__(copy=False)
    assert isinstance(info.value, CopyRequiredError)
    for keywords in ({"copy": True}, {"copy": True, "max_version": (1, 0)}):
        managed, capsule = taken(t, **keywords)
        assert managed.tensor.data % 64 == 0
    assert managed.flags == 2
    assert np.asarray(t).tolist() == [0, 0]
    memory = aligned(64)
    shifted = Tensor(memory, hurray.int16, (2, 3), byte_offset=3, layout=ColMajorLayout())
    expected = memory[3:15].view(np.int16).reshape(3, 2).T
    managed, capsule = taken(shifted, copy=True)
    assert managed.tensor.strides[:2] == [1, 2]
    assert np.ctypeslib.as_array((ctypes.c_int16 * 6).from_address(managed.tensor.data)).tolist() == \
        expected.ravel("F").tolist()  # fmt: skip


def quantized(scheme, dtype=hurray.int8, *more):
    return Tensor(bytes(64), dtype, (4, 16), quantization=scheme, aux_buffers=more or None)


#: what cannot be one array with strides, and the words that say so
REFUSED = {
    "coo": lambda: hurray.sparse_coo([1.0], [[0]], (2,)),
    "csr": lambda: Tensor(bytes(4), hurray.float32, (2, 2), layout=hurray.CsrLayout(0),
                          aux_buffers=[b"", bytes(24)]),
    "csc": lambda: Tensor(bytes(4), hurray.float32, (2, 2), layout=hurray.CscLayout(0),
                          aux_buffers=[b"", bytes(24)]),
    "csf": lambda: Tensor(b"", hurray.float32, (2, 2, 2), layout=hurray.CsfLayout(0, (0, 1, 2)),
                          aux_buffers=[bytes(16), b""] * 3),
    "block_paged": lambda: Tensor(bytes(48), hurray.float32, (4, 3, 1), aux_buffers=[bytes(4), bytes(8)],
                                  layout=hurray.BlockPagedLayout(4, 1, 0, 1)),
    "tiled": lambda: Tensor(bytes(64), hurray.float32, (4, 4), layout=hurray.TiledLayout((2, 2))),
    "morton": lambda: Tensor(bytes(64), hurray.float32, (4, 4), layout=hurray.MortonLayout((2, 2))),
    "hilbert": lambda: Tensor(bytes(64), hurray.float32, (4, 4), layout=hurray.HilbertLayout(2, 2)),
    "extension": lambda: Tensor(bytes(4), hurray.float32, (1,), layout=hurray.PrivateExtensionLayout(0xF1, 7)),
    "dynamic": lambda: Tensor(bytes(8), hurray.float32, (None, 2)),
    "per_tensor_affine": lambda: quantized(hurray.PerTensorAffine(0.5, 1)),
    "per_channel_affine": lambda: quantized(hurray.PerChannelAffine.symmetric(0, 1), hurray.int8, bytes(16)),
    "mxfp": lambda: quantized(hurray.MXFP(1, 16, 1), hurray.dtype.float8_e4m3, bytes([127] * 4)),
    "private": lambda: Tensor(bytes(3), hurray.Dtype.from_tag(0xF2), (1,), extension_type=hurray.ExtensionType(24)),
    "cuda.*to_cpu": lambda: hurray.zeros((2,), device=hurray.device.cuda),
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_export_refuses_what_is_no_array(said):
    t = REFUSED[said]()
    for keywords in ({}, {"max_version": (1, 1)}, {"copy": True}, {"copy": False}):
        with pytest.raises(builtins.BufferError, match=said) as info:
            t.__dlpack__(**keywords)
        assert isinstance(info.value, UnsupportedError)
        assert not isinstance(info.value, hurray.BufferError)
    for consumer in (np.from_dlpack, hurray.from_dlpack):
        with pytest.raises(builtins.BufferError, match=said):
            consumer(t)


def not_ready(dtype, sync):
    """A tensor of four bytes whose peer recorded an event, declared on a device."""
    ready = wire.descriptor(dtype, (4,), 4, device=1)
    frame = wire.descriptor(dtype, (4,), 4, device=1, sync=sync)
    writer = hurray.StreamWriter()
    own = hurray.Dtype.from_tag(dtype)
    writer.write(Tensor(bytes(4), own, (4,), hurray.device.cuda))
    written = writer.getvalue()
    assert written.count(ready) == 1
    (t,) = hurray.StreamReader(written.replace(ready, frame))
    return t


def test_the_first_reason_is_reported():
    csr = {"layout": hurray.CsrLayout(0), "aux_buffers": [b"", bytes(24)]}
    cases = [
        (not_ready(wire.UINT8, 1), "buffer 0 .*'event'"),
        (not_ready(0x20, 2), "buffer 0 .*'consumer_stream'"),
        (Tensor(b"", hurray.bool, (2, 2), hurray.device.rocm, **csr), "rocm.*cpu"),
        (Tensor(b"", hurray.bool, (2, 2), **csr), "csr"),
        (Tensor(b"", hurray.dtype.int4, (None,)), "dynamic"),
        (Tensor(bytes(2), hurray.dtype.int4, (4,), quantization=hurray.PerTensorAffine(1.0, 0)), "per_tensor"),
        (Tensor(bytes(2), hurray.dtype.int4, (4,)), "int4"),
    ]
    for t, said in cases:
        for call in (lambda: t.__dlpack__(stream=7, dl_device=(9, 9)), lambda: np.from_dlpack(t)):
            with pytest.raises(builtins.BufferError, match=said):
                call()


@pytest.mark.parametrize(
    "device, number",
    [(("cpu",), 1), (("cpu", 0, "host_pinned"), 1), (("cpu", 0, "unified"), 1), (("cuda", 2), 2),
     (("cuda", 0, "host_pinned"), 3), (("cuda", 0, "unified"), 13), (("cuda", 0, "peer"), None), (("rocm", 1), 10),
     (("rocm", 0, "host_pinned"), 11), (("rocm", 0, "unified"), None), (("rocm", 0, "peer"), None), (("metal",), 8),
     (("metal", 0, "unified"), 8), (("vulkan",), 7), (("vulkan", 0, "peer"), None), (("webgpu",), 15),
     (("hexagon",), 16), (("level_zero",), 14), (("level_zero", 0, "peer"), None), (("opencl",), 4), ((0xF4, 7), None)],
    ids=str,
)  # fmt: skip
def test_device_numbers(device, number):
    t = Tensor(bytes(8), hurray.float32, (2,), Device(*device))
    if number is None:
        with pytest.raises(UnsupportedError) as info:
            t.__dlpack_device__()
        assert isinstance(info.value, builtins.BufferError)
    else:
        assert t.__dlpack_device__() == (number, t.device.device_id)


def test_capsules_keep_the_tensor_and_let_it_go():
    t = hurray.zeros((4,))
    watch = weakref.ref(t)
    count = sys.getrefcount(t)
    capsule = t.__dlpack__(max_version=(1, 1))
    assert sys.getrefcount(t) == count + 1
    del capsule
    assert sys.getrefcount(t) == count
    back = hurray.from_dlpack(t)
    assert sys.getrefcount(t) == count + 1 and np.shares_memory(np.asarray(back), np.asarray(t))
    del t
    gc.collect()
    assert watch() is not None
    view = np.asarray(back)
    del back
    assert watch() is not None
    del view
    gc.collect()
    assert watch() is None


def test_a_taken_capsule_is_left_alone_and_deleted_from_another_thread():
    t = hurray.zeros((4,))
    watch = weakref.ref(t)
    managed, capsule = taken(t)
    address = ctypes.addressof(managed)
    assert rename_capsule(capsule, b"used_dltensor") == 0
    del t, capsule
    gc.collect()
    assert watch() is not None
    deleter = ctypes.cast(managed.deleter, ctypes.c_void_p).value
    plain = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)  # releases the GIL around the call
    thread = threading.Thread(target=plain, args=(address,))
    thread.start()
    thread.join()
    assert watch() is None


def test_unread_capsules_at_the_end_of_the_interpreter():
    processes.run(
        """
        import atexit, builtins
        a = np.arange(4.0)
        t = hurray.from_numpy(a)
        builtins.first = t.__dlpack__()
        sys.versioned = t.__dlpack__(max_version=(1, 1)), t.__dlpack__(copy=True)
        atexit.register(lambda: t.__dlpack__())
        """
    )


def test_an_exception_on_its_way_survives_a_capsule_that_goes():
    class Noisy(Exporter):
        def _delete(self, _):
            super()._delete(_)
            len([0])

    def fail():
        capsule = hurray.from_dlpack(Noisy(aligned(64), (16,), 2, 32)).__dlpack__()
        raise ZeroDivisionError(str(capsule))

    with pytest.raises(ZeroDivisionError):
        fail()


def test_one_of_many_threads_takes_a_capsule():
    for _ in range(50):
        x = Exporter(aligned(64), (16,), 2, 32)
        capsule = x.__dlpack__()

        class Same:
            def __dlpack__(self, **_):
                return capsule

        won, lost, start = [], [], threading.Barrier(4)

        def take():
            start.wait()
            try:
                won.append(hurray.from_dlpack(Same()))
            except builtins.BufferError:
                lost.append(True)

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1 and len(lost) == 3
        won.clear()
        gc.collect()
        assert x.deleted == 1


def test_numpy_takes_it():
    t = hurray.asarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    a = np.from_dlpack(t)
    assert np.shares_memory(a, np.asarray(t)) and a.tolist() == [[0, 1, 2], [3, 4, 5]]


class Failing:
    """An object whose library refuses in its own way."""

    def __init__(self, error):
        self.error = error

    def __dlpack__(self, **kwargs):
        raise self.error


FOREIGN = [
    RuntimeError("the array\nwas deleted"),
    TypeError("traced"),
    builtins.BufferError("no such type"),
    ValueError("no"),
]


@pytest.mark.parametrize("error", FOREIGN, ids=lambda e: type(e).__name__)
def test_what_the_object_raises_is_the_cause(tmp_path, error):
    for call in (
        hurray.from_dlpack,
        hurray.asarray,
        hurray.StreamWriter().write,
        lambda x: hurray.save(tmp_path / "x.hrry", {"x": x}),
    ):
        with pytest.raises(UnsupportedError, match=f"Failing .*{type(error).__name__}") as info:
            call(Failing(error))
        assert info.value.__cause__ is error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_interrupts_and_lack_of_memory_pass(tmp_path, error):
    for call in (
        hurray.from_dlpack,
        hurray.asarray,
        hurray.StreamWriter().write,
        lambda x: hurray.save(tmp_path / "x.hrry", {"x": x}),
    ):
        with pytest.raises(error):
            call(Failing(error()))


def test_array_is_tried_where_dlpack_fails(tmp_path):
    class Both(Failing):
        def __array__(self, dtype=None, copy=None):
            return np.arange(6, dtype=np.int16).reshape(2, 3).T

    x = Both(RuntimeError("not by this way"))
    expected = [[0, 3], [1, 4], [2, 5]]
    assert hurray.asarray(x).to_numpy().tolist() == expected
    assert hurray.asarray(x, dtype=hurray.int64).to_numpy().tolist() == expected
    hurray.save(tmp_path / "x.hrry", {"x": x})
    assert hurray.load(tmp_path / "x.hrry")["x"].to_numpy().tolist() == expected
    writer = hurray.StreamWriter()
    writer.write(x)
    writer.finish()
    (read,) = hurray.StreamReader(writer.getvalue())
    assert read.to_numpy().tolist() == expected
    with pytest.raises(UnsupportedError):
        hurray.from_dlpack(x)

    class Neither(Failing):
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("nor by that")

    for call in (hurray.asarray, lambda x: hurray.save(tmp_path / "y.hrry", {"y": x})):
        with pytest.raises(UnsupportedError, match="Neither .*nor by that"):
            call(Neither(ValueError("not by this way")))


@pytest.mark.parametrize("offset, shape, strides", [
    (2**63, (2,), None), (2**64 - 1, (1,), None), (2**64 - 64, (64,), None), (0, (2,), (2**60,)),
    (0, (3,), (-2**60,)), (64, (3, 2), (2**59, 2**59)),
])
def test_elements_beyond_the_address_space_are_malformed(offset, shape, strides):
    for version in (None, (1, 0)):
        x = Exporter(aligned(256), shape, 2, 64, version=version, offset=offset, strides=strides)
        with pytest.raises(builtins.BufferError, match="out of the address space|2\\*\\*63"):
            hurray.from_dlpack(x)
        gc.collect()
        assert x.deleted == 1
    empty = Exporter(aligned(256), (0, 3), 2, 64, offset=2**63)
    assert hurray.from_dlpack(empty).shape == (0, 3)
