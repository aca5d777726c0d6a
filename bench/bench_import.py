"""What `import hurray` costs: a fresh interpreter that imports it, against one that does not."""

import statistics
import subprocess
import sys
import time

RUNS = 21


def run(code):
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - began


def main():
    run("import hurray")
    pairs = [(run("import hurray"), run("pass")) for _ in range(RUNS)]
    low, middle, high = statistics.quantiles([a - b for a, b in pairs], n=4)
    print(f"import hurray: {middle * 1e3:.1f} ms [{low * 1e3:.1f}, {high * 1e3:.1f}] over {RUNS} pairs, target under 50 ms")


if __name__ == "__main__":
    main()
