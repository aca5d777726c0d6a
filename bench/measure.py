"""What all benchmark scripts measure with: alternating pairs, medians and quartiles."""

import statistics
import time

WIDE = 0.15  # quartiles wider than this share of the median: the machine was not quiet enough


def quartiles(values):
    """Lower quartile, median, upper quartile; of a single value three times that."""
    values = list(values)
    return tuple(statistics.quantiles(values, n=4)) if len(values) > 1 else (values[0],) * 3


def timed(call, clock=time.perf_counter):
    """Seconds of `call()`; what it returns is dropped outside the clock."""
    began = clock()
    result = call()
    took = clock() - began
    del result
    return took


def timed_processor(call):
    """The same of the processor, the system's work included: others on the machine count little then."""
    return timed(call, time.thread_time)


def alternate(pairs, ours, theirs, *, clock=timed):
    """Seconds of both calls, `pairs` times each, in turns and after one run of both that does not count."""
    clock(ours), clock(theirs)
    a, b = [], []
    for i in range(pairs):
        for call, out in ((ours, a), (theirs, b)) if i % 2 == 0 else ((theirs, b), (ours, a)):
            out.append(clock(call))
    return a, b


class Ratio:
    """How many times faster we are (theirs / ours), pair by pair."""

    def __init__(self, ours, theirs):
        self.pairs = len(ours)
        self.low, self.median, self.high = quartiles(b / a for a, b in zip(ours, theirs))
        self.ours, self.theirs = statistics.median(ours), statistics.median(theirs)

    @property
    def measurable(self):
        return (self.high - self.low) <= WIDE * self.median

    def __str__(self):
        verdict = "" if self.measurable else "  (quartiles wider than 15 %: not measurable here)"
        return (f"{self.median:.2f}x [{self.low:.2f}, {self.high:.2f}] over {self.pairs} pairs; medians "
                f"{self.ours * 1e3:.3f} ms against {self.theirs * 1e3:.3f} ms{verdict}")

    def as_dict(self):
        return {"pairs": self.pairs, "ratio": {"low": self.low, "median": self.median, "high": self.high},
                "seconds": {"ours": self.ours, "theirs": self.theirs}, "measurable": self.measurable}


def report(what, ours, theirs, target):
    """One line from the seconds of both sides."""
    print(f"{what}: {Ratio(ours, theirs)}, target {target}", flush=True)
