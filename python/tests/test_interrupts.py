"""Ctrl-C ends what takes long within a second: real signals, files of sizes that nobody waits for."""

import os
import shutil
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

import hurray
import processes

LARGE = 12 << 30


def crc32c(data, crc=0, table=[]):  # noqa: B006
    if not table:
        for value in range(256):
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
            table.append(value)
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@pytest.fixture
def large(tmp_path):
    """A tensor of zeros that takes no room on the disk, with the sums of 04-file.md section 16."""
    path = tmp_path / "large.hrry"
    hurray.save(tmp_path / "small", {"w": np.zeros(1 << 20, np.uint8)})
    small = (tmp_path / "small").read_bytes()
    header = small[:64]
    length = struct.unpack_from("<Q", small, 64 + 6)[0] & 0xFFFFFFFF
    descriptor = bytearray(small[64 : 64 + length])
    for at in range(len(descriptor) - 7):
        if struct.unpack_from("<Q", descriptor, at)[0] == 1 << 20:
            struct.pack_into("<Q", descriptor, at, LARGE)
    chunk = struct.unpack_from("<I", small, small.index(b"HRRYSUM1") + 32 + 4)[0]
    end = 4096 + LARGE
    index = struct.pack("<QH1sQIQQI", 1, 1, b"w", 64, length, 4096, LARGE, 0)
    payload_length = 36 + 4 * (1 + LARGE // (1 << 20))
    key = b"hurray.crc32c"
    kv = struct.pack("<IH", 1, len(key)) + key + struct.pack("<BI", 6, payload_length)
    payload = struct.pack("<8sBBxxIIIQ", b"HRRYSUM1", 1, 20, crc32c(index), crc32c(header), crc32c(kv), 1)
    payload += struct.pack("<I", crc32c(descriptor)) + struct.pack("<I", chunk) * (LARGE // (1 << 20))
    kv += payload + struct.pack("<I", crc32c(payload))
    index_offset = (end + len(kv) + 7) // 8 * 8
    trailer = struct.pack("<QQQIII4s", index_offset, len(index), end, len(kv), crc32c(index), 0, b"HRRY")
    with open(path, "wb") as file:
        file.write(header + descriptor)
        file.truncate(end)
        file.seek(end)
        file.write(kv + bytes(index_offset - end - len(kv)) + index + trailer)
    (tmp_path / "small").unlink()
    with hurray.open(path) as f:
        assert f.has_checksums and f["w"].shape == (LARGE,)
    return path


CHILD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
path = sys.argv[1]

def moved():
    with open("/proc/self/io") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith(("rchar", "wchar")))

print("begun", flush=True)
try:
    CALL
except KeyboardInterrupt:
    print("interrupted", flush=True)
    assert moved() < 10 << 30, moved()
else:
    raise AssertionError("not interrupted")
"""


@pytest.mark.parametrize(
    "call",
    [
        "hurray.load(path, mode='memory')",
        "hurray.load(path, mode='memory', verify=False)",
        "hurray.load(path, verify=True)",
        "hurray.open(path, mode='memory')['w']",
        "hurray.open(path, verify=True)['w']",
        "hurray.open(path).verify()",
        "hurray.open(path).verify(['w'])",
        "hurray.save(path + '.new', hurray.load(path), sync=False)",
    ],
)
def test_ctrl_c(large, call):
    process = processes.start(CHILD.replace("CALL", call), large)
    assert process.stdout.readline() == b"begun\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=100)
    assert (process.returncode, out) == (0, b"interrupted\n"), errors.decode()
    assert os.listdir(large.parent) == [large.name]


@pytest.mark.parametrize("arguments", [["verify", "{}"], ["convert", "{}", "{}.new"]])
def test_ctrl_c_in_the_command(large, arguments):
    command = shutil.which("hurray")
    if command is None or "site-packages" in command:
        pytest.skip("the command was not built")
    process = subprocess.Popen(
        [command, *(argument.format(large) for argument in arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert os.listdir(large.parent) == [large.name]


def test_a_file_that_is_cut_under_a_reader(tmp_path):
    path = tmp_path / "model.hrry"
    hurray.save(path, {"w": np.ones(1 << 20), "last": np.ones(1 << 20)})
    for verify in (None, False):
        with hurray.open(path, mode="memory", verify=verify) as f:
            size = os.path.getsize(path)
            os.truncate(path, 1 << 20)
            with pytest.raises(hurray.FileError, match="cut while it was open") as cut:
                f["w"]
            assert os.fspath(path) in str(cut.value)
            assert '"w"' in str(cut.value) or verify is None  # the sums, which come first, are gone too
            with pytest.raises(hurray.FileError, match="cut while it was open"):
                f["last"]
            with pytest.raises(hurray.FileError):
                f.verify()
            os.truncate(path, size)
        hurray.save(path, {"w": np.ones(1 << 20), "last": np.ones(1 << 20)})


if sys.platform != "linux":
    pytest.skip("/proc", allow_module_level=True)
