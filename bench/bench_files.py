"""Files against the machine itself (plain writes and reads, a sum over a mapping) and against safetensors.

    python bench/bench_files.py [--gib 1] [--pairs 7] [--folder /tmp] [--only save,verify,…]

Each figure is made of alternating pairs in one process; median and quartiles are given, and "not measurable
here" where the quartiles are wider than 15 % of the median. Ratios above 1 mean that Hurray is faster.
`cold` and `save` need a file system on a disk; what is not installed is left out.
"""

import argparse
import ctypes
import mmap
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import numpy as np

import hurray
import measure
from measure import alternate, timed


def report(what, pairs, ours, theirs, target, before=lambda: None):
    """`before` runs outside of the measurement."""

    def clock(call):
        before()
        return timed(call)

    measure.report(what, *alternate(pairs, ours, theirs, clock=clock), target)


SUM = r"""
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
uint64_t sum_words(const uint64_t *words, int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}
uint64_t sum_mapped(const char *path) {
  int fd = open(path, O_RDONLY);
  struct stat st;
  fstat(fd, &st);
  const uint64_t *words = mmap(0, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  const uint64_t sum = sum_words(words, st.st_size / 8);
  munmap((void *)words, st.st_size);
  close(fd);
  return sum;
}
"""


def mapped_sum(folder):
    """A sum of all words of a file over a fresh mapping, and of an array's, both compiled."""
    source, library = os.path.join(folder, "sum.c"), os.path.join(folder, "sum.so")
    with open(source, "w") as file:
        file.write(SUM)
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
    subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", source, "-o", library], check=True)
    functions = ctypes.CDLL(library)
    functions.sum_mapped.argtypes, functions.sum_mapped.restype = [ctypes.c_char_p], ctypes.c_uint64
    functions.sum_words.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    functions.sum_words.restype = ctypes.c_uint64
    return (lambda path: functions.sum_mapped(os.fsencode(path)),
            lambda array: functions.sum_words(array.ctypes.data, array.nbytes // 8))


def plain_write(path, array, fresh):
    """The same bytes with nothing around them, on the disk when this returns."""
    view = memoryview(array).cast("B")
    with open(path, "wb" if fresh else "r+b", buffering=0) as file:
        at = 0
        while at < len(view):
            at += file.write(view[at : at + (64 << 20)])
        os.fsync(file.fileno())


def forget(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_direct(path):
    """All bytes around the system's cache."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    block = mmap.mmap(-1, 16 << 20)
    try:
        at = 0
        while count := os.preadv(descriptor, [block], at):
            at += count
    finally:
        os.close(descriptor)
        block.close()


def bench_save(options, folder, values, **_):
    path, plain = os.path.join(folder, "saved"), os.path.join(folder, "plain")

    def clear():
        for name in (path, plain):
            if os.path.exists(name):
                os.unlink(name)

    report("save with sums, synced, against write and fsync", options.pairs,
           lambda: hurray.save(path, {"w": values}), lambda: plain_write(plain, values, True), "0.9", clear)
    clear()


def bench_verify(options, path, total, **_):
    def verify():
        with hurray.open(path) as f:
            f.verify()

    verify()
    report("verify, warm, against a sum over a mapping", options.pairs, verify, lambda: total(path), "0.9")


def bench_warm(options, path, total, words, **_):
    hurray.load(path, mode="memory")
    total(path)
    report("load and sum, warm, against a sum over a mapping", options.pairs,
           lambda: [words(np.asarray(t)) for t in hurray.load(path, mode="map").values()],
           lambda: total(path), "1.0")
    report("load into memory with sums, warm, against reading into fresh memory", options.pairs,
           lambda: hurray.load(path, mode="memory"), lambda: np.fromfile(path, np.uint8), "0.9")


def bench_cold(options, path, words, **_):
    report("load into memory, cold, against direct reads", options.pairs,
           lambda: hurray.load(path, mode="memory"), lambda: read_direct(path), "0.95", lambda: forget(path))
    report("load mapped and touch, cold, against direct reads", options.pairs,
           lambda: [words(np.asarray(t)) for t in hurray.load(path, mode="map").values()],
           lambda: read_direct(path), "0.95", lambda: forget(path))


def bench_small(options, folder, **_):
    import safetensors.numpy

    tensors = {f"layers.{k}.weight": np.full((16, 16), k, np.float32) for k in range(10_000)}
    ours, theirs = os.path.join(folder, "small.hrry"), os.path.join(folder, "small.safetensors")
    report("save 10 000 small tensors against safetensors", options.pairs,
           lambda: hurray.save(ours, tensors, sync=False), lambda: safetensors.numpy.save_file(tensors, theirs), "1.0")
    report("load 10 000 small tensors against safetensors", options.pairs,
           lambda: {name: np.asarray(t) for name, t in hurray.load(ours).items()},
           lambda: safetensors.numpy.load_file(theirs), "1.0")


def bench_open(options, folder, **_):
    import safetensors
    import safetensors.numpy

    tensors = {f"layers.{k}.weight": np.zeros(1, np.float32) for k in range(100_000)}
    ours, theirs = os.path.join(folder, "many.hrry"), os.path.join(folder, "many.safetensors")
    hurray.save(ours, tensors, sync=False)
    safetensors.numpy.save_file(tensors, theirs)

    def list_ours():
        with hurray.open(ours) as f:
            return f.names

    def list_theirs():
        with safetensors.safe_open(theirs, "numpy") as f:
            return list(f.keys())

    report("open and list 100 000 tensors against safetensors", options.pairs, list_ours, list_theirs, "10")

    def take_ours():
        with hurray.open(ours) as f:
            return np.asarray(f["layers.77777.weight"])

    def take_theirs():
        with safetensors.safe_open(theirs, "numpy") as f:
            return f.get_tensor("layers.77777.weight")

    report("open 100 000 tensors and take one against safetensors", options.pairs, take_ours, take_theirs, "15")


def bench_async(options, folder, values, **_):
    """Steps of a training loop on one thread, while the file is written; the call itself has its own figure."""
    import torch

    path = os.path.join(folder, "async")
    torch.set_num_threads(1)
    weights, inputs = torch.randn(512, 512), torch.randn(256, 512)
    pending = []

    def settle():
        while pending:
            pending.pop().result()

    def steps(save):
        settle()
        if save:
            pending.append(hurray.save_async(path, {"w": values}, sync=False))
        count = 0

        def loop():
            nonlocal count
            while pending and not pending[0].done() if save else count < 300:
                (inputs @ weights).relu().sum()
                count += 1
        took = timed(loop)
        return took / max(count, 1)

    measure.report("a training step beside save_async against alone",
                   *alternate(options.pairs, True, False, clock=steps), "0.9")
    settle()
    report("the call of save_async against a copy of the memory", options.pairs,
           lambda: pending.append(hurray.save_async(path, {"w": values}, sync=False)),
           lambda: values.copy(), "0.91", settle)
    settle()


def bench_fill(options, folder, values, **_):
    """Memory that is there already, as that of a model on the device's staging buffer."""
    path = os.path.join(folder, "fill.hrry")
    hurray.save(path, {"w": values}, sync=False)
    out = np.zeros_like(values)
    with hurray.open(path) as f, open(path, "rb", buffering=0) as plain:
        def by_preadv():
            view, at = memoryview(out).cast("B"), 4096
            while at < 4096 + len(view):
                at += os.preadv(plain.fileno(), [view[at - 4096 : at - 4096 + (1 << 30)]], at)

        report("fill memory by read(out=), warm, against preadv", options.pairs,
               lambda: f.read("w", out=out), by_preadv, "0.9")
        report("the same with sums", options.pairs, lambda: f.read("w", out=out, verify=True), by_preadv, "none")
    os.unlink(path)


def bench_slices(options, folder, **_):
    rows = 4096
    wide = np.zeros((rows, int(options.gib * (1 << 30)) // rows // 4), np.float32)
    path = os.path.join(folder, "slices.hrry")
    tiles = hurray.Tensor(bytes(64 << 20), hurray.float32, [4096, 4096], layout=hurray.TiledLayout([256, 256]))
    hurray.save(path, {"wide": wide, "tiles": tiles}, sync=False)
    for name, what, index in (
            ("wide", "an eighth of the rows", slice(rows // 8, rows // 4)),
            ("wide", "one row of eight", slice(None, None, 8)),
            ("wide", "an eighth of the columns", (..., slice(0, wide.shape[1] // 8))),
            ("wide", "16 columns", (..., slice(0, 16))),
            ("tiles", "a square of tiles", (slice(1024, 2048), slice(512, 1024))),
            ("tiles", "a square across tiles", (slice(1000, 2000), slice(500, 1000)))):  # fmt: skip
        with hurray.open(path) as f:
            seconds = timed(lambda: f.read(name, index, copy=True))
            cost = f.io
        print(f"{what} of {name}: read {cost.bytes_read / cost.bytes_wanted:.3f}x of {cost.bytes_wanted} bytes wanted in "
              f"{cost.requests} requests, {seconds * 1e3:.1f} ms; target 1.05x for rows and whole tiles", flush=True)

    eighth = """
import sys, hurray
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) << 10
with hurray.open(sys.argv[1]) as f:
    f.read("wide", (0, slice(0, 1)))
    before, (rows, columns) = peak(), f.descriptor("wide").shape
    k = int(sys.argv[2])
    index = slice(rows * k // 8, rows * (k + 1) // 8)
    part = f.read("wide", index if sys.argv[3] == "rows" else (..., slice(columns * k // 8, columns * (k + 1) // 8)), copy=True)
    print(part.nbytes, peak() - before)
"""
    for axis in ("rows", "columns"):
        running = [subprocess.Popen([sys.executable, "-c", eighth, path, str(k), axis], stdout=subprocess.PIPE, text=True)
                   for k in range(8)]  # fmt: skip
        found = [tuple(map(int, child.communicate()[0].split())) for child in running]
        print(f"8 processes, each an eighth by {axis}: peak memory at most its part + "
              f"{max(peak - part for part, peak in found) / (1 << 20):.1f} MiB, target 32", flush=True)
    os.unlink(path)


def bench_stream(options, values, **_):
    """One process writes, a thread of it reads: both sides do exactly the same."""
    view = memoryview(values).cast("B")

    def through(send, receive):
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=send, args=(ours,))
        with theirs:
            thread.start()
            receive(theirs)
            thread.join()

    def send(out):
        with out, hurray.StreamWriter(out) as writer:
            writer.write(values)

    def receive(source):
        with hurray.StreamReader(source) as reader:
            (one,) = reader
            assert one.nbytes == len(view)

    def send_plainly(out):
        with out:
            out.sendall(view)

    def receive_plainly(source):
        into = memoryview(np.empty(len(view), np.uint8))
        at = 0
        while at < len(into):
            at += source.recv_into(into[at:])

    report("a stream over a Unix socket against the same bytes copied", options.pairs,
           lambda: through(send, receive), lambda: through(send_plainly, receive_plainly), "0.9")


def bench_torch(options, folder, **_):
    import safetensors.torch
    import torch

    tensors = {f"layers.{k}.weight": torch.full((16, 16), float(k)) for k in range(20_000)}
    ours, theirs = os.path.join(folder, "torch.hrry"), os.path.join(folder, "torch.safetensors")
    hurray.save(ours, tensors, sync=False)
    safetensors.torch.save_file(tensors, theirs)
    report("20 000 tensors to torch against load_file", options.pairs,
           lambda: {name: torch.from_dlpack(t) for name, t in hurray.load(ours).items()},
           lambda: safetensors.torch.load_file(theirs), "2.0")


def main():
    parts = {"save": bench_save, "verify": bench_verify, "warm": bench_warm, "cold": bench_cold, "small": bench_small,
             "open": bench_open, "async": bench_async, "fill": bench_fill, "slices": bench_slices,
             "stream": bench_stream, "torch": bench_torch}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--folder")
    parser.add_argument("--only", default=",".join(parts))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        values = np.random.default_rng(7).integers(0, 1 << 63, int(options.gib * (1 << 27)), np.uint64)
        path = os.path.join(folder, "model.hrry")
        hurray.save(path, {f"layer.{k}": part for k, part in enumerate(np.array_split(values, 8))})
        total, words = mapped_sum(folder)
        for part in options.only.split(","):
            try:
                parts[part](options, folder=folder, path=path, values=values, total=total, words=words)
            except ImportError as missing:
                print(f"{part}: left out, {missing}")


if __name__ == "__main__":
    main()
