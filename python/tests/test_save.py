import enum
import hashlib
import os
import signal
import stat
import struct
import threading

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import hurray
import processes
import wire

MINIMAL = wire.annotated(
    """
0000  48 52 52 59 46 49 4C 45   magic HRRYFILE
0008  01 00 00 00               container 1.0, reserved
000C  05 00 00 00               flags: HAS_KV_METADATA | HAS_INDEX_CRC32C
0010  00 10 00 00               data_buffer_alignment = 4096
0014  40 00 00 00 00 00 00 00   first_descriptor_offset = 64
001C  FF FF FF FF FF FF FF FF   tensor_count_hint unknown
0024  00 × 28                   reserved
0040  48 52 52 59 01 00         descriptor: HRRY, version 1.0
0046  35 00 00 00 00 00 00 00   descriptor_length = 53, flags 0
004E  12 01 01 00 00 00         int16, row-major, rank 1
0054  03 00 00 00 00 00 00 00   shape[0] = 3
005C  00 00 00 00 00 00 00 00   byte_offset 0
0064  01                        buffer_count 1
0065  06 00 00 00 00 00 00 00   byte_size 6
006D  40 00 00 00 00 00 00 00   alignment 64; device, sync, class, reserved 0
0075  00 … 00                   padding to 4096
1000  01 00 FE FF 2C 01         data: 1, -2, 300
1006  00 00                     padding to 8
1008  01 00 00 00               kv_count = 1
100C  03 00 72 65 76            key "rev"
1011  02 07 00 00 00 00 00 00 00   int64 7
101A  00 00 00 00 00 00         padding to 8
1020  01 00 00 00 00 00 00 00   index_entry_count = 1
1028  01 00 74                  name "t"
102B  40 00 00 00 00 00 00 00   descriptor_offset 64
1033  35 00 00 00               descriptor_length 53
1037  00 10 00 00 00 00 00 00   data_offset 4096
103F  06 00 00 00 00 00 00 00   data_length 6
1047  00 00 00 00               flags
104B  20 10 00 00 00 00 00 00   index_offset 4128
1053  2B 00 00 00 00 00 00 00   index_length 43
105B  08 10 00 00 00 00 00 00   kv_offset 4104
1063  12 00 00 00               kv_length 18
1067  11 C5 7C CD               index_crc32c = CD7CC511
106B  00 00 00 00 48 52 52 59   reserved, HRRY
"""
)
EMPTY = (
    struct.pack("<8sBBxxIIQQ28x", b"HRRYFILE", 1, 0, 5, 4096, 64, 2**64 - 1)
    + bytes(8)
    + bytes(8)
    + struct.pack("<QQQIII4s", 72, 8, 64, 4, 0x8C28B28A, 0, b"HRRY")
)
TENSOR = np.array([1, -2, 300], "<i2")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.hrry"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def only(path):
    """Nothing but `path` lies in its folder."""
    return [entry.name for entry in path.parent.iterdir()] == [path.name]


# ---- bytes ---


def test_the_minimal_file_of_the_format_page(path):
    hurray.save(path, {"t": TENSOR}, kv={"rev": 7}, checksums=False)
    assert path.read_bytes() == MINIMAL


def test_the_empty_file_of_the_format_page(path):
    hurray.save(path, {}, checksums=False)
    assert path.read_bytes() == EMPTY
    assert hurray.load(path) == {}
    assert hurray.load_kv(path) == {}


def test_the_sums_of_the_format_page(path):
    hurray.save(path, {"t": TENSOR}, kv={"rev": 7})
    data = path.read_bytes()
    assert len(data) == 4275
    payload = data[data.index(b"HRRYSUM1") :][: 36 + 8]
    assert payload[8:12] == bytes([1, 20, 0, 0])
    sums = struct.unpack("<IIIQIII", payload[12:])
    assert sums == (0xCD7CC511, 0xA3295638, 0xCD740F8E, 1, 0xB1696D50, 0x8227BCA4, 0x2FA6319D)
    assert struct.unpack_from("<Q", data, 28) == (1,)
    assert data[4096:4102] == TENSOR.tobytes()
    assert hurray.load_kv(path) == {"rev": 7}


@pytest.mark.parametrize("checksums", [True, False])
def test_equal_values_make_equal_bytes_wherever_they_lie(tmp_path, checksums):
    values = np.arange(5000, dtype=np.float32)
    with hurray.aligned_allocator():
        aligned = values.copy()
    shifted = np.empty(values.nbytes + 1, np.uint8)[1:].view(np.float32)
    shifted[:] = values
    page = hurray.empty((5000,), dtype=hurray.float32, alignment=4096)
    np.asarray(page)[:] = values
    hurray.save(tmp_path / "first", {"w": values})
    loaded = hurray.load(tmp_path / "first")["w"]
    mapped = hurray.open(tmp_path / "first")["w"]
    own = hurray.from_numpy(values, copy=True)
    digests = set()
    for i, source in enumerate([values, aligned, shifted, page, loaded, mapped, own]):
        target = tmp_path / str(i)
        hurray.save(target, {"w": source}, checksums=checksums)
        digests.add(digest(target))
    assert len(digests) == 1
    stored = hurray.open(target).descriptor("w").buffer_handles
    assert [h.alignment for h in stored] == [64]


def test_empty_tensors_declare_an_alignment_of_1(path):
    hurray.save(path, {"none": np.zeros((0, 7), np.float16)})
    with hurray.open(path) as f:
        (stored,) = f.descriptor("none").buffer_handles
        assert (stored.byte_size, stored.alignment) == (0, 1)
        assert f["none"].shape == (0, 7)


# ---- sources ---

DTYPES = (
    "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128"
)


def numbers(dtype, shape):
    count = int(np.prod(shape, dtype=np.int64))
    bits = np.random.default_rng(7).integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8)
    return bits.view(dtype).reshape(shape)


def same(a, b):
    """Bit for bit, whatever the byte order."""
    native = a.astype(a.dtype.newbyteorder("="))
    return native.shape == b.shape and native.dtype == b.dtype and native.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_arrays_of_every_order_and_stride(path, dtype):
    base = numbers(dtype, (6, 8, 10))
    swapped = base.astype(base.dtype.newbyteorder(">"))
    odd = np.empty(base.nbytes + 1, np.uint8)[1:].view(dtype).reshape(base.shape)
    odd[...] = base
    readonly = base.copy()
    readonly.flags.writeable = False
    sources = {
        "c": base,
        "f": np.asfortranarray(base),
        "transposed": base.transpose(2, 0, 1),
        "sliced": base[::2, 1:5, ::3],
        "reversed": base[::-1, :, ::-1],
        "broadcast": np.broadcast_to(base[0], (6, 8, 10)),
        "scalar": base[0, 0, 0].reshape(()),
        "numpy scalar": base[1, 2, 3],
        "empty": base[:0],
        "swapped": swapped,
        "swapped and sliced": swapped[:, ::-2],
        "odd": odd,
        "readonly": readonly,
    }
    hurray.save(path, sources)
    loaded = hurray.load(path)
    assert list(loaded) == list(sources)
    for name, source in sources.items():
        assert same(np.asarray(source), np.asarray(loaded[name])), name
    assert loaded["f"].layout == hurray.ColMajorLayout()
    for name in set(sources) - {"f"}:
        assert loaded[name].layout == hurray.RowMajorLayout(), name


def test_bool_arrays_are_packed(path):
    values = np.random.default_rng(1).integers(0, 2, (7, 13)).astype(bool)
    odd = np.array([0, 1, 2, 255, 0], np.uint8).view(bool)
    hurray.save(path, {"b": values, "strided": values[::-1, ::2], "odd": odd})
    loaded = hurray.load(path)
    assert loaded["b"].nbytes == 12
    assert np.array_equal(loaded["b"].to_numpy(), values)
    assert np.array_equal(loaded["strided"].to_numpy(), values[::-1, ::2])
    assert loaded["odd"].to_numpy().tolist() == [False, True, True, True, False]


def test_bool_bytes_of_another_writer_are_not_guessed_at(tmp_path):
    stored = wire.descriptor(0x20, (9,), 9)
    assert hurray.Descriptor.decode(stored).dtype == hurray.bool
    wire.file_around(tmp_path / "foreign", [("mask", stored, 9)])
    mask = hurray.load(tmp_path / "foreign")["mask"]
    with pytest.raises(hurray.UnsupportedError):
        mask.to_numpy()
    assert bytes(memoryview(mask.buffer(0))) == bytes(9)
    hurray.save(tmp_path / "relayed", {"mask": mask})
    assert hurray.open(tmp_path / "relayed").descriptor("mask").encode() == stored


def test_ml_dtypes(path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    sources = {
        name: numbers(np.uint8, (64,)).view(getattr(ml_dtypes, name))
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")
    }
    sources["int4"] = np.arange(-8, 7).astype(ml_dtypes.int4)
    hurray.save(path, sources)
    loaded = hurray.load(path)
    for name, source in sources.items():
        values = loaded[name].to_numpy()
        assert values.dtype == source.dtype
        assert values.tobytes() == source.tobytes()
    assert loaded["int4"].nbytes == 8


@pytest.mark.parametrize(
    "source",
    [b"\x01\x02\x03", bytearray(b"\x01\x02\x03"), memoryview(b"\x01\x02\x03")],
    ids=lambda s: type(s).__name__,
)
def test_objects_with_the_buffer_protocol(path, source):
    hurray.save(path, {"b": source})
    values = np.asarray(hurray.load(path)["b"])
    assert values.dtype == np.uint8 and values.tolist() == [1, 2, 3]


def test_objects_with_dlpack(path):
    class Exporter:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    hurray.save(path, {"c": Exporter(array), "t": Exporter(array.T)})
    loaded = hurray.load(path)
    assert np.array_equal(np.asarray(loaded["c"]), array)
    assert np.array_equal(np.asarray(loaded["t"]), array.T)


@pytest.mark.frameworks
def test_torch_tensors(path):
    torch = pytest.importorskip("torch")
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    sources = {
        "plain": base,
        "grad": base.clone().requires_grad_(),
        "transposed": base.t(),
        "sliced": base[::2, 1::2],
        "expanded": base[:1].expand(5, 6),
        "bfloat16": base.to(torch.bfloat16),
        "bool": base > 7,
        "scalar": torch.tensor(3, dtype=torch.int64),
        "conjugated": torch.tensor([1 + 2j, 3 - 4j]).conj(),
        "parameter": torch.nn.Parameter(base.clone()),
        "empty": torch.zeros(0, 3),
    }
    hurray.save(path, sources)
    loaded = hurray.load(path)
    for name, source in sources.items():
        got = loaded[name].to_torch(copy=True) if name == "bool" else loaded[name].to_torch()
        assert got.dtype == source.dtype, name
        assert torch.equal(got, source.detach().resolve_conj()), name


@pytest.mark.frameworks
def test_jax_arrays(path):
    jnp = pytest.importorskip("jax.numpy")
    sources = {
        "plain": jnp.arange(12, dtype=jnp.float32).reshape(3, 4),
        "transposed": jnp.arange(12, dtype=jnp.int32).reshape(3, 4).T,
        "bfloat16": jnp.ones((3,), jnp.bfloat16),
        "scalar": jnp.float32(2.5),
    }
    hurray.save(path, sources)
    loaded = hurray.load(path)
    for name, source in sources.items():
        values = loaded[name].to_numpy()
        assert values.dtype == source.dtype and np.array_equal(values, np.asarray(source)), name


def test_saving_what_was_loaded_onto_itself(path):
    arrays = {"a": np.arange(100_000, dtype=np.float32), "b": np.arange(7), "c": np.zeros((0, 2))}
    hurray.save(path, arrays, kv={"k": "v"})
    before = path.read_bytes()
    loaded = hurray.load(path)
    hurray.save(path, loaded, kv=hurray.load_kv(path))
    assert path.read_bytes() == before
    hurray.save(path, {"a": loaded["a"]})
    assert np.array_equal(np.asarray(hurray.load(path)["a"]), arrays["a"])
    for name, array in arrays.items():
        assert np.array_equal(np.asarray(loaded[name]), array)


def test_saving_onto_itself_through_a_link(tmp_path, path):
    hurray.save(path, {"w": np.arange(100_000)})
    link = tmp_path / "link.hrry"
    link.symlink_to(path.name)
    loaded = hurray.load(link)
    hurray.save(link, {"w": loaded["w"], "x": np.arange(3)})
    assert link.is_symlink()
    assert list(hurray.load(path)) == ["w", "x"]
    assert np.array_equal(np.asarray(loaded["w"]), np.arange(100_000))


# ---- refusals: nothing is written ---


class Colour(enum.IntEnum):
    RED = 1


BAD_VALUES = [
    ([1, 2, 3], hurray.UnsupportedError),
    ("text", hurray.UnsupportedError),
    (3.5, hurray.UnsupportedError),
    (None, hurray.UnsupportedError),
    ({"a": 1}, hurray.UnsupportedError),
    (np.array([object()]), hurray.UnsupportedError),
    (np.array(["text"]), hurray.UnsupportedError),
    (np.zeros(3, "datetime64[s]"), hurray.UnsupportedError),
    (np.zeros(3, [("x", int)]), hurray.UnsupportedError),
    (np.ma.masked_array([1, 2], [True, False]), hurray.UnsupportedError),
]


@pytest.mark.parametrize("bad,error", BAD_VALUES, ids=lambda v: type(v).__name__)
def test_values_that_are_refused(path, bad, error):
    hurray.save(path, {"old": TENSOR})
    before = digest(path)
    with pytest.raises(error):
        hurray.save(path, {"good": np.zeros(1000), "bad": bad})
    assert digest(path) == before
    assert only(path)


def test_a_refused_value_is_named(path):
    with pytest.raises(hurray.UnsupportedError, match=r'tensor "layers\.3".*list'):
        hurray.save(path, {"layers.3": [1, 2]})
    assert not path.exists()


class Refusing:
    def __dlpack__(self, **kwargs):
        raise RuntimeError("deleted")


@pytest.mark.parametrize(
    "bad,error,said",
    [
        (np.array(["text"]), hurray.UnsupportedError, "<U4"),
        (np.ma.masked_array([1, 2], [True, False]), hurray.UnsupportedError, "mask"),
        (memoryview(b"ab").cast("c"), hurray.UnsupportedError, "'c'"),
        (Refusing(), hurray.UnsupportedError, "Refusing .*deleted"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_the_refused_tensor_is_named(path, bad, error, said):
    with pytest.raises(error, match=rf'^tensor "w\.1": .*{said}') as info:
        hurray.save(path, {"w.0": np.zeros(3), "w.1": bad})
    assert type(info.value) is error
    if isinstance(bad, Refusing):
        assert isinstance(info.value.__cause__, RuntimeError)
    assert not path.exists()


def test_interrupts_keep_their_text(path):
    class Interrupted:
        def __dlpack__(self, **kwargs):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as info:
        hurray.save(path, {"w": Interrupted()})
    assert info.value.args == ()
    assert not path.exists()


@pytest.mark.parametrize(
    "names,error",
    [
        ([""], hurray.FileError),
        (["a" * 65536], hurray.FileError),
        (["\ud800"], hurray.FileError),
        ([b"w"], TypeError),
        ([1], TypeError),
        ([None], TypeError),
    ],
)
def test_names_that_are_refused(path, names, error):
    with pytest.raises(error):
        hurray.save(path, {"ok": TENSOR, **dict.fromkeys(names, TENSOR)})
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("name", ["a", "a" * 65535, "ä/../\n\0 \U0001f600", "hurray.crc32c", "a.0"])
def test_names_that_are_taken(path, name):
    hurray.save(path, {name: TENSOR})
    assert list(hurray.load(path)) == [name]
    assert hurray.open(path).names == (name,)


@pytest.mark.parametrize("tensors", [[("w", TENSOR)], "w", None, 3, TENSOR])
def test_tensors_must_be_a_mapping(path, tensors):
    with pytest.raises(TypeError):
        hurray.save(path, tensors)


def test_order_is_the_mapping_s(path):
    names = ["z", "a", "m", "b"]
    hurray.save(path, dict.fromkeys(names, TENSOR))
    assert list(hurray.load(path)) == names


# ---- kv ---

KV = {
    "true": True,
    "false": False,
    "small": -(2**63),
    "large": 2**64 - 1,
    "float": 0.1,
    "negative zero": -0.0,
    "infinity": float("inf"),
    "text": "ä \0 \U0001f600",
    "nothing": "",
    "bytes": b"\x00\xff",
    "no bytes": b"",
    "bools": [True, False],
    "ints": [-1, 2**62],
    "large ints": [1, 2**64 - 1],
    "large ints, large first": [2**63, 1],
    "floats": [0.5, -1e300],
    "texts": ["", "b"],
    "many bytes": [b"", b"HRRYSUM1"],
    "ä": 1,
}


def test_kv_comes_back_with_its_types(path):
    hurray.save(path, {}, kv=KV)
    kv = hurray.load_kv(path)
    assert kv == KV and list(kv) == list(KV)
    for key, value in KV.items():
        assert type(kv[key]) is type(value)
        if isinstance(value, list):
            assert [type(v) for v in kv[key]] == [type(v) for v in value]
    assert str(kv["negative zero"]) == "-0.0"
    assert hurray.open(path).kv == KV


def test_nan_keeps_its_bits(path):
    (nan,) = struct.unpack("<d", struct.pack("<Q", 0x7FF8DEADBEEF0001))
    hurray.save(path, {}, kv={"nan": nan})
    assert struct.pack("<d", hurray.load_kv(path)["nan"]) == struct.pack("<d", nan)


SCALARS = [
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(2**63, 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary().filter(lambda b: not b.startswith(b"HRRYSUM1")),
]
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50)


@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(
    st.dictionaries(
        KEYS.filter(lambda key: key != "hurray.crc32c"),
        st.one_of(*SCALARS, *(st.lists(scalar, min_size=1) for scalar in SCALARS)),
    )
)
def test_any_kv_comes_back(path, kv):
    hurray.save(path, {}, kv=kv, sync=False)
    back = hurray.load_kv(path)
    assert repr(back) == repr(kv)


@pytest.mark.parametrize(
    "value,cure",
    [
        (np.int64(3), ".item()"),
        (np.float64(3), ".item()"),
        (np.str_("a"), ".item()"),
        (np.bool_(True), ".item()"),
        (np.zeros(3), ".tolist()"),
        ({"a": 1}, "json.dumps"),
        (None, "leave the key out"),
        ((1, 2), "list("),
        ([], "must not be empty"),
        ([1, "a"], "several types"),
        ([1, True], "several types"),
        ([1, 2.0], "several types"),
        ([-1, 2**63], "several types"),
        ([[1], [2]], "list"),
        ([None], "leave"),
        (2**64, "str("),
        (-(2**63) - 1, "str("),
        (Colour.RED, "int("),
        (bytearray(b"a"), "bytes("),
        (1 + 2j, "str("),
        ("\ud800", "UTF-8"),
        (b"HRRYSUM1", "HRRYSUM1"),
    ],
    ids=repr,
)
def test_kv_values_that_are_refused(path, value, cure):
    with pytest.raises(hurray.FileError) as refused:
        hurray.save(path, {"w": TENSOR}, kv={"fine": 1, "key": value})
    assert cure in str(refused.value)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    "key,error",
    [
        (1, TypeError),
        (b"a", TypeError),
        ("", hurray.FileError),
        ("a" * 65536, hurray.FileError),
        ("\ud800", hurray.FileError),
        ("hurray.crc32c", hurray.FileError),
    ],
)
def test_kv_keys_that_are_refused(path, key, error):
    with pytest.raises(error):
        hurray.save(path, {}, kv={key: 1})
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("kv", [[("a", 1)], "a", 3])
def test_kv_must_be_a_mapping(path, kv):
    with pytest.raises(TypeError):
        hurray.save(path, {}, kv=kv)


# ---- the old file or the new one ---


@pytest.mark.parametrize("sync", [True, False])
def test_the_target_is_replaced(path, sync):
    hurray.save(path, {"old": TENSOR})
    kept = hurray.load(path)["old"]
    os.chmod(path, 0o640)
    hurray.save(path, {"new": TENSOR * 2}, sync=sync)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(hurray.load(path)) == ["new"]
    assert np.array_equal(np.asarray(kept), TENSOR)
    assert only(path)


def test_a_full_disk_leaves_the_old_file(path):
    hurray.save(path, {"old": TENSOR})
    before = digest(path)
    processes.run(
        """
        import errno, resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            hurray.save(sys.argv[1], {"large": np.ones(8 << 20, np.uint8)})
        except hurray.FileError as error:
            assert error.errno == errno.EFBIG, error
            assert error.filename == sys.argv[1], error.filename
        else:
            raise AssertionError
        """,
        path,
    )
    assert digest(path) == before
    assert only(path)


def test_no_space_on_a_device():
    with pytest.raises(hurray.FileError) as full:
        hurray.save("/dev/full", {"w": TENSOR})
    assert full.value.errno == 28
    assert full.value.filename == "/dev/full"


def test_an_interrupt_leaves_the_old_file(path):
    hurray.save(path, {"old": TENSOR})
    before = digest(path)
    processes.run(
        """
        import signal
        class Stop(Exception): pass
        def handler(*_): raise Stop
        signal.signal(signal.SIGALRM, handler)
        strided = np.broadcast_to(np.float32(1), (1 << 30,))  # 4 GiB to convert, no memory
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            hurray.save(sys.argv[1], {"w": strided}, sync=False)
        except Stop:
            pass
        else:
            raise AssertionError
        """,
        path,
    )
    assert digest(path) == before
    assert only(path)


def test_a_killed_save_is_cleaned_up_by_the_next(path):
    hurray.save(path, {"old": TENSOR})
    process = processes.start(
        """
        print("saving", flush=True)
        hurray.save(sys.argv[1], {"w": np.broadcast_to(np.float32(1), (1 << 30,))}, sync=False)
        """,
        path,
    )
    try:
        assert process.stdout.readline()
        while only(path):
            assert process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert list(hurray.load(path)) == ["old"]
    assert not only(path)
    hurray.save(path, {"new": TENSOR})
    assert only(path)


@pytest.mark.parametrize(
    "make,kinds",
    [
        (lambda p: p / "no" / "such" / "folder", (hurray.FileError, FileNotFoundError)),
        (lambda p: p, (hurray.FileError, IsADirectoryError)),
    ],
)
def test_paths_that_cannot_be_written(tmp_path, make, kinds):
    target = make(tmp_path)
    with pytest.raises(hurray.FileError) as refused:
        hurray.save(target, {"w": TENSOR})
    for kind in kinds:
        assert isinstance(refused.value, kind)
    assert refused.value.filename == os.fspath(target)
    assert os.fspath(target) in str(refused.value)
    assert refused.value.strerror


@pytest.mark.parametrize("target", [3, None, ["list"]])
def test_what_is_no_path(target):
    with pytest.raises(TypeError):
        hurray.save(target, {})


def test_a_path_with_a_null_byte(tmp_path):
    with pytest.raises(ValueError):
        hurray.save(f"{tmp_path}/a\0b", {})


def test_a_pipe_is_written_in_place(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    thread = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    thread.start()
    hurray.save(pipe, {"t": TENSOR}, kv={"rev": 7}, checksums=False)
    thread.join()
    assert got == [MINIMAL]


def test_a_refusal_writes_nothing_into_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(hurray.FileError):
            hurray.save(pipe, {"t": TENSOR, "": TENSOR})
        assert os.read(reading, 100) == b""
    finally:
        os.close(reading)


@processes.measures_memory
def test_saving_takes_little_memory(tmp_path):
    processes.run(
        """
        values = np.ones((2048, 16384), np.uint16)  # 64 MiB
        sources = {
            "c": values,
            "f": values.T,
            "strided": values[:, ::2],
            "swapped": values.view(">u2"),
            "bool": values.view(bool),
            "broadcast": np.broadcast_to(np.float32(1), (32 << 20,)),
        }
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")
        before = status("VmRSS")
        hurray.save(sys.argv[1], sources, sync=False)
        assert status("VmHWM") - before < 16 << 20, status("VmHWM") - before
        """,
        tmp_path / "large",
    )


@processes.measures_memory
@pytest.mark.parametrize("kind", ["torch", "mapped", "memory", "composite", "shards"])
def test_other_sources_take_no_more_memory(tmp_path, kind):
    if kind == "torch":
        pytest.importorskip("torch")
    hurray.save(tmp_path / "from.hrry", {f"x{k}": np.full((8 << 20,), k, np.uint32) for k in range(3)}, sync=False)
    processes.run(
        """
        kind, options = sys.argv[2], {}
        if kind == "torch":
            import torch
            tensors = {f"x{k}": torch.ones(8 << 20) for k in range(3)} | {"t": torch.ones(4096, 2048).T}
        else:
            tensors = hurray.load(sys.argv[1] + "/from.hrry", mode="memory" if kind == "memory" else "map")
        if kind == "composite":
            head = dict(shape=[8 << 20], dtype=hurray.uint32)
            tensors = {"head": hurray.Composite("group", members=list(tensors.values()), **head)}
        if kind == "shards":
            options = {"max_shard_size": 1}
        hurray.save(sys.argv[1] + "/small", {"x": np.zeros(3)}, sync=False, **options)
        # Pages of a mapped file are the system's: those of the process alone are looked at all the time.
        import threading, time
        seen, over = [], threading.Event()

        def look():
            while not over.is_set():
                seen.append(status("RssAnon"))
                time.sleep(0.001)

        before = status("RssAnon")
        thread = threading.Thread(target=look)
        thread.start()
        hurray.save(sys.argv[1] + "/to", tensors, sync=False, **options)
        over.set()
        thread.join()
        assert len(seen) > 5 and max(seen) - before < 16 << 20, max(seen) - before
        """,
        tmp_path, kind)  # fmt: skip


def test_the_gil_is_released(tmp_path):
    """A thread runs while another one saves into a pipe that nobody has read yet."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    values = np.arange(1 << 20)
    thread = threading.Thread(target=hurray.save, args=(pipe, {"w": values}))
    thread.start()
    with open(pipe, "rb") as reading:
        data = reading.read()
    thread.join()
    (tmp_path / "copy").write_bytes(data)
    assert np.array_equal(np.asarray(hurray.load(tmp_path / "copy")["w"]), values)
