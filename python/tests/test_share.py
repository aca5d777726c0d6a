"""Sealed shared memory, and files over descriptors (09-models-and-frameworks.md sections 2 and 6)."""

import fcntl
import gc
import mmap
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import hurray

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no sealed memory here")


def text(path):
    return pathlib.Path(path).read_text().splitlines()


@pytest.fixture
def arrays():
    rng = np.random.default_rng(3)
    return {"w": rng.standard_normal((300, 40)).astype(np.float32), "ids": np.arange(7),
            "fortran": np.asfortranarray(rng.standard_normal((5, 6)))}


def same(file, arrays):
    assert file.names == tuple(arrays)
    for name, array in arrays.items():
        t = file[name]
        assert (t.to_numpy() == array).all() and t.readonly
        assert all(handle.alignment >= 4096 for handle in t.buffer_handles)
        assert t.to_numpy().ctypes.data % 4096 == 0


def test_it_is_a_file_in_sealed_memory(arrays):
    with hurray.share(arrays, kv={"epoch": 3}) as shared:
        number = shared.fileno()
        seals = fcntl.fcntl(number, 1034)  # F_GET_SEALS
        assert seals & 0xF == 0xF  # SEAL, SHRINK, GROW, WRITE
        assert shared.name in os.readlink(f"/proc/self/fd/{number}")
        with hurray.open(number) as f:
            same(f, arrays)
            assert f.kv == {"epoch": 3} and f.mode == "map" and f.path == ""
            assert f.has_checksums
            f.verify()
        assert hurray.load_kv(number) == {"epoch": 3}
        assert (hurray.load(number)["ids"].to_numpy() == arrays["ids"]).all()
        for attempt in (lambda: os.pwrite(number, b"x", 0), lambda: os.ftruncate(number, 10),
                        lambda: mmap.mmap(number, 4096)):
            with pytest.raises(PermissionError):
                attempt()


def test_no_copy_is_made(arrays):
    big = {"w": np.zeros(64 << 20, np.uint8)}
    with hurray.share(big) as shared:
        def anonymous():
            return next(int(line.split()[1]) for line in text("/proc/self/status") if line.startswith("RssAnon"))
        before = anonymous()
        with hurray.open(shared.fileno()) as f:
            assert f["w"].to_numpy().sum() == 0
        assert anonymous() - before < 8 << 10


def test_it_lives_as_long_as_somebody_holds_it(arrays):
    shared = hurray.share(arrays)
    f = hurray.open(shared.fileno())
    t = f["w"]
    shared.close()
    shared.close()
    with pytest.raises(ValueError, match="closed"):
        shared.fileno()
    f.close()
    assert (t.to_numpy() == arrays["w"]).all()
    maps = pathlib.Path("/proc/self/maps").read_text()
    assert shared.name in maps
    del t
    gc.collect()
    assert shared.name not in pathlib.Path("/proc/self/maps").read_text()


def test_writes_stay_in_the_process(arrays):
    with hurray.share(arrays) as shared:
        mine = hurray.load(shared.fileno())["ids"]
        assert not mine.readonly
        mine.to_numpy(copy=False)[0] = 99
        assert hurray.open(shared.fileno())["ids"].to_numpy()[0] == 0


CHILDREN = """
import multiprocessing, sys
import numpy as np
import hurray

def child(shared, queue):
    with hurray.open(shared.fileno()) as f:
        queue.put((float(f["w"].to_numpy().sum()), f.kv, shared.name))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    with hurray.share({"w": np.arange(5.0)}, kv={"a": 1}) as shared:
        process = context.Process(target=child, args=(shared, queue))
        process.start()
        assert queue.get(timeout=60) == (10.0, {"a": 1}, shared.name)
        queue.put(shared)
        with queue.get(timeout=60) as mine:
            assert mine.fileno() != shared.fileno() and hurray.load_kv(mine.fileno()) == {"a": 1}
        process.join()
        assert process.exitcode == 0
"""


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_children_of_multiprocessing(tmp_path, method):
    (tmp_path / "program.py").write_text(CHILDREN)
    subprocess.run([sys.executable, tmp_path / "program.py", method], check=True, timeout=120)


def test_it_travels_over_a_socket():
    code = """
import socket, sys, numpy as np, hurray
s = socket.socket(fileno=int(sys.argv[1]))
data, (fd,), _, _ = socket.recv_fds(s, 100, 1)
with hurray.open(fd) as f:
    print(float(f["w"].to_numpy().sum()), f["w"].readonly, f.mode)
"""
    ours, theirs = socket.socketpair()
    with hurray.share({"w": np.arange(10.0)}) as shared:
        process = subprocess.Popen([sys.executable, "-c", code, str(theirs.fileno())], pass_fds=[theirs.fileno()],
                                   stdout=subprocess.PIPE, text=True)
        socket.send_fds(ours, [b"model"], [shared.fileno()])
    ours.close(), theirs.close()
    assert process.communicate(timeout=60)[0].split() == ["45.0", "True", "map"]
    assert process.returncode == 0


def test_a_killed_process_leaks_nothing():
    def shared_memory():
        return next(int(line.split()[1]) for line in text("/proc/meminfo") if line.startswith("Shmem:"))
    code = """
import os, sys, numpy as np, hurray
s = hurray.share({"w": np.ones(256 << 20, np.uint8)}); f = hurray.open(s.fileno()); t = f["w"]
assert t.to_numpy()[::4096].sum() == 65536
print("ready", flush=True); sys.stdin.read()
"""
    before = shared_memory()
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    assert shared_memory() - before > 200 << 10
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close(), process.stdout.close()
    assert shared_memory() - before < 56 << 10


def image(arrays, tmp_path):
    path = tmp_path / "a.hrry"
    hurray.save(path, arrays, sync=False)
    return path.read_bytes()


def test_memory_that_can_be_cut_is_not_mapped(arrays, tmp_path):
    fd = os.memfd_create("loose", os.MFD_ALLOW_SEALING)
    os.write(fd, image(arrays, tmp_path))
    assert hurray.open(f"/proc/self/fd/{fd}", mode="map").mode == "memory"
    f = hurray.open(fd, mode="map")
    assert f.mode == "memory"
    t = f["w"]
    os.ftruncate(fd, 100)
    assert (t.to_numpy() == arrays["w"]).all()
    with pytest.raises(hurray.FileError, match="cut while it was open"):
        f["ids"]
    os.close(fd)


def test_future_writes_sealed_is_enough(arrays, tmp_path):
    fd = os.memfd_create("future", os.MFD_ALLOW_SEALING)
    os.write(fd, image(arrays, tmp_path))
    theirs = mmap.mmap(fd, 0)
    fcntl.fcntl(fd, 1033, 0x2 | 0x10)  # SHRINK, FUTURE_WRITE
    with hurray.open(fd) as f:
        assert f.mode == "map"
        same(f, arrays)
        theirs[:64] = bytes(64)  # the header is read once
        same(f, arrays)
    theirs.close()
    os.close(fd)


def test_descriptors_of_files(arrays, tmp_path):
    path = tmp_path / "a.hrry"
    hurray.save(path, arrays, kv={"a": 1}, sync=False)
    fd = os.open(path, os.O_RDONLY)
    os.lseek(fd, 100, os.SEEK_SET)
    f = hurray.open(fd)
    assert (f.mode, f.path) == ("map", "") and os.lseek(fd, 0, os.SEEK_CUR) == 100
    os.close(fd)
    assert (f["w"].to_numpy() == arrays["w"]).all()
    with pytest.raises(TypeError, match="over a descriptor or an object cannot be pickled"):
        pickle.dumps(f)
    with pytest.raises(hurray.FileError):
        hurray.open(fd + 500)
    for wrong in (True, 1.5, None):
        with pytest.raises(TypeError):
            hurray.open(wrong)
    with pytest.raises((OverflowError, ValueError)):
        hurray.open(-1)
    with pytest.raises(OverflowError):
        hurray.open(1 << 40)


def test_pipes_and_sockets_are_no_files():
    reading, writing = os.pipe()
    ours, theirs = socket.socketpair()
    for fd in (reading, ours.fileno()):
        with pytest.raises(hurray.UnsupportedError, match="cannot be mapped"):
            hurray.open(fd)
    os.close(reading), os.close(writing), ours.close(), theirs.close()


def test_nothing_is_left_of_what_cannot_be_shared():
    def descriptors():
        return len(os.listdir("/proc/self/fd"))
    gc.collect()
    before = descriptors()
    for tensors, kv, error in (({"w": object()}, None, hurray.UnsupportedError), ({"": np.ones(2)}, None, hurray.FileError),
                               ({"w": np.ones(2)}, {"k": None}, hurray.FileError), ([1], None, TypeError)):
        with pytest.raises(error):
            hurray.share(tensors, kv=kv)
    assert descriptors() == before
    for _ in range(50):
        hurray.share({"w": np.ones(2)})
    gc.collect()
    assert descriptors() == before
    with pytest.raises(TypeError, match="multiprocessing or socket.send_fds"):
        pickle.dumps(hurray.share({"w": np.ones(2)}))


def test_composites_go_along():
    group = hurray.Composite("group", shape=[], dtype=hurray.float32, members=[hurray.arange(3), hurray.zeros([2, 2])])
    with hurray.share({"c": group}) as shared, hurray.open(shared.fileno()) as f:
        assert [m.shape for m in f["c"].members] == [(3,), (2, 2)]
