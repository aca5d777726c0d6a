"""`hurray.save_async`: part 09 section 3."""

import concurrent.futures
import os
import signal
import threading
import time

import numpy as np
import pytest

import hurray
import processes
from saving import VALUES, pair


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.hrry"


@pytest.fixture
def pipe(tmp_path):
    """A target that lets nobody finish before it is read."""
    made = tmp_path / "pipe"
    os.mkfifo(made)
    return made


def drain(pipe, *futures):
    """What all of `futures` write into the pipe."""
    data = []
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            done = all(future.done() for future in futures)
            try:
                data.append(os.read(reading, 1 << 20))
            except BlockingIOError:
                data.append(b"")
            if not data[-1]:
                if done:
                    break
                time.sleep(0.005)
    finally:
        os.close(reading)
    for future in futures:
        assert future.cancelled() or future.result() is None
    return b"".join(data)


@pytest.mark.parametrize("snapshot", [True, False])
@pytest.mark.parametrize("checksums", [True, False])
def test_it_writes_what_save_writes(path, tmp_path, snapshot, checksums):
    swapped = np.arange(9, dtype=">i4")
    tensors = {
        "array": VALUES,
        "column": np.asfortranarray(VALUES),
        "strided": np.arange(2000)[::-3],
        "swapped": swapped,
        "flags": np.arange(1000) % 3 == 0,
        "empty": np.zeros((0, 4)),
        "scalar": np.float64(2.5),
        "tensor": hurray.asarray(np.arange(3, dtype=np.int8)),
        "group": pair(),
        "bytes": b"abc",
    }
    kv = {"epoch": 3}
    future = hurray.save_async(path, tensors, kv=kv, checksums=checksums, snapshot=snapshot)
    assert isinstance(future, concurrent.futures.Future)
    assert future.result(60) is None
    hurray.save(tmp_path / "saved", tensors, kv=kv, checksums=checksums)
    assert path.read_bytes() == (tmp_path / "saved").read_bytes()


@pytest.mark.frameworks
def test_torch_tensors(path):
    torch = pytest.importorskip("torch")
    weights = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    tensors = {"w": weights, "t": weights.t(), "s": weights[:, ::2], "p": torch.nn.Parameter(torch.ones(3))}
    expected = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    future = hurray.save_async(path, tensors)
    with torch.no_grad():
        for tensor in tensors.values():
            tensor.fill_(-1)
    future.result(60)
    for name, tensor in hurray.load(path).items():
        assert torch.equal(tensor.to_torch(), expected[name])


def test_the_originals_may_change_when_the_call_returns(pipe, tmp_path):
    plain, strided = np.ones(1 << 20), np.ones((1 << 10, 1 << 10))[:, ::2]
    mapped = tmp_path / "mapped"
    hurray.save(mapped, {"m": np.ones(1000)})
    loaded = hurray.load(mapped)
    future = hurray.save_async(pipe, {"plain": plain, "strided": strided, **loaded})
    assert not future.done()
    plain[:], strided[:] = 2, 2
    np.asarray(loaded["m"])[:] = 2
    del loaded
    (tmp_path / "read").write_bytes(drain(pipe, future))
    for tensor in hurray.load(tmp_path / "read", verify=True).values():
        assert (np.asarray(tensor) == 1).all()


def test_without_a_snapshot_the_memory_is_the_caller_s(pipe, tmp_path):
    values = np.ones(1 << 20)
    future = hurray.save_async(pipe, {"w": values}, snapshot=False)
    values[:] = 2  # nobody should, and it shows
    (tmp_path / "read").write_bytes(drain(pipe, future))
    assert (np.asarray(hurray.load(tmp_path / "read")["w"])[-1] == 2).all()


@pytest.mark.parametrize("snapshot", [True, False])
def test_dropped_originals(pipe, tmp_path, snapshot):
    future = hurray.save_async(pipe, {"w": np.full(1 << 20, 3.0)}, snapshot=snapshot)
    (tmp_path / "read").write_bytes(drain(pipe, future))
    assert (np.asarray(hurray.load(tmp_path / "read")["w"]) == 3).all()


@pytest.mark.parametrize(
    "tensors,options,error,said",
    [
        ({"w": [1, 2]}, {}, hurray.UnsupportedError, '"w".*hurray.Composite'),
        ({"w": np.array(["text"])}, {}, hurray.UnsupportedError, '"w"'),
        ({"": VALUES}, {}, hurray.FileError, "name"),
        ({1: VALUES}, {}, TypeError, "name must be a str"),
        ([VALUES], {}, TypeError, "mapping"),
        ({"w": VALUES}, {"kv": {"none": None}}, hurray.FileError, "none"),
        ({"w": VALUES}, {"kv": 3}, TypeError, "kv"),
    ],
)
def test_bad_input_raises_at_the_call(path, tensors, options, error, said):
    with pytest.raises(error, match=said):
        hurray.save_async(path, tensors, **options)
    assert os.listdir(path.parent) == []


def test_a_name_that_is_taken_raises_at_the_call(path):
    group = pair()
    with pytest.raises(hurray.FileError, match="c.0.*composite"):
        hurray.save_async(path, {"c": group, "c.0": VALUES})
    with pytest.raises(TypeError):
        hurray.save_async(3, {})
    with pytest.raises(ValueError):
        hurray.save_async(f"{path}\0", {"w": VALUES})


def test_the_system_s_errors_come_through_the_future(tmp_path):
    missing = hurray.save_async(tmp_path / "no" / "file", {"w": VALUES})
    error = missing.exception(60)
    assert isinstance(error, hurray.FileError) and isinstance(error, FileNotFoundError)
    assert error.filename == os.fspath(tmp_path / "no" / "file")
    full = hurray.save_async("/dev/full", {"w": VALUES})
    with pytest.raises(hurray.FileError) as raised:
        full.result(60)
    assert raised.value.errno == 28
    with pytest.raises(IsADirectoryError):
        hurray.save_async(tmp_path, {"w": VALUES}).result(60)
    assert os.listdir(tmp_path) == []


def test_saves_to_one_path_come_in_order(path):
    futures = [hurray.save_async(path, {"w": np.full(1 << 18, float(k))}, kv={"k": k}) for k in range(8)]
    futures += [hurray.save_async(path.parent / "." / path.name, {"last": VALUES})]
    for k, future in enumerate(futures):
        future.result(60)
        assert all(earlier.done() for earlier in futures[:k])
    assert list(hurray.load(path, verify=True)) == ["last"]
    assert os.listdir(path.parent) == [path.name]


def test_saves_through_a_link_queue_with_the_others(pipe, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(pipe)
    first = hurray.save_async(pipe, {"w": VALUES})
    second = hurray.save_async(link, {"w": VALUES})
    assert second.cancel()  # it waits
    drain(pipe, first)


def test_other_paths_do_not_wait(pipe, path):
    stuck = hurray.save_async(pipe, {"w": VALUES})
    hurray.save_async(path, {"w": VALUES}).result(60)
    assert not stuck.done()
    drain(pipe, stuck)


def test_cancelling(pipe):
    """What waits can be cancelled, what is being written cannot."""
    running = hurray.save_async(pipe, {"w": VALUES})
    waiting = hurray.save_async(pipe, {"w": VALUES})
    last = hurray.save_async(pipe, {"last": VALUES})
    assert not running.cancel() and running.running()
    assert waiting.cancel() and waiting.cancelled()
    with pytest.raises(concurrent.futures.CancelledError):
        waiting.result()
    drain(pipe, running, waiting, last)
    assert not last.cancel()


def test_the_path_is_that_of_the_call(tmp_path, monkeypatch, pipe):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    first = hurray.save_async("pipe", {"w": VALUES})
    future = hurray.save_async("pipe", {"w": VALUES})
    monkeypatch.chdir(tmp_path / "elsewhere")
    drain(pipe, first, future)
    assert os.listdir(tmp_path / "elsewhere") == []


def test_the_gil_is_free_meanwhile(pipe):
    """The pipe is read by the very thread that started the save."""
    future = hurray.save_async(pipe, {"w": np.ones(1 << 20)})
    with open(pipe, "rb") as reading:
        assert len(reading.read()) > 8 << 20
    future.result(60)


def test_threads_end_when_nothing_waits(path):
    hurray.save_async(path, {"w": VALUES}).result(60)
    deadline = time.monotonic() + 60
    while any(thread.name.startswith("hurray.save_async") for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    hurray.save_async(path, {"again": VALUES}).result(60)
    assert list(hurray.load(path)) == ["again"]


def test_the_interpreter_s_end_waits(path):
    processes.run(
        """
        for k in range(4):
            hurray.save_async(sys.argv[1], {"w": np.full(4 << 20, float(k))}, kv={"k": k})
        """,
        path,
    )
    assert hurray.load_kv(path) == {"k": 3}
    assert (np.asarray(hurray.load(path, verify=True)["w"]) == 3).all()
    assert os.listdir(path.parent) == [path.name]


def test_interrupts_at_the_end(path, pipe):
    """Somebody loses patience with a save that never ends: no crash, only the end."""
    process = processes.start(
        """
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        hurray.save_async(sys.argv[1], {"w": np.ones(3)})
        print("ending", flush=True)
        """,
        pipe,
    )
    assert process.stdout.readline()
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    process.communicate()
    assert process.returncode in (0, 1, 130, -signal.SIGINT)


def test_forks_have_queues_of_their_own(pipe, path):
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    processes.run(
        """
        import warnings
        warnings.simplefilter("ignore")  # a fork of a process with threads
        stuck = hurray.save_async(sys.argv[1], {"w": np.ones(3)})
        child = os.fork()
        if child == 0:
            hurray.save_async(sys.argv[2], {"w": np.ones(3)}).result(60)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        with open(sys.argv[1], "rb") as reading:
            reading.read()
        stuck.result(60)
        """,
        pipe,
        path,
    )
    assert list(hurray.load(path)) == ["w"]


@processes.measures_memory
def test_copies_go_as_they_are_written(tmp_path, pipe):
    processes.run(
        """
        import threading
        # Large enough that the allocator gives their pages back.
        tensors = {str(k): np.ones(8 << 20) for k in range(4)}  # 256 MiB
        before = status("VmRSS")
        future = hurray.save_async(sys.argv[1], tensors)
        assert status("VmRSS") - before > 200 << 20
        with open(sys.argv[1], "rb") as reading:
            gone = 0
            while gone < 140 << 20:
                gone += len(reading.read(1 << 20))
            assert status("VmRSS") - before < 150 << 20, status("VmRSS") - before
            while reading.read(1 << 20):
                pass
        future.result(60)
        assert status("VmRSS") - before < 32 << 20
        """,
        pipe,
    )
