"""The figures that compare with other libraries, as ratios in one run.

    python bench/bench_figures.py [--pairs 15] [--only open,load,save,calls] [--folder DIR]

Each ratio is made of alternating pairs; median and quartiles are given, and "not measurable here" where
the quartiles are wider than 15 % of the median.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import timeit

import numpy as np

import hurray
from measure import alternate, quartiles, report, timed

GIB = 1 << 30


def bench_open(folder, pairs):
    import safetensors
    import safetensors.numpy

    tensors = {f"model.layers.{i // 10}.block.{i % 10}.weight": np.full(4, i, np.float32)
               for i in range(10_000)}
    ours, theirs = folder / "small.hrry", folder / "small.safetensors"
    hurray.save(ours, tensors, sync=False)
    safetensors.numpy.save_file(tensors, theirs)

    def open_ours():
        with hurray.open(ours) as f:
            assert len(f.names) == 10_000

    def open_theirs():
        with safetensors.safe_open(theirs, "np") as f:
            assert len(f.keys()) == 10_000

    report("open 10,000 tensors and list them, against safetensors",
           *alternate(pairs, open_ours, open_theirs), "10x")


def bench_load(folder, pairs):
    array = np.random.default_rng(0).integers(0, 1 << 62, GIB // 8).view(np.float64)
    array = np.where(np.isfinite(array), array, 0.0)
    ours, theirs = folder / "large.hrry", folder / "large.npy"
    hurray.save(ours, {"w": array}, sync=False)
    np.save(theirs, array)
    want = array.sum()
    del array

    def load_ours():
        assert np.asarray(hurray.load(ours)["w"]).sum() == want

    def load_theirs():
        assert np.load(theirs, mmap_mode="r").sum() == want

    report("load 1 GiB and sum it, against numpy.load(mmap_mode='r')",
           *alternate(pairs, load_ours, load_theirs), "1x or more")
    program = ("import sys, hurray, numpy as np\n"
               "def rss(f):\n"
               "    return [int(l.split()[1]) for l in open('/proc/self/status') if l.startswith(f)][0]\n"
               "t = hurray.load(sys.argv[1])['w']; a = np.asarray(t)\n"
               "before, anon = rss('VmRSS'), rss('RssAnon')\n"
               "a[:1 << 20].sum()\n"
               "print(rss('VmRSS') - before, rss('RssAnon') - anon)\n")
    out = subprocess.run([sys.executable, "-c", program, ours], text=True, capture_output=True,
                         check=True).stdout.split()
    print(f"  8 MiB of it touched: resident memory grew by {int(out[0]) / 1024:.1f} MiB, "
          f"anonymous memory by {int(out[1]) / 1024:.2f} MiB")
    ours.unlink(), theirs.unlink()


def bench_save(folder, pairs):
    array = np.random.default_rng(0).integers(0, 255, GIB, np.uint8)
    view = memoryview(array)
    numbers = iter(range(1 << 30))

    def fresh(suffix):
        return folder / f"out{next(numbers)}{suffix}"

    def bare_write():
        path = fresh(".raw")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        done = 0
        while done < GIB:
            done += os.write(fd, view[done:])
        os.close(fd)
        return path

    def save(checksums):
        path = fresh(".hrry")
        hurray.save(path, {"w": array}, sync=False, checksums=checksums)
        return path

    def run(make):
        made = []
        seconds = timed(lambda: made.append(make()))
        made[0].unlink()
        return seconds

    def pairs_of(ours, theirs):
        return alternate(pairs, ours, theirs, clock=run)

    report("save 1 GiB without sums, against a bare write loop",
           *pairs_of(lambda: save(False), bare_write), "0.95x")
    report("save 1 GiB with sums, against a bare write loop",
           *pairs_of(lambda: save(True), bare_write), "0.85x")
    import safetensors.numpy

    def save_theirs():
        path = fresh(".safetensors")
        safetensors.numpy.save_file({"w": array}, path)
        return path

    report("save 1 GiB with sums, against safetensors.save_file",
           *pairs_of(lambda: save(True), save_theirs), "reported only")
    program = ("import resource, sys, numpy as np, hurray\n"
               "a = np.ones(1 << 30, np.uint8)\n"
               "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
               "before = peak(); hurray.save(sys.argv[1], {'w': a}, sync=False); print(peak() - before)\n")
    path = fresh(".hrry")
    extra = subprocess.run([sys.executable, "-c", program, path], text=True, capture_output=True,
                           check=True).stdout
    path.unlink()
    print(f"  extra memory while saving: {int(extra) / 1024:.2f} MiB, target under 16 MiB")


def bench_calls(_folder, _pairs):
    with hurray.aligned_allocator():
        array = np.zeros((64, 64), np.float32)
    tensor = hurray.from_numpy(array, copy=False)
    for what, call in (("from_numpy(copy=False) of an aligned array",
                        lambda: hurray.from_numpy(array, copy=False)),
                       ("np.asarray(tensor)", lambda: np.asarray(tensor))):
        times = [t / 20_000 for t in timeit.repeat(call, number=20_000, repeat=21)]
        low, middle, high = quartiles(times)
        print(f"{what}: {middle * 1e9:.0f} ns [{low * 1e9:.0f}, {high * 1e9:.0f}], target under 1000 ns",
              flush=True)


BENCHES = {"open": bench_open, "load": bench_load, "save": bench_save, "calls": bench_calls}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", default=",".join(BENCHES))
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in options.only.split(","):
            BENCHES[name](pathlib.Path(folder), options.pairs)


if __name__ == "__main__":
    main()
