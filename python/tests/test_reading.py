"""`File.read`: parts of tensors, into memory of one's own, and what that costs (08-python-api.md 19.2)."""

import os

import ml_dtypes
import numpy as np
import processes
import pytest

import hurray
from threads import together

MODES = ["map", "copy_on_write", "memory"]
X = np.arange(512 * 1024, dtype=np.float32).reshape(512, 1024)
F = np.asfortranarray(np.arange(30 * 40, dtype=np.int16).reshape(30, 40))
I4 = (np.arange(24 * 10) % 16 - 8).astype(ml_dtypes.int4).reshape(24, 10)
B = (np.arange(100) % 3 == 0).reshape(4, 25)


def per_block():
    scheme = hurray.PerBlockAffine.symmetric(axis=0, block_size=32, scale_buffer_index=1, scale_type=hurray.float32)
    return hurray.Tensor(bytes(32), hurray.dtype.int4, [64], quantization=scheme, aux_buffers=[np.ones(2, np.float32)])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("reading") / "x.hrry"
    q = hurray.Tensor(bytes(range(64)), hurray.uint8, [8, 8], quantization=hurray.PerTensorAffine(0.5, 3))
    block = hurray.Tensor(bytes(range(64)), hurray.uint8, [8, 8], quantization=hurray.PerTensorAffine(0.5, 3))
    hurray.save(path, {"x": X, "f": F, "i4": I4, "b": B, "q": q, "s": np.float64(2.5), "none": np.zeros((0, 5)),
                       "pb": per_block(), "sp": hurray.sparse_coo(np.ones(2), np.array([[0, 1], [1, 2]]), shape=[3, 4]),
                       "head": hurray.Composite("group", shape=[8, 8], dtype=hurray.uint8, members=[block])})  # fmt: skip
    return path


INDEXES = [
    ..., (), 3, -1, slice(None), slice(5, 9), slice(-5, None), slice(None, None, 3), slice(7, 7), slice(20, 3),
    (slice(None), 2), (..., 1), (1, ...), (slice(2, 8, 2), slice(1, -1, 3)), (-2, -3), (slice(1, 2), ..., slice(0, 5)),
    np.int64(2), (np.uint8(1), slice(np.int16(1), None)),
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("index", INDEXES, ids=str)
def test_the_same_as_numpy(path, mode, index):
    with hurray.open(path, mode=mode) as f:
        for name, array in {"x": X, "f": F, "i4": I4, "b": B}.items():
            expected = array[index]
            for verify in (None, True):
                t = f.read(name, index, verify=verify)
                assert t.shape == expected.shape and t.layout == hurray.RowMajorLayout()
                got = t.to_numpy()
                assert got.dtype == array.dtype and np.array_equal(got, expected)


def test_what_is_read_by_name_alone_is_the_whole(path):
    with hurray.open(path) as f:
        assert np.array_equal(f.read("x").to_numpy(), X)
        assert f.read("s").to_numpy() == 2.5 and f.read("s", ()).shape == ()
        assert f.read("none", slice(0, 0)).shape == (0, 5)
        assert np.array_equal(f.read("head.0", 1).to_numpy(storage=True), np.arange(8, 16))


def test_quantization_goes_along_and_statistics_stay(path, tmp_path):
    with hurray.open(path) as f:
        part = f.read("q", (slice(2, 4), slice(None, None, 2)))
        assert part.quantization == hurray.PerTensorAffine(0.5, 3)
        assert np.array_equal(part.dequantize().to_numpy(), (np.arange(64).reshape(8, 8)[2:4, ::2] - 3) * np.float32(0.5))
    t = hurray.Tensor(bytes(range(8)), hurray.uint8, [8], statistics=hurray.Statistics(nnz=7), shard=hurray.Shard([8], [0]))
    hurray.save(tmp_path / "t.hrry", {"t": t})
    with hurray.open(tmp_path / "t.hrry") as f:
        assert f["t"].statistics is not None and f["t"].shard is not None
        part = f.read("t", slice(1, 3))
        assert part.statistics is None and part.shard is None


@pytest.mark.parametrize("index, error, words", [
    (512, IndexError, r"index\[0\]: 512 is out of range for a dimension of 512"),
    (-513, IndexError, "-513 is out of range"),
    (10**30, IndexError, "out of range"),
    ((0, 0, 0), IndexError, r"3 parts for a tensor of 2 dimension\(s\), \(512, 1024\)"),
    ((0, 0, ..., 0), IndexError, "3 parts"),
    ((..., ...), IndexError, "once"),
    (slice(None, None, -1), ValueError, "step of 1 or more is possible, found -1; reverse"),
    (slice(None, None, 0), ValueError, "step"),
    (None, TypeError, r"index\[0\]: expected an int, a slice or ..., got NoneType"),
    (True, TypeError, "got bool"),
    (np.True_, TypeError, "got numpy.bool"),
    ([1, 2], TypeError, "got list"),
    (np.array([1, 2]), TypeError, "got numpy.ndarray|integer"),
    (1.0, TypeError, "got float"),
    ("x", TypeError, "got str"),
    ((0, "x"), TypeError, r"index\[1\]"),
    (slice("a"), TypeError, "slice indices must be integers"),
])  # fmt: skip
def test_wrong_indexes(path, index, error, words):
    with hurray.open(path) as f:
        with pytest.raises(error, match=words):
            f.read("x", index)
        assert f.io.requests == 0


def test_what_has_no_parts(path):
    with hurray.open(path) as f:
        for name, words in {"sp": "coo", "head": "composite", "pb": "per_block_affine"}.items():
            with pytest.raises(hurray.UnsupportedError, match=f'tensor "{name}".*{words}.*take the whole tensor'):
                f.read(name, 0 if name == "sp" else ...)
        with pytest.raises(KeyError, match="nothing"):
            f.read("nothing")
        with pytest.raises(TypeError):
            f.read(5)
        for wrong in ({"copy": 1}, {"verify": 1}):
            with pytest.raises(TypeError):
                f.read("x", 0, **wrong)
    with pytest.raises(ValueError, match="closed"):
        f.read("x")
    with pytest.raises(ValueError, match="closed"):
        f.io


def outs(shape):
    yield np.full(shape, -1, np.float32)
    yield hurray.full(shape, -1.0, dtype=hurray.float32)
    try:
        import torch
    except ImportError:
        return
    yield torch.full(shape, -1.0)
    yield torch.full(shape, -1.0, requires_grad=True)


@pytest.mark.parametrize("mode", MODES)
def test_out_is_filled_and_returned(path, mode):
    with hurray.open(path, mode=mode) as f:
        for index in (slice(3, 7), (slice(None), slice(10, 12)), (5, 6), (slice(1, 1), 2), (slice(0, 1), slice(None))):
            expected = X[index]
            for out in outs(expected.shape):
                assert f.read("x", index, out=out) is out
                got = out.detach().numpy() if hasattr(out, "detach") else np.asarray(out)
                assert np.array_equal(got, expected)
        for name, array, index in (("i4", I4, (slice(1, 4), 3)), ("b", B, slice(1, 3))):
            expected = array[index]
            size = hurray.buffer_size_bytes(f.descriptor(name).dtype, expected.size)
            out = hurray.Tensor(bytearray(b"\xff" * size), f.descriptor(name).dtype, expected.shape)
            f.read(name, index, out=out)
            assert np.array_equal(out.to_numpy(), expected)


def test_out_of_a_copy_on_write_file_stays_in_the_process(path, tmp_path):
    hurray.save(tmp_path / "y.hrry", {"y": np.zeros((2, 1024), np.float32)})
    with hurray.open(path) as f, hurray.open(tmp_path / "y.hrry", mode="copy_on_write") as g:
        y = g["y"]
        f.read("x", slice(0, 2), out=y)
        assert np.array_equal(y.to_numpy(), X[:2])
    assert not hurray.load(tmp_path / "y.hrry")["y"].to_numpy().any()


@pytest.mark.parametrize("out, error, words", [
    (np.zeros((4, 1024), np.float64), TypeError, "expected writable, contiguous memory for float32 of shape .4, 1024., found float64"),
    (np.zeros((4, 1024), ">f4"), TypeError, "stores them otherwise"),
    (np.zeros((3, 1024), np.float32), ValueError, r"found shape \(3, 1024\)"),
    (np.zeros(4096, np.float32), ValueError, "found shape"),
    (np.zeros((4, 2048), np.float32)[:, ::2], ValueError, "gaps or another order"),
    (np.zeros((1024, 4), np.float32).T, ValueError, "gaps or another order"),
    (np.broadcast_to(np.float32(0), (4, 1024)), ValueError, "gaps|read-only"),
    (bytes(16384), (TypeError, ValueError), "out"),
    (5, TypeError, "out: .*found a int that has none; pass an array"),
    ([0.0], TypeError, "out: .*found a list that has none; pass an array"),
])  # fmt: skip
def test_wrong_outs_are_refused_and_nothing_is_read(path, out, error, words):
    with hurray.open(path) as f:
        with pytest.raises(error, match=words):
            f.read("x", slice(0, 4), out=out)
        assert f.io.requests == 0


def test_codes_go_only_where_they_are_known_as_codes(path):
    quantized = hurray.PerTensorAffine(0.5, 3)
    with hurray.open(path) as f:
        stored = f["q"].dtype
        size = hurray.buffer_size_bytes(stored, 8)
        for out in (np.zeros(8, f["q"].to_numpy(storage=True).dtype), hurray.Tensor(bytearray(size), stored, [8]),
                    hurray.Tensor(bytearray(size), stored, [8], quantization=hurray.PerTensorAffine(0.25, 3))):  # fmt: skip
            with pytest.raises(hurray.UnsupportedError, match="out: the tensor is quantized .per_tensor_affine.*dequantize"):
                f.read("q", 2, out=out)
            assert not bytes(out.buffer(0) if isinstance(out, hurray.Tensor) else out).strip(b"\0")
        out = hurray.Tensor(bytearray(size), stored, [8], quantization=quantized)
        assert f.read("q", 2, out=out) is out
        assert np.array_equal(out.dequantize().to_numpy(), f["q"].dequantize().to_numpy()[2])


def test_read_only_outs(path):
    array = np.zeros((4, 1024), np.float32)
    array.flags.writeable = False
    with hurray.open(path) as f:
        for out in (array, f.read("x", slice(0, 4)), f["x"]):
            with pytest.raises(ValueError, match="read-only"):
                f.read("x", slice(0, 4), out=out)
        with pytest.raises(TypeError, match="stores them otherwise"):
            f.read("b", out=np.zeros((4, 25), bool))
        with pytest.raises(ValueError, match="copy must be None"):
            f.read("x", 0, out=np.zeros(1024, np.float32), copy=True)
    assert not array.any()


def test_copy(path):
    with hurray.open(path) as f:
        view = f.read("x", slice(2, 5), copy=False)
        assert view.readonly
        assert np.asarray(view).ctypes.data == np.asarray(f["x"]).ctypes.data + 2 * 4096
        assert f.io.requests == 0
        own = f.read("x", slice(2, 5), copy=True)
        assert not own.readonly and np.asarray(own).ctypes.data % 64 == 0
        assert f.io.bytes_read == f.io.bytes_wanted == 3 * 4096 and f.io.requests == 1
        with pytest.raises(hurray.CopyRequiredError, match="not one range of the file that starts on 64"):
            f.read("x", (slice(None), 3), copy=False)
        with pytest.raises(hurray.CopyRequiredError, match="starts on 64"):
            f.read("x", (0, slice(1, 9)), copy=False)
        assert f.close() == ("x",)
        assert np.array_equal(view.to_numpy(), X[2:5])
    with hurray.open(path, mode="memory") as f, pytest.raises(hurray.CopyRequiredError, match="not mapped"):
        f.read("x", slice(2, 5), copy=False)


def test_what_it_costs(path):
    with hurray.open(path) as f:
        assert repr(f.io) == "ReadCounts(bytes_wanted=0, bytes_read=0, requests=0)"
        f.read("x", (slice(None), slice(0, 256)))
        assert (f.io.bytes_wanted, f.io.bytes_read, f.io.requests) == (512 * 1024, 511 * 4096 + 1024, 1)
        f["x"].to_numpy()
        assert f.io.requests == 1  # mapped
    with hurray.open(path, mode="memory") as f:
        f["x"]
        assert f.io.bytes_wanted == f.io.bytes_read == X.nbytes


def test_spoiled_chunks(path, tmp_path):
    data = bytearray(path.read_bytes())
    with hurray.open(path) as f:
        at = data.index(X[300].tobytes())
    data[at] ^= 1
    (tmp_path / "x.hrry").write_bytes(data)
    with hurray.open(tmp_path / "x.hrry") as f:
        f.read("x", 300)
        f.read("x", 10, verify=True)
        for index in (300, 500, ...):
            with pytest.raises(hurray.FileError, match='tensor "x".*checksum'):
                f.read("x", index, verify=True)
        assert np.array_equal(f.read("f", 3, verify=True).to_numpy(), F[3])
    with hurray.open(tmp_path / "x.hrry", verify=True) as f:
        with pytest.raises(hurray.FileError):
            f.read("x", 300)
        f.read("x", 300, verify=False)


def test_threads(path):
    with hurray.open(path) as f:
        failed = []

        def work(k):
            for i in range(k, 512, 7):
                if not np.array_equal(f.read("x", (i, slice(k, None, 3))).to_numpy(), X[i, k::3]):
                    failed.append((k, i))

        together(work)
        assert not failed


@processes.measures_memory
@pytest.mark.parametrize("axis", [0, 1])
def test_an_eighth_takes_the_memory_of_an_eighth(tmp_path, axis):
    size = 64 << 20
    hurray.save(tmp_path / "x.hrry", {"x": np.ones((4096, size // 4096 // 4), np.float32)}, checksums=False)
    done = processes.run(
        """
        f = hurray.open(sys.argv[1])
        f.read("x", (0, slice(0, 1)))
        rows, columns = f.descriptor("x").shape
        index = slice(rows // 8, rows // 4) if sys.argv[2] == "0" else (slice(None), slice(columns // 8, columns // 4))
        before = status("VmHWM")
        part = f.read("x", index, copy=True)
        print(part.nbytes, status("VmHWM") - before)
        """,
        tmp_path / "x.hrry", str(axis))  # fmt: skip
    nbytes, extra = map(int, done.stdout.split())
    assert nbytes == size // 8 and extra <= nbytes + (16 << 20)


def test_torch_pinned_or_not(path):
    torch = pytest.importorskip("torch")
    out = torch.empty(8, 1024)
    with hurray.open(path) as f:
        f.read("x", slice(8, 16), out=out[:8])
        assert torch.equal(out, torch.from_numpy(X[8:16].copy()))
        f.read("x", slice(0, 2), out=out[2:4])
        assert np.array_equal(out[2:4].numpy(), X[:2]) and np.array_equal(out[4].numpy(), X[12])


@pytest.mark.parametrize("mode", MODES)
def test_prefetch(path, mode):
    with hurray.open(path, mode=mode) as f:
        for plan in (None, [], ["x"], ("x", "sp"), iter(["b"]), {"x": 3, "f": (slice(None), 1)}, {"x": ...}):
            assert f.prefetch(plan) is None
        f.prefetch(["x"], max_bytes=0)
        assert np.array_equal(f.read("x", 3).to_numpy(), X[3])
        for plan, error in (({"x": 1000}, IndexError), ({"sp": 0}, hurray.UnsupportedError), ({"y": 0}, KeyError),
                            (["y"], KeyError), ("x", TypeError), (5, TypeError), ({5: 0}, TypeError)):  # fmt: skip
            with pytest.raises(error):
                f.prefetch(plan)
        with pytest.raises(OverflowError):
            f.prefetch(max_bytes=-1)
