"""Concurrent use: of tensors, files, readers, writers and capsules, and the first use of everything.

In a free-threaded Python these run at once; elsewhere the interpreter is told to change threads often.
"""

import builtins
import gc
import os
import pickle
import random
import sys
import sysconfig
import threading
import weakref

import numpy as np
import pytest

import hurray
import processes
from threads import THREADS, together


@pytest.fixture(autouse=True)
def often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def content(i):
    """What tensor `i` of the files below holds."""
    return np.arange(i, i + 300 + i, dtype=(np.float32, np.int64, np.uint8)[i % 3])


@pytest.fixture
def path(tmp_path):
    hurray.save(tmp_path / "t.hrry", {f"t{i}": content(i) for i in range(12)}, sync=False)
    return tmp_path / "t.hrry"


def test_importing_does_not_bring_the_gil_back():
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python has its lock")
    done = processes.run("print(sys._is_gil_enabled())", env={"PYTHON_GIL": ""})
    assert done.stdout.strip() == "False" and done.stderr == ""


def test_first_uses_at_once(tmp_path):
    """Whatever is made on first use (tables of NumPy, private types, imported partners) is made once."""
    program = """
    import threading
    sys.setswitchinterval(1e-5)
    barrier, seen, errors = threading.Barrier(8), [], []
    def work(i):
        barrier.wait()
        try:
            private = [hurray.Dtype.from_tag(tag) for tag in range(0xF0, 0xFF)]
            a = hurray.from_numpy(np.arange(10.0))
            with hurray.aligned_allocator():
                b = hurray.from_numpy(np.ones(7), copy=False)
            assert np.from_dlpack(a).sum() == 45 and np.asarray(b).sum() == 7
            assert hurray.load_kv(sys.argv[1]) == {"a": 1} and next(hurray.StreamReader(sys.argv[2])).ndim == 1
            seen.append([id(one) for one in private])
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    if errors:
        raise errors[0]
    print(len({tuple(ids) for ids in seen}))
    """
    hurray.save(tmp_path / "a.hrry", {}, kv={"a": 1}, sync=False)
    with hurray.StreamWriter(tmp_path / "a.hrrs") as writer:
        writer.write(np.ones(3))
    for _ in range(3):
        assert processes.run(program, tmp_path / "a.hrry", tmp_path / "a.hrrs").stdout.strip() == "1"


def test_one_tensor_exported_and_dropped_by_many(path):
    with hurray.open(path, mode="copy_on_write") as f:
        tensors = [f[f"t{i}"] for i in range(12)]
    held = [weakref.ref(t) for t in tensors]

    def work(seed):
        chance = random.Random(seed)
        for _ in range(60):
            i = chance.randrange(12)
            t = tensors[i]
            exports = (
                np.asarray, hurray.Tensor.to_numpy, memoryview, np.from_dlpack, hurray.from_dlpack, hurray.asarray,
                lambda t: np.asarray(t.buffer(0)).view(content(i).dtype), lambda t: t.__array_interface__ and t,
            )
            views = [chance.choice(exports)(t) for _ in range(4)]
            assert hurray.Descriptor.decode(t.descriptor.encode()) == t.descriptor
            assert repr(t) and t.layout == hurray.RowMajorLayout() and t.buffer_handles[0].device is t.device
            del t
            for view in views:
                assert np.array_equal(np.asarray(view), content(i))

    together(work)
    tensors.clear()
    gc.collect()
    assert [ref() for ref in held] == [None] * 12


def test_one_file_read_by_many(path):
    with hurray.open(path) as f:

        def work(seed):
            chance = random.Random(seed)
            for _ in range(60):
                i = chance.randrange(12)
                assert np.array_equal(np.asarray(f[f"t{i}"]), content(i))
                assert f.descriptor(f"t{i}").shape == content(i).shape
                assert len(f) == 12 and f.names[i] == f"t{i}" and f"t{i}" in f and not f.closed

        together(work)
        assert f.close() == ()


def test_many_files_opened_at_once(path):
    def work(seed):
        for i in range(20):
            mode = ("map", "copy_on_write", "memory")[(seed + i) % 3]
            tensors = hurray.load(path, mode=mode, verify=i % 2 == 0)
            assert all(np.array_equal(np.asarray(tensors[f"t{k}"]), content(k)) for k in range(12))

    together(work)


def test_a_file_closed_while_it_is_read(path):
    for _ in range(10):
        f = hurray.open(path)

        def work(i, f=f):
            if i == 0:
                f.close()
                return 0
            read = 0
            for k in range(12):
                try:
                    array = np.asarray(f[f"t{k}"])
                except ValueError as error:
                    assert "closed" in str(error)
                else:
                    assert np.array_equal(array, content(k))
                    read += 1
            return read

        together(work)
        assert f.closed


def test_writes_through_views_that_were_handed_out_at_once(tmp_path):
    """The first writable view makes pages of the mapping writable; many are asked for at the same time."""
    hurray.save(tmp_path / "z.hrry", {f"z{i}": np.zeros(5000, np.int64) for i in range(8)}, sync=False)
    tensors = hurray.load(tmp_path / "z.hrry", mode="copy_on_write")

    def work(i):
        for t in tensors.values():
            np.asarray(t)[i::THREADS] = i + 1

    together(work)
    expected = np.arange(5000) % THREADS + 1
    assert all(np.array_equal(np.asarray(t), expected) for t in tensors.values())
    assert not any(np.asarray(t).any() for t in hurray.load(tmp_path / "z.hrry").values())


def test_one_reader_gives_each_item_once():
    writer = hurray.StreamWriter()
    for i in range(400):
        writer.write(np.full(17, i, np.int32))
    reader = hurray.StreamReader(writer.getvalue())
    got = together(lambda _: [int(np.asarray(t)[16]) for t in reader])
    assert sorted(sum(got, [])) == list(range(400))


def test_one_writer_takes_whole_frames(tmp_path):
    target = tmp_path / "s.hrrs"
    with hurray.StreamWriter(target) as writer:

        def work(i):
            for k in range(60):
                writer.write(np.full(50 + k, 1000 * i + k, np.int64))

        together(work)
    seen = set()
    for t in hurray.StreamReader(target):
        a = np.asarray(t)
        assert (a == a[0]).all() and len(a) == 50 + a[0] % 1000
        seen.add(int(a[0]))
    assert len(seen) == THREADS * 60


def test_a_writer_finished_while_it_is_written_to(tmp_path):
    for n in range(5):
        writer = hurray.StreamWriter(tmp_path / f"{n}.hrrs")

        def work(i, writer=writer):
            if i == 0:
                writer.finish()
                return 0
            written = 0
            for _ in range(50):
                try:
                    writer.write(np.ones(64))
                except hurray.StreamError:
                    break
                written += 1
            return written

        written = sum(together(work))
        assert sum(1 for _ in hurray.StreamReader(tmp_path / f"{n}.hrrs")) == written


def test_saves_to_one_path(tmp_path):
    target = tmp_path / "one.hrry"

    def work(i):
        for k in range(4):
            hurray.save(target, {"w": np.full(2000, i, np.int32)}, kv={"i": i}, sync=False)
            with hurray.open(target) as f:
                array, (value,) = np.asarray(f["w"]), {f.kv["i"]}
                assert (array == value).all()

    together(work)
    assert os.listdir(tmp_path) == ["one.hrry"]


class SameCapsule:
    """Gives one capsule to everybody who asks."""

    def __init__(self, tensor):
        self.capsule, self.device = tensor.__dlpack__(max_version=(1, 1)), tensor.__dlpack_device__()

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


def test_a_dlpack_capsule_has_one_consumer():
    for _ in range(60):
        source = SameCapsule(hurray.full([100], 7, dtype=hurray.int64))

        def work(_, source=source):
            try:
                return int(np.asarray(hurray.from_dlpack(source)).sum())
            except (BufferError, hurray.BufferError):
                return None

        got = together(work)
        assert [one for one in got if one is not None] == [700]


def test_values_are_shared_without_locks():
    """Equality, hashes and prints of the immutable values, and what is cached with them."""
    t = hurray.zeros([3, 4], dtype=hurray.float32)

    def work(i):
        for _ in range(200):
            d = t.descriptor
            assert d == t.descriptor and hash(t.layout) == hash(d.layout)
            assert hurray.Dtype.from_name("float32") is t.dtype and t.dtype in {hurray.float32: 1}
            assert d.buffer_handles == t.buffer_handles and repr(d) == repr(t.descriptor)
            assert hurray.Device("cuda", i) == hurray.Device("cuda", i)
            assert hurray.Dtype.from_tag(0xF5) is hurray.Dtype.from_tag(0xF5)

    together(work)


def test_making_and_dropping():
    """Own memory, foreign memory and views that go in other threads than they came from."""
    pool, lock = [], threading.Lock()

    def work(seed):
        chance = random.Random(seed)
        for k in range(150):
            made = (
                hurray.full([chance.randrange(1, 200)], seed, dtype=hurray.int32),
                hurray.from_numpy(np.full(50, seed, np.int32)),
                hurray.full([64], seed, dtype=hurray.int32).buffer(0),
            )[k % 3]
            with lock:
                pool.append(made if k % 2 else np.asarray(made))
                other = pool.pop(chance.randrange(len(pool)))
            values = np.asarray(other).view(np.int32)
            assert (values == values[0]).all()

    together(work)


@pytest.mark.parametrize("other", [lambda f: f["t3"], lambda f: np.asarray(f["t4"]).sum(), dict, lambda f: f.close(),
                                   lambda f: f.close(strict=True), lambda f: pickle.loads(pickle.dumps(f))["t1"]])  # fmt: skip
def test_a_file_is_closed_while_it_is_read(path, other):
    for _ in range(150):
        file = hurray.open(path)

        def work(i, file=file):
            try:
                file.close() if i % 2 else other(file)
            except (ValueError, builtins.BufferError) as error:
                assert "closed" in str(error) or "still hold" in str(error)

        together(work, 4)
        file.close()
        assert file.closed and file.close() == () and file.close(strict=True) == ()


@pytest.mark.parametrize("call", ["hurray.load(path)", "hurray.save(path + str(i), {'w': array}, sync=False)",
                                  "hurray.from_numpy(array, copy=True)", "hurray.StreamDecoder().feed(data)"])  # fmt: skip
def test_the_interpreter_ends_while_daemons_are_at_work(path, call):
    code = """
        import threading, time
        path, call = sys.argv[1], compile(sys.argv[2], "call", "eval")
        array = np.ones(1 << 18)
        writer = hurray.StreamWriter()
        writer.write(array)
        data = writer.getvalue()
        def work(i):
            while True:
                eval(call, {**globals(), "i": i})
        for i in range(4):
            threading.Thread(target=work, args=(i,), daemon=True).start()
        time.sleep(0.1)
    """
    for _ in range(3):
        processes.run(code, path, call)
