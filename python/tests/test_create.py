"""empty, zeros, ones, full."""

import struct
import sys

import pytest

import hurray
import processes
from hurray import InvalidDescriptorError, UnsupportedError

STANDARD = [hurray.Dtype.from_name(n) for n in (
    "float16 bfloat16 float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool complex64 complex128"
).split()]  # fmt: skip


def raw(t):
    return bytes(memoryview(t.buffer(0)))


@pytest.mark.parametrize("dtype", STANDARD, ids=str)
def test_zeros_ones_empty(dtype):
    for make in (hurray.zeros, hurray.ones, hurray.empty):
        t = make((3, 5), dtype=dtype)
        assert t.dtype is dtype and t.shape == (3, 5) and t.device is hurray.device.cpu
        assert t.layout == hurray.RowMajorLayout() and not t.readonly
        assert t.nbytes == hurray.buffer_size_bytes(dtype, 15)
        assert t.buffer_handles[0].alignment == 64
    assert not any(raw(hurray.zeros((3, 5), dtype=dtype)))
    np = pytest.importorskip("numpy")
    if dtype is not hurray.bfloat16:
        assert (hurray.ones((3, 5), dtype=dtype).to_numpy() == np.ones((3, 5), str(dtype))).all()


def test_defaults():
    assert (
        hurray.zeros([2]).dtype
        is hurray.ones((2,)).dtype
        is hurray.empty((2,)).dtype
        is hurray.float64
    )
    assert hurray.full((), True).dtype is hurray.bool
    assert hurray.full((), 1).dtype is hurray.int64
    assert hurray.full((), 1.0).dtype is hurray.float64
    assert hurray.full((), 1j).dtype is hurray.dtype.complex128
    for other in ("1", None, b"1", [1]):
        with pytest.raises(InvalidDescriptorError):
            hurray.full((2,), other)
    empty = hurray.zeros((0, 3))
    assert empty.buffer_handles[0].alignment == 1 and empty.nbytes == 0


def test_packed_bool():
    assert (
        raw(hurray.full((11,), True)) == b"\xff\x07"
        and raw(hurray.ones((3,), dtype=hurray.bool)) == b"\x07"
    )
    assert (
        raw(hurray.full((11,), False)) == b"\0\0" and raw(hurray.full((16,), True)) == b"\xff\xff"
    )


def test_full_values_and_refusals():
    assert struct.unpack("<3h", raw(hurray.full((3,), -2, dtype=hurray.int16))) == (-2,) * 3
    assert raw(hurray.full((2,), 1 - 2j, dtype=hurray.dtype.complex64)) == struct.pack(
        "<4f", 1, -2, 1, -2
    )
    for name, bits in (("int8", 7), ("int16", 15), ("int32", 31), ("int64", 63)):
        dtype = getattr(hurray, name)
        for value in (-(2**bits), 2**bits - 1):
            assert (
                int.from_bytes(raw(hurray.full((), value, dtype=dtype)), "little", signed=True)
                == value
            )
        for value in (-(2**bits) - 1, 2**bits, 2**100, -(2**100)):
            with pytest.raises(OverflowError):
                hurray.full((), value, dtype=dtype)
    for name, bits in (("uint8", 8), ("uint16", 16), ("uint32", 32), ("uint64", 64)):
        dtype = getattr(hurray, name)
        assert (
            int.from_bytes(raw(hurray.full((), 2**bits - 1, dtype=dtype)), "little") == 2**bits - 1
        )
        for value in (-1, 2**bits):
            with pytest.raises(OverflowError):
                hurray.full((), value, dtype=dtype)
    for value, dtype in (
        (3.5, hurray.int32),
        (1j, hurray.float32),
        (1, hurray.bool),
        ("x", hurray.float32),
        (None, hurray.int8),
    ):
        with pytest.raises(TypeError):
            hurray.full((2,), value, dtype=dtype)
    for value, dtype in (
        (1e300, hurray.float32),
        (65520.0, hurray.float16),
        (3.4e38 * 1.01, hurray.bfloat16),
        (10**400, hurray.float64),
    ):
        with pytest.raises(OverflowError):
            hurray.full((2,), value, dtype=dtype)


def test_float_rounding():
    np = pytest.importorskip("numpy")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = [0.0, -0.0, 1.0, 0.1, -1 / 3, 65504.0, 65519.9, 6e-8, 2.9e-8, 2.98023223876953125e-8, 5.9604644775390625e-8,
              1e-40, 1.4e-45, 7e-46, 2049.0, 2051.0, 1.0009765625, 1.00048828125, float("inf"), float("-inf"), 3.0e38, 1e-45]  # fmt: skip
    rng = np.random.default_rng(7)
    values += (rng.standard_normal(2000) * 10.0 ** rng.integers(-9, 5, 2000)).tolist()
    for dtype, target in (
        (hurray.float16, np.float16),
        (hurray.float32, np.float32),
        (hurray.bfloat16, ml_dtypes.bfloat16),
    ):
        for value in values:
            # ml_dtypes rounds by way of float32; the values here have no double rounding but where it is compared
            with np.errstate(over="ignore", under="ignore"):
                expected = np.float64(value).astype(target)
            if np.isinf(expected.astype(np.float64)) and not np.isinf(value):
                with pytest.raises(OverflowError):
                    hurray.full((), value, dtype=dtype)
            else:
                assert raw(hurray.full((), value, dtype=dtype)) == expected.tobytes(), (
                    value,
                    str(dtype),
                )
        assert np.isnan(
            np.frombuffer(raw(hurray.full((), float("nan"), dtype=dtype)), target).astype(
                np.float64
            )
        )[0]


def test_refusals_name_the_call_and_the_place():
    for make, call in ((hurray.zeros, "zeros"), (hurray.ones, "ones"), (hurray.empty, "empty")):
        with pytest.raises(InvalidDescriptorError, match=rf"hurray\.{call}\(\).*index 0"):
            make((None, 2))
        with pytest.raises(InvalidDescriptorError, match=rf"hurray\.{call}\(\).*index 1"):
            make((2, -1))
        with pytest.raises(InvalidDescriptorError, match="dtype must be a hurray.Dtype"):
            make((2,), dtype="float32")
        with pytest.raises(InvalidDescriptorError, match="device must be a hurray.Device"):
            make((2,), device="cpu")
        with pytest.raises(UnsupportedError, match="Tier 2"):
            make((2,), dtype=hurray.dtype.float8_e4m3)
        with pytest.raises(hurray.BufferError, match="invalid buffer parameters"):
            make((2,), device=hurray.Device("webgpu", 0, "peer"))
        with pytest.raises((MemoryError, OverflowError)):
            make((2**62,), dtype=hurray.int8)
        with pytest.raises((MemoryError, OverflowError)):
            make((2**40, 2**40))
        with pytest.raises(TypeError):
            make(3)
    with pytest.raises(TypeError):
        hurray.zeros((2,), alignment=64)


def test_alignment_of_empty():
    np = pytest.importorskip("numpy")
    size = 64
    while size <= 2 << 20:
        t = hurray.empty((100,), alignment=size)
        assert np.asarray(t).ctypes.data % size == 0
        assert t.buffer_handles[0].alignment == min(size, 4096)
        size *= 2
    assert hurray.empty((4,), alignment=None).buffer_handles[0].alignment == 64
    assert hurray.empty((0,), alignment=4096).buffer_handles[0].alignment == 1
    for wrong in (0, 1, 32, 65, 96, 4 << 20, -64, 2**70):
        with pytest.raises(ValueError):
            hurray.empty((4,), alignment=wrong)
    with pytest.raises(TypeError):
        hurray.empty((4,), alignment="64")


def test_device_is_declared_and_memory_is_the_hosts():
    gpu = hurray.Device("cuda", 2)
    t = hurray.ones((2,), device=gpu)
    assert t.device is gpu and t.buffer_handles[0].device is gpu
    with pytest.raises(UnsupportedError, match="to_cpu"):
        memoryview(t)
    assert struct.unpack("<2d", raw(t.to_cpu())) == (1, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
@processes.measures_memory
def test_large_zeros_do_not_touch_their_pages():
    pytest.importorskip("numpy")
    done = processes.run("""
        before = status("VmRSS")
        t = hurray.zeros((1 << 27,))
        u = hurray.empty((1 << 27,), alignment=2 << 20)
        print(status("VmRSS") - before, t.nbytes, memoryview(t)[12345])
    """)
    grown, size, value = done.stdout.split()
    assert int(grown) < 4 << 20 and int(size) == 1 << 30 and float(value) == 0
