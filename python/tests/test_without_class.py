"""What the format has and this module has no class for yet: described in full, never lied about, and no
tensor is made of it."""

import struct

import pytest

import hurray
import wire
from hurray import Descriptor, InvalidDescriptorError, UnsupportedError

PRIVATE = 0xF2


def described(layout_tag, fields, sizes, shape=(4, 4), dtype=wire.FLOAT32, flags=0, sections=b""):
    body = struct.pack("<IBBI", flags, dtype, layout_tag, len(shape))
    body += struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<Q", 0) + fields
    body += struct.pack("<B", len(sizes)) + b"".join(wire.handle(size) for size in sizes) + sections
    return b"HRRY\x01\x00" + struct.pack("<I", len(body) + 10) + body


def nnz(count):
    return struct.pack("<QQ", count, 0)


TILED = struct.pack("<QQBBxx", 2, 2, 1, 1)
COO = struct.pack("<QB7x", 2, 1)
CSF = struct.pack("<Q3IQ", 1, 2, 0, 1, 0)
PAGED = struct.pack("<IQIIBIB6x", 4, 2, 0, 1, 0, 2**32 - 1, 0)
HEAD = struct.pack("<BBxxI", 2, 1, 2)  # an overlay of two, whose correction replaces
EXTENSION = struct.pack("<QI3s", 7, 3, b"abc")
PER_TENSOR = struct.pack("<IBBHfi4x", 16, 1, 1, 0, 0.5, 3)
TYPE = struct.pack("<IBBBBBBxxIBBxx", 24, 1, 0, 1, 0, 0, 0, 0, 0, 0)


def member(role, shape, start):
    place = struct.pack("<4Q", 4, 4, *start)
    size = 4 * shape[0] * shape[1]
    return described(1, b"", [size], shape, flags=18, sections=place + struct.pack("<B15x", role))


BASE, CORRECTION = member(1, (4, 4), (0, 0)), member(0, (2, 2), (1, 1))

# name in hurray.Layout, what the layout says, the descriptor
LAYOUTS = {
    "tiled": (4, 1, True, described(4, TILED, [64])),
    "morton": (5, 1, True, described(5, struct.pack("<II", 2, 2), [64])),
    "coo": (6, 2, False, described(6, COO, [8, 32])),
    "csr": (7, 3, False, described(7, nnz(3), [12, 24, 40])),
    "csc": (8, 3, False, described(8, nnz(3), [12, 24, 40])),
    "csf": (9, None, False, described(9, CSF, [4, 16, 8, 16, 8, 16, 8], (2, 3, 4))),
    "block_paged": (10, 3, False, described(10, PAGED, [192, 8, 8], (5, 2, 3))),
    "composite": (11, 0, False, described(11, HEAD, [])),
    "hilbert": (64, 1, True, described(64, struct.pack("<II", 2, 2), [64])),
    "extension": (0xF1, None, False, described(0xF1, EXTENSION, [3, 9])),
}
SECTIONS = {
    "quantization": described(1, b"", [4], (4,), 0x11, 1, PER_TENSOR),
    "extension_type": described(1, b"", [12], (4,), PRIVATE, 4, TYPE),
    "member": BASE,
}
REFUSED = {name: (name if tag < 0xF0 else "private layouts", data)
           for name, (tag, _, _, data) in LAYOUTS.items()}
REFUSED |= {
    "quantized": ("quantized", SECTIONS["quantization"]),
    "private type": ("private element types", SECTIONS["extension_type"]),
    "member": ("members of a composite", BASE),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_come_bare_and_whole(name):
    tag, buffers, dense, data = LAYOUTS[name]
    d = Descriptor.decode(data)
    assert d.encode() == data and d.encoded_len == len(data)
    assert type(d.layout) is hurray.Layout
    assert (d.layout.tag, d.layout.name, d.layout.buffer_count) == (tag, name, buffers)
    assert (d.layout.is_dense, d.layout.is_virtual) == (dense, name == "composite")
    assert repr(d.layout) == f"Layout(name='{name}')" and f"layout='{name}'" in repr(d)
    same = Descriptor.decode(data)
    assert d == same and d.layout == same.layout and hash(d.layout) == hash(same.layout)
    assert d.layout != hurray.RowMajorLayout() and d.differences(same) == ()
    assert d.quantization is None and d.extension_type is None
    assert d.layout.validate_against_shape(d.shape) is None


@pytest.mark.parametrize("name,shape", [
    ("tiled", (4, 4, 4)), ("morton", (5, 4)), ("morton", (4,)), ("csr", (1, 2)), ("csr", (4,)),
    ("csc", (4, 4, 4)), ("csf", (4, 4)), ("csf", (2, 3, 4, 5)), ("coo", (1, 1)),
    ("block_paged", (5, 2)), ("hilbert", (4, 2)), ("hilbert", (4, 4, 4)),
])
def test_a_layout_that_does_not_fit_the_shape_is_named(name, shape):
    with pytest.raises(InvalidDescriptorError, match=name):
        Descriptor.decode(LAYOUTS[name][3]).layout.validate_against_shape(shape)


def test_sizes_that_are_not_known_are_not_checked():
    for name in ("morton", "hilbert", "tiled", "csr", "coo"):
        Descriptor.decode(LAYOUTS[name][3]).layout.validate_against_shape((None, None))
    Descriptor.decode(LAYOUTS["extension"][3]).layout.validate_against_shape(())


def test_the_head_of_a_composite_is_nowhere():
    d = Descriptor.decode(LAYOUTS["composite"][3])
    assert d.device is None and d.buffer_handles == () and d.buffer_count == 0
    assert d == Descriptor.decode(d.encode())
    assert {field for field, _, _ in d.differences(Descriptor.decode(LAYOUTS["csr"][3]))} == {
        "layout", "buffer_count", "device"}


@pytest.mark.parametrize("name", ["quantization", "extension_type"])
def test_sections_without_a_class_are_not_hidden(name):
    data = SECTIONS[name]
    d = Descriptor.decode(data)
    assert d.encode() == data
    with pytest.raises(UnsupportedError, match=name.replace("_", " ")):
        getattr(d, name)
    assert d.differences(Descriptor.decode(data)) == ()


def test_private_types_keep_their_tag():
    d = Descriptor.decode(SECTIONS["extension_type"])
    assert d.dtype is hurray.Dtype.from_tag(PRIVATE) and d.dtype.name == "extension"


@pytest.mark.parametrize("name,data", [
    ("quantization", described(1, b"", [4], (4,), 0x11)),
    ("role in a composite",
     described(1, b"", [64], flags=2, sections=struct.pack("<4Q", 4, 4, 0, 0))),
])
def test_differences_never_call_unlike_sections_alike(name, data):
    plain = Descriptor.decode(data)
    other = Descriptor.decode(SECTIONS["member" if name.startswith("role") else name])
    assert plain != other
    for a, b in ((plain, other), (other, plain)):
        with pytest.raises(UnsupportedError, match=name):
            a.differences(b)


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name != "composite"])
def test_no_tensor_is_made_of_them(name):
    d = Descriptor.decode(LAYOUTS[name][3])
    first, *rest = [bytes(handle.byte_size) for handle in d.buffer_handles]
    with pytest.raises(UnsupportedError, match=REFUSED[name][0]):
        hurray.Tensor(first, d.dtype, d.shape, layout=d.layout, aux_buffers=rest)


def test_no_tensor_has_a_private_type():
    with pytest.raises(UnsupportedError, match="private element types"):
        hurray.Tensor(bytes(12), hurray.Dtype.from_tag(PRIVATE), (4,))


DENSE = wire.descriptor(wire.UINT8, (5,), 5)


def data_length(data):
    """With the first buffer on 4096 and the following ones as well, as `file_around` starts them."""
    handles = Descriptor.decode(data).buffer_handles
    position = end = 0
    for handle in handles:
        if handle.byte_size:
            position = -(-end // 4096) * 4096
            end = position + handle.byte_size
    return end


# What follows a composite's head in a file or stream, with its bytes of data.
MEMBERS = [("x.0", BASE, 64), ("x.1", CORRECTION, 16)]


@pytest.mark.parametrize("mode", ["map", "copy_on_write", "memory"])
@pytest.mark.parametrize("name", [name for name in REFUSED if name != "member"])
def test_files_give_the_others(tmp_path, name, mode):
    feature, data = REFUSED[name]
    target = tmp_path / "f"
    members = MEMBERS if name == "composite" else []
    wire.file_around(target, [("a", DENSE, 5), ("x", data, data_length(data)), *members,
                              ("b", DENSE, 5)])
    with pytest.raises(UnsupportedError, match=f'tensor "x": .*{feature}.*byte 1[045] ') as info:
        hurray.load(target, mode=mode)
    assert str(target) in str(info.value)
    with pytest.raises(UnsupportedError, match='"x"'):
        hurray.load(target, names=["x"], mode=mode)
    assert list(hurray.load(target, names=["b", "a"], mode=mode)) == ["b", "a"]
    with hurray.open(target, mode=mode) as f:
        assert f.descriptor("x").encode() == data and f.descriptors()["x"] == f.descriptor("x")
        for take in (lambda: f["x"], lambda: f.get("x"), lambda: dict(f)):
            with pytest.raises(UnsupportedError, match='"x"'):
                take()
        for part, encoded, _ in members:
            assert f.descriptor(part).encode() == encoded
            with pytest.raises(UnsupportedError, match=f'"{part}": .*members of a composite'):
                f[part]
        assert f["a"].shape == f["b"].shape == (5,)


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "member"])
def test_streams_end_there(name):
    feature, data = REFUSED[name]
    sizes = [handle.byte_size for handle in Descriptor.decode(data).buffer_handles]
    stream = DENSE + bytes(5) + data + bytes(sum(sizes))
    for _, encoded, length in MEMBERS if name == "composite" else []:
        stream += encoded + bytes(length)
    reader = hurray.StreamReader(stream + DENSE + bytes(5))
    assert next(reader).shape == (5,)
    with pytest.raises(UnsupportedError, match=f"{feature}.*byte {len(DENSE) + 5} of the stream"):
        next(reader)
    assert list(reader) == []
