import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import hurray
import processes

if hasattr(np, "_core"):
    from numpy._core import multiarray
else:
    from numpy.core import multiarray

DEFAULT = "default_allocator"
OURS = "hurray_aligned"


def current():
    return multiarray.get_handler_name()


def made_by(array):
    return multiarray.get_handler_name(array)


def on_64(array):
    return array.ctypes.data % 64 == 0


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    assert current() == DEFAULT
    yield
    assert current() == DEFAULT


@pytest.mark.parametrize("size", [1, 7, 64, 65, 1000, 4096, 100_000, 1 << 20, (1 << 22) + 3])
def test_every_way_of_allocating_is_aligned(size):
    with hurray.aligned_allocator():
        arrays = [
            np.empty(size, np.uint8),
            np.zeros(size, np.uint8),
            np.ones(size, np.uint8),
            np.arange(size, dtype=np.uint8),
            np.empty(size, np.uint8).copy(),
            np.zeros((3, size), np.uint8) + np.uint8(1),
        ]
    for array in arrays:
        assert on_64(array)
        assert made_by(array) == OURS
    assert not arrays[1].any()
    assert arrays[2].all()
    assert np.array_equal(arrays[3], (np.arange(size) % 256).astype(np.uint8))


def test_arrays_made_inside_are_shared():
    with hurray.aligned_allocator():
        array = np.arange(1000, dtype=np.float32)
    tensor = hurray.from_numpy(array, copy=False)
    assert np.asarray(tensor).ctypes.data == array.ctypes.data
    assert tensor.buffer_handles[0].alignment >= 64
    array[3] = 99
    assert np.asarray(tensor)[3] == 99


def test_enter_gives_none_and_exit_restores():
    with hurray.aligned_allocator() as given:
        assert given is None
        assert current() == OURS
    assert current() == DEFAULT


def test_an_exception_passes_and_the_handler_is_restored():
    with pytest.raises(ZeroDivisionError):
        with hurray.aligned_allocator():
            1 / 0
    assert current() == DEFAULT


def test_arrays_outlive_the_block_and_grow_after_it():
    with hurray.aligned_allocator():
        array = np.arange(1000, dtype=np.int64)
    for size in (10, 5000, 2_000_000, 3, 0, 77):
        kept = min(size, array.size)
        before = array[:kept].copy()
        array.resize(size, refcheck=False)
        assert size == 0 or on_64(array)
        assert np.array_equal(array[:kept], before)
        assert not array[kept:].any()
        assert made_by(array) == OURS
    del array
    gc.collect()


def test_arrays_of_outside_are_freed_inside_and_the_reverse():
    outside = np.arange(100_000)
    with hurray.aligned_allocator():
        inside = np.arange(100_000)
        outside.resize(200_000, refcheck=False)
        assert made_by(outside) == DEFAULT
        del outside
    other = np.arange(10)
    inside.resize(200_000, refcheck=False)
    del inside, other


@pytest.mark.parametrize("shape", [0, (0, 5), (5, 0), (3, 0, 7), ()])
def test_shapes_without_bytes(shape):
    with hurray.aligned_allocator():
        arrays = [np.empty(shape), np.zeros(shape), np.empty(shape).copy()]
    assert [a.shape for a in arrays] == [np.empty(shape).shape] * 3
    del arrays
    gc.collect()


def test_memory_that_does_not_exist_is_a_memory_error():
    with hurray.aligned_allocator():
        for make in (np.empty, np.zeros):
            with pytest.raises(MemoryError):
                make(sys.maxsize // 2, np.uint8)
        array = np.arange(10)
        with pytest.raises(MemoryError):
            array.resize(sys.maxsize // 16, refcheck=False)
        assert array.tolist() == list(range(10))


def test_blocks_nest():
    with hurray.aligned_allocator():
        with hurray.aligned_allocator():
            inner = np.zeros(1000)
        assert current() == OURS
        outer = np.zeros(1000)
    assert on_64(inner) and on_64(outer)


def test_one_object_serves_one_block_at_a_time():
    block = hurray.aligned_allocator()
    with block:
        with pytest.raises(RuntimeError, match="already active"):
            block.__enter__()
        assert current() == OURS
    with block:
        assert current() == OURS


def test_leaving_what_was_not_entered():
    with pytest.raises(RuntimeError, match="not active"):
        hurray.aligned_allocator().__exit__(None, None, None)


def test_leaving_in_the_wrong_order_changes_nothing():
    outer, inner = hurray.aligned_allocator(), hurray.aligned_allocator()
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(RuntimeError, match="current handler"):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert current() == OURS
    outer.__exit__(None, None, None)


def test_leaving_in_another_thread_changes_nothing():
    block = hurray.aligned_allocator()
    block.__enter__()
    raised = []

    def leave():
        try:
            block.__exit__(None, None, None)
        except RuntimeError as error:
            raised.append(error)

    # With an empty context, whatever the build's default for new threads is.
    thread = threading.Thread(target=contextvars.Context().run, args=(leave,))
    thread.start()
    thread.join()
    assert "current handler" in str(raised[0])
    assert current() == OURS
    block.__exit__(None, None, None)


def test_a_thread_decides_for_itself():
    seen = {}

    def work():
        seen["outside"] = current()
        with hurray.aligned_allocator():
            seen["inside"] = current()
            seen["array"] = np.zeros(1000)
        seen["after"] = current()

    with hurray.aligned_allocator():
        thread = threading.Thread(target=contextvars.Context().run, args=(work,))
        thread.start()
        thread.join()
    assert (seen["outside"], seen["inside"], seen["after"]) == (DEFAULT, OURS, DEFAULT)
    assert on_64(seen["array"])
    del seen  # freed by a thread that did not make it


def test_threads_allocate_and_free_each_others_arrays():
    made = []

    def work(seed):
        random = np.random.default_rng(seed)
        with hurray.aligned_allocator():
            for _ in range(200):
                array = np.full(int(random.integers(1, 50_000)), seed, np.int32)
                assert on_64(array) and (array == seed).all()
                made.append(array)
                if len(made) > 20:
                    made.pop(0)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for array in made:
        assert (array == array[0]).all()


def test_tasks_decide_for_themselves():
    async def inside(entered, left):
        with hurray.aligned_allocator():
            entered.set()
            await left.wait()
            return current(), np.zeros(1000)

    async def beside(entered, left):
        await entered.wait()
        name = current()
        left.set()
        return name

    async def child():
        return current()

    async def parent():
        with hurray.aligned_allocator():
            task = asyncio.ensure_future(child())
        return await task

    async def main():
        entered, left = asyncio.Event(), asyncio.Event()
        (name, array), other = await asyncio.gather(inside(entered, left), beside(entered, left))
        assert (name, other) == (OURS, DEFAULT)
        assert on_64(array)
        assert await parent() == OURS  # a task takes the context of where it was created along
        assert current() == DEFAULT

    asyncio.run(main())


@processes.measures_memory
def test_zeros_cost_nothing_until_touched():
    processes.run(
        """
        before = status("VmRSS")
        with hurray.aligned_allocator():
            zeros = np.zeros(1 << 30, np.uint8)
        grown = status("VmRSS") - before
        assert grown < 4 << 20, grown
        assert zeros.ctypes.data % 64 == 0
        assert zeros[0] == zeros[-1] == zeros[1 << 29] == 0
        zeros[1 << 29] = 7
        tensor = hurray.from_numpy(zeros, copy=False)
        assert np.asarray(tensor)[1 << 29] == 7
        grown = status("VmRSS") - before
        assert grown < 8 << 20, grown
        """
    )


def test_tracemalloc_sees_the_arrays():
    processes.run(
        """
        import tracemalloc
        tracemalloc.start()
        with hurray.aligned_allocator():
            array = np.zeros(1 << 20, np.uint8)
        assert tracemalloc.get_traced_memory()[0] >= 1 << 20
        del array
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
        """
    )


def package_folder():
    return os.path.dirname(os.path.dirname(hurray.__file__))


def run_without_numpy(tmp_path, version):
    """In a process that finds no NumPy, or a package of that name which says it is `version`."""
    if version is not None:
        (tmp_path / "numpy").mkdir()
        (tmp_path / "numpy" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    code = f"""
import sys
sys.path[:0] = [{os.fspath(tmp_path)!r}]
class Block:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy" and {version is None}:
            raise ModuleNotFoundError("No module named 'numpy'", name="numpy")
sys.meta_path.insert(0, Block())
sys.path.append({package_folder()!r})
import hurray
try:
    with hurray.aligned_allocator():
        pass
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_numpy(tmp_path):
    said = run_without_numpy(tmp_path, None)
    assert said.startswith("ImportError")
    assert "numpy is not installed; install it with: pip install numpy" in said


@pytest.mark.parametrize("version", ["1.21.6", "1.9.3", "0.5"])
def test_with_a_numpy_that_is_too_old(tmp_path, version):
    said = run_without_numpy(tmp_path, version)
    assert said.startswith("UnsupportedError")
    assert "1.22" in said and version in said
