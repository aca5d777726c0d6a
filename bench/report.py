"""One report on files and streams beside other libraries, on the same tensors in the same run.

    python bench/report.py [--quick] [--pairs 15] [--only small,large] [--folder DIR] [--out build/benchmarks/report]

Writes report.md, report.json and a picture (SVG) for each set of tensors. The sets are 10,000 tensors of 1 KiB
and 4 of 1 GiB (--quick: 1,000 and 4 of 64 MiB). Each ratio is made of alternating pairs of ours and one
library's; a pair in which a run takes more than 10 seconds is repeated three times only. Before anything is
measured, each library's answer is compared with the tensors.

    open     open and count the tensors
    first    open and take one, all of its bytes summed
    warm     load everything from the page cache, all bytes summed
    cold     the same from the disk
    save     to a fresh path, not synced
    rows     an eighth of one tensor along the leading axis
    columns  an eighth along the last axis
    pipe     from one process to another, all bytes summed; socket: the same over a Unix socket
    verify   compare all sums
"""

import argparse
import json
import os
import pathlib
import platform
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np

import formats
import hurray
from measure import Ratio, alternate, timed

GIB = 1 << 30
LONG = 10.0  # seconds of one run from which three pairs are enough


def total(array):
    """All bytes of it, read once."""
    return int(np.bitwise_xor.reduce(array.reshape(-1).view(np.uint64))) if array.size else 0


class Case:
    """One set of tensors, and what is asked of every format that holds it."""

    def __init__(self, name, tensors, folder):
        self.name, self.tensors, self.folder = name, tensors, folder
        self.sums = {name: total(array) for name, array in tensors.items()}
        self.middle = list(tensors)[len(tensors) // 2]
        self.wide = tensors[self.middle].ndim == 2
        self.numbers = iter(range(1 << 30))

    def path(self, kind):
        return self.folder / f"{self.name}{kind.suffix}"

    def check(self, loaded):
        assert len(loaded) == len(self.sums)
        for name, array in loaded.items():
            assert total(array) == self.sums[name], name

    def eighth(self, axis):
        size = self.tensors[self.middle].shape[axis]
        return size // 8, size // 4

    # -- what is measured: (kind) -> a call, or none -----------------------------------------------------

    def open(self, kind):
        def call():
            assert kind.open(self.path(kind)) == len(self.tensors)
        return call

    def first(self, kind):
        def call():
            assert total(kind.first(self.path(kind), self.middle)) == self.sums[self.middle]
        return call

    def warm(self, kind):
        return lambda: self.check(kind.load(self.path(kind)))

    cold = warm

    def rows(self, kind):
        return kind.rows and self.wide and (
            lambda: kind.rows(self.path(kind), self.middle, *self.eighth(0)))

    def columns(self, kind):
        return kind.columns and self.wide and (
            lambda: kind.columns(self.path(kind), self.middle, *self.eighth(1)))

    def verify(self, kind):
        return kind.verify and (lambda: kind.verify(self.path(kind)))

    def save(self, kind):
        return lambda: kind.save(self.folder / f"fresh{next(self.numbers)}{kind.suffix}", self.tensors)

    def pipe(self, kind):
        return kind.send and (lambda: self.transfer(kind, *os.pipe()))

    def socket(self, kind):
        if not kind.send:
            return None

        def call():
            ours, theirs = socket.socketpair()
            return self.transfer(kind, ours.detach(), theirs.detach())
        return call

    def transfer(self, kind, source, sink):
        """Another process writes; seconds from its start signal to the last summed byte."""
        ready, go = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(source), os.close(go)
                os.read(ready, 1)
                kind.send(sink, self.tensors)
                status = 0
            finally:
                os._exit(status)
        os.close(sink), os.close(ready)
        began = time.perf_counter()
        os.close(go)
        self.check(kind.receive(source, list(self.tensors)))
        took = time.perf_counter() - began
        os.close(source)
        assert os.waitpid(child, 0)[1] == 0
        return took

    # -- clocks -------------------------------------------------------------------------------------------

    def clock(self, work, kinds):
        if work in ("pipe", "socket"):
            return lambda call: call()
        if work == "cold":
            def clock(call):
                for kind in kinds:
                    evict(kind.files(self.path(kind)))
                return timed(call)
            return clock
        if work == "save":
            def clock(call):
                took = timed(call)
                for left in self.folder.glob("fresh*"):
                    formats.remove(left)
                return took
            return clock
        return timed


WORKS = ("open", "first", "warm", "cold", "save", "rows", "columns", "pipe", "socket", "verify")


def evict(files):
    """Out of the page cache with them."""
    for file in files:
        fd = os.open(file, os.O_RDONLY)
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


PEAK = """
import sys; sys.path.insert(0, sys.argv[1])
import formats, pathlib, numpy as np
kind = next(k for k in (formats.Hurray, *formats.PEERS) if k.__name__ == sys.argv[2])()
path, work, name = pathlib.Path(sys.argv[3]), sys.argv[4], sys.argv[5]
def peak():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
def begin():
    open("/proc/self/clear_refs", "w").write("5")
    return peak()
if work == "save":
    tensors = {n: np.array(a) for n, a in formats.Hurray().load(pathlib.Path(sys.argv[6])).items()}
    if hasattr(kind, "names"): kind.names = {}
    before = begin()
    kind.save(path, tensors)
else:
    if hasattr(kind, "names"): kind.names = {path.name: list(formats.Hurray().load(pathlib.Path(sys.argv[6])))}
    shape = formats.Hurray().load(pathlib.Path(sys.argv[6]))[name].shape
    before = begin()
    out = getattr(kind, work)(path, name, shape[0] // 8, shape[0] // 4)
print((peak() - before) * 1024)
"""


def peak_memory(case, kind, work):
    """Bytes that `work` adds to the peak of a process of its own, or none."""
    if work == "rows" and not (kind.rows and case.wide):
        return None
    path = case.path(kind) if work == "rows" else case.folder / f"fresh{next(case.numbers)}{kind.suffix}"
    here = str(pathlib.Path(__file__).parent)
    try:
        run = subprocess.run([sys.executable, "-c", PEAK, here, type(kind).__name__, str(path), work, case.middle,
                              str(case.path(formats.Hurray()))], text=True, capture_output=True, check=True)
    finally:
        for left in case.folder.glob("fresh*"):
            formats.remove(left)
    return int(run.stdout)


def measure(case, ours, peers, pairs, works):
    for kind in (ours, *peers):
        kind.save(case.path(kind), case.tensors)
        case.check(kind.load(case.path(kind)))
    os.sync()
    rows = []
    for work in works:
        mine = getattr(case, work)(ours)
        for peer in peers:
            theirs = getattr(case, work)(peer)
            if not (mine and theirs):
                continue
            clock = case.clock(work, (ours, peer))
            count = pairs if max(clock(mine), clock(theirs)) < LONG else min(pairs, 3)
            ratio = Ratio(*alternate(count, mine, theirs, clock=clock))
            rows.append({"set": case.name, "work": work, "peer": peer.name, **ratio.as_dict()})
            print(f"{case.name} {work} against {peer.name}: {ratio}", flush=True)
    memory = []
    for work in ("save", "rows"):
        for kind in (ours, *peers):
            extra = peak_memory(case, kind, work)
            if extra is not None:
                memory.append({"set": case.name, "work": work, "library": kind.name, "extra_bytes": extra})
    for kind in (ours, *peers):
        formats.remove(case.path(kind))
    return rows, memory


def picture(rows, name, path):
    """Ratios of one set as points with their quartiles, on a logarithmic axis."""
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    peers = list(dict.fromkeys(row["peer"] for row in rows))
    works = list(dict.fromkeys(row["work"] for row in rows))
    figure, axes = plt.subplots(figsize=(8, 0.45 * len(works) * max(1, len(peers) / 3) + 1.5))
    height = 0.8 / len(peers)
    for i, peer in enumerate(peers):
        mine = [row for row in rows if row["peer"] == peer]
        y = [works.index(row["work"]) - 0.4 + height * (i + 0.5) for row in mine]
        x = [row["ratio"]["median"] for row in mine]
        spread = [[row["ratio"]["median"] - row["ratio"]["low"] for row in mine],
                  [row["ratio"]["high"] - row["ratio"]["median"] for row in mine]]
        axes.errorbar(x, y, xerr=spread, fmt="o", markersize=4, capsize=2, label=peer)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(works)), works)
    axes.invert_yaxis()
    axes.set_xlabel("times faster than the other library (median and quartiles of pairs)")
    axes.set_title(name)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncol=len(peers), frameon=False)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def size(count):
    return f"{count / (1 << 20):.1f} MiB"


def seconds(value):
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def markdown(result):
    lines = ["# Files and streams beside other libraries", "",
             "Times faster than the other library: median and quartiles of alternating pairs in one run. "
             "A star: quartiles wider than 15 %, not measurable on this machine.", "",
             ", ".join(f"{name} {version}" for name, version in result["versions"].items()) +
             f"; {result['machine']['processor']}, {result['machine']['cores']} cores, "
             f"{result['machine']['system']}.", ""]
    if result["missing"]:
        lines += [f"Not installed: {', '.join(result['missing'])}.", ""]
    for name in dict.fromkeys(row["set"] for row in result["ratios"]):
        lines += [f"## {result['sets'][name]}", "", f"![{name}]({name}.svg)", "",
                  "| work | library | times faster | ours | theirs | pairs |", "|---|---|---|---|---|---|"]
        for row in result["ratios"]:
            if row["set"] == name:
                ratio = row["ratio"]
                lines.append(
                    f"| {row['work']} | {row['peer']} | {ratio['median']:.2f} [{ratio['low']:.2f}, "
                    f"{ratio['high']:.2f}]{'' if row['measurable'] else ' *'} | {seconds(row['seconds']['ours'])} | "
                    f"{seconds(row['seconds']['theirs'])} | {row['pairs']} |")
        lines += ["", "Memory beyond the tensors, at its peak, in a process of its own:", "",
                  "| work | library | extra |", "|---|---|---|"]
        lines += [f"| {row['work']} | {row['library']} | {size(row['extra_bytes'])} |"
                  for row in result["memory"] if row["set"] == name]
        lines.append("")
    return "\n".join(lines)


def versions(missing):
    from importlib.metadata import version
    names = {"hurray": hurray.__version__, "numpy": np.__version__}
    for package in ("safetensors", "torch", "pyarrow", "ztensor"):
        try:
            names[package] = version(package)
        except ImportError:
            pass
    return names


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", default="small,large")
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/benchmarks/report"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    few, large = (1_000, GIB // 16) if options.quick else (10_000, GIB)
    random = np.random.default_rng(0)

    def numbers(count, shape):
        return {f"model.layers.{i // 10}.block.{i % 10}.weight":
                random.integers(0, 1 << 30, int(np.prod(shape)), np.int32).reshape(shape) for i in range(count)}

    sets = {"small": (f"{few:,} tensors of 1 KiB", few, (256,)),
            "large": (f"4 tensors of {size(large)}", 4, (large // 4 // 4096, 4096))}
    ours, peers, missing = formats.every()
    result = {"versions": versions(missing), "missing": missing, "sets": {}, "ratios": [], "memory": [],
              "machine": {"processor": processor(), "cores": os.cpu_count(), "system": platform.system()}}
    for name in options.only.split(","):
        what, count, shape = sets[name]
        result["sets"][name] = what
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            case = Case(name, numbers(count, shape), pathlib.Path(folder))
            ratios, memory = measure(case, ours, peers, options.pairs, options.works.split(","))
        result["ratios"] += ratios
        result["memory"] += memory
        picture(ratios, what, options.out / f"{name}.svg")
        (options.out / "report.json").write_text(json.dumps(result, indent=1) + "\n")
        (options.out / "report.md").write_text(markdown(result))
    print(f"wrote {options.out / 'report.md'}")


if __name__ == "__main__":
    main()
