"""The rules about buffer metadata, over every way in which a tensor can come into being.

The declared alignment divides the real address; it is 64 for own memory, the measured power of two up to
4096 for memory that is borrowed, viewed, mapped, loaded or received, and 1 for empty buffers. A handle's
device is the tensor's device object, and a handle keeps nothing alive. Bytes that are not ready are refused.
"""

import builtins
import gc
import sys
import weakref

import pytest

np = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import hurray  # noqa: E402
import wire  # noqa: E402
from hurray import Device, UnsupportedError  # noqa: E402

OWN, MEASURED = "own", "measured"


def at_offset(size, offset):
    memory = np.zeros(size + 8192, np.uint8)
    start = -memory.ctypes.data % 4096 + offset
    out = memory[start : start + size]
    out[:] = np.arange(size, dtype=np.uint64).astype(np.uint8)
    return out


def streamed(*sources):
    writer = hurray.StreamWriter()
    for source in sources:
        writer.write(source)
    writer.finish()
    return list(hurray.StreamReader(writer.getvalue()))


def saved(path, source, how):
    hurray.save(path, {"a": np.zeros(7, np.uint8), "w": source}, sync=False)
    if how == "load":
        return hurray.load(path)["w"]
    if how == "memory":
        return hurray.load(path, mode="memory")["w"]
    return hurray.open(path, mode=how)["w"]


def coo(a):
    """All elements of a vector, listed one by one."""
    return hurray.Tensor(
        a,
        hurray.uint8,
        a.shape,
        layout=hurray.CooLayout(a.size, True),
        aux_buffers=[np.arange(a.size, dtype=np.uint64)],
    )


class Dlpack:
    """Offers DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)


WAYS = {
    "constructor": (OWN, lambda a, p: hurray.Tensor(a, hurray.uint8, a.shape)),
    "constructor, device": (OWN, lambda a, p: hurray.Tensor(a, hurray.uint8, a.shape, Device("cuda", 1, "unified"))),
    "empty": (OWN, lambda a, p: hurray.empty(a.shape, dtype=hurray.uint8)),
    "zeros": (OWN, lambda a, p: hurray.zeros(a.shape, dtype=hurray.uint8)),
    "full": (OWN, lambda a, p: hurray.full(a.shape, 3, dtype=hurray.uint8)),
    "zeros_like": (OWN, lambda a, p: hurray.zeros_like(hurray.asarray(a))),
    "arange": (OWN, lambda a, p: hurray.arange(a.size, dtype=hurray.int64)),
    "constructor, sparse": (OWN, lambda a, p: coo(a)),
    "values of own": (MEASURED, lambda a, p: coo(a).values),
    "indices of own": (MEASURED, lambda a, p: coo(a).indices),
    "transposed": (OWN, lambda a, p: hurray.Tensor(a, hurray.uint8, (1, a.size)).transpose()),
    "from_numpy": (None, lambda a, p: hurray.from_numpy(a)),
    "from_numpy, copied": (OWN, lambda a, p: hurray.from_numpy(a, copy=True)),
    "from_numpy, reversed": (OWN, lambda a, p: hurray.from_numpy(a[::-1]) if a.size > 1 else hurray.from_numpy(a, copy=True)),
    "from_dlpack": (None, lambda a, p: hurray.from_dlpack(Dlpack(a))),
    "buffer protocol": (None, lambda a, p: hurray.asarray(memoryview(a))),
    "list": (OWN, lambda a, p: hurray.asarray(a.tolist(), dtype=hurray.uint8, copy=True)),
    "cast": (OWN, lambda a, p: hurray.asarray(a, dtype=hurray.int16, copy=True)),
    "view of own": (MEASURED, lambda a, p: hurray.Tensor(a, hurray.uint8, a.shape).buffer(0)),
    "view of borrowed": (MEASURED, lambda a, p: hurray.from_numpy(a).buffer(0)),
    "relabelled": (OWN, lambda a, p: hurray.zeros(a.shape, dtype=hurray.uint8, device=Device("rocm", 2)).to_cpu()),
    "streamed": (MEASURED, lambda a, p: streamed(a)[0]),
    "loaded": (MEASURED, lambda a, p: saved(p, a, "load")),
    "read": (MEASURED, lambda a, p: saved(p, a, "memory")),
    "mapped": (MEASURED, lambda a, p: saved(p, a, "map")),
    "mapped for writing": (MEASURED, lambda a, p: saved(p, a, "copy_on_write")),
}  # fmt: skip


def addresses(t):
    for i in range(t.buffer_count):
        raw = np.asarray(t.to_cpu().buffer(i))
        yield raw.ctypes.data, raw.nbytes


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@given(
    size=st.sampled_from([0, 1, 2, 63, 64, 65, 4096, 5000, 200_000]),
    offset=st.sampled_from([0, 1, 2, 4, 8, 16, 32, 64, 128, 1024, 2048]),
)
def test_what_is_declared_is_true(tmp_path, way, size, offset):
    kind, make = WAYS[way]
    a = at_offset(size, offset)
    t = make(a, tmp_path / "t.hrry")
    handles = t.buffer_handles
    assert (
        isinstance(handles, tuple) and len(handles) == t.buffer_count == t.descriptor.buffer_count
    )
    for handle, (address, nbytes) in zip(handles, addresses(t), strict=True):
        assert handle.device is t.device
        assert handle.byte_size == nbytes and handle.is_empty == (nbytes == 0)
        assert handle.sync_mode == "producer_synced"
        if nbytes == 0:
            assert handle.alignment == 1
            continue
        assert address % handle.alignment == 0 and handle.alignment >= 64
        measured = min(address & -address, 4096)
        shared = (
            np.shares_memory(a, np.asarray(t.to_cpu().buffer(0)))
            if kind is None
            else kind is MEASURED
        )
        assert handle.alignment == (measured if shared else 64)
    assert (
        t.descriptor.buffer_handles == handles == t.buffer_handles
        and t.buffer_handles is not handles
    )
    assert hurray.validate_colocation(handles) is None


@pytest.mark.parametrize("way", WAYS)
def test_handles_keep_nothing_alive(tmp_path, way):
    t = WAYS[way][1](at_offset(4096, 0), tmp_path / "t.hrry")
    watch, count = weakref.ref(t), sys.getrefcount(t)
    kept = [t.buffer_handles, t.descriptor, t.layout, t.device, t.dtype, t.shape]
    assert sys.getrefcount(t) == count
    del t
    gc.collect()
    assert watch() is None
    assert kept[0][0].byte_size in (4096, 8192, 8 * 4096)


def test_handles_are_frozen_values():
    a, b = hurray.zeros((4,)), hurray.ones((4,))
    (x,), (y,) = a.buffer_handles, b.buffer_handles
    assert x == y and hash(x) == hash(y) and x is not y and len({x, y}) == 1
    (z,) = hurray.zeros((4,), device=Device("cuda", 1)).buffer_handles
    assert x != z and x != hurray.zeros((5,)).buffer_handles[0] and x != "handle" and x != 32
    assert repr(x) == (
        "BufferHandle(byte_size=32, alignment=64, sync_mode='producer_synced', "
        "device=hurray.Device(kind='cpu', device_id=0, memory_class='standard'))"
    )
    for name in ("byte_size", "alignment", "sync_mode", "device", "is_empty", "other"):
        with pytest.raises(AttributeError):
            setattr(x, name, 1)
    with pytest.raises(TypeError):
        hurray.BufferHandle()
    with pytest.raises(TypeError):
        hurray.BufferHandle(32, 64)
    with pytest.raises(IndexError):
        a.buffer_handles[1]
    with pytest.raises(AttributeError):
        a.buffer_handles = ()


def test_the_callers_device_object_is_kept():
    device = Device("cuda", 7, "host_pinned")
    t = hurray.zeros((4,), device=device)
    assert t.device is device and t.descriptor.device is device
    assert t.buffer(0).device is device and t.buffer_handles[0].device is device
    assert t.descriptor.buffer_handles[0].device is device
    decoded = hurray.Descriptor.decode(t.descriptor.encode())
    assert decoded.device == Device("cuda", 0, "host_pinned")  # the id is not in the format


def not_ready(sync):
    """A tensor received from a peer that recorded an event or named a stream."""
    frame = wire.descriptor(wire.UINT8, (4,), 4, sync=sync, device=1)
    writer = hurray.StreamWriter()
    writer.write(hurray.Tensor(b"abcd", hurray.uint8, (4,), hurray.device.cuda))
    ready = writer.getvalue()
    plain = wire.descriptor(wire.UINT8, (4,), 4, device=1)
    assert ready.count(plain) == 1
    (tensor,) = hurray.StreamReader(ready.replace(plain, frame))
    return tensor


@pytest.mark.parametrize("sync, mode", [(1, "event"), (2, "consumer_stream")])
def test_bytes_that_are_not_ready_are_refused_by_the_right_class(sync, mode):
    t = not_ready(sync)
    assert t.buffer_handles[0].sync_mode == mode
    attribute, buffer = (UnsupportedError, AttributeError), (UnsupportedError, builtins.BufferError)
    ways = {
        "buffer": (lambda: t.buffer(0), (UnsupportedError,)),
        "array": (lambda: t.__array__(), (UnsupportedError,)),
        "array copy": (lambda: t.__array__(copy=True), (UnsupportedError,)),
        "np.asarray": (lambda: np.asarray(t), (UnsupportedError,)),
        "to_numpy": (t.to_numpy, (UnsupportedError,)),
        "storage": (lambda: t.to_numpy(storage=True), (UnsupportedError,)),
        "to_cpu": (t.to_cpu, (UnsupportedError,)),
        "asarray copy": (lambda: hurray.asarray(t, copy=True), (UnsupportedError,)),
        "asarray cast": (lambda: hurray.asarray(t, dtype=hurray.float32), (UnsupportedError,)),
        "interface": (lambda: t.__array_interface__, attribute),
        "dlpack": (t.__dlpack__, buffer),
        "dlpack copy": (lambda: t.__dlpack__(copy=True), buffer),
        "memoryview": (lambda: memoryview(t), buffer),
        "from_dlpack": (lambda: hurray.from_dlpack(t), buffer),
    }
    for name, (use, classes) in ways.items():
        with pytest.raises(UnsupportedError) as info:
            use()
        for cls in (UnsupportedError, AttributeError, builtins.BufferError):
            assert isinstance(info.value, cls) == (cls in classes), name
        assert "buffer 0" in str(info.value) and mode in str(info.value), (
            name
        )  # before the device (Y14)
    assert not hasattr(t, "__array_interface__")
    assert hurray.asarray(t) is t
    assert repr(t).startswith("hurray.Tensor(shape=(4,), dtype=uint8, device=") and str(t) == repr(
        t
    )
    assert t.descriptor.encode() and t.nbytes == 4 and t.layout.name == "row_major"


@pytest.mark.parametrize("mode", ["map", "copy_on_write", "memory"])
def test_bool_from_outside_is_not_guessed(tmp_path, mode):
    """D22, through files and streams."""
    doubtful = hurray.Tensor(bytes([1, 0, 1, 1, 0, 0, 1, 0, 1]), hurray.bool, (9,))
    packed = hurray.from_numpy(np.arange(9) % 2 == 0)
    path = tmp_path / "b.hrry"
    hurray.save(path, {"doubtful": doubtful, "packed": packed}, sync=False)
    back = hurray.load(path, mode=mode)
    for t in (back["doubtful"], *streamed(doubtful)):
        with pytest.raises(UnsupportedError, match="9 bytes"):
            t.to_numpy()
        assert t.to_numpy(storage=True).tolist() == [1, 0, 1, 1, 0, 0, 1, 0, 1]
        assert t.buffer(0).size == 9
    for t in (back["packed"], *streamed(packed)):
        assert t.to_numpy().tolist() == [True, False] * 4 + [True]


def test_own_writes_reach_nobody_else(tmp_path):
    a = at_offset(4096, 0)
    path = tmp_path / "t.hrry"
    hurray.save(path, {"w": a}, sync=False)
    before = path.read_bytes()
    for mode in (None, "copy_on_write", "memory"):
        t = hurray.load(path, mode=mode)["w"]
        np.asarray(t)[0] = 200
        memoryview(t)[1] = 201
        assert t.to_numpy()[:2].tolist() == [200, 201]
    t = hurray.open(path, mode="map")["w"]
    assert t.readonly and not np.asarray(t).flags.writeable and memoryview(t).readonly
    with pytest.raises(builtins.BufferError):
        t.__dlpack__()
    assert t.__dlpack__(max_version=(1, 0)) is not None
    assert path.read_bytes() == before


def with_reasons(device, sync, layout, dtype=hurray.float32):
    """A tensor with as many reasons to refuse its bytes as are asked for."""
    extension = hurray.ExtensionType(32) if dtype.tier == 2 else None
    aux = [bytes(16)] if layout.name == "coo" else []
    t = hurray.Tensor(
        bytes(8), dtype, (2,), device, layout=layout, aux_buffers=aux, extension_type=extension
    )
    writer = hurray.StreamWriter()
    writer.write(t)
    data, plain = writer.getvalue(), wire.handle(8, device=device.tag)
    assert data.count(plain) == 1
    (t,) = hurray.StreamReader(data.replace(plain, wire.handle(8, device=device.tag, sync=sync)))
    return t


WAYS_OUT = {
    "array": lambda t: t.__array__(),
    "to_numpy": lambda t: t.to_numpy(),
    "interface": lambda t: t.__array_interface__,
    "memoryview": memoryview,
    "dlpack": lambda t: t.__dlpack__(),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_the_first_reason_is_the_one_that_is_named(way):
    """Y14: sync mode, declared device, layout, element type."""
    use = WAYS_OUT[way]
    cuda, cpu = hurray.device.cuda, hurray.device.cpu
    coo_layout, dense = hurray.CooLayout(2), hurray.RowMajorLayout()
    private = hurray.Dtype.from_tag(0xF1)
    for arguments, reason, later in (
        ((cuda, 1, coo_layout, private), "event", ("cuda", "coo", "private")),
        ((cuda, 2, dense, private), "consumer_stream", ("cuda", "private")),
        ((cuda, 0, coo_layout, private), "cuda", ("coo", "private")),
        ((cpu, 0, coo_layout, private), "coo", ("private",)),
        ((cpu, 0, dense, private), "private|extension", ("coo",)),
    ):
        t = with_reasons(*arguments)
        with pytest.raises(UnsupportedError, match=reason) as info:
            use(t)
        for word in later:
            assert word not in str(info.value).replace("extension_type", "")


@pytest.mark.parametrize(
    "t",
    [
        with_reasons(hurray.device.cuda, 0, hurray.CooLayout(2), hurray.Dtype.from_tag(0xF1)),
        with_reasons(hurray.device.cpu, 0, hurray.CooLayout(2)),
        hurray.zeros((2,)),
        hurray.zeros((2,), dtype=hurray.bool),
        hurray.Tensor(b"", hurray.float32, (None,)),
        hurray.Tensor(bytes(2), hurray.uint8, (2,), quantization=hurray.PerTensorAffine(0.5, 0)),
    ],
    ids="declared on a device,sparse,dense,bool,dynamic,quantized".split(","),
)
def test_hasattr_tells_the_truth(t):
    for name in {*dir(hurray.Tensor), *dir(np.ndarray), "T", "numpy", "shape", "nnz"}:
        there = hasattr(t, name)  # raises nothing
        if there:
            getattr(t, name)
        else:
            with pytest.raises(AttributeError):
                getattr(t, name)


def test_metadata_of_what_must_not_be_read_is_had_without_reading():
    t = with_reasons(hurray.device.cuda, 1, hurray.CooLayout(2))
    assert [h.sync_mode for h in t.buffer_handles] == ["event", "producer_synced"]
    assert (t.nnz, t.nbytes, t.size, t.ndim) == (2, 24, 2, 1)
    assert all(h.device is t.device for h in t.buffer_handles)
    assert t.layout == hurray.CooLayout(2) and t.descriptor.encode() and t._repr_html_()
    again = streamed(t)[0]  # passed on, promise and all
    assert again.descriptor.differences(t.descriptor) == ()
