"""JAX arrays in and out."""

import builtins
import sys

import pytest

np = pytest.importorskip("numpy")
jax = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.frameworks

import hurray  # noqa: E402
from hurray import CopyRequiredError, UnsupportedError  # noqa: E402


def aligned(shape, dtype=np.float32):
    with hurray.aligned_allocator():
        return np.zeros(shape, dtype)


def as_numpy(x):
    return np.asarray(x)


#: as JAX calls them
SHARED = {
    "int8": "int8", "int16": "int16", "int32": "int32", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32",
    "float16": "float16", "bfloat16": "bfloat16", "float32": "float32", "complex64": "complex64",
    "float8_e4m3fn": "float8_e4m3", "float8_e5m2": "float8_e5m2", "float8_e8m0fnu": "float8_e8m0",
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("take", [hurray.from_dlpack, hurray.asarray])
def test_arrays_come_in(take, name):
    x = jnp.arange(1, 13).reshape(3, 4).astype(name)
    values = as_numpy(x)
    for copy in (None, True):
        t = take(x, copy=copy)
        assert t.dtype.name == SHARED[name] and t.shape == (3, 4)
        assert t.device is hurray.device.cpu
        assert t.to_numpy().tobytes() == values.tobytes()
        shared = as_numpy(t.buffer(0)).ctypes.data == values.ctypes.data
        assert t.readonly is shared and not (shared and copy)
    try:
        shared = take(x, copy=False)
    except CopyRequiredError as error:
        assert "64" in str(error)
    else:
        assert shared.readonly and as_numpy(shared.buffer(0)).ctypes.data == values.ctypes.data


def test_64_bits_and_other_shapes():
    for x in (jnp.zeros((0, 3)), jnp.float32(2.5), jnp.arange(24).reshape(2, 3, 4).T, jnp.ones((1, 1))):
        t = hurray.from_dlpack(x)
        assert t.shape == x.shape and (t.to_numpy() == as_numpy(x)).all()


def test_bool_is_packed():
    for take in (hurray.from_dlpack, hurray.asarray):
        t = take(jnp.arange(5) > 2)
        assert t.dtype is hurray.bool and t.nbytes == 1 and not t.readonly
        assert t.to_numpy().tolist() == [False, False, False, True, True]
        with pytest.raises(CopyRequiredError, match="bool"):
            take(jnp.arange(5) > 2, copy=False)


@pytest.mark.parametrize("count", [1, 3, 8, 33])
def test_float4_comes_packed(count):
    if not hasattr(jnp, "float4_e2m1fn"):
        pytest.skip("this JAX has no float4")
    x = (jnp.arange(count) % 7 - 3).astype(jnp.float4_e2m1fn)
    try:
        x.__dlpack__(max_version=(1, 1))
    except Exception:
        pytest.skip("this JAX gives no float4")
    values = as_numpy(x)
    t = hurray.from_dlpack(x, copy=True)
    assert t.dtype is hurray.dtype.float4_e2m1 and t.nbytes == -(-count // 2)
    assert t.to_numpy().tobytes() == values.tobytes()
    # Memory of our own has zeros behind the last element.
    assert count % 2 == 0 or as_numpy(t.buffer(0))[-1] < 16
    assert hurray.from_dlpack(x).to_numpy().tobytes() == values.tobytes()


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_types_that_dlpack_does_not_bring_come_by_numpy(name, tmp_path):
    x = jnp.arange(7).astype(name)
    values = as_numpy(x)
    t = hurray.asarray(x)
    assert t.dtype is getattr(hurray.dtype, name) and (t.to_numpy() == values).all()
    hurray.save(tmp_path / "x.hrry", {"x": x})
    loaded = hurray.load(tmp_path / "x.hrry")["x"]
    assert loaded.dtype is t.dtype and (loaded.to_numpy() == values).all()
    back = jnp.asarray(loaded.to_numpy())
    assert back.dtype == name and (back == x).all()
    with pytest.raises(UnsupportedError, match="ArrayImpl"):
        hurray.from_dlpack(x)


@pytest.mark.parametrize("name", ["float8_e4m3b11fnuz", "float8_e5m2fnuz", "float8_e3m4"])
def test_other_types_are_refused_by_name(name):
    x = jnp.ones(3).astype(getattr(jnp, name))
    for call in (hurray.from_dlpack, hurray.asarray, hurray.StreamWriter().write):
        with pytest.raises(UnsupportedError, match="code .*, 8 bits, 1 lanes"):
            call(x)


# ---- out --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in SHARED if not n.startswith("float8")])
def test_tensors_go_out_by_dlpack(name):
    a = aligned((3, 4), as_numpy(jnp.zeros(1, name)).dtype)
    a[...] = np.arange(12).reshape(3, 4)
    t = hurray.from_numpy(a, copy=False)
    for take in (jax.dlpack.from_dlpack, jnp.from_dlpack):
        x = take(t)
        assert x.dtype == name and x.shape == (3, 4)
        assert as_numpy(x).tobytes() == a.tobytes()
        assert x.unsafe_buffer_pointer() == a.ctypes.data
    assert jax.dlpack.from_dlpack(t, device=jax.devices("cpu")[0]).shape == (3, 4)


def test_tensors_outlive_their_names():
    a = aligned((64,))
    a[:] = 3
    x = jax.dlpack.from_dlpack(hurray.from_numpy(a, copy=False))
    del a
    assert x.sum() == 192


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_8_bit_floats_go_out_by_numpy(name):
    pytest.importorskip("ml_dtypes")
    t = hurray.Tensor(bytes(range(1, 13)), getattr(hurray.dtype, SHARED[name]), (3, 4))
    x = jnp.asarray(t)
    assert x.dtype == name and as_numpy(x).tobytes() == bytes(range(1, 13))
    # JAX asks for an unversioned capsule, which has no such type.
    with pytest.raises(builtins.BufferError, match=SHARED[name]):
        jax.dlpack.from_dlpack(t)


def test_layouts():
    t = hurray.from_numpy(np.arange(24, dtype=np.float32).reshape(4, 6).T)
    assert t.layout == hurray.ColMajorLayout()
    assert (as_numpy(jax.dlpack.from_dlpack(t)) == np.asarray(t)).all()
    assert jax.dlpack.from_dlpack(hurray.zeros((0, 3), dtype=hurray.float32)).shape == (0, 3)
    assert jax.dlpack.from_dlpack(hurray.full((), 2.5, dtype=hurray.float32)) == 2.5


def test_what_is_refused_going_out():
    read_only = aligned((4,))
    read_only.flags.writeable = False
    for t, said in (
        (hurray.from_numpy(read_only, copy=False), "read-only"),
        (hurray.zeros((2,), dtype=hurray.bool), "bool"),
        (hurray.Tensor(bytes(1), hurray.dtype.int4, (2,)), "int4"),
        (hurray.sparse_coo([1.0], [[0]], (2,)), "coo"),
    ):
        with pytest.raises(builtins.BufferError, match=said):
            jax.dlpack.from_dlpack(t)


def test_there_and_back():
    x = jnp.arange(12.0).reshape(3, 4)
    back = jax.dlpack.from_dlpack(hurray.asarray(hurray.from_dlpack(x), copy=True))
    assert (back == x).all()


# ---- arrays that are none ---------------------------------------------------------------------------


def test_arrays_stay_as_they_are():
    x = jnp.arange(64, dtype=jnp.float32)
    for take in (hurray.from_dlpack, hurray.asarray):
        t = take(x)
        assert t.readonly is (as_numpy(t).ctypes.data == as_numpy(x).ctypes.data)
        own = take(x, copy=True)
        assert not own.readonly
        as_numpy(own)[:] = -1
        y = t.to_torch() if "torch" in sys.modules else own.to_numpy()
        y[:] = -2
        assert (as_numpy(x) == np.arange(64)).all()


def test_deleted_arrays_keys_and_tracers():
    gone = jnp.arange(4)
    gone.delete()
    for call in (hurray.asarray, hurray.from_dlpack, hurray.StreamWriter().write):
        with pytest.raises(UnsupportedError, match="ArrayImpl .*deleted") as info:
            call(gone)
        assert isinstance(info.value.__cause__, RuntimeError)
    with pytest.raises(UnsupportedError, match="PRNGKeyArray"):
        hurray.asarray(jax.random.key(0))

    seen = []

    def traced(x):
        for call in (hurray.asarray, hurray.from_dlpack, hurray.StreamWriter().write):
            with pytest.raises(UnsupportedError, match="Tracer"):
                call(x)
        seen.append(True)
        return x

    jax.jit(traced)(jnp.ones(2))
    assert seen


def test_written_directly(tmp_path):
    tensors = {
        "a": jnp.arange(6.0).reshape(2, 3),
        "b": jnp.arange(5) > 2,
        "c": jnp.ones(3, jnp.bfloat16),
    }
    hurray.save(tmp_path / "x.hrry", tensors)
    for name, t in hurray.load(tmp_path / "x.hrry").items():
        assert (t.to_numpy() == as_numpy(tensors[name])).all()
