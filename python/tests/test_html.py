"""Tables and pictures for notebooks: well-formed, escaped, from metadata alone."""

import re
import struct
import xml.etree.ElementTree as ElementTree

import pytest

import hurray
import wire
from hurray import Device, Tensor

F32 = hurray.float32
COLUMNS = ["name", "shape", "dtype", "layout", "device", "bytes", "scheme"]


def parsed(t):
    """The page as a tree, which it is only when it is well-formed."""
    text = t._repr_html_()
    assert isinstance(text, str) and "\n" not in text
    return ElementTree.fromstring(f"<html>{text}</html>")


def local(element):
    return element.tag.rpartition("}")[2]


def cells(tree):
    assert [e.text for e in tree.iter("th")] == COLUMNS
    return [[cell.text or "" for cell in row.iter("td")] for row in tree.iter("tr")][1:]


def texts(tree):
    return [e.text for e in tree.iter() if local(e) == "text"]


def test_table():
    t = Tensor(bytes(24), F32, (2, 3), Device("cuda", 1, "unified"))
    assert cells(parsed(t)) == [["", "(2, 3)", "float32", "row_major", "cuda:1, unified", "24", ""]]
    assert parsed(t).find(".//strong").text == "hurray.Tensor"
    quantized = Tensor(bytes(8), hurray.uint8, (8,), quantization=hurray.PerTensorAffine(0.5, 1))
    assert cells(parsed(quantized)) == [
        ["", "(8,)", "uint8", "row_major", "cpu", "8", "per_tensor_affine"]
    ]
    private = Tensor(bytes(4), F32, (None,), Device(0xF3, 2, 0xF5))
    assert cells(parsed(private)) == [
        ["", "(None,)", "float32", "row_major", "private (0xF3):2, private (0xF5)", "4", ""]
    ]


def u64(*numbers):
    return struct.pack(f"<{len(numbers)}Q", *numbers)


TENSORS = {
    "scalar": lambda: hurray.zeros(()),
    "empty": lambda: hurray.zeros((0, 3)),
    "vector": lambda: hurray.zeros((5,)),
    "matrix": lambda: hurray.zeros((3, 4)),
    "large": lambda: hurray.empty((1000, 1000, 100)),
    "rank 64": lambda: hurray.zeros((1,) * 64),
    "column-major": lambda: Tensor(bytes(24), F32, (2, 3), layout=hurray.ColMajorLayout()),
    "strided": lambda: Tensor(bytes(80), F32, (3, 4), layout=hurray.StridedLayout((-4, 1)), byte_offset=32),
    "broadcast": lambda: Tensor(bytes(4), F32, (2**61, 2), layout=hurray.StridedLayout((0, 0))),
    "tiled": lambda: Tensor(bytes(144), F32, (5, 5), layout=hurray.TiledLayout((2, 2))),
    "morton": lambda: Tensor(bytes(64), F32, (3, 3), layout=hurray.MortonLayout((2, 2))),
    "hilbert": lambda: Tensor(bytes(64), F32, (4, 4), layout=hurray.HilbertLayout(2, 2)),
    "coo": lambda: Tensor(bytes(8), F32, (3, 3), layout=hurray.CooLayout(2), aux_buffers=[bytes(32)]),
    "coo, huge": lambda: Tensor(b"", F32, (2**63, 2**63), layout=hurray.CooLayout(0), aux_buffers=[b""]),
    "csr": lambda: Tensor(bytes(4), F32, (2, 3), layout=hurray.CsrLayout(1), aux_buffers=[u64(2), u64(0, 0, 1)]),
    "csf": lambda: Tensor(
        bytes(4), F32, (2,) * 8, layout=hurray.CsfLayout(1, range(8)), aux_buffers=[u64(0, 1), u64(0)] * 8
    ),
    "block-paged": lambda: Tensor(
        bytes(48), hurray.int8, (4, 3, 4), layout=hurray.BlockPagedLayout(4, 1, 0, 1), aux_buffers=[bytes(4), bytes(8)]
    ),
    "private": lambda: Tensor(b"", F32, (1,), layout=hurray.PrivateExtensionLayout(0xF0, 1)),
    "unknown": lambda: Tensor(b"", F32, (1,), layout=hurray.UnknownLayout(0x0C)),
    "dynamic": lambda: Tensor(b"", F32, (None, 3)),
    "private type": lambda: Tensor(bytes(3), hurray.Dtype.from_tag(0xF1), (1,), extension_type=hurray.ExtensionType(24)),
    "mismatched scheme": lambda: Tensor(bytes(4), F32, (1,), quantization=hurray.PerTensorAffine(0.5, 0)),
}  # fmt: skip


@pytest.mark.parametrize("case", TENSORS)
def test_every_kind_of_tensor_has_a_table_and_a_picture(case):
    t = TENSORS[case]()
    tree = parsed(t)
    ((_, shape, dtype, layout, _, size, _),) = cells(tree)
    assert (shape, dtype, layout, size) == (
        str(t.shape),
        str(t.dtype),
        t.layout.name,
        str(t.nbytes),
    )
    (picture,) = (e for e in tree.iter() if local(e) == "svg")
    assert picture.get("aria-label") == t.layout.name
    width, height = float(picture.get("width")), float(picture.get("height"))
    assert 0 < width < 500 and 0 < height < 500
    for e in picture.iter():
        for name in ("x", "y", "width", "height"):
            assert -1 <= float(e.get(name, 0)) <= 500
    bars = [text for text in texts(tree) if "bytes" in text]
    assert len(bars) == min(t.buffer_count, 8)
    assert bars[0].endswith(f": {t.buffer_handles[0].byte_size} bytes")
    if t.buffer_count > 8:
        assert f"… {t.buffer_count - 8} more" in texts(tree)
    assert len(t._repr_html_()) < 20_000


def order(t):
    (line,) = (e for e in parsed(t).iter() if local(e) == "polyline")
    points = [tuple(map(float, p.split(","))) for p in line.get("points").split()]
    ranks = [sorted({p[k] for p in points}) for k in (1, 0)]
    return [(ranks[0].index(y), ranks[1].index(x)) for x, y in points]


def test_the_picture_shows_how_elements_follow_each_other():
    assert order(hurray.zeros((2, 3))) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    columns = Tensor(bytes(24), F32, (2, 3), layout=hurray.ColMajorLayout())
    assert order(columns) == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    flipped = Tensor(bytes(16), F32, (2, 2), layout=hurray.StridedLayout((-2, 1)), byte_offset=8)
    assert order(flipped) == [(1, 0), (1, 1), (0, 0), (0, 1)]
    morton = Tensor(bytes(64), F32, (4, 4), layout=hurray.MortonLayout((2, 2)))
    assert order(morton)[:6] == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0)]
    hilbert = Tensor(bytes(64), F32, (4, 4), layout=hurray.HilbertLayout(2, 2))
    steps = [abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(order(hilbert), order(hilbert)[1:])]
    assert steps == [1] * 15
    assert len(order(hurray.empty((3, 1000, 1000)))) == 64
    assert order(hurray.zeros((3,))) == [(0, 0), (0, 1), (0, 2)]


def test_components_are_named():
    assert texts(parsed(TENSORS["csr"]())) == [
        "nnz 1",
        "0 values: 4 bytes",
        "1 col_indices: 8 bytes",
        "2 row_ptr: 24 bytes",
    ]


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_no_byte_is_read(mode):
    """Neither of memory that is said to be a device's, nor of bytes that are not ready."""
    writer = hurray.StreamWriter()
    writer.write(Tensor(b"abcd", hurray.uint8, (4,), hurray.device.cuda))
    plain = wire.handle(4, device=1)
    data = writer.getvalue().replace(plain, wire.handle(4, device=1, sync=mode))
    (t,) = hurray.StreamReader(data)
    assert cells(parsed(t)) == [["", "(4,)", "uint8", "row_major", "cuda", "4", ""]]


def test_nothing_but_markup_of_our_own():
    text = hurray.zeros((2, 3))._repr_html_()
    assert set(re.findall(r"<(\w+)", text)) == {
        "div", "strong", "table", "thead", "tbody", "tr", "th", "td", "svg", "rect", "polyline", "text",
    }  # fmt: skip
    assert "script" not in text and "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_the_method_checks_self():
    with pytest.raises(TypeError):
        Tensor._repr_html_(3)


# ---- what holds several -----------------------------------------------------------------------------


def part(columns, offset):
    return Tensor(bytes(8 * columns), F32, (2, columns), shard=hurray.Shard((2, 4), offset))


def test_composite():
    inner = hurray.Composite("partition", shape=(2, 4), dtype=F32, members=[part(1, (0, 0)), part(3, (0, 1))])
    tree = parsed(inner)
    assert tree.find(".//strong").text == "hurray.Composite"
    assert cells(tree) == [
        ["", "(2, 4)", "float32", "composite", "", "0", ""],
        ["0", "(2, 1)", "float32", "row_major", "cpu", "8", ""],
        ["1", "(2, 3)", "float32", "row_major", "cpu", "24", ""],
    ]
    boxes = [e.attrib for e in tree.iter() if local(e) == "rect"][1:]
    assert [(float(b["x"]), float(b["width"])) for b in boxes] == [(0, 24), (24, 72)]
    outer = hurray.Composite("group", shape=(), dtype=F32, members=[inner, Tensor(bytes(4), F32, ())])
    assert [row[0] for row in cells(parsed(outer))] == ["", "0", "0.0", "0.1", "1"]
    many = hurray.Composite("group", shape=(), dtype=F32, members=[Tensor(bytes(4), F32, ())] * 150)
    assert len(cells(parsed(many))) == 100 and parsed(many).find(".//p").text == "… 51 more"


def test_file(tmp_path):
    path = tmp_path / "a<b>.hrry"
    halves = hurray.Composite("partition", shape=(2, 4), dtype=F32, members=[part(1, (0, 0)), part(3, (0, 1))])
    hurray.save(path, {"w\u202e": hurray.zeros((3,), dtype=F32), "view": halves})
    with hurray.open(path) as f:
        tree = parsed(f)
        assert tree.find(".//strong").text == f"hurray.file.File {path}"
        assert cells(tree) == [
            ["w\\u202e", "(3,)", "float32", "row_major", "cpu", "12", ""],
            ["view", "(2, 4)", "float32", "composite", "", "0", ""],
        ]
        assert texts(tree) == ["w\\u202e: 12 bytes", "view: 0 bytes"]
    assert f._repr_html_() is None  # closed
    hurray.save(path, {f"t{i:03}": hurray.zeros((1,)) for i in range(130)})
    with hurray.open(path) as f:
        tree = parsed(f)
        assert [row[0] for row in cells(tree)] == [f"t{i:03}" for i in range(100)]
        assert tree.find(".//p").text == "… 30 more"


def test_a_damaged_entry_has_its_row(tmp_path):
    path = tmp_path / "d.hrry"
    hurray.save(path, {"good": hurray.zeros((3,)), "bad": hurray.zeros((3,))}, checksums=False)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"HRRY\x01", 0, data.rindex(b"bad"))] ^= 1
    path.write_bytes(data)
    with hurray.open(path) as f:
        assert [row[:2] for row in cells(parsed(f))] == [["good", "(3,)"], ["bad", "cannot be read"]]
