"""The five quantization schemes: values, payloads, printed forms, refusals (reference, section 9)."""

import itertools
import random
import struct

import hurray
import numpy
import pytest
from hurray import (
    MXFP,
    NF4,
    InvalidDescriptorError,
    PerBlockAffine,
    PerChannelAffine,
    PerTensorAffine,
    decode_quantization,
)

#: A scheme, its payload as the quantization page writes it, and how it prints.
EXAMPLES = [
    (
        PerTensorAffine(0.0625, 120),
        "01 01 00 00  00 00 80 3D  78 00 00 00  00 00 00 00",
        "PerTensorAffine(scale=0.0625, zero_point=120)",
    ),
    (
        PerTensorAffine(0.5, 3),
        "01 01 00 00  00 00 00 3F  03 00 00 00  00 00 00 00",
        "PerTensorAffine(scale=0.5, zero_point=3)",
    ),
    (
        PerChannelAffine.asymmetric(1, 1, 2),
        "02 01 00 00  01 00 00 00  01 00 00 00  02 00 00 00  03 00 00 00",
        "PerChannelAffine.asymmetric(axis=1, scale_buffer_index=1, zero_point_buffer_index=2)",
    ),
    (
        PerChannelAffine.symmetric(0, 3),
        "02 01 01 00  00 00 00 00  03 00 00 00  FF FF FF FF  03 00 00 00",
        "PerChannelAffine.symmetric(axis=0, scale_buffer_index=3)",
    ),
    (
        PerBlockAffine.symmetric(1, 32, 1, hurray.float16),
        "03 01 01 00  01 00 00 00  20 00 00 00  01 00 00 00  FF FF FF FF  01 00 00 00",
        "PerBlockAffine.symmetric(axis=1, block_size=32, scale_buffer_index=1, scale_type=hurray.float16)",
    ),
    (
        PerBlockAffine.symmetric(1, 64, 1, hurray.float32),
        "03 01 01 00  01 00 00 00  40 00 00 00  01 00 00 00  FF FF FF FF  03 00 00 00",
        "PerBlockAffine.symmetric(axis=1, block_size=64, scale_buffer_index=1, scale_type=hurray.float32)",
    ),
    (
        PerBlockAffine.asymmetric(0, 2, 1, 2, hurray.bfloat16),
        "03 01 00 00  00 00 00 00  02 00 00 00  01 00 00 00  02 00 00 00  02 00 00 00",
        "PerBlockAffine.asymmetric(axis=0, block_size=2, scale_buffer_index=1, zero_point_buffer_index=2, "
        "scale_type=hurray.bfloat16)",
    ),
    (
        NF4(0, 64, 1),
        "04 01 00 00  00 00 00 00  40 00 00 00  01 00 00 00",
        "NF4(axis=0, block_size=64, scale_buffer_index=1)",
    ),
    (
        MXFP(1, 32, 1),
        "05 01 00 00  01 00 00 00  20 00 00 00  01 00 00 00",
        "MXFP(axis=1, block_size=32, scale_buffer_index=1)",
    ),
]


@pytest.mark.parametrize("scheme, payload, text", EXAMPLES)
def test_payloads_and_printed_forms(scheme, payload, text):
    raw = bytes.fromhex(payload)
    assert scheme.encode() == raw and type(scheme.encode()) is bytes
    for data in (raw, bytearray(raw), memoryview(raw), numpy.frombuffer(raw, "u1"), raw + b"what follows"):
        again = decode_quantization(data)
        assert again == scheme and type(again) is type(scheme)
    assert repr(scheme) == str(scheme) == text
    assert eval(text, {"hurray": hurray, **vars(hurray)}) == scheme
    for attribute in ("axis", "scale", "block_size", "anything"):
        with pytest.raises(AttributeError):
            setattr(scheme, attribute, 1)


@pytest.mark.parametrize("scheme, payload, text", EXAMPLES)
def test_payloads_that_are_cut(scheme, payload, text):
    raw = bytes.fromhex(payload)
    for size in range(len(raw)):
        with pytest.raises(InvalidDescriptorError, match="quantization"):
            decode_quantization(raw[:size])


def test_payloads_of_something_else():
    for tag in (0x00, 0x06, 0x3F, 0x60, 0x80, 0xEF, 0xF0, 0xFE, 0xFF):
        with pytest.raises(InvalidDescriptorError, match=f"scheme_tag.*0x{tag:02X}"):
            decode_quantization(bytes([tag, 1]) + bytes(22))
    for raw, field in (
        ("01 02 00 00  00 00 80 3D  78 00 00 00  00 00 00 00", "scheme_version"),
        ("01 00 00 00  00 00 80 3D  78 00 00 00  00 00 00 00", "scheme_version"),
        ("01 01 01 00  00 00 80 3D  78 00 00 00  00 00 00 00", "flags"),
        ("01 01 00 00  00 00 80 3D  78 00 00 00  01 00 00 00", "reserved"),
        ("01 01 00 00  00 00 00 00  78 00 00 00  00 00 00 00", "scale"),
        ("02 01 01 00  00 00 00 00  03 00 00 00  04 00 00 00  03 00 00 00", "zero_point_buffer_index"),
        ("02 01 00 00  00 00 00 00  03 00 00 00  FF FF FF FF  03 00 00 00", "zero_point_buffer_index"),
        ("02 01 01 00  00 00 00 00  03 00 00 00  FF FF FF FF  01 00 00 00", "scale_type"),
        ("04 01 00 00  00 00 00 00  41 00 00 00  01 00 00 00", "block_size"),
    ):
        with pytest.raises(InvalidDescriptorError, match=field):
            decode_quantization(bytes.fromhex(raw))
    for wrong in (None, 3, "text", [1, 2]):
        with pytest.raises(TypeError):
            decode_quantization(wrong)


def test_properties():
    scheme = PerTensorAffine(scale=0.02, zero_point=-7)
    assert scheme.scale == float(numpy.float32(0.02)) == 0.019999999552965164 and scheme.zero_point == -7
    scheme = PerChannelAffine.symmetric(axis=2, scale_buffer_index=4)
    assert (scheme.axis, scheme.scale_buffer_index, scheme.zero_point_buffer_index) == (2, 4, None)
    assert not hasattr(scheme, "scale_type") and not hasattr(scheme, "block_size")
    scheme = PerChannelAffine.asymmetric(axis=2, scale_buffer_index=4, zero_point_buffer_index=5)
    assert (scheme.axis, scheme.scale_buffer_index, scheme.zero_point_buffer_index) == (2, 4, 5)
    scheme = PerBlockAffine.symmetric(axis=1, block_size=2**31, scale_buffer_index=1, scale_type=hurray.bfloat16)
    assert (scheme.axis, scheme.block_size, scheme.scale_buffer_index) == (1, 2**31, 1)
    assert scheme.zero_point_buffer_index is None and scheme.scale_type is hurray.bfloat16
    scheme = PerBlockAffine.asymmetric(
        axis=1, block_size=2, scale_buffer_index=1, zero_point_buffer_index=2, scale_type=hurray.float32
    )
    assert scheme.zero_point_buffer_index == 2 and scheme.scale_type is hurray.float32
    for cls, smallest, largest in ((NF4, 8, 2**31), (MXFP, 16, 2048)):
        for block_size in (smallest, largest):
            scheme = cls(axis=3, block_size=block_size, scale_buffer_index=9)
            assert (scheme.axis, scheme.block_size, scheme.scale_buffer_index) == (3, block_size, 9)


def test_equal_indices_mean_one_buffer():
    assert PerChannelAffine.asymmetric(0, 1, 1).zero_point_buffer_index == 1
    scheme = PerBlockAffine.asymmetric(0, 2, 3, 3, hurray.float16)
    assert scheme.scale_buffer_index == scheme.zero_point_buffer_index == 3
    assert decode_quantization(scheme.encode()) == scheme


def test_two_constructors_instead_of_one():
    for cls in (PerChannelAffine, PerBlockAffine):
        with pytest.raises(TypeError):
            cls()
        with pytest.raises(TypeError):
            cls(0, 1)
    for call in (
        lambda: PerChannelAffine.asymmetric(0, 1),
        lambda: PerChannelAffine.symmetric(0, 1, 2),
        lambda: PerBlockAffine.symmetric(0, 2, 1),
        lambda: PerTensorAffine(1.0),
        lambda: NF4(0, 8),
        lambda: type("Mine", (NF4,), {}),
    ):
        with pytest.raises(TypeError):
            call()


def test_comparison_is_by_value():
    schemes = [example[0] for example in EXAMPLES]
    for a, b in itertools.combinations(schemes, 2):
        assert a != b and not a == b
    for scheme in schemes:
        assert scheme != scheme.encode() and scheme != repr(scheme)
        if isinstance(scheme, PerTensorAffine):
            with pytest.raises(TypeError, match="unhashable"):
                hash(scheme)
        else:
            assert hash(decode_quantization(scheme.encode())) == hash(scheme)
    assert len({s for s in schemes if not isinstance(s, PerTensorAffine)}) == len(schemes) - 2
    assert NF4(0, 64, 1) != MXFP(0, 64, 1)
    assert PerTensorAffine(0.02, 0) == PerTensorAffine(float(numpy.float32(0.02)), 0)
    assert PerTensorAffine(0.5, 0) != PerTensorAffine(-0.5, 0)
    raw = NF4.__new__(NF4)
    assert raw != NF4(0, 8, 1)


def refuses(fragment, call, *arguments):
    with pytest.raises(InvalidDescriptorError, match=fragment):
        call(*arguments)


def test_what_constructors_refuse():
    for scale in (0, 0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e300, -1e300, 1e-300, 2.0**128):
        refuses("scale", PerTensorAffine, scale, 0)
    for block_size in (0, 1, 3, 12, 2**32 - 1):
        refuses("block_size", PerBlockAffine.symmetric, 0, block_size, 1, hurray.float32)
        refuses("block_size", PerBlockAffine.asymmetric, 0, block_size, 1, 2, hurray.float32)
    for block_size in (0, 4, 9):
        refuses("block_size", NF4, 0, block_size, 1)
    for block_size in (0, 8, 33, 4096):
        refuses("block_size", MXFP, 0, block_size, 1)
    for dtype in (hurray.float64, hurray.int8, hurray.dtype.float8_e8m0, hurray.Dtype.from_tag(0xF1)):
        refuses("scale_type", PerBlockAffine.symmetric, 0, 2, 1, dtype)
    none = 2**32 - 1
    refuses("scale_buffer_index", PerChannelAffine.symmetric, 0, none)
    refuses("scale_buffer_index", PerChannelAffine.asymmetric, 0, none, 1)
    refuses("scale_buffer_index", PerBlockAffine.symmetric, 0, 2, none, hurray.float32)
    refuses("scale_buffer_index", NF4, 0, 8, none)
    refuses("scale_buffer_index", MXFP, 0, 16, none)
    refuses("use .symmetric", PerChannelAffine.asymmetric, 0, 1, none)
    refuses("use .symmetric", PerBlockAffine.asymmetric, 0, 2, 1, none, hurray.float32)


def test_integers_out_of_range_and_wrong_types():
    for call in (
        lambda: PerTensorAffine(1, 2**31),
        lambda: PerTensorAffine(1, -(2**31) - 1),
        lambda: PerTensorAffine(1, 2**70),
        lambda: PerChannelAffine.symmetric(-1, 1),
        lambda: PerChannelAffine.symmetric(0, 2**32),
        lambda: PerBlockAffine.symmetric(0, -2, 1, hurray.float32),
        lambda: NF4(0, 2**32, 1),
        lambda: MXFP(0, 32, -1),
    ):
        with pytest.raises(OverflowError):
            call()
    for call in (
        lambda: PerTensorAffine("1", 0),
        lambda: PerTensorAffine(None, 0),
        lambda: PerTensorAffine(1, 0.5),
        lambda: PerChannelAffine.symmetric(0.0, 1),
        lambda: PerBlockAffine.symmetric(0, 2, 1, "float16"),
        lambda: PerBlockAffine.symmetric(0, 2, 1, None),
        lambda: PerBlockAffine.symmetric(0, 2, 1, numpy.float16),
        lambda: NF4(0, "8", 1),
    ):
        with pytest.raises(TypeError):
            call()
    assert PerTensorAffine(1, 2**31 - 1).zero_point == 2**31 - 1
    assert PerTensorAffine(numpy.float64(2), numpy.int8(-3)) == PerTensorAffine(2, -3)


def test_scales_print_as_the_shortest_float32():
    assert repr(PerTensorAffine(0.02, 0)) == "PerTensorAffine(scale=0.02, zero_point=0)"
    for scale, text in ((1, "1.0"), (-2.5, "-2.5"), (1e6, "1000000.0"), (1e-7, "1e-07"), (16777216, "16777216.0")):
        assert repr(PerTensorAffine(scale, 0)) == f"PerTensorAffine(scale={text}, zero_point=0)"
    source = random.Random(1)
    words = [source.getrandbits(32) for _ in range(5000)] + [1, 2, 0x7F7FFFFF, 0x00800000, 0x007FFFFF, 0x3F7FFFFF]
    seen = 0
    for word in words:
        value = struct.unpack("<f", struct.pack("<I", word))[0]
        if value == 0 or value != value or value in (float("inf"), float("-inf")):
            continue
        scheme = PerTensorAffine(value, 0)
        printed = repr(scheme).removeprefix("PerTensorAffine(scale=").removesuffix(", zero_point=0)")
        assert struct.pack("<f", float(printed)) == struct.pack("<I", word)
        assert eval(repr(scheme), vars(hurray)) == scheme and scheme.scale == value
        assert float(printed) == float(str(numpy.float32(value)))
        seen += 1
    assert seen > 4900
