"""The constructor of Tensor and its members."""

import array
import builtins
import collections.abc
import math
import operator
import struct

import pytest

import hurray
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
    raises(TypeError, "ExtensionType", bytes(4), F32, (1,), extension_type=24)
    for scheme in (1, "nf4", object(), hurray.Statistics(), F32):
        raises(
            InvalidDescriptorError,
            "expected a quantization descriptor",
            bytes(4),
            F32,
            (1,),
            quantization=scheme,
        )
    for forbidden in ("alignment", "sync_mode", "buffer_handles"):
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
    private = hurray.Dtype.from_tag(0xF1)
    with pytest.raises(InvalidDescriptorError, match="must describe itself"):
        Tensor(bytes(4), private, (1,))
    t = Tensor(bytes(6), private, (2,), extension_type=hurray.ExtensionType(24, is_signed=True))
    assert t.dtype is private and t.extension_type == hurray.ExtensionType(24, is_signed=True)
    assert t.shape == (2,) and t.nbytes == 6


def test_objects_whose_constructor_never_ran():
    device, dtype = Device.__new__(Device), hurray.Dtype.__new__(hurray.Dtype)
    array = hurray.zeros((1,))
    for call in (
        lambda: Tensor(bytes(4), F32, (1,), device),
        lambda: Tensor(bytes(4), dtype, (1,)),
        lambda: hurray.from_dlpack(array, device=device),
        lambda: hurray.asarray([1], device=device),
        lambda: hurray.asarray([1], dtype=dtype),
        lambda: hurray.Composite("group", shape=(), dtype=dtype, members=[array]),
    ):
        with pytest.raises(TypeError, match="must be a hurray.D(evice|type)"):
            call()
    for call in (lambda: hurray.zeros((1,), device=device), lambda: hurray.zeros((1,), dtype=dtype)):
        with pytest.raises(InvalidDescriptorError, match="must be a hurray.D(evice|type)"):
            call()


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
    for wrong, advice in (
        (lambda: t[0], r"np\.asarray\(t\)\[\.\.\.\]"),
        (lambda: t[...], r"np\.asarray\(t\)"),
        (lambda: len(t), r"t\.size"),
        (lambda: iter(t), r"np\.asarray\(t\)"),
        (lambda: [*t], r"np\.asarray\(t\)"),
        (lambda: t < u, r"np\.asarray\(t\)"),
        (lambda: t >= 3, r"np\.asarray\(t\)"),
        (lambda: sorted([t, u]), r"np\.asarray\(t\)"),
    ):
        with pytest.raises(TypeError, match=advice):
            wrong()
    with pytest.raises(AttributeError, match=r"to_numpy\(\)"):
        t.numpy
    with pytest.raises(TypeError):
        t[0] = 1
    with pytest.raises(TypeError):
        del t[0]
    for absent in "__array_namespace__ numpy __len__ __iter__ __getitem__ __contains__ __add__ __bool__".split():
        assert not hasattr(t, absent)
    for protocol in ("Sized", "Iterable", "Container", "Hashable", "Sequence", "Mapping"):
        assert not isinstance(t, getattr(collections.abc, protocol))
    for name in ("\udc80", "é", "x" * 1000, ""):
        assert not hasattr(t, name)
    for wrong in (3, b"shape", None):
        with pytest.raises(TypeError):
            Tensor.__getattr__(t, wrong)


def test_properties_are_read_only():
    t = hurray.zeros((2,))
    members = (
        "dtype device shape ndim size layout buffer_count nbytes buffer_handles descriptor readonly quantization "
        "statistics shard extension_type nnz values indices col_indices row_ptr row_indices col_ptr T "
        "__array_interface__"
    )
    for name in members.split():
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


# ---- the nine checks --------------------------------------------------------------------------------

PRIVATE = hurray.Dtype.from_tag(0xF2)


def u64(*numbers):
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def csr(values=bytes(4), **keywords):
    """2 x 3, one stored element."""
    return Tensor(
        values,
        keywords.pop("dtype", F32),
        (2, 3),
        layout=hurray.CsrLayout(1),
        aux_buffers=[u64(2), u64(0, 0, 1), *keywords.pop("more", [])],
        **keywords,
    )


def test_1_a_composite_layout():
    for shape, buffer in (((2,), bytes(8)), ((2,), b""), ((), bytes(4))):
        raises(
            UnsupportedError,
            r"owns no buffers.*hurray\.Composite",
            buffer,
            F32,
            shape,
            layout=hurray.CompositeLayout("group", 0),
        )


def test_2_a_private_type_describes_itself_and_nothing_else_does():
    message = r"must describe itself; pass extension_type=hurray\.ExtensionType\(…\)"
    raises(InvalidDescriptorError, message, bytes(1), PRIVATE, (9,))
    raises(
        InvalidDescriptorError,
        "is not a private extension type",
        bytes(1),
        F32,
        (9,),
        extension_type=hurray.ExtensionType(16),
    )


def test_3_a_dense_buffer_holds_its_elements():
    raises(
        BufferError,
        "buffer too small: need at least 24 bytes for 6 elements of float32, got 8",
        bytes(8),
        F32,
        (2, 3),
    )
    kind = hurray.ExtensionType(24)
    raises(
        BufferError,
        "buffer too small: need at least 6 bytes for 2 elements of extension, got 4",
        bytes(4),
        PRIVATE,
        (2,),
        extension_type=kind,
    )
    assert Tensor(bytes(6), PRIVATE, (2,), extension_type=kind).nbytes == 6
    nibbles = hurray.ExtensionType(4)
    assert Tensor(bytes(4), PRIVATE, (7,), extension_type=nibbles).nbytes == 4
    raises(BufferError, "need at least 4 bytes", bytes(3), PRIVATE, (7,), extension_type=nibbles)
    # Before the layout is looked at, but for strides that share places.
    raises(
        BufferError,
        "buffer too small",
        bytes(8),
        F32,
        (2, 3),
        layout=hurray.MortonLayout((1,)),
    )
    raises(
        BufferError, "buffer too small", bytes(8), F32, (2, 3), layout=StridedLayout((3, 1))
    )
    assert Tensor(bytes(12), F32, (1000, 3), layout=StridedLayout((0, 1))).nbytes == 12
    raises(
        BufferError,
        r"buffer 0 \(data\) is 8 bytes, but this strided layout implies at least 12",
        bytes(8),
        F32,
        (1000, 3),
        layout=StridedLayout((0, 1)),
    )
    assert Tensor(b"", F32, (None, 3)).size is None
    for dtype, count, need in (
        (hurray.dtype.float6_e2m3, 5, 6),
        (hurray.dtype.int2, 5, 2),
        (hurray.bool, 17, 3),
        (hurray.dtype.float128, 2, 32),
    ):
        assert Tensor(bytes(need), dtype, (count,)).nbytes == need
        raises(
            BufferError,
            f"need at least {need} bytes for {count} elements of {dtype}",
            bytes(need - 1),
            dtype,
            (count,),
        )


@pytest.mark.parametrize(
    "layout, shape, name",
    [
        (hurray.CsrLayout(0), (2,), "csr"),
        (hurray.CscLayout(0), (2, 3, 4), "csc"),
        (hurray.CsfLayout(0, (0, 1)), (2, 3), "csf"),
        (hurray.CsfLayout(0, (0, 1, 1)), (2, 3, 4), "csf"),
        (hurray.StridedLayout((1,)), (2, 3), "strided"),
        (hurray.TiledLayout((2,)), (2, 3), "tiled"),
        (hurray.MortonLayout((1, 1)), (2, 3), "morton"),
        (hurray.HilbertLayout(1, 2), (2, 3), "hilbert"),
        (hurray.BlockPagedLayout(4, 2, 0, 1), (2, 3), "block_paged"),
        (hurray.BlockPagedLayout(4, 2, 1, 1), (2, 3, 4), "block_paged"),
        (hurray.ColMajorLayout(), (), "col_major"),
        (hurray.CooLayout(7), (2, 3), "coo"),
    ],
)
def test_4_the_layout_fits_the_shape(layout, shape, name):
    with pytest.raises(InvalidDescriptorError) as tier:
        layout.validate_against_shape(shape)
    # Before the count tier: one buffer is supplied where some of these need three.
    error = raises(InvalidDescriptorError, name, bytes(4096), F32, shape, layout=layout)
    assert str(error) == str(tier.value)


@pytest.mark.parametrize(
    "layout, shape, count, name",
    [
        (hurray.CooLayout(1), (2, 3), 2, "coo"),
        (hurray.CsrLayout(1), (2, 3), 3, "csr"),
        (hurray.CscLayout(1), (2, 3), 3, "csc"),
        (hurray.CsfLayout(1, (0, 1, 2)), (2, 3, 4), 7, "csf"),
        (hurray.BlockPagedLayout(4, 2, 0, 1), (2, 3, 4), 3, "block_paged"),
    ],
)
def test_5_enough_buffers(layout, shape, count, name):
    for supplied in range(1, count):
        # Before the size tier: every buffer is empty.
        raises(
            InvalidDescriptorError,
            rf"a {name} layout needs {count} buffer\(s\), but {supplied} were supplied; "
            r"pass the rest via aux_buffers=\[\.\.\.\]",
            b"",
            F32,
            shape,
            layout=layout,
            aux_buffers=[b""] * (supplied - 1),
        )


@pytest.mark.parametrize(
    "layout, shape, sizes, roles",
    [
        (hurray.CooLayout(4), (3, 3), (16, 64), "values indices"),
        (hurray.CsrLayout(2), (2, 3), (8, 16, 24), "values col_indices row_ptr"),
        (hurray.CscLayout(2), (2, 3), (8, 16, 32), "values row_indices col_ptr"),
        (hurray.CsfLayout(2, (0, 1, 2)), (2, 3, 4), (8, 16, 0, 0, 0, 0, 16), "values pos crd pos crd pos crd"),
        (hurray.BlockPagedLayout(4, 2, 0, 3), (20, 3, 4), (4 * 4 * 2 * 12, 0, 16), "page_pool block_table seq_ptr"),
        (hurray.BlockPagedLayout(4, 2, 0, 3, block_table_index_type="uint64"), (20, 3, 4), (384, 0, 32), "page_pool block_table seq_ptr"),
        (hurray.TiledLayout((2, 2)), (3, 3), (64,), "data"),
        (hurray.MortonLayout((2, 2)), (3, 3), (64,), "data"),
        (hurray.StridedLayout((8, 1)), (3, 3), (76,), "data"),
    ],
)  # fmt: skip
def test_6_each_buffer_is_as_large_as_the_descriptor_implies(layout, shape, sizes, roles):
    def build(sizes):
        return Tensor(
            bytes(sizes[0]),
            F32,
            shape,
            layout=layout,
            aux_buffers=[bytes(size) for size in sizes[1:]],
        )

    t = build(sizes)
    assert t.layout == layout and t.buffer_count == len(sizes)
    assert tuple(handle.byte_size for handle in t.buffer_handles) == sizes
    assert build([size + 5 for size in sizes]).nbytes == sum(sizes) + 5 * len(sizes)  # slack
    for i, (size, role) in enumerate(zip(sizes, roles.split(), strict=True)):
        if size == 0:  # not derivable
            continue
        less = list(sizes)
        less[i] = size - 4
        with pytest.raises(BufferError) as info:
            build(less)
        assert (
            f"buffer {i} ({role}) is {size - 4} bytes, but this {layout.name} layout implies at least {size}"
            in str(info.value)
        )


def test_6_an_nnz_that_the_values_contradict_is_neither_corrected_nor_believed():
    error = raises(
        BufferError,
        r"buffer 0 \(values\) is 8 bytes, but this coo layout implies at least 16",
        bytes(8),
        F32,
        (3, 3),
        layout=hurray.CooLayout(4),
        aux_buffers=[bytes(64)],
    )
    assert isinstance(error, ValueError) and not isinstance(error, builtins.BufferError)


PER_CHANNEL = hurray.PerChannelAffine


def test_7_quantization_buffers_exist_and_are_not_the_data():
    for scheme in (
        PER_CHANNEL.symmetric(0, 5),
        PER_CHANNEL.symmetric(0, 0),
        PER_CHANNEL.asymmetric(0, 1, 2),
        PER_CHANNEL.asymmetric(0, 1, 0),
        hurray.NF4(0, 8, 2),
        hurray.MXFP(0, 16, 0),
        hurray.PerBlockAffine.symmetric(0, 8, 9, F32),
    ):
        raises(
            InvalidDescriptorError,
            "invalid quantization",
            bytes(8),
            hurray.uint8,
            (8,),
            quantization=scheme,
            aux_buffers=[bytes(32)],
        )
    # Before what nothing names is counted.
    raises(
        InvalidDescriptorError,
        "invalid quantization",
        bytes(8),
        hurray.uint8,
        (8,),
        quantization=PER_CHANNEL.symmetric(0, 7),
        aux_buffers=[bytes(32), bytes(32)],
    )


def test_8_quantization_buffers_are_not_the_layouts_own():
    for index in (1, 2):
        with pytest.raises(
            InvalidDescriptorError,
            match=rf"quantization buffer index {index} is inside the csr layout's own buffers \(indices 0\.\.2\)",
        ):
            csr(
                bytes(1),
                dtype=hurray.int8,
                quantization=PER_CHANNEL.symmetric(0, index),
                more=[bytes(8)],
            )
    t = csr(bytes(1), dtype=hurray.int8, quantization=PER_CHANNEL.symmetric(0, 3), more=[bytes(8)])
    assert t.quantization == PER_CHANNEL.symmetric(0, 3) and t.buffer_count == 4
    raises(
        InvalidDescriptorError,
        r"quantization buffer index 2 is inside the csf layout's own buffers \(indices 0\.\.6\)",
        b"",
        hurray.int8,
        (2, 3, 4),
        layout=hurray.CsfLayout(0, (0, 1, 2)),
        aux_buffers=[bytes(16)] + [b""] * 6,
        quantization=PER_CHANNEL.symmetric(0, 2),
    )


def test_a_buffer_that_nothing_names():
    """Y8."""
    raises(InvalidDescriptorError, "buffer 1", bytes(4), F32, (1,), aux_buffers=[b""])
    raises(
        InvalidDescriptorError,
        "buffer 2",
        bytes(8),
        hurray.uint8,
        (8,),
        aux_buffers=[bytes(32), bytes(32)],
        quantization=PER_CHANNEL.symmetric(0, 1),
    )
    raises(
        InvalidDescriptorError,
        "buffer 1",
        bytes(8),
        hurray.uint8,
        (8,),
        aux_buffers=[bytes(32)],
        quantization=hurray.PerTensorAffine(0.5, 3),
    )
    with pytest.raises(InvalidDescriptorError, match="buffer 3"):
        csr(more=[b"left over"])
    one_for_both = PER_CHANNEL.asymmetric(0, 1, 1)
    t = Tensor(bytes(8), hurray.uint8, (8,), aux_buffers=[bytes(64)], quantization=one_for_both)
    assert t.quantization == one_for_both
    raises(InvalidDescriptorError, "255", bytes(4), F32, (1,), aux_buffers=[b""] * 255)


def test_9_shard_statistics_and_placement():
    fits = Tensor(bytes(16), F32, (2, 2), shard=Shard((4, 4), (2, 2)))
    assert fits.shard == Shard((4, 4), (2, 2))
    raises(InvalidDescriptorError, "shard", bytes(16), F32, (2, 2), shard=Shard((4, 4), (3, 0)))
    raises(InvalidDescriptorError, "", bytes(16), F32, (2, 2), shard=Shard((4,), (0,)))
    raises(InvalidDescriptorError, "dynamic", b"", F32, (None,), shard=Shard((4,), (0,)))
    for layout, shape, aux in (
        (hurray.CsfLayout(0, (0, 1, 2)), (2, 3, 4), [bytes(16)] + [b""] * 5),
        (hurray.BlockPagedLayout(4, 0, 0, 0), (0, 3, 4), [b"", bytes(4)]),
    ):
        raises(
            InvalidDescriptorError,
            "HAS_SHARD",
            b"",
            F32,
            shape,
            layout=layout,
            aux_buffers=aux,
            shard=Shard((9, 9, 9), (0, 0, 0)),
        )
    assert csr(statistics=Statistics(nnz=1)).statistics == Statistics(nnz=1)
    with pytest.raises(InvalidDescriptorError, match="nnz"):
        csr(statistics=Statistics(nnz=2))
    assert csr(shard=Shard((4, 3), (2, 0))).shard == Shard((4, 3), (2, 0))
    for device in (Device("webgpu", 0, "peer"), Device("cpu", 0, "peer"), Device("rocm", 0, 0xF2)):
        raises(BufferError, "invalid buffer parameters", bytes(4), F32, (1,), device)
        with pytest.raises(BufferError, match="invalid buffer parameters"):
            csr(device=device)


def test_contents_are_not_read():
    """Y6."""
    t = Tensor(
        bytes(8), F32, (2, 3), layout=hurray.CsrLayout(2), aux_buffers=[bytes(16), bytes(24)]
    )
    assert t.nnz == 2 and t.descriptor.encode()


UNFIT = {
    "storage type": lambda: Tensor(bytes(8), F32, (2,), quantization=hurray.PerTensorAffine(0.5, 0)),
    "block size": lambda: Tensor(
        bytes(8), hurray.uint8, (8,), aux_buffers=[bytes(4)], quantization=hurray.PerBlockAffine.symmetric(0, 32, 1, F32)
    ),
    "length of scales": lambda: Tensor(
        bytes(8), hurray.uint8, (8,), aux_buffers=[bytes(4)], quantization=PER_CHANNEL.symmetric(0, 1)
    ),
    "axis": lambda: Tensor(bytes(8), hurray.uint8, (8,), aux_buffers=[bytes(32)], quantization=PER_CHANNEL.symmetric(3, 1)),
    "zero point": lambda: Tensor(bytes(8), hurray.uint8, (8,), quantization=hurray.PerTensorAffine(0.5, -1)),
    "nf4 storage": lambda: Tensor(bytes(8), hurray.uint8, (8,), aux_buffers=[bytes(4)], quantization=hurray.NF4(0, 8, 1)),
    "mxfp multiple": lambda: Tensor(
        bytes(20), hurray.dtype.float8_e4m3, (20,), aux_buffers=[bytes(2)], quantization=hurray.MXFP(0, 16, 1)
    ),
    "dynamic axis": lambda: Tensor(
        bytes(8), hurray.uint8, (None,), aux_buffers=[bytes(4)], quantization=PER_CHANNEL.symmetric(0, 1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNFIT)
def test_a_scheme_that_does_not_fit_is_found_when_the_tensor_leaves(case, tmp_path):
    """Y7: built and looked at, but nothing of it is ever written."""
    t = UNFIT[case]()
    assert t.quantization is not None and t.descriptor.quantization == t.quantization
    assert t.buffer(0).nbytes == t.buffer_handles[0].byte_size
    assert "quantization" not in repr(t) and repr(t).startswith("hurray.Tensor(shape=")
    with pytest.raises(InvalidDescriptorError, match="cannot encode: "):
        t.descriptor.encode()
    with pytest.raises(InvalidDescriptorError):
        t.descriptor.encoded_len
    path = tmp_path / "t.hrry"
    hurray.save(path, {"old": hurray.zeros((2,))}, sync=False)
    before = path.read_bytes()
    with pytest.raises(InvalidDescriptorError):
        hurray.save(path, {"first": hurray.ones((3,)), "t": t}, sync=False)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["t.hrry"]
    writer = hurray.StreamWriter()
    writer.write(hurray.ones((3,)))
    written = writer.getvalue()
    with pytest.raises(InvalidDescriptorError):
        writer.write(t)
    assert writer.getvalue() == written
    writer.write(hurray.ones((3,)))
    assert len(list(hurray.StreamReader(writer.getvalue()))) == 2
    with pytest.raises(InvalidDescriptorError):
        hurray.save(tmp_path / "new.hrry", {"t": t}, sync=False)
    assert [p.name for p in tmp_path.iterdir()] == ["t.hrry"]


def test_private_and_unknown_layouts_take_any_number_of_buffers():
    for layout in (
        hurray.PrivateExtensionLayout(0xF0, 7, b"fields"),
        hurray.UnknownLayout(0x0C, b"raw"),
        hurray.UnknownLayout(0x90),
    ):
        for count in (0, 1, 4, 254):
            aux = [bytes([i]) * i for i in range(count)]
            t = Tensor(b"", F32, (2, 3), layout=layout, aux_buffers=aux)
            assert t.layout == layout and t.buffer_count == count + 1
            assert [h.byte_size for h in t.buffer_handles] == [0, *map(len, aux)]
            assert t.buffer(count).size == (len(aux[-1]) if aux else 0)
            assert t.nbytes == sum(map(len, aux)) and t.device is hurray.device.cpu
        with pytest.raises(BufferError, match="invalid buffer parameters"):
            Tensor(b"", F32, (2,), Device("cpu", 0, "peer"), layout=layout)
    private = Tensor(bytes(8), F32, (2,), layout=hurray.PrivateExtensionLayout(0xF0, 7, b"fields"))
    again = hurray.Descriptor.decode(private.descriptor.encode())
    assert again == private.descriptor
    unknown = Tensor(bytes(8), F32, (2,), layout=hurray.UnknownLayout(0x0C))
    with pytest.raises(InvalidDescriptorError, match="cannot encode"):
        unknown.descriptor.encode()  # where its buffer table stands, only its owner knows
    # A scheme cannot name the first buffer of either.
    raises(
        InvalidDescriptorError,
        "invalid quantization",
        bytes(8),
        hurray.uint8,
        (8,),
        layout=hurray.PrivateExtensionLayout(0xF0, 7),
        quantization=PER_CHANNEL.symmetric(0, 0),
    )


def test_byte_offset():
    """Y50."""
    t = Tensor(bytes(16), F32, (2,), byte_offset=8)
    assert t.descriptor.byte_offset == 8
    raises(
        BufferError,
        r"buffer 0 \(data\) is 16 bytes, but this row_major layout implies at least 20",
        bytes(16),
        F32,
        (2,),
        byte_offset=12,
    )
    with pytest.raises(InvalidDescriptorError, match="byte_offset"):
        csr(byte_offset=8)
    raises(TypeError, "byte_offset", bytes(16), F32, (2,), byte_offset=1.0)
    raises(OverflowError, "byte_offset", bytes(16), F32, (2,), byte_offset=-1)
    with pytest.raises(TypeError):
        Tensor(bytes(16), F32, (2,), None, 8)


# ---- round trip -------------------------------------------------------------------------------------

NIBBLES = hurray.ExtensionType(4)
LAYOUTS = {
    "row_major": lambda: Tensor(bytes(24), F32, (2, 3)),
    "col_major": lambda: Tensor(bytes(24), F32, (2, 3), layout=ColMajorLayout()),
    "strided": lambda: Tensor(bytes(80), F32, (3, 4), layout=StridedLayout((-4, 1)), byte_offset=32),
    "tiled": lambda: Tensor(bytes(64), F32, (3, 3), layout=hurray.TiledLayout((2, 2), inner_layout="col_major")),
    "morton": lambda: Tensor(bytes(64), F32, (3, 3), layout=hurray.MortonLayout((2, 2))),
    "hilbert": lambda: Tensor(bytes(64), F32, (4, 4), layout=hurray.HilbertLayout(2, 2)),
    "coo": lambda: Tensor(bytes(8), F32, (3, 3), layout=hurray.CooLayout(2, True), aux_buffers=[u64(0, 0, 1, 2)]),
    "csr": csr,
    "csc": lambda: Tensor(bytes(4), F32, (2, 3), layout=hurray.CscLayout(1), aux_buffers=[u64(1), u64(0, 0, 0, 1)]),
    "csf": lambda: Tensor(
        bytes(4), F32, (2, 3, 4), layout=hurray.CsfLayout(1, (2, 0, 1)), aux_buffers=[u64(0, 1), u64(0)] * 3
    ),
    "block_paged": lambda: Tensor(
        bytes(96), hurray.int8, (8, 3, 4), layout=hurray.BlockPagedLayout(4, 2, 0, 1), aux_buffers=[bytes(8), bytes(8)]
    ),
    "private": lambda: Tensor(bytes(7), F32, (2, 3), layout=hurray.PrivateExtensionLayout(0xFE, 2**64 - 1, b"x"), aux_buffers=[b"1"]),
    "unknown": lambda: Tensor(bytes(7), F32, (2, 3), layout=hurray.UnknownLayout(0x7F, b"x"), aux_buffers=[b"1"]),
    "dynamic": lambda: Tensor(b"abc", F32, (None, 3)),
    "scalar": lambda: Tensor(bytes(8), hurray.float64, ()),
    "private type": lambda: Tensor(bytes(4), PRIVATE, (7,), extension_type=NIBBLES),
    "per tensor": lambda: Tensor(bytes(8), hurray.uint8, (8,), quantization=hurray.PerTensorAffine(0.02, 3)),
    "per channel": lambda: Tensor(
        bytes(8), hurray.int8, (2, 4), aux_buffers=[bytes(8), bytes(8)], quantization=PER_CHANNEL.asymmetric(0, 1, 2)
    ),
    "per block": lambda: Tensor(
        bytes(16), hurray.dtype.int4, (32,), aux_buffers=[bytes(4)],
        quantization=hurray.PerBlockAffine.symmetric(0, 16, 1, hurray.bfloat16),
    ),
    "nf4": lambda: Tensor(bytes(8), hurray.dtype.uint4, (16,), aux_buffers=[bytes(8)], quantization=hurray.NF4(0, 8, 1)),
    "mxfp": lambda: Tensor(
        bytes(16), hurray.dtype.float4_e2m1, (32,), aux_buffers=[bytes(2)], quantization=hurray.MXFP(0, 16, 1)
    ),
    "everything": lambda: csr(
        bytes(1), dtype=hurray.int8, quantization=PER_CHANNEL.symmetric(0, 3), more=[bytes(8)],
        statistics=Statistics(nnz=1, has_nan=False, has_inf=False), shard=Shard((4, 3), (2, 0)), device=Device("cuda", 0, "unified"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LAYOUTS)
def test_rebuilding_from_its_own_parts_gives_an_equal_descriptor_for_every_layout(case):
    t = LAYOUTS[case]()
    host = t.to_cpu()
    buffers = [bytes(memoryview(host.buffer(i))) for i in range(t.buffer_count)]
    again = Tensor(
        buffers[0],
        t.dtype,
        t.shape,
        t.device,
        aux_buffers=buffers[1:],
        layout=t.layout,
        quantization=t.quantization,
        statistics=t.statistics,
        shard=t.shard,
        extension_type=t.extension_type,
        byte_offset=t.descriptor.byte_offset,
    )
    assert again.descriptor == t.descriptor
    assert again.descriptor.differences(t.descriptor, ignore=()) == ()
    assert again.layout is not t.layout and again.layout == t.layout
    for i in range(t.buffer_count):
        assert again.buffer_handles[i] == t.buffer_handles[i]
        assert again.buffer_handles[i].device is again.device
        assert again.buffer_handles[i].alignment == (64 if buffers[i] else 1)
        b = t.buffer(i)
        assert (b.dtype, b.shape, b.layout) == (
            hurray.uint8,
            (len(buffers[i]),),
            hurray.RowMajorLayout(),
        )
        assert b.device is t.device and b.quantization is None
    assert t.nbytes == sum(map(len, buffers))
    for wrong in (-1, t.buffer_count):
        with pytest.raises(IndexError):
            t.buffer(wrong)


@pytest.mark.parametrize("case", [case for case in LAYOUTS if case != "unknown"])
def test_every_layout_travels(case, tmp_path):
    t = LAYOUTS[case]()
    decoded = hurray.Descriptor.decode(t.descriptor.encode())
    assert decoded.differences(t.descriptor) == ()
    hurray.save(tmp_path / "t.hrry", {"t": t}, sync=False)
    writer = hurray.StreamWriter()
    writer.write(t)
    for back in (hurray.load(tmp_path / "t.hrry")["t"], *hurray.StreamReader(writer.getvalue())):
        assert back.descriptor.differences(t.descriptor) == ()
        assert back.dtype is t.dtype and back.shape == t.shape and back.layout == t.layout
        for i in range(t.buffer_count):
            one, other = back.to_cpu().buffer(i), t.to_cpu().buffer(i)
            assert bytes(memoryview(one)) == bytes(memoryview(other))


def test_members_of_another_kind_of_object():
    """What `__new__` alone has made is no value."""
    for cls, name in (
        (hurray.RowMajorLayout, "layout"),
        (Statistics, "statistics"),
        (Shard, "shard"),
        (hurray.ExtensionType, "extension_type"),
    ):
        raises(TypeError, name, bytes(4), F32, (1,), **{name: cls.__new__(cls)})
    raises(TypeError, "device", bytes(4), F32, (1,), Device.__new__(Device))
    raises(
        InvalidDescriptorError,
        "quantization",
        bytes(4),
        F32,
        (1,),
        quantization=hurray.NF4.__new__(hurray.NF4),
    )


# ---- transpose --------------------------------------------------------------------------------------


def test_transpose():
    t = Tensor(struct.pack("<6f", *range(6)), F32, (2, 3), Device("cpu", 0, "unified"))
    turned = t.transpose()
    assert (turned.shape, turned.layout, turned.dtype) == ((3, 2), ColMajorLayout(), F32)
    assert turned.device is t.device and turned.transpose().layout == hurray.RowMajorLayout()
    memoryview(t.buffer(0))[0:4] = struct.pack("<f", 9)
    assert memoryview(turned)[0, 0] == 9 and memoryview(turned)[2, 1] == 5
    strided = Tensor(bytes(80), F32, (3, 4), layout=StridedLayout((-4, 1)), byte_offset=32)
    assert strided.transpose().layout == StridedLayout((1, -4))
    assert strided.transpose().descriptor.byte_offset == 32
    matrix = csr(shard=Shard((8, 9), (6, 1)), statistics=Statistics(nnz=1, nm_n=1, nm_m=2))
    turned = matrix.transpose()
    assert turned.layout == hurray.CscLayout(1) and turned.shape == (3, 2)
    assert turned.shard == Shard((9, 8), (1, 6))
    assert turned.statistics == Statistics(nnz=1)  # a pattern along rows is none along columns
    assert bytes(memoryview(turned.col_ptr)) == bytes(memoryview(matrix.row_ptr))
    assert turned.transpose().layout == matrix.layout
    assert turned.descriptor.encode()


def test_transpose_of_quantized_tensors():
    per_tensor = Tensor(bytes(6), hurray.int8, (2, 3), quantization=hurray.PerTensorAffine(0.5, 0))
    assert per_tensor.transpose().quantization == hurray.PerTensorAffine(0.5, 0)
    per_channel = LAYOUTS["per channel"]().transpose()
    assert per_channel.quantization == PER_CHANNEL.asymmetric(1, 1, 2)
    assert per_channel.shape == (4, 2) and per_channel.descriptor.encode()
    scales = [bytes(16)]
    for dtype, size, scheme, name in (
        (hurray.int8, 32, hurray.PerBlockAffine.symmetric(1, 8, 1, F32), "per_block_affine"),
        (hurray.dtype.uint4, 16, hurray.NF4(1, 8, 1), "nf4"),
    ):
        t = Tensor(bytes(size), dtype, (2, 16), aux_buffers=scales, quantization=scheme)
        with pytest.raises(UnsupportedError, match=name):
            t.transpose()
    t = Tensor(
        bytes(32), hurray.int8, (2, 16), aux_buffers=[bytes(2)], quantization=hurray.MXFP(1, 16, 1)
    )
    with pytest.raises(UnsupportedError, match="mxfp"):
        t.transpose()
    mismatched = Tensor(
        bytes(6), hurray.int8, (2, 3), aux_buffers=[b""], quantization=PER_CHANNEL.symmetric(7, 1)
    )
    with pytest.raises(InvalidDescriptorError):
        mismatched.transpose()


@pytest.mark.parametrize("case", ["scalar", "per tensor", "csf", "block_paged", "private type"])
def test_transpose_is_for_matrices(case):
    with pytest.raises(ValueError, match="transpose"):
        LAYOUTS[case]().transpose()


@pytest.mark.parametrize("case", ["coo", "tiled", "morton", "hilbert", "private", "unknown"])
def test_transpose_names_the_layout_that_has_none(case):
    t = LAYOUTS[case]()
    with pytest.raises(UnsupportedError, match=t.layout.name):
        t.transpose()


def test_transpose_keeps_the_memory_and_its_flags():
    t = hurray.zeros((2, 3))
    u = t.transpose()
    del t
    assert memoryview(u)[2, 1] == 0.0 and not u.readonly
    assert hurray.zeros((0, 3)).transpose().shape == (3, 0)
    assert Tensor(b"", F32, (None, 3)).transpose().shape == (3, None)


def test_T():
    """Y48."""
    for t in (hurray.zeros((2, 3)), hurray.zeros((2,)), csr()):
        assert not hasattr(t, "T")
        with pytest.raises(UnsupportedError, match=r"transpose\(\)") as info:
            t.T
        assert isinstance(info.value, AttributeError)
        assert isinstance(info.value, NotImplementedError)


@pytest.mark.parametrize("data", [b"7", b"1.5", bytes(8)])
def test_bytes_are_never_read_as_the_text_of_a_number(data):
    t = Tensor(data, hurray.uint8, (len(data),))
    for convert in (int, float, complex, operator.index, round, math.floor, abs):
        with pytest.raises(TypeError):
            convert(t)
    for convert in (int, float):
        with pytest.raises(TypeError, match=r"np.asarray\(t\).item\(\)"):
            convert(t)
    assert not hasattr(t, "__int__") and not hasattr(t, "__float__")
