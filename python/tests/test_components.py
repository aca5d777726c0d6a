"""nnz and the component views of sparse tensors: which layout has which, what they are, what they refuse."""

import gc
import struct
import weakref

import pytest

import hurray
import wire
from hurray import (
    BlockPagedLayout,
    CooLayout,
    CscLayout,
    CsfLayout,
    CsrLayout,
    Device,
    Tensor,
    UnsupportedError,
)

F32 = hurray.float32
NAMES = "nnz values indices col_indices row_ptr row_indices col_ptr".split()


def u64(*numbers):
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def f32(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def coo(device=None, **keywords):
    """3 x 4, (0, 3) = 7, (2, 1) = 9."""
    return Tensor(
        f32(7, 9),
        F32,
        (3, 4),
        device,
        layout=CooLayout(2),
        aux_buffers=[u64(0, 3, 2, 1)],
        **keywords,
    )


def csr(device=None, **keywords):
    return Tensor(
        f32(7, 9),
        F32,
        (3, 4),
        device,
        layout=CsrLayout(2),
        aux_buffers=[u64(3, 1), u64(0, 1, 1, 2)],
        **keywords,
    )


def csc(device=None, **keywords):
    return Tensor(
        f32(9, 7),
        F32,
        (3, 4),
        device,
        layout=CscLayout(2),
        aux_buffers=[u64(2, 0), u64(0, 0, 1, 1, 2)],
        **keywords,
    )


def csf():
    return Tensor(
        f32(5), F32, (2, 3, 4), layout=CsfLayout(1, (0, 1, 2)), aux_buffers=[u64(0, 1), u64(0)] * 3
    )


def paged():
    return Tensor(
        bytes(48),
        hurray.int8,
        (4, 3, 4),
        layout=BlockPagedLayout(4, 1, 0, 1),
        aux_buffers=[bytes(4), bytes(8)],
    )


ALL = {
    "coo": (coo, {"nnz", "values", "indices"}),
    "csr": (csr, {"nnz", "values", "col_indices", "row_ptr"}),
    "csc": (csc, {"nnz", "values", "row_indices", "col_ptr"}),
    "csf": (csf, {"nnz"}),
    "block_paged": (paged, set()),
    "row_major": (lambda: hurray.zeros((2,)), set()),
    "col_major": (lambda: Tensor(bytes(4), F32, (1,), layout=hurray.ColMajorLayout()), set()),
    "strided": (lambda: Tensor(bytes(4), F32, (1,), layout=hurray.StridedLayout((1,))), set()),
    "tiled": (lambda: Tensor(bytes(4), F32, (1,), layout=hurray.TiledLayout((1,))), set()),
    "morton": (lambda: Tensor(bytes(8), F32, (1,), layout=hurray.MortonLayout((1,))), set()),
    "hilbert": (lambda: Tensor(bytes(16), F32, (2, 2), layout=hurray.HilbertLayout(1, 2)), set()),
    "extension": (lambda: Tensor(b"", F32, (1,), layout=hurray.PrivateExtensionLayout(0xF0, 1)), set()),
}  # fmt: skip


@pytest.mark.parametrize("layout", ALL)
def test_each_layout_has_exactly_its_own_components(layout):
    make, names = ALL[layout]
    t = make()
    assert {name for name in NAMES if hasattr(t, name)} == names
    for name in set(NAMES) - names:
        with pytest.raises(AttributeError) as info:
            getattr(t, name)
        assert (
            str(info.value)
            == f"'Tensor' object has no attribute '{name}'; this is a {layout} tensor"
        )
        assert not isinstance(info.value, UnsupportedError)
        assert getattr(t, name, None) is None
    if "nnz" in names:
        assert t.nnz == t.layout.nnz and type(t.nnz) is int


def numbers(view):
    code = {hurray.float32: "f", hurray.uint64: "Q"}[view.dtype]
    data = bytes(memoryview(view.to_cpu().buffer(0)))
    return [*struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)]


@pytest.mark.parametrize("device", [None, Device("cpu", 0, "unified"), Device("cuda", 3)])
def test_shapes_types_values_and_device(device):
    for t, expected in (
        (coo(device), {"values": ((2,), [7, 9]), "indices": ((2, 2), [0, 3, 2, 1])}),
        (csr(device), {"values": ((2,), [7, 9]), "col_indices": ((2,), [3, 1]), "row_ptr": ((4,), [0, 1, 1, 2])}),
        (csc(device), {"values": ((2,), [9, 7]), "row_indices": ((2,), [2, 0]), "col_ptr": ((5,), [0, 0, 1, 1, 2])}),
    ):  # fmt: skip
        for name, (shape, content) in expected.items():
            view = getattr(t, name)
            assert isinstance(view, Tensor) and view.shape == shape and numbers(view) == content
            assert view.dtype is (F32 if name == "values" else hurray.uint64)
            assert view.layout == hurray.RowMajorLayout() and view.buffer_count == 1
            assert view.device is t.device and view.buffer_handles[0].device is t.device
            assert getattr(t, name) is not view
            assert view.descriptor.encode()


def test_views_share_memory_and_keep_the_parent_alive():
    t = csr()
    values, pointers = t.values, t.row_ptr
    memoryview(values)[0] = 70.0
    assert memoryview(t.values)[0] == 70.0 and not values.readonly
    watch = weakref.ref(t)
    del t
    gc.collect()
    assert watch() is None or watch().nnz == 2
    assert list(memoryview(values)) == [70.0, 9.0] and list(memoryview(pointers)) == [0, 1, 1, 2]


def test_alignment_of_views_is_measured():
    np = pytest.importorskip("numpy")
    for name in ("values", "col_indices", "row_ptr"):
        view = getattr(csr(), name)
        address = np.asarray(view).ctypes.data
        assert view.buffer_handles[0].alignment == min(address & -address, 4096) >= 64
    empty = Tensor(
        b"", F32, (2, 2), layout=CsrLayout(0), aux_buffers=[b"", bytes(24)]
    )
    assert empty.values.buffer_handles[0].alignment == 1 and empty.values.shape == (0,)
    assert empty.row_ptr.shape == (3,)


def test_slack_is_not_cut_off_and_not_shown():
    t = Tensor(
        f32(7, 9, 1, 1), F32, (3, 4), layout=CooLayout(2), aux_buffers=[u64(0, 3, 2, 1, 5)]
    )
    assert t.values.shape == (2,) and t.values.nbytes == 16
    assert t.indices.shape == (2, 2) and t.indices.nbytes == 40
    assert memoryview(t.indices).tolist() == [[0, 3], [2, 1]]


def test_values_keep_the_type_of_the_tensor():
    nibbles = Tensor(
        b"\x21\x03", hurray.dtype.int4, (2, 3), layout=CooLayout(3), aux_buffers=[bytes(48)]
    )
    assert nibbles.values.dtype is hurray.dtype.int4 and nibbles.values.shape == (3,)
    private = Tensor(
        bytes(6),
        hurray.Dtype.from_tag(0xF1),
        (2, 3),
        layout=CooLayout(2),
        aux_buffers=[bytes(32)],
        extension_type=hurray.ExtensionType(24),
    )
    assert private.values.extension_type == hurray.ExtensionType(24)
    assert private.values.dtype is private.dtype and private.indices.extension_type is None


def test_dynamic_sizes():
    t = Tensor(
        f32(7), F32, (None, 3), layout=CsrLayout(1), aux_buffers=[u64(2), u64(0, 1)]
    )
    assert t.values.shape == (1,) and t.row_ptr.shape == (None,) and t.col_indices.shape == (1,)
    coo_rows = Tensor(f32(7), F32, (None, 3), layout=CooLayout(1), aux_buffers=[u64(5, 2)])
    assert memoryview(coo_rows.indices).tolist() == [[5, 2]]


def test_sections_are_of_the_whole_and_not_of_the_parts():
    t = csr(shard=hurray.Shard((6, 4), (3, 0)), statistics=hurray.Statistics(nnz=2))
    for view in (t.values, t.col_indices, t.row_ptr):
        assert view.shard is None and view.statistics is None and view.quantization is None


def test_values_of_quantized_tensors():
    scheme = hurray.PerTensorAffine(0.5, 3)
    t = Tensor(
        b"ab",
        hurray.uint8,
        (3, 4),
        layout=CsrLayout(2),
        aux_buffers=[u64(3, 1), u64(0, 1, 1, 2)],
        quantization=scheme,
    )
    assert t.values.quantization == scheme and t.values.dtype is hurray.uint8
    assert t.row_ptr.quantization is None
    by_row = Tensor(
        b"ab",
        hurray.int8,
        (3, 4),
        layout=CsrLayout(2),
        aux_buffers=[u64(3, 1), u64(0, 1, 1, 2), f32(1, 2, 3)],
        quantization=hurray.PerChannelAffine.symmetric(0, 3),
    )
    # Which scale a code has follows from its row: the codes alone are no values.
    assert not hasattr(by_row, "values") and hasattr(by_row, "row_ptr")
    with pytest.raises(UnsupportedError, match=r"per_channel_affine.*buffer\(0\)") as info:
        by_row.values
    assert isinstance(info.value, AttributeError)
    assert bytes(memoryview(by_row.buffer(0))) == b"ab"


def test_one_byte_per_bool_is_not_guessed_in_views_either():
    """D22."""
    t = Tensor(
        bytes([1, 0, 1]), hurray.bool, (3, 4), layout=CooLayout(3), aux_buffers=[bytes(48)]
    )
    with pytest.raises(UnsupportedError, match="3 bytes"):
        t.values.to_numpy()


def test_views_of_read_only_memory_are_read_only(tmp_path):
    np = pytest.importorskip("numpy")
    hurray.save(tmp_path / "t.hrry", {"t": csr()}, sync=False)
    t = hurray.open(tmp_path / "t.hrry", mode="map")["t"]
    assert t.readonly and t.values.readonly and t.row_ptr.readonly
    assert not np.asarray(t.values).flags.writeable
    u = hurray.load(tmp_path / "t.hrry", mode="memory")["t"]
    assert not u.values.readonly and np.asarray(u.col_indices).tolist() == [3, 1]


@pytest.mark.parametrize("mode, name", [(1, "event"), (2, "consumer_stream")])
def test_views_of_bytes_that_are_not_ready_are_refused(mode, name):
    writer = hurray.StreamWriter()
    writer.write(csr(hurray.device.cuda))
    ready = writer.getvalue()
    plain = wire.handle(32, device=1)
    assert ready.count(plain) == 1
    (t,) = hurray.StreamReader(ready.replace(plain, wire.handle(32, device=1, sync=mode)))
    assert t.nnz == 2 and t.buffer_handles[2].sync_mode == name
    for part in ("values", "col_indices", "row_ptr"):
        with pytest.raises(UnsupportedError, match=f"buffer 2 .*{name}") as info:
            getattr(t, part)
        assert not isinstance(info.value, AttributeError)
    assert not hasattr(t, "col_ptr")  # it would not have one anyway
    turned = t.transpose()  # nothing is read
    assert turned.buffer_handles[2].sync_mode == name and turned.layout == CscLayout(2)
    with pytest.raises(UnsupportedError, match=name):
        turned.values
    assert repr(t) == "hurray.Tensor(layout='csr', shape=(3, 4), nnz=2, dtype=float32)"
    with hurray.print_options(sparse_display="content"):
        assert repr(t).startswith("hurray.Tensor(shape=(3, 4), dtype=float32, device=")
