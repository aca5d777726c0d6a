"""Pickling and copying of tensors and composites (08-python-api.md section 19.9)."""

import copy
import gc
import io
import multiprocessing
import pickle
import subprocess
import sys
import weakref

import pytest

np = pytest.importorskip("numpy")

import hurray  # noqa: E402
from hurray import InvalidDescriptorError, UnsupportedError  # noqa: E402
from made import containers, data, made, tensor, u64s, wire  # noqa: E402

PLAIN = dict(data.plain())
QUANTIZED = dict(data.quantized())
ALL = [2, 3, 4, 5]


def raw(t):
    """The bytes of every buffer, whatever device is declared."""
    if t.device.kind != "cpu":
        t = t.to_cpu()
    return [bytes(t.buffer(i)) for i in range(t.buffer_count)]


def address(t, i=0):
    return t.buffer(i).__array_interface__["data"][0]


def same(again, t):
    assert type(again) is hurray.Tensor and again is not t
    assert again.descriptor.differences(t.descriptor) == ()
    assert again.dtype is t.dtype and again.device == t.device and again.readonly == t.readonly
    assert raw(again) == raw(t)
    for handle in again.buffer_handles:
        assert handle.is_empty or handle.alignment >= 64


def out_of_band(t, protocol=5):
    buffers = []
    data = pickle.dumps(t, protocol, buffer_callback=buffers.append)
    return data, buffers


def aligned(count, dtype="f4"):
    memory = np.zeros(count * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    a = memory[start : start + memory.size - 64].view(dtype)
    a[...] = np.arange(count)
    return a


# ---- tensors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [0, 1, *ALL])
def test_every_layout_type_and_scheme(protocol):
    for source in (*PLAIN.values(), *QUANTIZED.values()):
        t = made(source)
        same(pickle.loads(pickle.dumps(t, protocol)), t)
        if protocol == 5:
            pickled, buffers = out_of_band(t)
            assert len(buffers) == t.buffer_count
            same(pickle.loads(pickled, buffers=buffers), t)


def test_all_metadata_survive():
    t = made(
        data.matrix_m("int8", [1, 2, 3, 4, 5], "csr").replace(
            shard=((8, 6), (4, 0)), statistics={"nnz": 5, "has_nan": 0, "has_inf": 0},
            quantization=wire.per_tensor(0.5, 3),
        )
    )  # fmt: skip
    again = pickle.loads(pickle.dumps(t))
    same(again, t)
    assert again.shard == t.shard and again.statistics == t.statistics
    assert again.layout == t.layout and again.descriptor.differences(t.descriptor) == ()
    assert (again.dequantize().to_numpy() == t.dequantize().to_numpy()).all()
    strided = hurray.Tensor(bytes(range(24)), hurray.int16, (3, 2), layout=hurray.StridedLayout([-4, 1]), byte_offset=16)
    again = pickle.loads(pickle.dumps(strided))
    assert again.descriptor.byte_offset == 16 and (np.asarray(again) == np.asarray(strided)).all()
    private = tensor(0xF2, (2,), [bytes(6)], extension=data.PRIVATE_FLOAT[1])
    same(pickle.loads(pickle.dumps(private)), private)


def test_devices_survive():
    for device in (hurray.device.cpu, hurray.device.cuda, hurray.Device("cuda", 3, "unified"), hurray.Device("cpu", 2)):
        t = hurray.zeros((4,), dtype=hurray.float32, device=device)
        for again in (pickle.loads(pickle.dumps(t)), copy.copy(t), copy.deepcopy(t)):
            assert again.device == device and again.device.device_id == device.device_id
            assert again.to_cpu().to_numpy().tolist() == [0, 0, 0, 0]
    assert pickle.loads(pickle.dumps(hurray.zeros((1,)))).device is hurray.device.cpu


def test_out_of_band_buffers_are_the_tensor_memory():
    """Protocol 5: nothing is copied on the way out, nor on the way in."""
    t = hurray.from_numpy(aligned(64), copy=False)
    pickled, (buffer,) = out_of_band(t)
    assert len(pickled) < 400
    with buffer.raw() as view:
        assert view.nbytes == 256 and not view.readonly and view.format == "B"
        assert np.asarray(view).ctypes.data == address(t)
    again = pickle.loads(pickled, buffers=[buffer])
    assert address(again) == address(t) and not again.readonly
    np.asarray(again)[5] = -1
    assert np.asarray(t)[5] == -1
    csr = made(data.matrix_m("float32", [1, 2, 3, 4, 5], "csr"))
    pickled, buffers = out_of_band(csr)
    again = pickle.loads(pickled, buffers=buffers)
    assert [address(again, i) for i in range(3)] == [address(csr, i) for i in range(3)]


def test_what_is_rebuilt_keeps_its_memory():
    a = aligned(64)
    watch = weakref.ref(a)
    t = hurray.from_numpy(a, copy=False)
    del a
    pickled, buffers = out_of_band(t)
    again = pickle.loads(pickled, buffers=buffers)
    del t, buffers
    gc.collect()
    assert watch() is not None and np.asarray(again)[63] == 63
    view = np.asarray(again)
    del again
    gc.collect()
    assert watch() is not None
    del view
    gc.collect()
    assert watch() is None


def test_readonly_survives():
    a = aligned(64)
    a.flags.writeable = False
    t = hurray.from_numpy(a, copy=False)
    assert t.readonly
    for protocol in ALL:
        again = pickle.loads(pickle.dumps(t, protocol))
        assert again.readonly and not np.asarray(again).flags.writeable
        assert (np.asarray(again) == a).all()
    pickled, (buffer,) = out_of_band(t)
    assert buffer.raw().readonly
    again = pickle.loads(pickled, buffers=[buffer])
    assert again.readonly and address(again) == address(t)
    # Read-only whatever memory it is given.
    assert pickle.loads(pickled, buffers=[aligned(64)]).readonly
    assert copy.copy(t).readonly and not copy.deepcopy(t).readonly


def test_writable_tensors_stay_writable():
    t = hurray.from_numpy(aligned(64), copy=False)
    pickled, (buffer,) = out_of_band(t)
    memory = aligned(64)
    shared = pickle.loads(pickled, buffers=[memory])
    assert address(shared) == memory.ctypes.data and not shared.readonly
    memory.flags.writeable = False
    for given in (memory, bytes(buffer.raw()), memory.tobytes()):
        again = pickle.loads(pickled, buffers=[given])
        assert not again.readonly and (np.asarray(again) == np.arange(64)).all()
        np.asarray(again)[0] = 5
    assert memory[0] == 0


def test_memory_below_64_is_copied():
    t = hurray.from_numpy(np.arange(16, dtype=np.float32), copy=True)
    pickled, _ = out_of_band(t)
    memory = aligned(64)
    for offset in (1, 4, 32):
        given = memory.view(np.uint8)[offset : offset + 64]
        given[...] = np.arange(64)
        again = pickle.loads(pickled, buffers=[given])
        assert address(again) % 64 == 0 and again.buffer_handles[0].alignment == 64
        assert raw(again) == [bytes(range(64))]
        given[0] = 9
        assert raw(again) == [bytes(range(64))]


def test_what_cannot_be_pickled():
    for sync, word in ((1, "event"), (2, "consumer_stream")):
        t = tensor("float32", (2,), [bytes(8)], placement=(1, sync, 0))
        for use in (*(lambda p=p: pickle.dumps(t, p) for p in ALL), lambda: copy.deepcopy(t)):
            with pytest.raises(UnsupportedError, match=f"buffer 0.*'{word}'"):
                use()
        again = copy.copy(t)  # nothing is read
        assert again.descriptor == t.descriptor and again is not t


@pytest.mark.parametrize("where", ["list", "dict", "twice"])
def test_inside_of_other_objects(where):
    t = hurray.full((3,), 2.5)
    if where == "twice":
        for take in (lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy):
            one, two = take([t, t])
            assert one is two and one is not t
        return
    held = [t, 1] if where == "list" else {"t": t}
    again = pickle.loads(pickle.dumps(held))
    same(again[0] if where == "list" else again["t"], t)


def test_python_pickler_agrees():
    t = made(QUANTIZED["block_columns"])
    for protocol in ALL:
        file = io.BytesIO()
        pickle._Pickler(file, protocol).dump(t)
        same(pickle._loads(file.getvalue()), t)
        same(pickle.loads(file.getvalue()), t)


def test_other_processes():
    tensors = [made(PLAIN["csr_f32"]) if "csr_f32" in PLAIN else made(PLAIN["worked_m_csr"]), hurray.full((5,), 7)]
    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            for t, again in zip(tensors, pool.map(echo, tensors), strict=True):
                same(again, t)
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).to_numpy().tolist())"
    out = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(tensors[1]), capture_output=True)
    assert out.stdout.decode().strip() == "[7, 7, 7, 7, 7]", out.stderr


def echo(t):
    return t


def test_mapped_tensors(tmp_path):
    """Pickling the bytes of a mapped file leaves its pages alone; a writable buffer opens them."""
    path = tmp_path / "a.hrry"
    hurray.save(path, {"a": np.arange(1024, dtype=np.float32)})
    for t in (hurray.load(path)["a"], hurray.open(path)["a"]):
        for protocol in ALL:
            same(pickle.loads(pickle.dumps(t, protocol)), t)
        pickled, (buffer,) = out_of_band(t)
        again = pickle.loads(pickled, buffers=[buffer])
        assert address(again) == address(t) and again.readonly == t.readonly
    assert np.array_equal(np.asarray(hurray.load(path)["a"]), np.arange(1024))


def test_bool_of_doubtful_origin_stays_so():
    t = hurray.Tensor(bytes([1, 0, 1, 1]), hurray.bool, (2, 2))
    own = hurray.from_numpy(np.array([True, False]))
    for take in (lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy):
        with pytest.raises(UnsupportedError, match="one byte per element"):
            take(t).to_numpy()
        assert take(own).to_numpy().tolist() == [True, False]


# ---- copies -----------------------------------------------------------------------------------------


def test_copies():
    t = hurray.from_numpy(aligned(64), copy=False)
    shallow, deep = copy.copy(t), copy.deepcopy(t)
    same(shallow, t)
    same(deep, t)
    assert address(shallow) == address(t) != address(deep)
    assert shallow.device is t.device and shallow.dtype is t.dtype
    np.asarray(t)[0] = 9
    assert np.asarray(shallow)[0] == 9 and np.asarray(deep)[0] == 0
    assert deep.buffer_handles[0].alignment == 64
    watch = weakref.ref(t)
    del t
    assert watch() is None and np.asarray(shallow)[0] == 9


def test_deep_copies_keep_layout_and_all_buffers():
    for source in (*PLAIN.values(), *QUANTIZED.values()):
        t = made(source)
        deep = copy.deepcopy(t)
        same(deep, t)
        for i in range(t.buffer_count):
            assert address(deep, i) != address(t, i) or t.buffer_handles[i].is_empty


# ---- damage -----------------------------------------------------------------------------------------


def state(t):
    make, arguments = t.__reduce_ex__(4)
    return make, list(arguments)


def test_damaged_state_raises():
    t = made(data.matrix_m("float32", [1, 2, 3, 4, 5], "csr"))
    make, good = state(t)
    same(make(*good), t)
    descriptor, buffers, readonly, device_id, outside = good
    head = wire.Tensor("float32", (2,), wire.composite("group", 0)).parts().raw()
    bad = [
        (InvalidDescriptorError, "cannot rebuild.*magic", (b"nothing", *good[1:])),
        (InvalidDescriptorError, "cannot rebuild", (descriptor[:-1], *good[1:])),
        (InvalidDescriptorError, "composite head", (head, (), (), 0, True)),
        (InvalidDescriptorError, "3 buffers.*2", (descriptor, buffers[:2], readonly, device_id, outside)),
        (InvalidDescriptorError, "read-only flags", (descriptor, buffers, readonly[:1], device_id, outside)),
        (hurray.BufferError, "buffer 1 has 39 bytes.*40",
         (descriptor, (buffers[0], buffers[1][:-1], buffers[2]), readonly, device_id, outside)),
        (hurray.BufferError, "not contiguous",
         (descriptor, (memoryview(buffers[0] * 2)[::2], *buffers[1:]), readonly, device_id, outside)),
        (TypeError, "buffer 0.*bytes-like.*int", (descriptor, (1, *buffers[1:]), readonly, device_id, outside)),
        (TypeError, "buffers", (descriptor, None, readonly, device_id, outside)),
        (TypeError, "buffers", (descriptor, b"abc", readonly, device_id, outside)),
        (TypeError, "readonly must be a bool", (descriptor, buffers, (0, 0, 0), device_id, outside)),
        (TypeError, "outside must be a bool", (descriptor, buffers, readonly, device_id, 1)),
        (TypeError, "device_id", (descriptor, buffers, readonly, "0", outside)),
        (OverflowError, "device_id", (descriptor, buffers, readonly, -1, outside)),
        (OverflowError, "device_id", (descriptor, buffers, readonly, 2**40, outside)),
        (TypeError, "descriptor", (None, *good[1:])),
        (TypeError, "argument", (descriptor,)),
    ]  # fmt: skip
    for error, fragment, arguments in bad:
        with pytest.raises(error, match=fragment):
            make(*arguments)


def test_damaged_descriptors_raise_and_nothing_else():
    """Every byte of the descriptor changed: an error, or a tensor that holds together."""
    for name in ("worked_m_csr", "worked_csf", "packing_int4", "tiled_i8"):
        make, good = state(made(PLAIN[name]))
        for i in range(len(good[0])):
            for flip in (1, 0x80, 0xFF):
                damaged = bytearray(good[0])
                damaged[i] ^= flip
                try:
                    t = make(bytes(damaged), *good[1:])
                except (InvalidDescriptorError, hurray.BufferError, UnsupportedError, MemoryError):
                    continue
                repr(t)
                for use in ("validate", "to_dense", "to_numpy", "dequantize"):
                    if t.size is not None and t.size < 1 << 20:
                        try:
                            getattr(t, use)()
                        except (ValueError, NotImplementedError, MemoryError):
                            pass


def test_damaged_pickles_of_composites_raise():
    (item,) = hurray.StreamReader(partition())
    make, (descriptor, members) = item.__reduce_ex__(4)
    for error, fragment, arguments in (
        (InvalidDescriptorError, "2 members.*1", (descriptor, members[:1])),
        (InvalidDescriptorError, "not that of a composite head", (hurray.zeros((2,)).descriptor.encode(), ())),
        (InvalidDescriptorError, "members", (descriptor, members[:1] * 2)),
        (TypeError, r"members\[1\].*Tensor.*int", (descriptor, (members[0], 1))),
        (TypeError, "members", (descriptor, None)),
        (TypeError, "descriptor", (1, members)),
    ):  # fmt: skip
        with pytest.raises(error, match=fragment):
            make(*arguments)


# ---- composites -------------------------------------------------------------------------------------


def partition():
    """Two halves of a vector of four."""
    head = wire.Tensor("int8", (4,), wire.composite("partition", 2))
    halves = [
        wire.Tensor("int8", (2,), buffers=[bytes(b)], shard=((4,), (start,)))
        for b, start in (((1, 2), 0), ((3, 4), 2))
    ]
    return b"".join(t.parts().raw() + b"".join(t.buffers or ()) for t in (head, *halves))


def nested(depth):
    """Groups in groups, each with a tensor beside the next; the innermost holds a tensor alone."""
    out = b""
    for level in range(depth):
        members = 2 if level + 1 < depth else 1
        out += wire.Tensor("int8", (1,), wire.composite("group", members)).parts().raw()
        leaf = wire.Tensor("int8", (1,), buffers=[bytes([level])])
        out += leaf.parts().raw() + leaf.buffers[0]
    return out


def composites():
    for name, source in (("partition", partition()), ("nested", nested(8))):
        (item,) = hurray.StreamReader(source)
        yield name, item


def tree(item):
    if isinstance(item, hurray.Tensor):
        return raw(item)
    return [tree(member) for member in item.members]


@pytest.mark.parametrize("protocol", ALL)
def test_composites(protocol):
    for name, item in composites():
        again = pickle.loads(pickle.dumps(item, protocol))
        assert type(again) is hurray.Composite and again == item, name
        assert tree(again) == tree(item)
        assert again.layout == item.layout and again.member_roles == item.member_roles
        if protocol == 5:
            pickled, buffers = out_of_band(item)
            again = pickle.loads(pickled, buffers=buffers)
            assert tree(again) == tree(item)


def test_deep_composites():
    (item,) = hurray.StreamReader(nested(64), max_composite_depth=64)
    for take in (lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy):
        again = take(item)
        assert again == item and tree(again) == tree(item)


def test_copies_of_composites():
    (item,) = hurray.StreamReader(partition())
    shallow, deep = copy.copy(item), copy.deepcopy(item)
    assert shallow is not item and shallow == item and deep == item
    assert all(a is b for a, b in zip(shallow.members, item.members, strict=True))
    for member, before in zip(deep.members, item.members, strict=True):
        assert member is not before and address(member) != address(before) and not member.readonly
    one, two = copy.deepcopy([item, item.members[0]])
    assert one.members[0] is two
    one, two = pickle.loads(pickle.dumps([item, item.members[0]]))
    assert one.members[0] is two


def test_members_that_cannot_be_pickled():
    source = wire.Tensor("int8", (2,), wire.composite("group", 1)).parts().raw()
    member = wire.Tensor("int8", (2,), buffers=[b"ab"], placement=(1, 1, 0))
    (item,) = hurray.StreamReader(source + member.parts().raw() + member.buffers[0])
    for use in (pickle.dumps, copy.deepcopy):
        with pytest.raises(UnsupportedError, match="event"):
            use(item)
    assert copy.copy(item).members[0] is item.members[0]


# ---- what stands for something outside --------------------------------------------------------------


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_readers_writers_and_context_managers(take):
    things = [
        (hurray.StreamReader(b""), "StreamReader.*items"),
        (hurray.StreamWriter(), "StreamWriter.*getvalue"),
        (hurray.aligned_allocator(), "aligned_allocator"),
    ]
    if hasattr(hurray, "print_options"):
        things.append((hurray.print_options(), "print_options"))
    for thing, fragment in things:
        with pytest.raises(TypeError, match=f"neither pickled nor copied.*|{fragment}") as caught:
            take(thing)
        assert "neither pickled nor copied" in str(caught.value)


# ---- files ------------------------------------------------------------------------------------------


def first_values(file):
    return {name: file[name].to_numpy().tolist() for name in file}


def test_an_open_file_pickles_as_its_path(tmp_path, monkeypatch):
    path = tmp_path / "f.hrry"
    hurray.save(path, {"a": np.arange(3), "b": np.ones(2, np.float32)})
    monkeypatch.chdir(tmp_path)
    with hurray.open("f.hrry", mode="copy_on_write", max_tensors=7) as f:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            data = pickle.dumps(f, protocol)
            monkeypatch.chdir("/")
            with pickle.loads(data) as again:
                assert not again.closed and again.path == str(path) and again.mode == "copy_on_write"
                assert first_values(again) == {"a": [0, 1, 2], "b": [1, 1]}
                assert not again["a"].readonly
                assert pickle.loads(pickle.dumps(again)).names == ("a", "b")
            assert again.closed
            monkeypatch.chdir(tmp_path)
        assert copy.copy(f).names == f.names
    with pytest.raises(ValueError, match="closed"):
        pickle.dumps(f)
    unused = pickle.loads(data)
    assert unused.close() == () and unused.closed
    with pytest.raises(ValueError, match="closed"):
        unused["a"]


def test_a_file_goes_into_processes(tmp_path):
    path = tmp_path / "f.hrry"
    hurray.save(path, {f"t{i}": np.full(2, i) for i in range(4)})
    with hurray.open(path) as f, multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(first_values, [f, f]) == [{f"t{i}": [i, i] for i in range(4)}] * 2


def test_a_file_that_changed_is_not_opened_again(tmp_path):
    path = tmp_path / "f.hrry"
    hurray.save(path, {"a": np.arange(3)})
    with hurray.open(path) as f:
        data = pickle.dumps(f)
    limited = hurray.open(path, max_tensors=1)
    later = pickle.dumps(limited)
    hurray.save(path, {"a": np.arange(3), "b": np.arange(3)})
    again = pickle.loads(data)
    for _ in range(2):
        with pytest.raises(hurray.FileError, match="not the file that was pickled.*open it anew"):
            again["a"]
    with pytest.raises(hurray.FileError):
        pickle.loads(later).names
    path.unlink()
    with pytest.raises(FileNotFoundError):
        again.names
