import collections.abc
import errno
import gc
import importlib.metadata
import os
import pickle
import struct
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import hurray
import hurray.file
import processes
import wire

MODES = ["map", "copy_on_write", "memory"]
MAPPED = MODES[:2]
ARRAYS = {
    "w": np.arange(100_000, dtype=np.float32).reshape(100, 1000),
    "b": np.arange(7, dtype=np.int16),
    "none": np.zeros((0, 3)),
    "scalar": np.array(3, np.int64),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.hrry"
    hurray.save(path, ARRAYS, kv={"name": "model", "rev": 7})
    return path


@pytest.fixture(params=[*MODES, None])
def mode(request):
    return request.param


def equal(tensor, array):
    values = np.asarray(tensor)
    return values.dtype == array.dtype and np.array_equal(values, array)


# ---- load ---


def test_load_gives_every_tensor_in_order(path, mode):
    loaded = hurray.load(path, mode=mode)
    assert type(loaded) is dict
    assert list(loaded) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert equal(loaded[name], array)


@pytest.mark.parametrize(
    "mode,readonly", [("map", True), ("copy_on_write", False), ("memory", False), (None, False)]
)
def test_load_readonly(path, mode, readonly):
    before = path.read_bytes()
    loaded = hurray.load(path, mode=mode)
    assert loaded["w"].readonly is readonly
    values = np.asarray(loaded["w"])
    assert values.flags.writeable is not readonly
    if not readonly:
        values[:] = -1
        assert (np.asarray(loaded["w"]) == -1).all()
        assert equal(hurray.load(path)["w"], ARRAYS["w"])
    assert path.read_bytes() == before


def test_alignment_is_measured(path, mode):
    for name, tensor in hurray.load(path, mode=mode).items():
        (handle,) = tensor.buffer_handles
        if handle.is_empty:
            assert handle.alignment == 1
            continue
        address = np.asarray(tensor).ctypes.data
        assert address % handle.alignment == 0
        assert handle.alignment == min(4096, address & -address)
        assert handle.alignment >= (64 if mode == "memory" else 4096)


def test_load_names(path):
    loaded = hurray.load(path, names=["b", "w", "b"])
    assert list(loaded) == ["b", "w"]
    assert hurray.load(path, names=[]) == {}
    assert list(hurray.load(path, names=iter(["none"]))) == ["none"]
    with pytest.raises(hurray.FileError, match="'W'"):
        hurray.load(path, names=["w", "W"])
    with pytest.raises(hurray.FileError):
        hurray.load(path, names=["\ud800"])
    for wrong in ("w", b"w", 3, [3], [b"w"]):
        with pytest.raises(TypeError):
            hurray.load(path, names=wrong)


def test_load_takes_keywords_and_a_str_path(path):
    assert list(hurray.load(path=str(path))) == list(ARRAYS)
    with pytest.raises(TypeError):
        hurray.load(path, ["w"])


def test_load_kv(path):
    assert hurray.load_kv(path) == {"name": "model", "rev": 7}
    assert hurray.load_kv(str(path)) == {"name": "model", "rev": 7}


def test_pipes_are_kept_in_memory_first_up_to_a_limit(path, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    raw = path.read_bytes()

    def feed():
        try:
            with open(fifo, "wb") as out:
                out.write(raw)
        except BrokenPipeError:
            pass

    def read(**limits):
        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            return hurray.load(fifo, **limits)
        finally:
            feeder.join()

    assert list(read(max_spool_bytes=len(raw))) == list(ARRAYS)
    with pytest.raises(hurray.FileError, match=f"max_spool_bytes.*{len(raw) - 1}|{len(raw) - 1}"):
        read(max_spool_bytes=len(raw) - 1)
    with pytest.raises(OverflowError):
        hurray.load(path, max_spool_bytes=-1)


def test_files_of_other_writers_without_kv(tmp_path):
    wire.file_around(tmp_path / "f", [("w", wire.descriptor(wire.UINT8, (5,), 5), 5)])
    assert hurray.load_kv(tmp_path / "f") == {}
    assert hurray.open(tmp_path / "f").kv == {}
    assert equal(hurray.load(tmp_path / "f")["w"], np.zeros(5, np.uint8))


# ---- modes ---


@pytest.mark.parametrize("read", [hurray.load, hurray.open])
@pytest.mark.parametrize("wrong", ["r", "w", "", "MAP", "mmap"])
def test_unknown_modes_are_told_what_there_is(path, read, wrong):
    with pytest.raises(ValueError, match='"map", "copy_on_write", "memory".*hurray.save.*FileWriter'):
        read(path, mode=wrong)
    with pytest.raises(TypeError):
        read(path, mode=3)


@pytest.mark.parametrize("mode", MODES)
def test_the_environment_overrides_the_default(path, monkeypatch, mode):
    monkeypatch.setenv("HURRAY_MODE", mode)
    assert hurray.open(path).mode == mode
    assert hurray.load(path)["w"].readonly is (mode == "map")
    assert hurray.open(path, mode="memory").mode == "memory"
    monkeypatch.setenv("HURRAY_MODE", "")
    assert hurray.open(path).mode == "map"


def test_a_wrong_environment_is_named(path, monkeypatch):
    monkeypatch.setenv("HURRAY_MODE", "r")
    with pytest.raises(ValueError, match="HURRAY_MODE"):
        hurray.open(path)


@pytest.mark.parametrize("read", [hurray.load, hurray.open])
@pytest.mark.parametrize("mode", MAPPED)
def test_pipes_cannot_be_mapped(tmp_path, read, mode):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    keep = os.open(pipe, os.O_RDWR)
    try:
        with pytest.raises(hurray.UnsupportedError):
            read(pipe, mode=mode)
    finally:
        os.close(keep)


@pytest.mark.parametrize("mode", ["memory", None])
def test_pipes_are_read_into_memory(tmp_path, path, mode):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    thread = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
    thread.start()
    loaded = hurray.load(pipe, mode=mode)
    thread.join()
    assert equal(loaded["w"], ARRAYS["w"])


# ---- File ---


def test_a_file_is_a_mapping(path):
    f = hurray.open(path)
    assert type(f) is hurray.file.File
    assert type(f).__module__ == "hurray.file"
    assert isinstance(f, collections.abc.Mapping)
    assert len(f) == 4
    assert list(f) == list(f.keys()) == list(ARRAYS)
    assert f.names == tuple(ARRAYS)
    assert "w" in f and "W" not in f and 3 not in f and None not in f and "\ud800" not in f
    assert equal(f["w"], ARRAYS["w"])
    assert equal(f.get("w"), ARRAYS["w"])
    assert f.get("W") is None and f.get("W", 3) == 3
    for (name, tensor), value, wanted in zip(f.items(), f.values(), ARRAYS, strict=True):
        assert name == wanted
        assert equal(tensor, ARRAYS[name]) and equal(value, ARRAYS[name])
    assert dict(f).keys() == ARRAYS.keys()
    with pytest.raises(KeyError, match="'W'"):
        f["W"]
    with pytest.raises(TypeError):
        f[3]
    assert not hasattr(hurray, "File")


def test_what_a_file_tells(path):
    f = hurray.open(path)
    assert f.path == str(path)
    assert f.mode == "map"
    assert f.kv == {"name": "model", "rev": 7}
    assert f.closed is False
    for attribute in ("path", "mode", "kv", "names", "closed"):
        with pytest.raises(AttributeError):
            setattr(f, attribute, None)


def test_stored_descriptors(path):
    f = hurray.open(path)
    descriptors = f.descriptors()
    assert list(descriptors) == list(ARRAYS)
    for name, array in ARRAYS.items():
        stored = f.descriptor(name)
        assert stored == descriptors[name]
        assert stored.shape == array.shape
        assert stored.buffer_handles[0].alignment == (64 if array.size else 1)
    with pytest.raises(KeyError):
        f.descriptor("W")


def test_a_closed_file(path):
    f = hurray.open(path)
    assert f.close() == ()
    assert f.close() == ()
    assert f.closed is True
    assert (f.path, f.mode) == (str(path), "map")
    for use in (
        lambda: f["w"],
        lambda: f.get("w"),
        lambda: "w" in f,
        lambda: len(f),
        lambda: list(f),
        lambda: list(f.items()),
        lambda: f.names,
        lambda: f.kv,
        lambda: f.descriptor("w"),
        lambda: f.descriptors(),
        lambda: f.__enter__() and f["w"],
    ):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_with(path):
    with hurray.open(path) as f:
        tensor = f["w"]
    assert f.closed
    assert equal(tensor, ARRAYS["w"])
    with pytest.raises(ZeroDivisionError):
        with hurray.open(path) as f:
            1 / 0
    assert f.closed


@pytest.mark.parametrize("mode", MAPPED)
def test_close_tells_who_still_holds_the_mapping(path, mode):
    f = hurray.open(path, mode=mode)
    assert f.close(strict=True) == ()

    f = hurray.open(path, mode=mode)
    array = np.asarray(f["b"])
    view = f["w"].buffer(0)
    f["scalar"]
    with pytest.raises(BufferError, match="'w', 'b'") as held:
        f.close(strict=True)
    assert not isinstance(held.value, hurray.BufferError)
    assert not f.closed and "w" in f
    del view
    gc.collect()
    assert f.close() == ("b",)
    assert f.closed
    assert np.array_equal(array, ARRAYS["b"])


def test_memory_mode_holds_no_mapping(path):
    f = hurray.open(path, mode="memory")
    tensors = dict(f)
    assert f.close(strict=True) == ()
    assert equal(tensors["w"], ARRAYS["w"])


def mapped(path):
    with open("/proc/self/maps") as maps:
        return sum(str(path) in line for line in maps)


@pytest.mark.parametrize("mode", MAPPED)
def test_the_mapping_goes_with_the_last_view(path, mode):
    f = hurray.open(path, mode=mode)
    array = np.asarray(f["w"])
    memory = memoryview(f["b"])
    assert mapped(path) > 0
    f.close()
    del f
    gc.collect()
    assert mapped(path) > 0 and np.array_equal(array, ARRAYS["w"])
    del array
    gc.collect()
    assert mapped(path) > 0 and memory.tolist() == list(range(7))
    del memory
    gc.collect()
    assert mapped(path) == 0


def test_a_file_that_was_replaced_or_removed_stays_readable(path):
    f = hurray.open(path)
    array = np.asarray(f["w"])
    hurray.save(path, {"w": np.zeros(3)})
    assert np.array_equal(array, ARRAYS["w"]) and equal(f["b"], ARRAYS["b"])
    path.unlink()
    assert equal(f["w"], ARRAYS["w"])


def test_threads_read_one_file(path):
    f = hurray.open(path)
    errors = []

    def work():
        try:
            for _ in range(50):
                for name, array in ARRAYS.items():
                    assert equal(f[name], array)
                    assert f.descriptor(name).shape == array.shape
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    gc.collect()
    assert f.close() == ()


def test_collecting_metadata_pins_nothing(path):
    f = hurray.open(path)
    kept = [(d, d.layout, d.buffer_handles) for d in f.descriptors().values()]
    kept += [(t.layout, t.buffer_handles, t.descriptor) for t in f.values()]
    gc.collect()
    assert f.close(strict=True) == ()


# ---- what cannot be read ---

READERS = [hurray.load, hurray.open, hurray.load_kv]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "name,kind,number",
    [("missing", FileNotFoundError, errno.ENOENT), (".", IsADirectoryError, errno.EISDIR)],
)
def test_paths_that_cannot_be_read(tmp_path, read, name, kind, number):
    target = tmp_path / name
    with pytest.raises(hurray.FileError) as refused:
        read(target)
    assert isinstance(refused.value, kind)
    assert refused.value.errno == number
    assert refused.value.filename == str(target)
    assert refused.value.strerror.startswith(os.strerror(number))
    again = pickle.loads(pickle.dumps(refused.value))
    assert (type(again), again.errno, again.filename) == (type(refused.value), number, str(target))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(path):
    path.chmod(0)
    with pytest.raises(PermissionError) as refused:
        hurray.load(path)
    assert isinstance(refused.value, hurray.FileError)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "content,said",
    [
        (b"", "empty"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:"
            + b"0" * 64
            + b"\nsize 5000000000\n",
            "git lfs pull",
        ),
        (b"<!DOCTYPE html><html><body>404</body></html>" + bytes(200), "HTML"),
        (b"\x93NUMPY\1\0v\0" + b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }".ljust(118), '"|O" cannot be converted'),
        (b"GGUF" + bytes(500), "GGUF"),
    ],
    ids=["empty", "lfs", "html", "npy", "gguf"],
)
def test_wrong_files_are_named_for_what_they_are(tmp_path, read, content, said):
    target = tmp_path / "wrong"
    target.write_bytes(content)
    with pytest.raises((hurray.FileError, hurray.UnsupportedError)) as refused:
        read(target)
    assert said.lower() in str(refused.value).lower()
    assert str(target) in str(refused.value)


@pytest.mark.parametrize("read", READERS)
def test_a_file_that_was_not_written_to_its_end(path, read):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(
        hurray.FileError, match=f"{len(data) // 2}.*trailer|trailer.*{len(data) // 2}"
    ):
        read(path)


def test_every_cut_is_refused(path, tmp_path):
    data = path.read_bytes()
    cut = tmp_path / "cut"
    for size in [*range(0, 200), *range(len(data) - 400, len(data))]:
        cut.write_bytes(data[:size])
        for mode in MODES:
            with pytest.raises((hurray.FileError, hurray.InvalidDescriptorError)):
                hurray.load(cut, mode=mode)


def test_a_damaged_descriptor_fails_alone(path):
    data = bytearray(path.read_bytes())
    data[64 + 14] = 0xEE  # element type of the first tensor
    path.write_bytes(data)
    with pytest.raises(hurray.InvalidDescriptorError, match='"w"'):
        hurray.load(path)
    with hurray.open(path) as f:
        with pytest.raises(hurray.InvalidDescriptorError, match='"w"'):
            f["w"]
        with pytest.raises(hurray.InvalidDescriptorError):
            f.descriptor("w")
        assert equal(f["b"], ARRAYS["b"])
    assert equal(hurray.load(path, names=["b"])["b"], ARRAYS["b"])


@pytest.mark.parametrize(
    "limit,value",
    [
        ("max_index_bytes", 10),
        ("max_tensors", 3),
        ("max_kv_bytes", 5),
        ("max_descriptor_bytes", 30),
        ("max_tensor_bytes", 1000),
    ],
)
def test_limits(path, limit, value):
    with pytest.raises((hurray.FileError, hurray.InvalidDescriptorError)):
        hurray.load(path, **{limit: value})
    assert equal(hurray.load(path, **{limit: 1 << 28})["w"], ARRAYS["w"])
    assert equal(hurray.load(path, **{limit: None})["w"], ARRAYS["w"])
    with pytest.raises(OverflowError):
        hurray.open(path, **{limit: -1})
    with pytest.raises(OverflowError):
        hurray.open(path, **{limit: 2**64})
    with pytest.raises(TypeError):
        hurray.open(path, **{limit: "3"})


def csr_file(tmp_path):
    """A CSR tensor of the published vectors' kind between two dense ones."""
    sparse = struct.pack("<IBBB3x", 0, wire.FLOAT32, 0x07, 2) + struct.pack("<QQ", 2, 4)
    sparse += struct.pack("<QQQB", 0, 3, 0, 3)
    for size in (12, 24, 24):
        sparse += wire.handle(size)
    sparse = b"HRRY\x01\x00" + struct.pack("<I", len(sparse) + 10) + sparse
    dense = wire.descriptor(wire.UINT8, (5,), 5)
    target = tmp_path / "sparse"
    wire.file_around(target, [("first", dense, 5), ("sp", sparse, 8216), ("last", dense, 5)])
    return target, sparse


def test_tensors_of_other_layouts(tmp_path, mode):
    target, sparse = csr_file(tmp_path)
    assert [t.layout.name for t in hurray.load(target, mode=mode).values()] == [
        "row_major", "csr", "row_major",
    ]  # fmt: skip
    with hurray.open(target, mode=mode) as f:
        assert f.descriptor("sp").encode() == sparse
        assert f["sp"].descriptor.differences(f.descriptor("sp")) == ()
        assert [h.byte_size for h in f["sp"].buffer_handles] == [12, 24, 24]
        assert np.asarray(f["sp"].buffer(1)).tolist() == [0] * 24
        hurray.save(tmp_path / "again", {"sp": f["sp"]})
    assert hurray.open(tmp_path / "again").descriptor("sp").encode() == sparse


def test_one_tensor_that_cannot_be_given_fails_the_whole_call(tmp_path):
    dense = wire.descriptor(wire.UINT8, (5,), 5)
    target = tmp_path / "f"
    wire.file_around(target, [("first", dense, 5), ("bad", b"X" + dense[1:], 5), ("last", dense, 5)])
    with pytest.raises(hurray.InvalidDescriptorError, match='"bad".*magic'):
        hurray.load(target)
    assert list(hurray.load(target, names=["last", "first"])) == ["last", "first"]
    with hurray.open(target) as f:
        assert f.names == ("first", "bad", "last")
        with pytest.raises(hurray.InvalidDescriptorError, match='"bad".*magic'):
            f["bad"]
        assert f["first"].shape == (5,)


# ---- memory ---


@pytest.mark.parametrize("mode", MODES)
def test_collected_tensors_give_their_memory_back(path, mode):
    tensor = hurray.load(path, mode=mode)["w"]
    array = np.asarray(tensor)
    gone = weakref.ref(array)
    del array, tensor
    gc.collect()
    assert gone() is None
    assert mapped(path) == 0


def test_a_file_of_four_times_the_memory(tmp_path):
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = 4 * memory
    target = tmp_path / "sparse"
    encoded = wire.descriptor(wire.UINT8, (size,), size)
    try:
        wire.file_around(
            target, [("w", encoded, size), ("end", wire.descriptor(wire.UINT8, (5,), 5), 5)]
        )
    except OSError as error:
        pytest.skip(f"no sparse file of that size here: {error}")
    for mode in MAPPED:
        for read in (hurray.load, hurray.open):
            tensors = read(target, mode=mode)
            assert tensors["w"].shape == (size,)
            values = np.asarray(tensors["w"])
            assert values[0] == values[-1] == values[size // 2] == 0
            if mode == "copy_on_write":
                values[-1] = 7
                assert values[-1] == 7
    with hurray.open(target) as f:
        assert f.descriptor("w").buffer_handles[0].byte_size == size
        assert hurray.load(target, mode="memory", names=["end"])["end"].shape == (5,)


GIBIBYTE = 1 << 30


@processes.measures_memory
def test_loading_a_gibibyte_takes_no_anonymous_memory(tmp_path):
    target = tmp_path / "large"
    wire.file_around(
        target, [("w", wire.descriptor(wire.FLOAT32, (GIBIBYTE // 4,), GIBIBYTE), GIBIBYTE)]
    )
    processes.run(
        """
        before = status("RssAnon")
        tensor = hurray.load(sys.argv[1])["w"]
        values = np.asarray(tensor)
        assert status("RssAnon") - before < 8 << 20
        assert values[:: 1 << 20].sum() == 0
        assert status("RssAnon") - before < 8 << 20
        values[: 1 << 20] = 1
        grown = status("RssAnon") - before
        assert 4 << 20 <= grown < 16 << 20, grown
        """,
        target,
    )
    with open(target, "rb") as data:
        data.seek(4096)
        assert not any(data.read(1 << 22))


@processes.measures_memory
@pytest.mark.frameworks
def test_torch_shares_a_gibibyte(tmp_path):
    pytest.importorskip("torch")
    target = tmp_path / "large"
    wire.file_around(
        target, [("w", wire.descriptor(wire.FLOAT32, (GIBIBYTE // 4,), GIBIBYTE), GIBIBYTE)]
    )
    processes.run(
        """
        import torch
        torch.zeros(1000).sum()
        before = status("RssAnon")
        tensor = hurray.load(sys.argv[1])["w"]
        shared = tensor.to_torch()
        assert status("RssAnon") - before < 8 << 20, status("RssAnon") - before
        assert shared.data_ptr() == np.asarray(tensor).ctypes.data
        assert shared[:: 1 << 20].sum() == 0
        assert status("RssAnon") - before < 8 << 20, status("RssAnon") - before
        shared[12345] = 7
        assert np.asarray(tensor)[12345] == 7
        """,
        target,
    )


@pytest.mark.frameworks
def test_torch_writes_leave_the_file(path):
    pytest.importorskip("torch")
    before = path.read_bytes()
    with hurray.open(path, mode="copy_on_write") as f:
        shared = f["w"].to_torch()
        shared.fill_(5)
        assert (np.asarray(f["w"]) == 5).all()
        assert f["b"].to_torch().tolist() == list(range(7))
    assert path.read_bytes() == before


@processes.measures_memory
def test_reads_of_the_library_s_own_leave_pages_shared(tmp_path):
    target = tmp_path / "large"
    hurray.save(target, {"w": np.ones(64 << 20, np.uint8)}, sync=False)
    processes.run(
        """
        before = status("RssAnon")
        tensor = hurray.load(sys.argv[1])["w"]
        hurray.save(sys.argv[2], {"w": tensor}, sync=False)
        with hurray.StreamWriter(sys.argv[2] + ".stream") as writer:
            writer.write(tensor)
        grown = status("RssAnon") - before
        assert grown < 8 << 20, grown
        """,
        target,
        tmp_path / "copy",
    )


@processes.measures_memory
def test_memory_mode_does_not_keep_the_file_twice(tmp_path):
    target = tmp_path / "large"
    hurray.save(target, {"w": np.ones(64 << 20, np.uint8)}, sync=False)
    processes.run(
        """
        before = status("VmRSS")
        tensor = hurray.load(sys.argv[1], mode="memory")["w"]
        grown = status("VmRSS") - before
        assert 64 << 20 <= grown < 80 << 20, grown
        assert np.asarray(tensor).sum() == 64 << 20
        """,
        target,
    )


# ---- processes ---


def test_interpreter_exit_with_everything_alive(path):
    done = processes.run(
        """
        f = hurray.open(sys.argv[1])
        loaded = hurray.load(sys.argv[1])
        array = np.asarray(loaded["w"])
        view = memoryview(f["b"])
        capsule = loaded["b"].__dlpack__()
        writer = hurray.StreamWriter()
        writer.write(array)
        reader = hurray.StreamReader(writer.getvalue())
        first = next(reader)
        block = hurray.aligned_allocator()
        block.__enter__()
        aligned = np.zeros(100_000)
        cycle = [f, array, view, reader, aligned]
        cycle.append(cycle)
        """,
        path,
    )
    assert done.stderr == ""


def test_a_fork_uses_what_its_parent_opened(path):
    processes.run(
        """
        import warnings
        warnings.simplefilter("ignore")
        f = hurray.open(sys.argv[1])
        loaded = hurray.load(sys.argv[1])
        writer = hurray.StreamWriter(sys.argv[1] + ".stream")
        writer.write(loaded["b"])
        child = os.fork()
        if child == 0:
            try:
                assert np.asarray(f["w"]).sum() == np.asarray(loaded["w"]).sum()
                np.asarray(loaded["w"])[:] = 3
                hurray.save(sys.argv[1] + ".child", dict(f), sync=False)
                del writer, f, loaded
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert np.asarray(loaded["w"])[0, 1] == 1
        assert list(hurray.load(sys.argv[1] + ".child")) == list(f)
        writer.finish()
        (tensor,) = hurray.StreamReader(sys.argv[1] + ".stream")
        assert np.asarray(tensor).tolist() == list(range(7))
        """,
        path,
    )


def test_the_command(path):
    try:
        importlib.metadata.files("hurray-cpp")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package was not installed")
    done = subprocess.run(
        [sys.executable, "-m", "hurray", "inspect", os.fspath(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "scalar" in done.stdout


class TestVerification:
    @pytest.fixture
    def saved(self, tmp_path):
        path = tmp_path / "m.hrry"
        hurray.save(path, {"a": np.array([1.5, 2.5, 3.5]), "b": np.array([4.0])})
        return path

    @staticmethod
    def flip(path, name):
        """One bit of the tensor's data."""
        with hurray.open(path) as file:
            where = bytes(memoryview(file[name].to_numpy()))
        content = bytearray(path.read_bytes())
        content[content.index(where) + 1] ^= 0x10
        path.write_bytes(content)

    def test_a_sound_file_passes(self, saved):
        with hurray.open(saved) as file:
            assert file.has_checksums
            assert file.verify() is None
            assert file.verify(["b"]) is None
            with pytest.raises(hurray.FileError, match="no tensor is named 'c'"):
                file.verify(["c"])
        for verify in (None, True, False):
            assert hurray.load(saved, verify=verify)["b"].to_numpy().tolist() == [4.0]

    def test_a_flipped_bit_is_named(self, saved):
        self.flip(saved, "a")
        with hurray.open(saved) as file:
            with pytest.raises(hurray.FileError, match='tensor "a"'):
                file.verify()
            assert file.verify(["b"]) is None

    def test_the_modes_verify_as_told(self, saved):
        self.flip(saved, "a")
        for mode in ("map", "copy_on_write", "memory"):
            with pytest.raises(hurray.FileError, match='tensor "a"'):
                hurray.load(saved, mode=mode, verify=True)
            assert len(hurray.load(saved, mode=mode, verify=False)) == 2
            assert list(hurray.load(saved, mode=mode, names=["b"], verify=True)) == ["b"]
            with hurray.open(saved, mode=mode, verify=True) as file:
                with pytest.raises(hurray.FileError, match='tensor "a"'):
                    file["a"]
                assert file["b"].to_numpy().tolist() == [4.0]
        with pytest.raises(hurray.FileError, match='tensor "a"'):
            hurray.load(saved, mode="memory")
        assert len(hurray.load(saved, mode="map")) == 2

    def test_a_file_without_sums_passes_on_the_rules(self, tmp_path):
        path = tmp_path / "m.hrry"
        hurray.save(path, {"a": np.array([1.5])}, checksums=False)
        with hurray.open(path) as file:
            assert not file.has_checksums
            assert file.verify() is None

    def test_verify_is_yes_no_or_none(self, saved):
        with pytest.raises(TypeError, match="verify must be a bool or None"):
            hurray.load(saved, verify=1)
