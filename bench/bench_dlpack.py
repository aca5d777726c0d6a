"""What it costs to hand arrays over by DLPack, as ratios in one run.

    python bench/bench_dlpack.py [--pairs 15] [--calls 20000]

Each ratio is made of alternating pairs in one process, both sides over the same 64 x 64 float32 array on a
multiple of 64 bytes; median and quartiles are given, and nanoseconds of the processor for one call, of which
about 25 are the loop's.
"""

import argparse
import gc
import statistics
import time

import numpy as np

import hurray


def timed(call, calls):
    began = time.thread_time()
    for _ in range(calls):
        call()
    return (time.thread_time() - began) / calls * 1e9


def measure(what, ours, theirs, target, options):
    timed(ours, 1000), timed(theirs, 1000)
    a, b = [], []
    for i in range(options.pairs):
        for call, out in ((ours, a), (theirs, b)) if i % 2 == 0 else ((theirs, b), (ours, a)):
            out.append(timed(call, options.calls))
    low, middle, high = statistics.quantiles([y / x for x, y in zip(a, b)])
    print(f"{what}: {middle:.2f}x [{low:.2f}, {high:.2f}] over {options.pairs} pairs, target {target}")
    for name, times in (("ours", a), ("theirs", b)):
        low, middle, high = statistics.quantiles(times)
        print(f"  {name}: {middle:.0f} ns [{low:.0f}, {high:.0f}]", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args()
    with hurray.aligned_allocator():
        array = np.zeros((64, 64), np.float32)
    tensor = hurray.from_numpy(array, copy=False)
    gc.freeze()

    def of_array():
        return np.from_dlpack(array)

    measure("hurray.from_dlpack(ndarray), against numpy.from_dlpack(ndarray)",
            lambda: hurray.from_dlpack(array), of_array, "1x", options)
    measure("numpy.from_dlpack(tensor), against numpy.from_dlpack(ndarray)",
            lambda: np.from_dlpack(tensor), of_array, "1x", options)
    measure("the capsule of a tensor, against that of an ndarray",
            lambda: tensor.__dlpack__(max_version=(1, 0)), lambda: array.__dlpack__(max_version=(1, 0)),
            "reported only", options)
    measure("hurray.from_dlpack(tensor), by the table, against numpy.from_dlpack(ndarray)",
            lambda: hurray.from_dlpack(tensor), of_array, "reported only", options)
    measure("hurray.from_hurray(tensor), a round trip, against numpy.from_dlpack(ndarray)",
            lambda: hurray.from_hurray(tensor), of_array, "under 2000 ns", options)
    try:
        import torch
    except ImportError:
        print("torch is not installed: its figures are left out")
        return

    class ByProtocol(torch.Tensor):
        """A tensor without a table: everything goes by `__dlpack__`."""

        __dlpack_c_exchange_api__ = None

    class Wrapped:
        """The bare Python protocol, without what is asked of a torch.Tensor (Y26)."""

        def __init__(self, x):
            self.__dlpack__, self.__dlpack_device__ = x.__dlpack__, x.__dlpack_device__

    x = torch.from_numpy(array)
    by_protocol, wrapped = x.as_subclass(ByProtocol), Wrapped(x)
    measure("torch.from_dlpack(tensor), against torch.from_dlpack(ndarray)",
            lambda: torch.from_dlpack(tensor), lambda: torch.from_dlpack(array), "1x", options)
    measure("hurray.from_dlpack(torch.Tensor), by the table, against the same by the Python protocol",
            lambda: hurray.from_dlpack(x), lambda: hurray.from_dlpack(by_protocol), "3x", options)
    measure("hurray.from_dlpack(torch.Tensor), by the table, against its bare __dlpack__",
            lambda: hurray.from_dlpack(x), lambda: hurray.from_dlpack(wrapped), "3x", options)


if __name__ == "__main__":
    main()
