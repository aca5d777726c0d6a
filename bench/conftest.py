"""What the benchmarks share: GiB/s of what moves bytes, and a warning about what became slower."""

import pytest

GIB = 1 << 30
LOSS = 0.10


@pytest.fixture
def moves(benchmark):
    """`moves(n)`: each round moves `n` bytes."""

    def say(nbytes):
        benchmark.extra_info["bytes"] = nbytes

    return say


def pytest_terminal_summary(terminalreporter):
    session = getattr(terminalreporter.config, "_benchmarksession", None)
    benches = [bench for bench in session.benchmarks if bench.stats] if session else []
    moving = [bench for bench in benches if bench.extra_info.get("bytes")]
    if moving:
        terminalreporter.section("GiB/s of what moves bytes")
    for bench in moving:
        rates = [bench.extra_info["bytes"] / seconds / GIB for seconds in (bench.stats.median, bench.stats.min)]
        terminalreporter.line(f"{bench.fullname:60}  median {rates[0]:8.2f}  best {rates[1]:8.2f}")
    for before in (session.compared_mapping or {}).values() if session else ():
        for bench in benches:
            old = before.get(bench.fullname)
            if old and bench.stats.median > old["stats"]["median"] * (1 + LOSS):
                loss = bench.stats.median / old["stats"]["median"] - 1
                terminalreporter.line(f"Warning: {bench.fullname} takes {loss:.0%} longer than in the run before", yellow=True)
