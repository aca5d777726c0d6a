"""Descriptors: what they show, encode, decode and compare (reference, sections 6 and 7, 19.6)."""

import struct

import hurray
import pytest
import test_conformance
import wire
from hurray import Descriptor, Device, InvalidDescriptorError, Shard, Statistics, Tensor, UnknownLayout

F32 = hurray.float32


def plain(**named):
    return Tensor(bytes(48), F32, (3, 4), **named).descriptor


def test_what_a_descriptor_shows():
    statistics, shard = Statistics(nnz=0), Shard((9, 4), (3, 0))
    tensor = Tensor(bytes(56), F32, (3, 4), Device("cuda", 1), statistics=statistics, shard=shard, byte_offset=8)
    descriptor = tensor.descriptor
    assert descriptor.dtype is F32 and descriptor.shape == (3, 4)
    assert (descriptor.ndim, descriptor.size, descriptor.buffer_count) == (2, 12, 1)
    assert descriptor.layout == hurray.RowMajorLayout()
    assert descriptor.layout is not descriptor.layout
    assert descriptor.buffer_handles == tensor.buffer_handles and type(descriptor.buffer_handles) is tuple
    assert descriptor.device is tensor.device and descriptor.buffer_handles[0].device is descriptor.device
    assert (descriptor.statistics, descriptor.shard) == (statistics, shard)
    assert descriptor.quantization is None and descriptor.extension_type is None
    assert (descriptor.byte_offset, descriptor.version) == (8, (1, 0))
    assert repr(descriptor) == "hurray.Descriptor(dtype=float32, shape=(3, 4), layout='row_major', buffers=1)"
    assert repr(Tensor(bytes(16), F32, (4,)).descriptor) == (
        "hurray.Descriptor(dtype=float32, shape=(4,), layout='row_major', buffers=1)"
    )
    dynamic = Tensor(b"", F32, (None, 4)).descriptor
    assert (dynamic.shape, dynamic.size) == ((None, 4), None)
    for name in ("dtype", "shape", "layout", "device", "byte_offset", "anything"):
        with pytest.raises(AttributeError):
            setattr(descriptor, name, 1)


def test_it_is_made_by_tensors_and_decode_only():
    with pytest.raises(TypeError):
        Descriptor()
    with pytest.raises(TypeError):
        Descriptor(plain().encode())
    with pytest.raises(TypeError):
        type("Mine", (Descriptor,), {})
    assert Descriptor.__new__(Descriptor) != plain()


def test_sizes_of_the_encoding():
    descriptor = plain()
    assert descriptor.encoded_len == len(descriptor.encode()) == 61
    raw = wire.descriptor(wire.FLOAT32, (3, 4), 48)
    assert descriptor.encode() == raw and type(descriptor.encode()) is bytes


def test_decode_takes_any_bytes_and_ignores_the_rest():
    raw = plain().encode()
    for data in (raw, bytearray(raw), memoryview(raw), memoryview(raw + b"more")[: len(raw)], raw + b"what follows"):
        assert Descriptor.decode(data) == plain()
    assert Descriptor.decode(data=raw, permissive=False) == plain()
    for wrong in (None, "text", 3, [1]):
        with pytest.raises(TypeError):
            Descriptor.decode(wrong)
    with pytest.raises(TypeError):
        Descriptor.decode(raw, True)
    for size in range(len(raw)):
        with pytest.raises(InvalidDescriptorError, match="cannot decode: "):
            Descriptor.decode(raw[:size])


def test_the_errors_say_what_could_not_be_done():
    with pytest.raises(InvalidDescriptorError, match="^cannot decode: magic: .* at byte 0"):
        Descriptor.decode(b"XXXX" + bytes(60))
    newer = bytearray(plain().encode())
    newer[5] = 1
    descriptor = Descriptor.decode(newer)
    assert descriptor.version == (1, 1)
    with pytest.raises(hurray.UnsupportedError, match="^cannot encode: version_minor"):
        descriptor.encode()
    with pytest.raises(hurray.UnsupportedError, match="^cannot encode: "):
        descriptor.encoded_len


def test_comparison():
    assert plain() == plain() and not plain() != plain()
    assert plain() != Tensor(bytes(48), hurray.int32, (3, 4)).descriptor
    assert plain() != plain().encode() and plain() != None  # noqa: E711
    with pytest.raises(TypeError, match="unhashable"):
        hash(plain())
    cuda = Tensor(bytes(48), F32, (3, 4), Device("cuda", 1)).descriptor
    assert cuda != Tensor(bytes(48), F32, (3, 4), Device("cuda")).descriptor


def decoded(**changes):
    """The plain descriptor with bytes put in, such as `at5=7`."""
    raw = bytearray(plain().encode())
    for offset, value in changes.items():
        raw[int(offset[2:])] = value
    return Descriptor.decode(raw, permissive=True)


def test_differences():
    mine = plain()
    assert mine.differences(plain()) == ()
    coarse = Descriptor.decode(wire.descriptor(wire.FLOAT32, (3, 4), 48, alignment=4096))
    assert mine != coarse and mine.differences(coarse) == ()
    assert mine.differences(coarse, ignore=()) == (("buffer_handles[0].alignment", 64, 4096),)
    event = Descriptor.decode(wire.descriptor(wire.FLOAT32, (3, 4), 48, device=1, sync=1))
    assert mine.differences(event) == (
        ("device", hurray.device.cpu, hurray.device.cuda),
        ("buffer_handles[0].sync_mode", "producer_synced", "event"),
    )
    assert mine.differences(event, ignore=["sync_mode", "device"]) == ()
    other = Tensor(
        bytes(90), hurray.int16, (5, 7), Device("rocm", 2), layout=hurray.ColMajorLayout(), byte_offset=4,
        statistics=Statistics(nnz=3), shard=Shard((9, 9), (1, 2)),
    ).descriptor
    assert mine.differences(other) == (
        ("dtype", F32, hurray.int16),
        ("shape", (3, 4), (5, 7)),
        ("byte_offset", 0, 4),
        ("layout", hurray.RowMajorLayout(), hurray.ColMajorLayout()),
        ("device", hurray.device.cpu, Device("rocm", 2)),
        ("shard", None, Shard((9, 9), (1, 2))),
        ("statistics", None, Statistics(nnz=3)),
        ("buffer_handles[0].byte_size", 48, 90),
    )
    assert decoded(at5=7).differences(mine) == (("version", (1, 7), (1, 0)),)
    with pytest.raises(TypeError, match="hurray.Descriptor"):
        mine.differences(mine.encode())
    with pytest.raises(TypeError, match="hurray.Descriptor"):
        mine.differences(None)
    with pytest.raises(TypeError, match="not one string"):
        mine.differences(mine, ignore="alignment")
    with pytest.raises(ValueError, match="no field is named 'colour'"):
        mine.differences(mine, ignore=["colour"])
    with pytest.raises(TypeError):
        mine.differences(mine, ["alignment"])


FIELDS = {
    "version", "flags", "dtype", "shape", "byte_offset", "layout", "buffer_count", "device", "quantization",
    "shard", "statistics", "extension_type", "member_role", "byte_size", "alignment", "sync_mode",
}


def test_every_vector_differs_from_every_other_by_fields():
    """No two descriptors are told apart by `==` alone, unless their bytes mean the same."""
    found = []
    for entry, raw in vectors("valid", "opaque"):
        descriptor = Descriptor.decode(raw, permissive=True)
        assert descriptor.differences(descriptor, ignore=()) == ()
        found.append((entry["name"], descriptor))
    named = set()
    for (_, a), (name, b) in zip(found, found[1:]):
        differences = a.differences(b, ignore=())
        assert differences or a == b or meaning(a) == meaning(b), name
        for field, mine, theirs in differences:
            assert mine != theirs
            named.add(field.rpartition(".")[2])
    assert named == FIELDS, named ^ FIELDS


def meaning(descriptor):
    """Statistics under clear bits and padding of a payload are bytes that mean nothing."""
    return [getattr(descriptor, name) for name in ("dtype", "shape", "layout", "statistics", "quantization", "buffer_handles")]


def test_an_opaque_scheme_and_a_role_are_fields_too():
    vectors = {e["name"].rpartition("/")[2]: e for e in test_conformance.entries("descriptor", "opaque")}
    raw, _ = test_conformance.read(vectors["47_scheme_f0"])
    changed = bytearray(raw)
    changed[-1] ^= 1
    a, b = (Descriptor.decode(data, permissive=True) for data in (raw, changed))
    assert a.quantization is b.quantization is None and a != b
    ((field, mine, theirs),) = a.differences(b)
    assert field == "quantization" and mine[-1] ^ theirs[-1] == 1 and mine == raw[-len(mine) :]
    raw, _ = test_conformance.read(vectors["13_layout_flags"])
    changed = bytearray(raw)
    changed[10] ^= 2
    a, b = (Descriptor.decode(data, permissive=True) for data in (raw, changed))
    assert a.layout == b.layout and a != b
    assert a.differences(b) == (("flags", 0b10011, 0b10001),)


def vectors(*outcomes):
    """Those that the module reads; a private composition rule has to be agreed on, and nothing here does that."""
    for entry in test_conformance.entries("descriptor", *outcomes):
        if "rules" not in entry.get("options", {}).get("agreed", {}):
            yield entry, test_conformance.read(entry)[0]


def test_a_private_composition_rule_is_refused_in_both_modes():
    count = 0
    for entry in test_conformance.entries("descriptor", "opaque"):
        if "rules" in entry.get("options", {}).get("agreed", {}):
            raw, _ = test_conformance.read(entry)
            for permissive in (False, True):
                with pytest.raises(InvalidDescriptorError, match="composition_rule"):
                    Descriptor.decode(raw, permissive=permissive)
            count += 1
    assert count > 0


# ---- vectors ---------------------------------------------------------------------------------------------------


def check_layout(found, expect):
    """The layout's properties are the fields of the wire, under the same names."""
    fields = dict(expect["layout_fields"])
    assert found.name == expect["layout"]
    for name, value in fields.items():
        got = getattr(found, name)
        if name in ("raw_bytes", "extension_data"):
            assert got == bytes.fromhex(value)
        elif name == "inner_tiled":
            check_layout(got, {"layout": "tiled", "layout_fields": value})
        elif isinstance(value, list):
            assert got == tuple(map(test_conformance.number, value))
        elif isinstance(value, str) and (value.startswith("0x") or value.isdigit()):
            assert got == int(value, 0)
        else:
            assert got == value and type(got) is type(value)
    assert type(found) is not hurray.Layout


SCHEMES = {
    "per_tensor_affine": hurray.PerTensorAffine,
    "per_channel_affine": hurray.PerChannelAffine,
    "per_block_affine": hurray.PerBlockAffine,
    "nf4": hurray.NF4,
    "mxfp": hurray.MXFP,
}


def check_quantization(found, expect):
    if expect is None or expect["scheme"].startswith("0x"):
        assert found is None
        return
    assert type(found) is SCHEMES[expect["scheme"]]
    for name, value in expect.items():
        if name in ("scheme", "scheme_version", "symmetric", "surplus"):
            continue
        got = getattr(found, name)
        if name == "scale":
            assert struct.pack(">f", got).hex() == value
        elif name == "scale_type":
            assert got is hurray.Dtype.from_name(value)
        else:
            assert got == value
    if "symmetric" in expect:
        assert (found.zero_point_buffer_index is None) == expect["symmetric"]
    assert hurray.decode_quantization(found.encode()) == found
    assert eval(repr(found), {"hurray": hurray, **vars(hurray)}) == found


def test_every_vector_shows_its_fields():
    layouts, schemes, private_types = set(), set(), 0
    for entry, raw in vectors("valid", "opaque"):
        options, expect = entry.get("options", {}), entry["expect"]
        if not options.get("permissive") and not set(options) - {"agreed"}:
            assert Descriptor.decode(raw) == Descriptor.decode(raw, permissive=True), entry["name"]
        found = Descriptor.decode(raw, permissive=True)
        if not options.get("permissive"):
            test_conformance.check_descriptor(found, expect, entry["name"])
        check_layout(found.layout, expect)
        check_quantization(found.quantization, expect.get("quantization"))
        extension = expect.get("extension_type")
        assert (found.extension_type is None) == (extension is None)
        for name, value in (extension or {}).items():
            assert getattr(found.extension_type, name) == value
        if expect.get("reencodes", True):
            assert found.encode() == raw and found.encoded_len == len(raw)
        layouts.add(type(found.layout))
        schemes.add(type(found.quantization))
        private_types += extension is not None
        for handle in found.buffer_handles:
            assert handle.device is found.device
        if found.buffer_count == 0:
            assert found.device is None and found.buffer_handles == ()
    assert len(layouts) == 14 and len(schemes) == 6 and private_types > 50


def test_layouts_of_vectors_fit_their_shapes_and_are_built_again():
    for _, raw in vectors("valid"):
        found = Descriptor.decode(raw, permissive=True)
        found.layout.validate_against_shape(found.shape)
        assert found.layout == found.layout and hash(found.layout) == hash(found.layout)


# ---- permissive decoding ---------------------------------------------------------------------------------------


def test_permissive_decoding_shows_unknown_layouts():
    raw = bytearray(plain().encode())
    raw[15] = 0x0C
    with pytest.raises(InvalidDescriptorError, match="cannot decode: layout_tag: .*0x0C"):
        Descriptor.decode(raw)
    found = Descriptor.decode(raw, permissive=True)
    assert found.layout == UnknownLayout(0x0C, bytes(raw[44:])) and isinstance(found.layout, UnknownLayout)
    assert (found.dtype, found.shape, found.byte_offset) == (F32, (3, 4), 0)
    assert (found.buffer_handles, found.buffer_count, found.device) == ((), 0, None)
    assert found.encode() == raw and found.encoded_len == len(raw)
    assert repr(found) == "hurray.Descriptor(dtype=float32, shape=(3, 4), layout='extension', buffers=0)"


def test_permissive_decoding_shows_unknown_types():
    for tag in (0x05, 0x47, 0x80, 0xEF):
        raw = bytearray(plain().encode())
        raw[14] = tag
        with pytest.raises(InvalidDescriptorError, match=f"cannot decode: type_tag: .*0x{tag:02X}"):
            Descriptor.decode(raw)
        found = Descriptor.decode(raw, permissive=True)
        assert (found.dtype.tag, found.dtype.name, found.dtype.bit_width) == (tag, "extension", 0)
        assert repr(found.dtype) == f"hurray.Dtype.from_tag(0x{tag:02X})" and str(found.dtype) == "extension"
        assert found.dtype is Descriptor.decode(raw, permissive=True).dtype
        assert found.buffer_handles == plain().buffer_handles
        assert found.encode() == raw
        assert repr(found).startswith("hurray.Descriptor(dtype=extension, ")
        with pytest.raises(InvalidDescriptorError):
            hurray.Dtype.from_tag(tag)


def test_permissive_decoding_still_refuses_most():
    for offset, value in ((0, 0x58), (4, 2), (14, 0x00), (14, 0xFF), (15, 0x00), (15, 0xFF), (11, 1), (56, 9), (60, 1)):
        raw = bytearray(plain().encode())
        raw[offset] = value
        with pytest.raises(InvalidDescriptorError, match="cannot decode: "):
            Descriptor.decode(raw, permissive=True)
    lifted = {str(n) for n in (10, 13, 27, 34, 47, 58)}
    for entry in test_conformance.entries("descriptor", "invalid"):
        raw, _ = test_conformance.read(entry)
        if set(entry["rows"]) & lifted or "options" in entry:
            continue
        with pytest.raises(InvalidDescriptorError, match="cannot decode: "):
            Descriptor.decode(raw, permissive=True)


def test_private_values_are_shown():
    """Private layouts, devices, classes and types are read back by tag (Y16)."""
    names = {e["name"].rpartition("/")[2]: e for e in test_conformance.entries("descriptor", "opaque")}
    raw, _ = test_conformance.read(names["34_private_layout"])
    found = Descriptor.decode(raw)
    assert found.layout == hurray.PrivateExtensionLayout(0xF0, 0x1122334455667788, b"abc")
    assert found.buffer_count == 2 and found.encode() == raw


# ---- handles ---------------------------------------------------------------------------------------------------


def test_handles_compare_by_value():
    handle = plain().buffer_handles[0]
    again = plain().buffer_handles[0]
    assert handle == again and hash(handle) == hash(again) and handle is not again
    assert handle != 48 and handle != (48, 64)
    assert (handle.byte_size, handle.alignment, handle.sync_mode, handle.is_empty) == (48, 64, "producer_synced", False)
    assert repr(handle) == (
        "BufferHandle(byte_size=48, alignment=64, sync_mode='producer_synced', "
        "device=hurray.Device(kind='cpu', device_id=0, memory_class='standard'))"
    )
    others = [
        Descriptor.decode(wire.descriptor(wire.FLOAT32, (3, 4), 48, **changes)).buffer_handles[0]
        for changes in ({"alignment": 128}, {"device": 1}, {"device": 1, "sync": 1}, {"memory_class": 2})
    ]
    assert len({handle, *others}) == 5
    with pytest.raises(TypeError):
        hurray.BufferHandle()
    with pytest.raises(AttributeError):
        handle.alignment = 128
    assert hurray.BufferHandle.__new__(hurray.BufferHandle) != handle
