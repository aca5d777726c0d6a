"""Python code in processes of its own, for what can only be seen from outside or from a fresh start."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

# Not where the tests were started: a folder `hurray` there would hide the package.
HERE = os.path.dirname(__file__)
PRELUDE = """
import os, sys
import numpy as np
import hurray

def status(field):
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(field)
"""


#: For tests of how much memory something takes: AddressSanitizer takes its own.
measures_memory = pytest.mark.skipif(
    "HURRAY_TEST_ASAN" in os.environ, reason="AddressSanitizer takes memory of its own"
)


def run(code, *arguments, timeout=120, env=None, **options):
    """Runs `code` after the prelude; returns the completed process, which must have exited with 0."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *map(os.fspath, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **(env or {})},
        cwd=HERE,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done


def start(code, *arguments, **options):
    """Starts `code` after the prelude, with pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *map(os.fspath, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=HERE,
        **options,
    )


def command(*arguments):
    """Runs the command `hurray`, which must be there and exit with 0; returns what it printed."""
    program = shutil.which("hurray")
    if program is None:
        pytest.skip("the command is not there")
    done = subprocess.run([program, *map(os.fspath, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout
