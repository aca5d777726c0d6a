"""Statistics, Shard, ExtensionType, and the dtypes and devices they stand beside (reference, sections 3, 4, 10)."""

import itertools
import struct

import hurray
import numpy
import pytest
from hurray import Device, Dtype, ExtensionType, InvalidDescriptorError, Shard, Statistics

# ---- Statistics ------------------------------------------------------------------------------------------------

FIELDS = {
    "nnz": 0,
    "sparsity_ratio": 1,
    "value_min": 2,
    "value_max": 2,
    "value_abs_max": 2,
    "value_mean": 3,
    "value_stddev": 3,
    "nm_n": 4,
    "nm_m": 4,
    "has_nan": 5,
    "has_inf": 5,
}
GROUPS = [[name for name, bit in FIELDS.items() if bit == wanted] for wanted in range(6)]
CLAIMS = {
    "nnz": 1024,
    "sparsity_ratio": 0.5,
    "value_min": -2.0,
    "value_max": 4.0,
    "value_abs_max": 4.0,
    "value_mean": 0.25,
    "value_stddev": 1.5,
    "nm_n": 2,
    "nm_m": 4,
    "has_nan": False,
    "has_inf": True,
}


@pytest.mark.parametrize("bits", range(64))
def test_a_value_has_its_bit_and_a_bit_its_values(bits):
    claimed = {name: value for name, value in CLAIMS.items() if bits >> FIELDS[name] & 1}
    statistics = Statistics(**claimed)
    assert statistics.computed_mask == bits
    for name in FIELDS:
        found = getattr(statistics, name)
        assert found == claimed.get(name) and type(found) is type(claimed.get(name))
    assert statistics == Statistics(**claimed, **{name: None for name in FIELDS if name not in claimed})
    assert eval(repr(statistics), vars(hurray)) == statistics
    assert repr(statistics) == "Statistics(" + ", ".join(f"{k}={v!r}" for k, v in claimed.items()) + ")"


@pytest.mark.parametrize("group", [g for g in GROUPS if len(g) > 1])
def test_fields_that_share_a_bit_come_together(group):
    for count in range(1, len(group)):
        for some in itertools.combinations(group, count):
            with pytest.raises(InvalidDescriptorError, match="share one validity bit") as caught:
                Statistics(**{name: CLAIMS[name] for name in some})
            for name in set(group) - set(some):
                assert name in str(caught.value)


def test_statistics_print():
    assert repr(Statistics()) == "Statistics()" and Statistics().computed_mask == 0
    text = "Statistics(nnz=1024, has_nan=False, has_inf=True)"
    assert repr(Statistics(has_inf=True, has_nan=False, nnz=1024)) == text
    nan, inf = float("nan"), float("inf")
    odd = Statistics(value_min=nan, value_max=inf, value_abs_max=-inf)
    assert repr(odd) == "Statistics(value_min=float('nan'), value_max=float('inf'), value_abs_max=float('-inf'))"
    assert eval(repr(odd), vars(hurray)) == odd == Statistics(value_min=nan, value_max=inf, value_abs_max=-inf)


def test_statistics_take_numpy_numbers_and_keep_their_type():
    statistics = Statistics(
        nnz=numpy.uint64(2**64 - 1), sparsity_ratio=numpy.float32(0.5), nm_n=numpy.int8(255 - 254), nm_m=255,
        has_nan=numpy.bool_(True), has_inf=numpy.bool_(False), value_mean=1, value_stddev=numpy.float64(2),
    )
    assert (statistics.nnz, statistics.sparsity_ratio, statistics.nm_n, statistics.nm_m) == (2**64 - 1, 0.5, 1, 255)
    assert statistics.has_nan is True and statistics.has_inf is False
    assert type(statistics.value_mean) is float


def test_statistics_refuse():
    for arguments in (
        {"nnz": -1}, {"nnz": 2**64}, {"nm_n": 256, "nm_m": 1}, {"nm_n": 1, "nm_m": -1}, {"value_mean": 10**400, "value_stddev": 1},
    ):
        with pytest.raises(OverflowError):
            Statistics(**arguments)
    for arguments in (
        {"nnz": 1.0},
        {"nnz": "1"},
        {"sparsity_ratio": "0.5"},
        {"has_nan": 1, "has_inf": True},
        {"has_nan": True, "has_inf": "no"},
        {"nm_n": 1.5, "nm_m": 2},
        {"nn": 1},
        {"computed_mask": 1},
    ):
        with pytest.raises(TypeError):
            Statistics(**arguments)
    with pytest.raises(TypeError):
        Statistics(1)


def test_statistics_compare_by_what_they_claim():
    assert Statistics(nnz=1) == Statistics(nnz=1) != Statistics(nnz=2)
    assert Statistics() != Statistics(nnz=0)
    assert Statistics(sparsity_ratio=0.0) != Statistics(sparsity_ratio=-0.0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Statistics())
    with pytest.raises(AttributeError):
        Statistics(nnz=1).nnz = 2
    # What stands under a clear bit is kept in the bytes and means nothing.
    tensor = hurray.Tensor(bytes(4), hurray.float32, (1,), statistics=Statistics(nnz=0))
    raw = bytearray(tensor.descriptor.encode())
    raw[-72 + 16 : -72 + 24] = struct.pack("<d", 99.0)
    found = hurray.Descriptor.decode(raw)
    assert found.encode() == raw and found.statistics == Statistics(nnz=0)
    assert found.statistics.sparsity_ratio is None and found.statistics.computed_mask == 1
    assert found != tensor.descriptor and found.differences(tensor.descriptor) == ()


def test_permissive_statistics_drop_a_broken_group():
    tensor = hurray.Tensor(bytes(4), hurray.float32, (1,), statistics=Statistics(nnz=0, sparsity_ratio=1.0))
    raw = bytearray(tensor.descriptor.encode())
    raw[-72 + 16 : -72 + 24] = struct.pack("<d", 2.0)
    with pytest.raises(InvalidDescriptorError, match="cannot decode.*sparsity_ratio"):
        hurray.Descriptor.decode(raw)
    found = hurray.Descriptor.decode(raw, permissive=True)
    assert found.statistics == Statistics(nnz=0) and found.statistics.computed_mask == 1
    assert found.encode() == raw


# ---- Shard -----------------------------------------------------------------------------------------------------


def test_shards():
    shard = Shard((1024, 512), [512, 0])
    assert shard.parent_shape == (1024, 512) and shard.shard_offset == (512, 0)
    assert repr(shard) == "Shard(parent_shape=[1024, 512], shard_offset=[512, 0])"
    assert eval(repr(shard), vars(hurray)) == shard
    assert shard == Shard(parent_shape=numpy.array([1024, 512]), shard_offset=range(512, -1, -512))
    assert hash(shard) == hash(Shard([1024, 512], [512, 0]))
    assert len({shard, Shard((1024, 512), (0, 512)), Shard((512, 1024), (512, 0)), Shard((), ())}) == 4
    assert repr(Shard((), ())) == "Shard(parent_shape=[], shard_offset=[])"
    assert Shard((1,) * 64, (0,) * 64).parent_shape == (1,) * 64
    assert shard != ((1024, 512), (512, 0))
    with pytest.raises(AttributeError):
        shard.parent_shape = (1, 1)


def test_shards_refuse():
    with pytest.raises(InvalidDescriptorError, match="parent_shape has 2 entries and shard_offset has 1"):
        Shard((1, 2), (0,))
    with pytest.raises(InvalidDescriptorError, match="64"):
        Shard((1,) * 65, (0,) * 65)
    for size in (-1, 2**64 - 1, 2**64):
        with pytest.raises(OverflowError):
            Shard((size,), (0,))
        with pytest.raises(OverflowError):
            Shard((4,), (size,))
    for wrong in (None, 3, "12", (None,), (1.0,)):
        with pytest.raises(TypeError):
            Shard(wrong, (0,))


# ---- ExtensionType ---------------------------------------------------------------------------------------------

BFLOAT24 = {
    "bit_width": 24,
    "is_float": True,
    "sign_bits": 1,
    "exponent_bits": 8,
    "mantissa_bits": 15,
    "exponent_bias": 127,
    "has_nan": True,
    "has_inf": True,
}


def test_extension_types():
    integer = ExtensionType(24, is_signed=True)
    assert repr(integer) == "ExtensionType(bit_width=24, is_signed=True)"
    assert (integer.bit_width, integer.is_signed, integer.is_float, integer.has_nan) == (24, True, False, False)
    assert integer.sign_bits == integer.exponent_bits == integer.mantissa_bits == integer.exponent_bias == 0
    number = ExtensionType(**BFLOAT24)
    for name, value in BFLOAT24.items():
        found = getattr(number, name)
        assert found == value and type(found) is type(value)
    assert repr(number) == "ExtensionType(" + ", ".join(f"{k}={v!r}" for k, v in BFLOAT24.items()) + ")"
    assert repr(ExtensionType(bit_width=8)) == "ExtensionType(bit_width=8)"
    for made in (integer, number):
        assert eval(repr(made), vars(hurray)) == made and hash(eval(repr(made), vars(hurray))) == hash(made)
    assert len({integer, number, ExtensionType(24), ExtensionType(32, is_signed=True)}) == 4
    assert integer != 24
    with pytest.raises(AttributeError):
        integer.bit_width = 8
    # An unsigned float, the shape of float8_e8m0.
    assert ExtensionType(8, is_float=True, exponent_bits=8, exponent_bias=127, has_nan=True).sign_bits == 0
    # Storage may be padded: widths need not add up.
    assert ExtensionType(32, is_float=True, sign_bits=1, exponent_bits=255, mantissa_bits=255).mantissa_bits == 255


def test_extension_widths():
    for width, factor in ((1, 8), (2, 4), (4, 2), (8, 1), (16, 1), (24, 1), (72, 1), (2**32 - 8, 1)):
        assert ExtensionType(width).packing_factor == factor
    with pytest.raises(InvalidDescriptorError, match="bit_width.*greater than 0"):
        ExtensionType(0)
    for width in (3, 5, 6, 7):
        with pytest.raises(InvalidDescriptorError, match="1, 2 or 4"):
            ExtensionType(width)
    for width in (9, 12, 20, 2**32 - 1):
        with pytest.raises(InvalidDescriptorError, match="multiple of 8"):
            ExtensionType(width)


def test_extension_sizes():
    assert ExtensionType(24).buffer_size_bytes(10) == 30
    assert ExtensionType(4).buffer_size_bytes(7) == 4
    assert ExtensionType(2).buffer_size_bytes(9) == 3
    assert ExtensionType(1).buffer_size_bytes(element_count=9) == 2
    assert ExtensionType(4).buffer_size_bytes(0) == 0
    assert ExtensionType(8).buffer_size_bytes(2**64 - 1) == 2**64 - 1
    for count in (2**64, -1):
        with pytest.raises(OverflowError):
            ExtensionType(8).buffer_size_bytes(count)
    with pytest.raises(OverflowError):
        ExtensionType(16).buffer_size_bytes(2**64 - 1)
    with pytest.raises(TypeError):
        ExtensionType(8).buffer_size_bytes(1.5)


@pytest.mark.parametrize(
    "fields, fragment",
    [
        ({"is_float": True, "sign_bits": 2}, "sign_bits"),
        ({"is_float": True, "is_signed": True}, "is_signed"),
        ({"sign_bits": 1}, "sign_bits"),
        ({"exponent_bits": 1}, "exponent_bits"),
        ({"mantissa_bits": 1}, "mantissa_bits"),
        ({"exponent_bias": 1}, "exponent_bias"),
        ({"has_nan": True}, "has_nan"),
        ({"has_inf": True}, "has_inf"),
    ],
)
def test_extension_fields_that_contradict(fields, fragment):
    with pytest.raises(InvalidDescriptorError, match=fragment):
        ExtensionType(8, **fields)


def test_extension_types_refuse():
    for fields in ({"sign_bits": 256}, {"exponent_bits": -1}, {"mantissa_bits": 256}, {"exponent_bias": 2**32}):
        with pytest.raises(OverflowError):
            ExtensionType(8, is_float=True, **fields)
    for width in (-1, 2**32):
        with pytest.raises(OverflowError):
            ExtensionType(width)
    for fields in ({"packing_factor": 1}, {"is_float": 1}, {"has_nan": None}, {"sign_bits": "1"}, {"unknown": 1}):
        with pytest.raises(TypeError):
            ExtensionType(8, **fields)
    with pytest.raises(TypeError):
        ExtensionType(8, True)
    with pytest.raises(TypeError):
        ExtensionType()


# ---- Dtype -----------------------------------------------------------------------------------------------------

#: name, tag, bits, alignment, integer, float, signed
DTYPES = [
    ("float16", 0x01, 16, 2, False, True, True),
    ("bfloat16", 0x02, 16, 2, False, True, True),
    ("float32", 0x03, 32, 4, False, True, True),
    ("float64", 0x04, 64, 8, False, True, True),
    ("int8", 0x10, 8, 1, True, False, True),
    ("uint8", 0x11, 8, 1, True, False, False),
    ("int16", 0x12, 16, 2, True, False, True),
    ("uint16", 0x13, 16, 2, True, False, False),
    ("int32", 0x14, 32, 4, True, False, True),
    ("uint32", 0x15, 32, 4, True, False, False),
    ("int64", 0x16, 64, 8, True, False, True),
    ("uint64", 0x17, 64, 8, True, False, False),
    ("bool", 0x20, 1, 1, False, False, False),
    ("float8_e4m3", 0x40, 8, 1, False, True, True),
    ("float8_e5m2", 0x41, 8, 1, False, True, True),
    ("float8_e8m0", 0x42, 8, 1, False, True, False),
    ("float4_e2m1", 0x43, 4, 1, False, True, True),
    ("float6_e2m3", 0x44, 6, 1, False, True, True),
    ("float6_e3m2", 0x45, 6, 1, False, True, True),
    ("float128", 0x46, 128, 16, False, True, True),
    ("int4", 0x48, 4, 1, True, False, True),
    ("uint4", 0x49, 4, 1, True, False, False),
    ("int2", 0x4A, 2, 1, True, False, True),
    ("uint2", 0x4B, 2, 1, True, False, False),
    ("complex64", 0x50, 64, 4, False, True, True),
    ("complex128", 0x51, 128, 8, False, True, True),
]


@pytest.mark.parametrize("name, tag, bits, alignment, integer, floating, signed", DTYPES, ids=[d[0] for d in DTYPES])
def test_dtypes(name, tag, bits, alignment, integer, floating, signed):
    dtype = getattr(hurray.dtype, name)
    assert Dtype.from_name(name) is dtype and Dtype.from_tag(tag) is dtype
    assert (dtype.name, dtype.tag, dtype.bit_width, dtype.element_alignment) == (name, tag, bits, alignment)
    assert dtype.tier == (1 if tag < 0x40 else 2) and dtype.is_array_api is (tag < 0x40)
    assert (dtype.is_integer, dtype.is_float, dtype.is_signed) == (integer, floating, signed)
    assert dtype.is_sub_byte is (bits < 8)
    assert str(dtype) == name and repr(dtype) == ("hurray." if tag < 0x40 else "hurray.dtype.") + name
    assert eval(repr(dtype), {"hurray": hurray}) is dtype
    assert {dtype: 1}[Dtype.from_tag(tag)] == 1
    assert dtype != name and dtype != tag and dtype != hurray.device.cpu


def test_dtypes_have_no_order_and_no_constructor():
    for compare in (lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b):
        with pytest.raises(NotImplementedError):
            compare(hurray.float32, hurray.float64)
    for arguments in ((), ("float32",), (3,)):
        with pytest.raises(TypeError):
            Dtype(*arguments)
    with pytest.raises(AttributeError):
        hurray.float32.name = "float33"


def test_extension_dtypes():
    for tag in range(0xF0, 0xFF):
        dtype = Dtype.from_tag(tag)
        assert Dtype.from_tag(tag) is dtype
        assert (dtype.name, dtype.tag, dtype.bit_width, dtype.element_alignment) == ("extension", tag, 0, 1)
        assert not (dtype.is_float or dtype.is_integer or dtype.is_signed or dtype.is_sub_byte)
        assert repr(dtype) == f"hurray.Dtype.from_tag(0x{tag:02X})" and str(dtype) == "extension"
        assert eval(repr(dtype), {"hurray": hurray}) is dtype
        with pytest.raises(InvalidDescriptorError, match="ExtensionType"):
            hurray.buffer_size_bytes(dtype, 1)
    assert Dtype.from_tag(0xF0) != Dtype.from_tag(0xF1)


def test_names_and_tags_that_do_not_exist():
    for name in ("float33", "", "extension", "FLOAT32", "int3"):
        with pytest.raises(InvalidDescriptorError):
            Dtype.from_name(name)
    for tag in (0x00, 0x05, 0x18, 0x3F, 0x47, 0x4C, 0x80, 0xEF, 0xFF):
        with pytest.raises(InvalidDescriptorError, match=f"0x{tag:02X}"):
            Dtype.from_tag(tag)
    for tag in (-1, 256):
        with pytest.raises(OverflowError):
            Dtype.from_tag(tag)
    for wrong in (None, 1.5):
        with pytest.raises(TypeError):
            Dtype.from_tag(wrong)
        with pytest.raises(TypeError):
            Dtype.from_name(wrong)


def test_packed_sizes():
    size = hurray.buffer_size_bytes
    assert size(hurray.dtype.int4, 7) == 4 and size(hurray.bool, 9) == 2
    assert size(hurray.dtype.float6_e2m3, 100) == 75 and size(hurray.dtype.float6_e3m2, 1) == 3
    assert size(hurray.dtype.complex128, 3) == 48 and size(hurray.dtype.uint2, 9) == 3
    assert all(size(getattr(hurray.dtype, name), 0) == 0 for name, *_ in DTYPES)
    assert size(dtype=hurray.uint8, count=2**64 - 1) == 2**64 - 1
    for dtype, count in ((hurray.uint8, -1), (hurray.uint8, 2**64), (hurray.float64, 2**63)):
        with pytest.raises(OverflowError):
            size(dtype, count)
    for dtype, count in (("int4", 1), (None, 1), (hurray.uint8, 1.0)):
        with pytest.raises(TypeError):
            size(dtype, count)


# ---- Device ----------------------------------------------------------------------------------------------------

KINDS = "cpu cuda rocm metal vulkan webgpu hexagon level_zero opencl".split()
CLASSES = "standard host_pinned unified peer".split()


def test_devices_by_name_and_by_byte():
    for tag, kind in enumerate(KINDS):
        for class_tag, memory_class in enumerate(CLASSES):
            device = Device(kind, 3, memory_class)
            assert device == Device(tag, 3, class_tag) == Device(kind=kind, device_id=3, memory_class=class_tag)
            assert hash(device) == hash(Device(tag, 3, class_tag))
            assert (device.kind, device.tag, device.is_private) == (kind, tag, False)
            assert (device.memory_class, device.memory_class_tag) == (memory_class, class_tag)
            assert repr(device) == f"hurray.Device(kind='{kind}', device_id=3, memory_class='{memory_class}')"
            assert eval(repr(device), {"hurray": hurray}) == device
    assert Device(0x01) == Device("cuda") and Device("cpu", 0, 0x02).memory_class == "unified"
    assert (Device("cuda").device_id, Device("cuda", None, None).memory_class) == (0, "standard")
    assert Device(numpy.uint8(1), numpy.int64(2)) == Device("cuda", 2)
    assert len({Device("cuda"), Device("cuda", 1), Device("cuda", 0, "peer"), Device("rocm")}) == 4
    assert Device("cuda") != "cuda" and Device("cpu") != hurray.float32
    with pytest.raises(AttributeError):
        Device("cpu").device_id = 1


def test_private_devices():
    for byte in range(0xF0, 0xFF):
        device = Device(byte, 1, byte)
        assert (device.kind, device.tag, device.is_private) == ("private", byte, True)
        assert (device.memory_class, device.memory_class_tag) == ("private", byte)
        assert repr(device) == (
            f"hurray.Device(kind='private' (0x{byte:02X}), device_id=1, memory_class='private' (0x{byte:02X}))"
        )
        assert device == Device(byte, 1, byte) and hash(device) == hash(Device(byte, 1, byte))
    assert Device(0xF0) != Device(0xF1) and Device(0xF0, 0, 0xF0) != Device(0xF0)
    # The pair is judged when a tensor is built.
    odd = Device("cuda", 0, 0xF1)
    assert (odd.kind, odd.memory_class_tag) == ("cuda", 0xF1)
    with pytest.raises(hurray.BufferError, match="invalid buffer parameters"):
        hurray.Tensor(bytes(4), hurray.float32, (1,), odd)


def test_private_devices_are_lossless():
    device = Device(0xF3, 2, 0xF5)
    tensor = hurray.Tensor(bytes(4), hurray.float32, (1,), device)
    descriptor = hurray.Descriptor.decode(tensor.descriptor.encode())
    assert descriptor.device == Device(0xF3, 0, 0xF5)  # the id is not in the format
    assert descriptor.buffer_handles[0].device is descriptor.device
    assert descriptor.encode() == tensor.descriptor.encode()


@pytest.mark.parametrize(
    "arguments",
    [
        ("gpu",),
        ("",),
        ("private",),
        (0x09,),
        (0xEF,),
        (0xFF,),
        (256,),
        (2**70,),
        (-1,),
        (True,),
        (False,),
        (None,),
        (1.0,),
        (b"cpu",),
        ("cpu", 0, "fast"),
        ("cpu", 0, "private"),
        ("cpu", 0, 0x04),
        ("cpu", 0, 0xEF),
        ("cpu", 0, 0xFF),
        ("cpu", 0, 300),
        ("cpu", 0, True),
        ("cpu", 0, 1.5),
    ],
)
def test_devices_that_do_not_exist(arguments):
    with pytest.raises(InvalidDescriptorError, match="wire byte") as caught:
        Device(*arguments)
    for name in CLASSES if len(arguments) == 3 else KINDS:
        assert name in str(caught.value)


def test_device_ids():
    assert Device("cuda", 2**31 - 1).device_id == 2**31 - 1
    for negative in (-1, -(2**31), -(2**70)):
        with pytest.raises(InvalidDescriptorError, match="0 or more"):
            Device("cuda", negative)
    for large in (2**31, 2**63, 2**70):
        with pytest.raises(OverflowError):
            Device("cuda", large)
    for wrong in (True, "0", 1.0):
        with pytest.raises(TypeError):
            Device("cuda", wrong)
    with pytest.raises(TypeError):
        Device()


def test_the_device_constants():
    for tag, kind in enumerate(KINDS):
        device = getattr(hurray.device, kind)
        assert (device.kind, device.tag, device.device_id, device.memory_class) == (kind, tag, 0, "standard")


@pytest.mark.parametrize("claim, field", [
    ({"sparsity_ratio": 2}, "sparsity_ratio"), ({"sparsity_ratio": -0.5}, "sparsity_ratio"),
    ({"nm_n": 5, "nm_m": 4}, "nm_n"), ({"value_mean": 0.0, "value_stddev": -1.0}, "value_stddev"),
])
def test_claims_that_break_a_rule_are_refused_and_never_dropped(claim, field):
    with pytest.raises(InvalidDescriptorError, match=f"statistics.{field}"):
        Statistics(**claim)
    assert Statistics(sparsity_ratio=float("nan")).computed_mask == 2  # unknown


def test_a_shard_of_another_rank_is_said_in_dimensions():
    with pytest.raises(InvalidDescriptorError, match="shard.parent_shape: expected 1 entries, found 2"):
        hurray.Tensor(bytes(8), hurray.uint8, (8,), shard=Shard([8, 1], [0, 0]))


def test_what_the_items_of_a_sequence_are_is_said():
    with pytest.raises(TypeError, match="aux_buffers must be a sequence of buffers, got bytes"):
        hurray.Tensor(bytes(8), hurray.uint8, (8,), aux_buffers=bytes(2))
