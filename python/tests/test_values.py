"""Dtype, Device, layouts, statistics, shards, descriptors: the immutable values."""

import itertools
import struct

import pytest

import hurray
from hurray import Descriptor, Device, Dtype, InvalidDescriptorError, Shard, Statistics
from hurray.dtype import complex128, float8_e8m0, float128, int4

ALL = [getattr(hurray.dtype, name) for name in hurray.dtype.__all__]


# ---- Dtype ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_dtype_is_one_object_however_it_is_asked_for(dtype):
    assert Dtype.from_name(dtype.name) is dtype
    assert Dtype.from_tag(dtype.tag) is dtype
    assert eval(repr(dtype)) is dtype
    assert str(dtype) == dtype.name
    assert dtype.tier == (1 if dtype.tag < 0x40 else 2)
    assert dtype.is_array_api == (dtype.tier == 1)
    assert dtype.is_sub_byte == (dtype.bit_width < 8)


def test_dtype_members():
    assert (hurray.float32.tag, hurray.float32.bit_width, hurray.float32.element_alignment) == (
        3,
        32,
        4,
    )
    assert (complex128.bit_width, complex128.element_alignment, complex128.is_float) == (
        128,
        8,
        True,
    )
    assert float128.element_alignment == 16
    assert (int4.element_alignment, int4.is_integer, int4.is_signed) == (1, True, True)
    assert not hurray.bool.is_integer and not hurray.bool.is_signed and not hurray.uint8.is_signed
    assert float8_e8m0.is_float and not float8_e8m0.is_signed
    assert repr(hurray.float32) == "hurray.float32" and repr(int4) == "hurray.dtype.int4"


def test_private_dtypes():
    for tag in range(0xF0, 0xFF):
        dtype = Dtype.from_tag(tag)
        assert dtype is Dtype.from_tag(tag)
        assert (dtype.name, dtype.bit_width, dtype.element_alignment, dtype.tag) == (
            "extension",
            0,
            1,
            tag,
        )
        assert not (dtype.is_float or dtype.is_integer or dtype.is_signed or dtype.is_sub_byte)
        assert eval(repr(dtype)) is dtype
    with pytest.raises(InvalidDescriptorError):
        hurray.buffer_size_bytes(Dtype.from_tag(0xF0), 3)


@pytest.mark.parametrize("tag", [0x00, 0x05, 0x3F, 0x47, 0x80, 0xEF, 0xFF])
def test_tags_that_no_type_has(tag):
    with pytest.raises(InvalidDescriptorError):
        Dtype.from_tag(tag)


def test_dtype_equality_hash_order():
    assert len({*ALL, *ALL}) == 26
    assert hurray.float32 != hurray.float64 and hurray.float32 != "float32" and hurray.float32 != 3
    for compare in ("__lt__", "__le__", "__gt__", "__ge__"):
        with pytest.raises(NotImplementedError):
            getattr(hurray.float32, compare)(hurray.float64)
    with pytest.raises(InvalidDescriptorError, match="float32"):
        Dtype.from_name("float33")
    with pytest.raises(TypeError):
        Dtype()
    with pytest.raises(AttributeError):
        hurray.float32.name = "x"


@pytest.mark.parametrize(
    "name, count, size",
    [("int4", 7, 4), ("bool", 9, 2), ("float6_e2m3", 100, 75), ("float6_e2m3", 1, 3), ("uint2", 9, 3),
     ("complex128", 3, 48), ("float32", 0, 0)],
)  # fmt: skip
def test_buffer_size_bytes(name, count, size):
    assert hurray.buffer_size_bytes(Dtype.from_name(name), count) == size


def test_buffer_size_bytes_limits():
    with pytest.raises(OverflowError):
        hurray.buffer_size_bytes(hurray.float32, -1)
    with pytest.raises(OverflowError):
        hurray.buffer_size_bytes(hurray.float64, 2**62)
    with pytest.raises(TypeError):
        hurray.buffer_size_bytes("float32", 1)


# ---- Device -----------------------------------------------------------------------------------------

KINDS = "cpu cuda rocm metal vulkan webgpu hexagon level_zero opencl".split()
CLASSES = "standard host_pinned unified peer".split()


def test_devices_by_name_and_by_byte():
    for byte, kind in enumerate(KINDS):
        constant = getattr(hurray.device, kind)
        assert Device(kind) == Device(byte) == constant
        assert (constant.kind, constant.tag, constant.device_id, constant.memory_class) == (
            kind,
            byte,
            0,
            "standard",
        )
        assert not constant.is_private
        assert eval(repr(constant)) == constant
    for byte, memory_class in enumerate(CLASSES):
        device = Device("cuda", 1, memory_class)
        assert device == Device(1, 1, byte) and device.memory_class_tag == byte
        assert (
            repr(device)
            == f"hurray.Device(kind='cuda', device_id=1, memory_class='{memory_class}')"
        )


def test_private_devices_keep_their_bytes():
    device = Device(0xF2, 3, 0xF1)
    assert (device.kind, device.tag, device.is_private) == ("private", 0xF2, True)
    assert (device.memory_class, device.memory_class_tag) == ("private", 0xF1)
    assert "kind='private' (0xF2)" in repr(device) and "memory_class='private' (0xF1)" in repr(
        device
    )
    assert device == Device(0xF2, 3, 0xF1) != Device(0xF3, 3, 0xF1)
    assert Device("cuda", 0, 0xF1).memory_class_tag == 0xF1  # the pair is judged later


@pytest.mark.parametrize(
    "arguments",
    [("gpu",), ("private",), (9,), (0xEF,), (0xFF,), (256,), (-1,), (2**80,), (True,), (1.0,), (None,),
     ("cpu", -1), ("cpu", 0, "big"), ("cpu", 0, 4), ("cpu", 0, 0xFF), ("cpu", 0, True), ("cpu", 0, "private")],
)  # fmt: skip
def test_what_no_device_is(arguments):
    with pytest.raises(InvalidDescriptorError):
        Device(*arguments)


def test_device_messages_and_types():
    with pytest.raises(InvalidDescriptorError, match="wire byte"):
        Device("gpu")
    with pytest.raises(OverflowError):
        Device("cpu", 2**40)
    with pytest.raises(TypeError):
        Device("cpu", "0")
    devices = {Device(k, i, c) for k, i, c in itertools.product(KINDS, (0, 1), CLASSES)}
    assert len(devices) == len(KINDS) * 2 * len(CLASSES)
    assert Device("cpu") != "cpu"
    with pytest.raises(AttributeError):
        hurray.device.cpu.kind = "cuda"


# ---- layouts ----------------------------------------------------------------------------------------


def test_layouts():
    row, col = hurray.RowMajorLayout(), hurray.ColMajorLayout()
    strided = hurray.StridedLayout([4, -1, 0])
    assert [layout.name for layout in (row, col, strided)] == ["row_major", "col_major", "strided"]
    assert [layout.tag for layout in (row, col, strided)] == [1, 2, 3]
    assert strided.strides == (4, -1, 0)
    assert repr(strided) == "StridedLayout(strides=(4, -1, 0))" and repr(row) == "RowMajorLayout()"
    for layout in (row, col, strided, hurray.StridedLayout(()), hurray.StridedLayout([3])):
        assert isinstance(layout, hurray.Layout) and layout.is_dense and not layout.is_virtual
        assert layout.buffer_count == 1
        assert eval(repr(layout), vars(hurray)) == layout
        assert hash(eval(repr(layout), vars(hurray))) == hash(layout)
        assert layout != layout.name
    assert row != col and strided != hurray.StridedLayout([4, -1, 1])
    with pytest.raises(TypeError):
        hurray.Layout()
    with pytest.raises(TypeError):
        hurray.StridedLayout("12")
    with pytest.raises(OverflowError):
        hurray.StridedLayout([2**63])
    with pytest.raises(InvalidDescriptorError):
        hurray.StridedLayout([1] * 65)


def test_validate_against_shape():
    assert hurray.RowMajorLayout().validate_against_shape((2, None)) is None
    assert hurray.StridedLayout([1, 2]).validate_against_shape((None, 3)) is None
    with pytest.raises(InvalidDescriptorError, match="strided"):
        hurray.StridedLayout([1, 2]).validate_against_shape((3,))
    with pytest.raises(InvalidDescriptorError, match="col_major"):
        hurray.ColMajorLayout().validate_against_shape(())


def test_layout_tag_kind_is_a_partition():
    kinds = [hurray.layout_tag_kind(tag) for tag in range(256)]
    assert kinds[0] == kinds[255] == "invalid"
    assert set(kinds[0xF0:0xFF]) == {"private"}
    assert [tag for tag, kind in enumerate(kinds) if kind == "named"] == [*range(1, 12), 0x40]
    for tag in (-1, 256):
        with pytest.raises(OverflowError):
            hurray.layout_tag_kind(tag)
    with pytest.raises(TypeError):
        hurray.layout_tag_kind("csr")


# ---- Statistics, Shard ------------------------------------------------------------------------------


def test_statistics():
    full = Statistics(
        nnz=3, sparsity_ratio=0.5, value_min=float("-inf"), value_max=2.0, value_abs_max=float("nan"),
        value_mean=0.1, value_stddev=0.0, nm_n=2, nm_m=4, has_nan=False, has_inf=True,
    )  # fmt: skip
    assert full.computed_mask == 0b111111
    assert (full.nnz, full.nm_n, full.nm_m, full.has_nan, full.has_inf) == (3, 2, 4, False, True)
    assert full.has_nan is False and full.value_min == float("-inf")
    again = eval(repr(full), vars(hurray))
    assert again == full and "value_abs_max=float('nan')" in repr(full)
    assert repr(Statistics()) == "Statistics()" and Statistics().computed_mask == 0
    assert (
        repr(Statistics(nnz=1024, has_nan=False, has_inf=True))
        == "Statistics(nnz=1024, has_nan=False, has_inf=True)"
    )
    assert Statistics(nnz=1).value_min is None and Statistics(nnz=1) != Statistics(nnz=2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(full)
    with pytest.raises(AttributeError):
        full.nnz = 4


@pytest.mark.parametrize(
    "lonely",
    [
        "value_min",
        "value_max",
        "value_abs_max",
        "value_mean",
        "value_stddev",
        "nm_n",
        "nm_m",
        "has_nan",
        "has_inf",
    ],
)
def test_fields_that_share_a_bit(lonely):
    value = True if lonely.startswith("has") else 1
    with pytest.raises(InvalidDescriptorError, match="share one validity bit"):
        Statistics(**{lonely: value})


def test_statistics_types():
    for arguments, error in (
        ({"nnz": 1.5}, TypeError), ({"nnz": -1}, OverflowError), ({"other": 1}, TypeError),
        ({"has_nan": 1, "has_inf": 0}, TypeError), ({"sparsity_ratio": "x"}, TypeError), ({"nm_n": 256, "nm_m": 1}, OverflowError),
    ):  # fmt: skip
        with pytest.raises(error):
            Statistics(**arguments)


def test_shard():
    shard = Shard((1024, 512), [512, 0])
    assert (shard.parent_shape, shard.shard_offset) == ((1024, 512), (512, 0))
    assert repr(shard) == "Shard(parent_shape=[1024, 512], shard_offset=[512, 0])"
    assert eval(repr(shard), vars(hurray)) == shard and hash(shard) == hash(
        Shard([1024, 512], (512, 0))
    )
    assert shard != Shard((1024, 512), (0, 0))
    with pytest.raises(InvalidDescriptorError):
        Shard((1, 2), (0,))


# ---- Descriptor -------------------------------------------------------------------------------------


def test_descriptor_round_trip():
    t = hurray.Tensor(
        bytes(48), hurray.float32, (3, 4), statistics=Statistics(nnz=0), shard=Shard((6, 4), (3, 0))
    )
    d = t.descriptor
    data = d.encode()
    assert len(data) == d.encoded_len
    again = Descriptor.decode(data)
    assert again == d and again.encode() == data
    assert (again.dtype, again.shape, again.ndim, again.size) == (hurray.float32, (3, 4), 2, 12)
    assert (again.byte_offset, again.version, again.buffer_count) == (0, (1, 0), 1)
    assert again.layout == hurray.RowMajorLayout() and again.device is hurray.device.cpu
    assert again.buffer_handles[0].device is again.device
    assert again.statistics == Statistics(nnz=0) and again.shard == Shard((6, 4), (3, 0))
    assert (
        repr(again)
        == "hurray.Descriptor(dtype=float32, shape=(3, 4), layout='row_major', buffers=1)"
    )
    for kind in (bytearray, memoryview):
        assert Descriptor.decode(kind(data + b"more")) == d


def test_length_of_a_plain_descriptor():
    assert hurray.Tensor(bytes(48), hurray.float32, (3, 4)).descriptor.encoded_len == 61


def test_descriptor_refusals():
    with pytest.raises(TypeError):
        Descriptor()
    with pytest.raises(TypeError, match="unhashable"):
        hash(hurray.zeros((2,)).descriptor)
    with pytest.raises(TypeError):
        Descriptor.decode("text")
    with pytest.raises(InvalidDescriptorError, match="cannot decode: magic"):
        Descriptor.decode(b"nothing of the kind")
    data = hurray.zeros((2,)).descriptor.encode()
    for n in range(len(data)):
        with pytest.raises(InvalidDescriptorError, match="cannot decode"):
            Descriptor.decode(data[:n])


def csr_descriptor():
    """A 2x3 float32 CSR tensor with one stored element, by hand (02-layouts.md section 10)."""
    sizes = (4, 8, 24)  # values, col_indices, row_ptr
    body = struct.pack("<IBBI", 0, 3, 7, 2)  # flags, float32, csr, rank
    body += struct.pack("<QQQ", 2, 3, 0)  # shape, byte_offset
    body += struct.pack("<QQ", 1, 0)  # nnz, reserved
    body += struct.pack("<B", len(sizes))
    body += b"".join(struct.pack("<QI4x", size, 64) for size in sizes)
    return b"HRRY\1\0" + struct.pack("<I", 10 + len(body)) + body


def test_a_sparse_layout_of_a_descriptor():
    data = csr_descriptor()
    d = Descriptor.decode(data)
    assert d.layout == hurray.CsrLayout(1) and type(d.layout) is hurray.CsrLayout
    assert (d.layout.name, d.layout.tag, d.layout.buffer_count, d.layout.is_dense) == (
        "csr",
        7,
        3,
        False,
    )
    assert d.encode() == data and [h.byte_size for h in d.buffer_handles] == [4, 8, 24]
    assert d.layout == Descriptor.decode(data).layout and hash(d.layout) is not None
    d.layout.validate_against_shape((2, 3))
    with pytest.raises(InvalidDescriptorError, match="csr"):
        d.layout.validate_against_shape((2,))


def test_differences():
    a = hurray.empty((4,), dtype=hurray.float32).descriptor
    b = hurray.empty((4,), dtype=hurray.float32, alignment=4096).descriptor
    assert a != b and a.differences(b) == ()
    assert a.differences(b, ignore=()) == (("buffer_handles[0].alignment", 64, 4096),)
    c = hurray.empty((5,), dtype=hurray.int32).descriptor
    assert {field for field, _, _ in a.differences(c)} == {
        "dtype",
        "shape",
        "buffer_handles[0].byte_size",
    }
    assert a.differences(c, ignore=("dtype", "shape", "byte_size")) == ()
    with pytest.raises(ValueError):
        a.differences(c, ignore=("colour",))
    with pytest.raises(TypeError):
        a.differences("x")


def test_validate_colocation():
    cpu = hurray.zeros((2,)).buffer_handles
    gpu = hurray.zeros((2,), device=Device("cuda", 1)).buffer_handles
    gpu0 = hurray.zeros((2,), device=Device("cuda", 0)).buffer_handles
    assert hurray.validate_colocation([]) is None
    assert hurray.validate_colocation(cpu + cpu) is None
    for other in (gpu, gpu0):
        with pytest.raises(InvalidDescriptorError, match="handle 1"):
            hurray.validate_colocation(cpu + other)
    with pytest.raises(InvalidDescriptorError):
        hurray.validate_colocation(gpu + gpu0)
    with pytest.raises(TypeError):
        hurray.validate_colocation([1])
