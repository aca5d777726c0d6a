"""What single calls cost: construction, NumPy, PyTorch, DLPack, the native capsule, files, streams, sparse tensors,
lifetimes. Times are compared with the last run of the same machine (`tools/bench.sh`)."""

import copy
import pickle

import numpy as np
import pytest

import hurray

SMALL = (64, 64)
LARGE = (2048, 2048)  # float32: 16 MiB


def aligned(shape):
    with hurray.aligned_allocator():
        return np.ones(shape, np.float32)


@pytest.fixture(params=[SMALL, LARGE], ids=["16KiB", "16MiB"])
def array(request):
    return aligned(request.param)


@pytest.fixture
def tensor(array):
    return hurray.from_numpy(array, copy=False)


class TestConstruction:
    @pytest.mark.parametrize("make", [hurray.zeros, hurray.ones, hurray.empty], ids=lambda make: make.__name__)
    def test_make(self, benchmark, make):
        benchmark(make, SMALL, dtype=hurray.float32)

    def test_constructor(self, benchmark, array, moves):
        moves(array.nbytes)
        benchmark(hurray.Tensor, array, hurray.float32, array.shape)

    def test_descriptor_round_trip(self, benchmark):
        d = hurray.zeros(SMALL).descriptor
        benchmark(lambda: hurray.Descriptor.decode(d.encode()))


class TestNumPy:
    def test_from_numpy_shared(self, benchmark, array):
        benchmark(hurray.from_numpy, array, copy=False)

    def test_from_numpy_copied(self, benchmark, array, moves):
        moves(array.nbytes)
        benchmark(hurray.from_numpy, array, copy=True)

    def test_asarray(self, benchmark, tensor):
        benchmark(np.asarray, tensor)

    def test_asarray_of_numpy(self, benchmark, array):
        """The same call on an array, to hold the one above against."""
        benchmark(np.asarray, memoryview(array))

    def test_bool_packed(self, benchmark, moves):
        mask = np.ones(1 << 20, bool)
        moves(mask.nbytes)
        benchmark(hurray.from_numpy, mask)

    def test_bool_unpacked(self, benchmark, moves):
        t = hurray.from_numpy(np.ones(1 << 20, bool))
        moves(1 << 20)
        benchmark(t.to_numpy)


class TestExchange:
    def test_dlpack_capsule(self, benchmark, tensor):
        benchmark(tensor.__dlpack__, max_version=(1, 1))

    def test_numpy_from_dlpack(self, benchmark, tensor):
        benchmark(np.from_dlpack, tensor)

    def test_from_dlpack_of_numpy(self, benchmark, array):
        benchmark(hurray.from_dlpack, array)

    def test_native_capsule(self, benchmark, tensor):
        benchmark(tensor.__hurray__)

    def test_native_round_trip(self, benchmark, tensor):
        benchmark(hurray.from_hurray, tensor)

    def test_to_torch(self, benchmark, tensor):
        pytest.importorskip("torch")
        benchmark(tensor.to_torch)

    def test_from_torch(self, benchmark):
        torch = pytest.importorskip("torch")
        benchmark(hurray.from_torch, torch.ones(SMALL))


class TestFiles:
    def test_save(self, benchmark, array, tmp_path, moves):
        moves(array.nbytes)
        benchmark(hurray.save, tmp_path / "f.hrry", {"w": array}, sync=False)

    @pytest.mark.parametrize("mode", ["map", "copy_on_write", "memory"])
    def test_load(self, benchmark, array, tmp_path, mode, moves):
        hurray.save(tmp_path / "f.hrry", {"w": array}, sync=False)
        if mode == "memory":
            moves(array.nbytes)
        benchmark(hurray.load, tmp_path / "f.hrry", mode=mode)


class TestStreams:
    def test_write(self, benchmark, array, moves):
        moves(array.nbytes)

        def write():
            out = hurray.StreamWriter()
            out.write(array)

        benchmark(write)

    def test_read(self, benchmark, array, moves):
        out = hurray.StreamWriter()
        out.write(array)
        data = out.getvalue()
        moves(array.nbytes)
        benchmark(lambda: next(hurray.StreamReader(data)))


class TestSparse:
    @pytest.fixture
    def matrix(self):
        sparse = pytest.importorskip("scipy.sparse")
        return sparse.random(2000, 2000, 0.01, "csr", np.float32, rng=np.random.default_rng(0))

    def test_from_scipy(self, benchmark, matrix):
        benchmark(hurray.from_scipy, matrix)

    def test_to_scipy(self, benchmark, matrix):
        benchmark(hurray.from_scipy(matrix).to_scipy)


class TestLifetimes:
    def test_view_made_and_dropped(self, benchmark, tensor):
        benchmark(tensor.buffer, 0)

    def test_shallow_copy(self, benchmark, tensor):
        benchmark(copy.copy, tensor)

    def test_pickle_out_of_band(self, benchmark, tensor):
        def both():
            buffers = []
            data = pickle.dumps(tensor, protocol=5, buffer_callback=buffers.append)
            return pickle.loads(data, buffers=buffers)

        benchmark(both)
