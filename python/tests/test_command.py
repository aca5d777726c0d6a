"""What the command writes for NumPy, read by NumPy."""

import shutil
import subprocess

import numpy as np
import pytest

import hurray

NAMES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128"


@pytest.fixture
def command():
    found = shutil.which("hurray")
    if found is None or "site-packages" in found:
        pytest.skip("the command was not built")
    return found


@pytest.mark.parametrize("shape", [(), (0, 3), (17,), (5, 2, 3)])
@pytest.mark.parametrize("name", NAMES.split())
def test_npy_files_are_what_numpy_reads(tmp_path, command, name, shape):
    count = int(np.prod(shape))
    array = (np.arange(count) % 3).astype(name).reshape(shape)
    hurray.save(tmp_path / "a.hrry", {"c": array, "f": array.copy(order="F")}, sync=False)
    for tensor in ("c", "f"):
        subprocess.run(
            [command, "extract", tmp_path / "a.hrry", tensor, "--npy", "-o", tmp_path / "a.npy"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        read = np.load(tmp_path / "a.npy")
        assert read.dtype == array.dtype
        assert read.shape == array.shape
        assert np.array_equal(read, array)


def test_values_are_printed_as_numpy_prints_them(tmp_path, command):
    array = np.arange(24).reshape(2, 3, 4)
    large = np.arange(10_000).reshape(100, 100)
    hurray.save(tmp_path / "a.hrry", {"t": array, "large": large}, sync=False)
    for name, expected in (("t", array), ("large", large)):
        shown = subprocess.run(
            [command, "cat", tmp_path / "a.hrry", name], check=True, stdout=subprocess.PIPE
        )
        assert shown.stdout.decode() == f"{expected}\n"
