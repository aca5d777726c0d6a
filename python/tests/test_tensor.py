"""The constructor of Tensor, its members, its printed forms."""

import array
import builtins
import subprocess
import sys

import pytest

import hurray
import processes
from hurray import (
    BufferError,
    ColMajorLayout,
    Device,
    InvalidDescriptorError,
    Shard,
    Statistics,
    StridedLayout,
    Tensor,
    UnsupportedError,
)

F32 = hurray.float32


# ---- construction -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: array.array("b", b)])
def test_constructor_copies(kind):
    source = kind(bytes(range(16)))
    t = Tensor(source, F32, (2, 2))
    assert t.dtype is F32 and t.device is hurray.device.cpu
    assert (t.shape, t.ndim, t.size, t.nbytes, t.buffer_count) == ((2, 2), 2, 4, 16, 1)
    assert bytes(memoryview(t)) == bytes(range(16))
    assert not t.readonly and memoryview(t).c_contiguous
    memoryview(t).cast("B")[0] = 99
    assert bytes(source)[0] == 0
    assert t.buffer_handles[0].alignment == 64


def test_constructor_takes_any_sequence_of_sizes():
    class Index:
        def __index__(self):
            return 2

    assert Tensor(bytes(16), F32, [2, Index()]).shape == (2, 2)
    assert Tensor(bytes(4), F32, ()).shape == () and Tensor(bytes(4), F32, ()).size == 1
    assert Tensor(b"", F32, (0, 7)).size == 0
    assert Tensor(b"", F32, (None, 3)).size is None
    assert Tensor(bytes(24), F32, range(2, 4)).shape == (2, 3)


def test_rebuilding_from_its_own_parts_gives_an_equal_descriptor():
    t = Tensor(
        bytes(80), F32, (3, 4), Device("cpu", 0, "unified"), layout=StridedLayout((-4, 1)), byte_offset=32,
        statistics=Statistics(nnz=0), shard=Shard((9, 4), (3, 0)),
    )  # fmt: skip
    again = Tensor(
        t.buffer(0), t.dtype, t.shape, t.device, layout=t.layout, statistics=t.statistics, shard=t.shard,
        byte_offset=t.descriptor.byte_offset,
    )  # fmt: skip
    assert again.descriptor == t.descriptor
    assert again.descriptor.differences(t.descriptor, ignore=()) == ()


def raises(error, match, *arguments, **keywords):
    with pytest.raises(error, match=match or None) as info:
        Tensor(*arguments, **keywords)
    return info.value


def test_constructor_types():
    expected = "expected bytes, bytearray, or buffer-compatible object"
    for wrong in (3, "text", None, [1, 2], object()):
        raises(BufferError, expected, wrong, F32, (1,))
    raises(BufferError, r"aux_buffers\[1\]: " + expected, bytes(4), F32, (1,), aux_buffers=[b"", 3])
    raises(BufferError, expected, memoryview(bytes(16))[::2], hurray.uint8, (8,))
    raises(TypeError, "Dtype", bytes(4), "float32", (1,))
    raises(TypeError, "Device", bytes(4), F32, (1,), "cpu")
    raises(
        TypeError,
        "layout must be a hurray.Layout instance",
        bytes(4),
        F32,
        (1,),
        layout="row_major",
    )
    raises(TypeError, "Statistics", bytes(4), F32, (1,), statistics={})
    raises(TypeError, "Shard", bytes(4), F32, (1,), shard=((1,), (0,)))
    raises(TypeError, "shape", bytes(4), F32, 1)
    raises(TypeError, "shape", bytes(4), F32, "1")
    raises(TypeError, "shape", bytes(4), F32, (1.0,))
    for forbidden in ("alignment", "sync_mode", "buffer_handles", "quantization", "extension_type"):
        raises(TypeError, "", bytes(4), F32, (1,), **{forbidden: 64})


def test_constructor_checks_in_their_order():
    message = "buffer too small: need at least 24 bytes for 6 elements of float32, got 8"
    raises(BufferError, message, bytes(8), F32, (2, 3))
    raises(
        BufferError, "need at least 2 bytes for 9 elements of bool, got 1", b"1", hurray.bool, (9,)
    )
    raises(BufferError, r"2\*\*64", bytes(8), F32, (2**40, 2**40))
    raises(
        InvalidDescriptorError,
        "shape dimensions must be non-negative, got -1; use None for a dynamic dimension",
        b"",
        F32,
        (-1,),
    )
    raises(InvalidDescriptorError, "64", bytes(4), F32, (1,) * 65)
    raises(OverflowError, "", bytes(4), F32, (2**64,))
    raises(InvalidDescriptorError, "strided", bytes(4), F32, (1,), layout=StridedLayout((1, 1)))
    raises(InvalidDescriptorError, "buffer", bytes(4), F32, (1,), aux_buffers=[b"1"])
    raises(
        BufferError,
        r"buffer 0 \(data\) is 8 bytes, but this strided layout implies at least 16",
        bytes(8),
        F32,
        (2,),
        layout=StridedLayout((3,)),
    )
    raises(InvalidDescriptorError, "", bytes(16), F32, (2, 2), shard=Shard((2, 2), (1, 0)))
    raises(InvalidDescriptorError, "", bytes(16), F32, (2, 2), shard=Shard((4,), (0,)))
    raises(
        BufferError, "invalid buffer parameters", bytes(4), F32, (1,), Device("webgpu", 0, "peer")
    )
    raises(BufferError, "invalid buffer parameters", bytes(4), F32, (1,), Device("cuda", 0, 0xF1))
    with pytest.raises((BufferError, InvalidDescriptorError)):
        Tensor(bytes(8), F32, (2,), byte_offset=4)
    with pytest.raises((BufferError, InvalidDescriptorError)):
        Tensor(bytes(8), F32, (2,), layout=StridedLayout((-1,)))
    # A broadcast: many elements, few bytes.
    assert Tensor(bytes(4), F32, (1000,), layout=StridedLayout((0,))).size == 1000
    assert Tensor(bytes(400), F32, (2,)).nbytes == 400  # slack is legitimate


def test_private_devices_and_dtypes():
    device = Device(0xF3, 2, 0xF5)
    t = Tensor(bytes(4), F32, (1,), device)
    assert t.device is device and t.buffer_handles[0].device is device
    with pytest.raises(UnsupportedError):
        Tensor(bytes(4), hurray.Dtype.from_tag(0xF1), (1,))


# ---- members ----------------------------------------------------------------------------------------


def test_identity_hash_truth_and_what_a_tensor_is_not():
    t, u = hurray.zeros((2, 2)), hurray.zeros((2, 2))
    assert t == t and t != u
    with pytest.raises(TypeError, match="unhashable type: 'Tensor'"):
        hash(t)
    assert bool(t) and bool(hurray.zeros((0,)))
    for wrong in (lambda: len(t), lambda: iter(t), lambda: t < u, lambda: t + u, lambda: 1.0 in t):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match=r"np\.asarray\(t\)\[\.\.\.\]"):
        t[0]
    with pytest.raises(AttributeError, match=r"to_numpy\(\)"):
        t.numpy
    for absent in ("__array_namespace__", "T", "__hurray__", "transpose"):
        assert not hasattr(t, absent)


@pytest.mark.parametrize(
    "name", "nnz values indices col_indices row_ptr row_indices col_ptr".split()
)
def test_sparse_accessors_name_the_layout(name):
    t = hurray.zeros((2,))
    assert not hasattr(t, name)
    message = f"'Tensor' object has no attribute '{name}'; this is a row_major tensor"
    with pytest.raises(AttributeError, match=message):
        getattr(t, name)


def test_properties_are_read_only():
    t = hurray.zeros((2,))
    for name in "dtype device shape ndim size layout buffer_count nbytes buffer_handles descriptor readonly".split():
        with pytest.raises(AttributeError):
            setattr(t, name, None)
    with pytest.raises(AttributeError):
        t.something_else = 1


def test_layout_is_fresh_and_equal():
    t = Tensor(bytes(24), F32, (2, 3), layout=ColMajorLayout())
    assert t.layout is not t.layout and t.layout == t.layout == ColMajorLayout()


def test_methods_check_self():
    for method in (
        Tensor.to_numpy,
        Tensor.__array__,
        Tensor.to_cpu,
        Tensor.__repr__,
        Tensor.__dlpack__,
    ):
        with pytest.raises(TypeError):
            method(3)


@pytest.mark.filterwarnings("ignore")
def test_an_uninitialised_tensor_is_refused_everywhere():
    empty = Tensor.__new__(Tensor)
    for use in (
        lambda: empty.to_numpy(),
        lambda: empty.shape,
        lambda: repr(empty),
        lambda: hurray.asarray(empty),
    ):
        with pytest.raises((TypeError, hurray.UnsupportedError, ImportError)):
            use()
    with pytest.raises(builtins.BufferError):
        memoryview(empty)


def test_buffer():
    t = Tensor(bytes(range(12)), F32, (3,), Device("cpu", 0, "host_pinned"))
    b = t.buffer(0)
    assert (b.dtype, b.shape, b.layout) == (hurray.uint8, (12,), hurray.RowMajorLayout())
    assert bytes(memoryview(b)) == bytes(range(12)) and b.device is t.device
    for wrong in (-1, 1, 2**80):
        with pytest.raises(IndexError):
            t.buffer(wrong)
    with pytest.raises(TypeError):
        t.buffer("0")
    assert hurray.zeros((0,)).buffer(0).buffer_handles[0].alignment == 1


def test_declared_device_is_not_where_the_memory_is():
    """D19: every way refuses, names both, and says what to do; to_cpu() is the same memory."""
    gpu = Device("cuda", 3)
    t = Tensor(bytes(range(16)), hurray.uint8, (16,), gpu)
    for use, classes in (
        (lambda: t.__array__(), (UnsupportedError,)),
        (lambda: t.to_numpy(), (UnsupportedError,)),
        (lambda: t.__array_interface__, (UnsupportedError, AttributeError)),
        (lambda: t.__dlpack__(), (UnsupportedError, builtins.BufferError)),
        (lambda: memoryview(t), (UnsupportedError, builtins.BufferError)),
        (lambda: memoryview(t.buffer(0)), (UnsupportedError, builtins.BufferError)),
    ):
        with pytest.raises(UnsupportedError) as info:
            use()
        for cls in classes:
            assert isinstance(info.value, cls)
        assert not isinstance(info.value, BufferError)
        assert (
            "cuda" in str(info.value) and "cpu" in str(info.value) and "to_cpu()" in str(info.value)
        )
    assert not hasattr(t, "__array_interface__")
    assert t.__dlpack_device__() == (2, 3)
    assert t.buffer(0).device is gpu and t.buffer_handles[0].device is gpu
    c = t.to_cpu()
    assert c.device is hurray.device.cpu and bytes(memoryview(c)) == bytes(range(16))
    memoryview(c)[0] = 77
    assert bytes(memoryview(t.to_cpu()))[0] == 77
    assert c.to_cpu() is c
    pinned = Tensor(bytes(4), F32, (1,), Device("cpu", 0, "host_pinned"))
    assert pinned.to_cpu() is pinned
    assert "device=hurray.Device(kind='cuda', device_id=3, memory_class='standard')" in repr(t)


# ---- printing ---------------------------------------------------------------------------------------


def test_printing_without_numpy():
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "import hurray\n"
        "t = hurray.zeros((2, 3), dtype=hurray.float32)\n"
        "print(repr(t)); print(t)\n"
        "try: t.to_numpy()\n"
        "except ImportError as e: print(e)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=processes.HERE,
    )
    form = (
        "hurray.Tensor(shape=(2, 3), dtype=float32, "
        "device=hurray.Device(kind='cpu', device_id=0, memory_class='standard'))"
    )
    assert run.stdout.splitlines() == [
        form,
        form,
        "numpy is not installed; install it with: pip install numpy",
    ]


def test_printing_values():
    np = pytest.importorskip("numpy")
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    for t in (hurray.from_numpy(values), hurray.from_numpy(np.asfortranarray(values))):
        assert repr(t) == f"hurray.Tensor({np.array2string(values)}, dtype=float32)"
        assert str(t) == np.array2string(values)
    flipped = np.arange(8, dtype=np.int64)[::-1]
    assert str(hurray.asarray(flipped)) == np.array2string(flipped)
    scalar = hurray.full((), 2.5)
    assert repr(scalar) == "hurray.Tensor(2.5, dtype=float64)"
    assert repr(hurray.full((2,), 1j)) == "hurray.Tensor([0.+1.j 0.+1.j], dtype=complex128)"
    with np.printoptions(threshold=5, edgeitems=1):
        assert "..." in repr(hurray.zeros((100,)))


def test_printing_bool_in_logical_order():
    np = pytest.importorskip("numpy")
    values = np.arange(35).reshape(5, 7) % 3 == 0
    for source in (values, values.T, np.asfortranarray(values)):
        assert str(hurray.from_numpy(source)) == np.array2string(source)
    large = np.arange(300 * 1000).reshape(300, 1000) % 7 == 0
    for source in (large, large.T, large[:2], large[:, :1]):
        assert str(hurray.from_numpy(source)) == np.array2string(source)


def test_printing_what_has_no_values():
    form = "hurray.Tensor(shape=(None, 512), dtype=float32, device=hurray.Device(kind='cpu', device_id=0, memory_class='standard'))"
    t = Tensor(b"", F32, (None, 512))
    assert repr(t) == str(t) == form
    assert repr(Tensor(b"1", hurray.dtype.int4, (2,))).startswith(
        "hurray.Tensor(shape=(2,), dtype=int4, device="
    )
    assert repr(hurray.zeros((2,), device=hurray.device.rocm)).startswith(
        "hurray.Tensor(shape=(2,), dtype=float64, device="
    )
