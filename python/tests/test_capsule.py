"""The native capsule (07-c-abi.md section 9, 08-python-api.md section 14.6)."""

import builtins
import ctypes
import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import c_abi
import hurray
import processes
import test_conformance
import wire
from c_abi import FRESH, USED, Holder, Library, name_of, pair_of
from hurray import BufferError, Device, InvalidDescriptorError, Tensor, UnsupportedError, from_hurray

VALUES = np.arange(6, dtype=np.float32)


def tensor(**options):
    return Tensor(VALUES.tobytes(), hurray.float32, (2, 3), **options)


def aligned(size=24):
    """`size` zero bytes on 64, and their address."""
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size], memory.ctypes.data + start


def declared(memory, address, **changes):
    """One buffer as a list shows it."""
    return {
        "byte_size": memory.size, "alignment": 64, "device_tag": 0, "sync_mode": 0, "memory_class": 0,
        "data": address, **changes,
    }  # fmt: skip


def foreign(*, shape=(2, 3), descriptor=None, changes=(), **options):
    """A tensor of float32 by a library of its own; `changes` are those of its one handle."""
    memory, address = aligned()
    memory[:] = np.arange(memory.size // 4, dtype=np.float32).view(np.uint8)
    if descriptor is None:
        descriptor = wire.descriptor(wire.FLOAT32, shape, memory.size)
    made = Library([declared(memory, address, **dict(changes))], descriptor, **options)
    made.memory = memory
    return made


# ---- what the capsule holds ---


def test_anyone_can_read_it_by_its_prefix():
    t = tensor()
    capsule = t.__hurray__()
    assert name_of(capsule) == FRESH and type(capsule).__name__ == "PyCapsule"
    handles, context = pair_of(capsule)
    assert c_abi.prefix(handles).kind == c_abi.LIST and c_abi.prefix(context).kind == c_abi.CONTEXT
    assert c_abi.prefix(handles).abi_version == 4
    assert c_abi.prefix(handles).fn.contents.producer == f"hurray-cpp {hurray.__version__}".encode()
    assert c_abi.ask(context, "context_abi_version", out=ctypes.c_uint32) == 4
    assert c_abi.descriptor_of(context) == t.descriptor.encode()
    assert c_abi.buffers_of(handles) == [
        declared(np.empty(24, np.uint8), np.asarray(t).ctypes.data)
    ]


def test_every_call_gives_a_fresh_one():
    t = tensor()
    capsules = [t.__hurray__() for _ in range(3)]
    assert len({pair_of(capsule) for capsule in capsules}) == 3
    for capsule in capsules:
        assert from_hurray(Holder(capsule)).descriptor.differences(t.descriptor) == ()
    assert [name_of(capsule) for capsule in capsules] == [USED] * 3


def test_one_handle_per_buffer_in_order():
    t = Tensor(
        VALUES.tobytes(),
        hurray.float32,
        (4, 4),
        layout=hurray.CsrLayout(6),
        aux_buffers=[np.arange(6, dtype=np.uint64) % 4, np.array([0, 2, 4, 5, 6], np.uint64)],
    )
    handles, context = pair_of(capsule := t.__hurray__())
    found = c_abi.buffers_of(handles)
    assert [b["byte_size"] for b in found] == [24, 48, 40]
    assert ctypes.string_at(found[0]["data"], 24) == VALUES.tobytes()
    assert [b["data"] for b in found] == [
        np.asarray(t.buffer(i)).ctypes.data for i in range(t.buffer_count)
    ]
    u = from_hurray(Holder(capsule))
    assert u.layout == t.layout and u.descriptor.differences(t.descriptor) == ()


@pytest.mark.parametrize("stream", [None, -1, 1, 2**40])
def test_stream_is_accepted(stream):
    t = tensor()
    assert from_hurray(Holder(t.__hurray__(stream))).shape == (2, 3)
    assert from_hurray(Holder(t.__hurray__(stream=stream))).shape == (2, 3)


def test_arguments():
    with pytest.raises(TypeError, match="stream"):
        tensor().__hurray__("0")
    with pytest.raises(TypeError):
        tensor().__hurray__(None, True)
    with pytest.raises(TypeError):
        tensor().__hurray__(copy=1)


# ---- the round trip ---


def test_every_vector_goes_through():
    """Every layout, type, scheme, device and sync mode that the streams of the vectors hold."""
    seen, count = set(), 0

    def check(item):
        nonlocal count
        if isinstance(item, hurray.Composite):
            for member in item.members:
                check(member)
            return
        u = from_hurray(item)
        assert u.descriptor.encode() == item.descriptor.encode()
        assert u.device is item.device and u.readonly == item.readonly
        if all(h.sync_mode == "producer_synced" for h in item.buffer_handles):
            mine, theirs = pair_of(a := u.__hurray__())[0], pair_of(b := item.__hurray__())[0]
            assert c_abi.buffers_of(mine) == c_abi.buffers_of(theirs)
            del a, b
        seen.add((item.layout.name, item.dtype.name))
        count += 1

    for entry in test_conformance.entries("stream", "valid", "data_invalid"):
        if not test_conformance.agreed_only(entry):
            continue
        raw, _ = test_conformance.read(entry)
        try:
            for item in hurray.StreamReader(raw):
                check(item)
        except UnsupportedError as error:
            raise AssertionError(entry["name"]) from error
    assert count > 400
    assert len({layout for layout, _ in seen}) >= 12 and len({dtype for _, dtype in seen}) >= 26


def test_memory_is_shared_both_ways():
    t = tensor()
    u = from_hurray(t)
    assert u is not t and u.readonly is False
    np.asarray(u)[1, 2] = 50
    np.asarray(t)[0, 0] = 70
    assert np.asarray(t)[1, 2] == 50 and np.asarray(u)[0, 0] == 70


def test_readonly_is_kept():
    array, _ = aligned()
    array.flags.writeable = False
    t = hurray.from_numpy(array, copy=False)
    assert t.readonly
    u = from_hurray(t)
    assert u.readonly and not np.asarray(u).flags.writeable
    assert from_hurray(Holder(t.__hurray__())).readonly


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_tensors(shape):
    t = hurray.zeros(shape)
    u = from_hurray(t)
    assert (u.shape, u.readonly, u.buffer_handles) == (shape, False, t.buffer_handles)


def test_alignment_is_measured():
    t = tensor()
    (handle,) = from_hurray(t).buffer_handles
    address = np.asarray(t).ctypes.data
    assert handle.alignment == min(4096, address & -address) >= 64


def test_dynamic_shapes_and_private_types():
    t = Tensor(b"", hurray.float32, (None, 3))
    assert from_hurray(t).shape == (None, 3)


def test_the_device_of_a_tensor_is_passed_on():
    device = Device("cuda", 3, "unified")
    t = tensor(device=device)
    assert from_hurray(t).device is device
    assert from_hurray(Holder(t.__hurray__())).device == Device("cuda", 0, "unified")
    private = tensor(device=Device(0xF2, 0, 0xF1))
    u = from_hurray(Holder(private.__hurray__()))
    assert (u.device.tag, u.device.memory_class_tag) == (0xF2, 0xF1)
    assert u.device == private.device


def test_declared_devices_stay_declarations():
    """D19: the memory is the host's, and the library that made the capsule knows it."""
    t = tensor(device=Device("cuda"))
    for u in (from_hurray(t), from_hurray(Holder(t.__hurray__()))):
        with pytest.raises(UnsupportedError, match="cuda.*to_cpu"):
            np.asarray(u)
        assert np.array_equal(np.asarray(u.to_cpu()), VALUES.reshape(2, 3))


@pytest.mark.parametrize("sync", [1, 2])
def test_sync_modes_are_relayed(sync):
    raw = wire.descriptor(wire.FLOAT32, (2, 3), 24, device=1, sync=sync) + VALUES.tobytes()
    (t,) = hurray.StreamReader(raw)
    capsule = t.__hurray__()
    assert c_abi.buffers_of(pair_of(capsule)[0])[0]["sync_mode"] == sync
    u = from_hurray(Holder(capsule))
    assert u.buffer_handles[0].sync_mode == t.buffer_handles[0].sync_mode != "producer_synced"
    assert from_hurray(Holder(t.__hurray__(-1))).buffer_handles == u.buffer_handles
    with pytest.raises(UnsupportedError, match="buffer"):
        u.buffer(0)
    with pytest.raises(UnsupportedError):
        t.__hurray__(copy=True)


def test_copy_hands_over_own_memory():
    array, _ = aligned()
    array.flags.writeable = False
    t = hurray.from_numpy(array, copy=False)
    u = from_hurray(Holder(t.__hurray__(copy=True)))
    assert not u.readonly and np.array_equal(np.asarray(u), array)
    assert not np.shares_memory(np.asarray(u), array)
    assert u.buffer_handles[0].alignment >= 64


def test_a_mapped_file(tmp_path):
    path = tmp_path / "a.hrry"
    hurray.save(path, {"w": VALUES})
    before = path.read_bytes()
    u = from_hurray(hurray.load(path)["w"])
    np.asarray(u)[0] = 9
    assert not u.readonly and path.read_bytes() == before
    f = hurray.open(path)
    u = from_hurray(f["w"])
    assert u.readonly and f.close() == ("w",)
    assert np.array_equal(np.asarray(u), VALUES)
    f = hurray.open(path)
    held = from_hurray(Holder(f["w"].__hurray__()))
    with pytest.raises(builtins.BufferError, match="'w'"):
        f.close(strict=True)
    del held
    assert f.close(strict=True) == ()


def test_files_and_streams_take_what_hands_itself_over(tmp_path):
    t = tensor()

    class Wrapper:
        def __hurray__(self, stream=None):
            return t.__hurray__()

        __array__ = __dlpack__ = None  # asked first for the capsule

    hurray.save(tmp_path / "a", {"w": Wrapper()})
    assert hurray.load(tmp_path / "a")["w"].descriptor.differences(t.descriptor) == ()
    with hurray.StreamWriter() as writer:
        writer.write(Wrapper())
    (item,) = hurray.StreamReader(writer.getvalue())
    assert np.array_equal(np.asarray(item), np.asarray(t))


# ---- lifetimes ---


def test_the_memory_outlives_the_tensor():
    u = from_hurray(tensor())
    gc.collect()
    assert np.array_equal(np.asarray(u), VALUES.reshape(2, 3))


def source():
    """An array that somebody else keeps, and a weak reference to it."""

    class Source(np.ndarray):
        pass

    array = aligned()[0].view(Source)
    return hurray.from_numpy(array, copy=False), weakref.ref(array)


def test_an_unread_capsule_keeps_the_tensor_and_gives_it_back():
    t, alive = source()
    tensor_alive = weakref.ref(t)
    capsule = t.__hurray__()
    del t
    gc.collect()
    assert alive() is not None and tensor_alive() is not None
    del capsule
    assert alive() is None and tensor_alive() is None


def test_a_consumed_capsule_is_an_empty_shell():
    t, alive = source()
    capsule = t.__hurray__()
    u = from_hurray(Holder(capsule))
    del t, capsule
    assert alive() is not None
    view = np.asarray(u)
    del u
    assert alive() is not None
    del view
    assert alive() is None


def test_reference_counts_do_not_move():
    t = tensor()
    before = sys.getrefcount(t)
    for _ in range(1000):
        t.__hurray__()
        from_hurray(t)
    assert sys.getrefcount(t) == before


def test_a_long_chain_of_hand_overs():
    """Each shares the true owner, so that nothing has to be taken apart link by link."""
    t, alive = source()
    for _ in range(100_000):
        t = from_hurray(t)
    assert alive() is not None
    del t
    assert alive() is None


@processes.measures_memory
def test_nothing_is_left_behind():
    processes.run(
        """
        t = hurray.zeros((2, 3))
        def turn(n):
            for _ in range(n):
                t.__hurray__()
                hurray.from_hurray(t)
                capsule = t.__hurray__()
                try:
                    hurray.from_hurray(capsule)
                except TypeError:
                    pass
        turn(20_000)
        before = status("VmRSS")
        turn(200_000)
        assert status("VmRSS") - before < 2 << 20, status("VmRSS") - before
        """
    )


def test_an_exception_on_its_way_stays():
    t = tensor()

    def capsules():
        yield t.__hurray__()
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        list(capsules())


@pytest.mark.parametrize("where", ["module", "thread", "atexit", "cycle", "consumed"])
def test_at_interpreter_exit(where):
    code = """
    import atexit, threading
    array = np.zeros(1024)
    with hurray.aligned_allocator():
        array = np.zeros(1024)
    t = hurray.from_numpy(array, copy=False)
    kept = []
    """
    code += {
        "module": "unread = t.__hurray__()",
        "thread": """
    def work():
        kept.append(t.__hurray__())
    thread = threading.Thread(target=work); thread.start(); thread.join()
    """,
        "atexit": "atexit.register(lambda: kept.append(t.__hurray__()))",
        "cycle": """
    class Node: pass
    node = Node(); node.self = node; node.capsule = t.__hurray__(); del node
    """,
        "consumed": "u = hurray.from_hurray(t); v = memoryview(u); w = hurray.from_hurray(u); del t",
    }[where]
    assert processes.run(code).stderr == ""


# ---- refusals ---


@pytest.mark.parametrize("wrong", [3, None, "t", object(), Tensor, VALUES])
def test_what_has_no_capsule(wrong):
    with pytest.raises(TypeError, match="__hurray__"):
        from_hurray(wrong)


def test_a_bare_capsule():
    with pytest.raises(TypeError, match="pass the object"):
        from_hurray(tensor().__hurray__())


def test_what_the_source_raises_is_passed_on():
    class Broken:
        def __hurray__(self):
            raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        from_hurray(Broken())


@pytest.mark.parametrize("returned", [None, 3, b"hurray_tensor"])
def test_what_is_no_capsule(returned):
    with pytest.raises(BufferError, match="not a capsule"):
        from_hurray(Holder(returned))


def test_used_twice():
    t, alive = source()
    capsule = t.__hurray__()
    first = from_hurray(Holder(capsule))
    with pytest.raises(BufferError, match="already been consumed"):
        from_hurray(Holder(capsule))
    assert name_of(capsule) == USED
    del capsule, t
    assert np.asarray(first).size == 24
    del first
    assert alive() is None


@pytest.mark.parametrize("name", [b"dltensor", b"hurray_tensor2", b"", None])
def test_capsules_of_another_kind(name):
    made = c_abi.capsule(1, 1, name)
    with pytest.raises(BufferError, match="hurray_tensor"):
        from_hurray(Holder(made))
    assert name_of(made) == name


def test_a_null_context():
    made = c_abi.capsule(foreign().list, None)
    with pytest.raises(BufferError, match="null"):
        from_hurray(Holder(made))
    assert name_of(made) == FRESH


def block(*words):
    return (ctypes.c_uint64 * 3)(*words)


ZEROS, POINTERS, DEAD = block(), block(*[id(VALUES)] * 3), block(*[0xDDDDDDDDDDDDDDDD] * 3)


@pytest.mark.parametrize("fake", [ZEROS, POINTERS], ids=["zeros", "pointers"])
@pytest.mark.parametrize("place", ["list", "context", "both"])
def test_what_is_no_handle(fake, place):
    real = foreign()
    address = ctypes.addressof(fake)
    made = c_abi.capsule(
        real.list if place == "context" else address, real.context if place == "list" else address
    )
    with pytest.raises(UnsupportedError, match="HRRYABI1"):
        from_hurray(Holder(made))
    assert name_of(made) == FRESH and real.calls == []


def test_a_destroyed_handle():
    address = ctypes.addressof(DEAD)
    with pytest.raises(BufferError, match="destroyed"):
        from_hurray(Holder(c_abi.capsule(address, address)))


def test_handles_of_the_wrong_kind():
    real = foreign()
    with pytest.raises(UnsupportedError, match="a buffer list.*a tensor context"):
        from_hurray(Holder(c_abi.capsule(real.context, real.list)))
    with pytest.raises(UnsupportedError, match="unknown kind"):
        from_hurray(foreign(kinds=(c_abi.LIST, 77)))
    with pytest.raises(UnsupportedError, match="a buffer"):
        from_hurray(foreign(kinds=(c_abi.BUFFER, c_abi.CONTEXT)))


def test_our_own_handles_in_the_wrong_place():
    capsule = tensor().__hurray__()
    handles, context = pair_of(capsule)
    with pytest.raises(UnsupportedError, match="expected a buffer list"):
        from_hurray(Holder(c_abi.capsule(context, handles)))
    assert from_hurray(Holder(capsule)).shape == (2, 3)


# ---- another library ---


def test_a_foreign_tensor():
    library = foreign()
    u = from_hurray(library)
    assert np.array_equal(np.asarray(u), VALUES.reshape(2, 3))
    assert np.asarray(u).ctypes.data == library.memory.ctypes.data
    assert u.readonly and u.device is hurray.device.cpu
    assert "list_destroy" not in library.calls and "context_destroy" not in library.calls
    view = np.asarray(u)
    del u
    assert "list_destroy" not in library.calls
    del view
    assert library.calls[-2:] == ["list_destroy", "context_destroy"]


def test_the_version_comes_first_and_the_list_stays_untouched():
    library = foreign(context_version=3)
    with pytest.raises(UnsupportedError, match="version 4.*3"):
        from_hurray(library)
    assert library.calls == ["context_abi_version"]


@pytest.mark.parametrize("version", [5, 2**32 - 1])
def test_a_later_version_with_the_same_functions(version):
    u = from_hurray(foreign(context_version=version, abi_version=version))
    assert np.array_equal(np.asarray(u), VALUES.reshape(2, 3))


def test_a_later_table_that_does_not_reach_far_enough():
    library = foreign(entries="list_len")
    with pytest.raises(UnsupportedError, match="a test 1.0"):
        from_hurray(library)
    with pytest.raises(UnsupportedError):
        from_hurray(foreign(abi_version=3))


def refused(error, match, **options):
    """The capsule is left as it is, whatever is wrong."""
    library = foreign(**options)
    made = library.capsule()
    for _ in range(2):
        with pytest.raises(error, match=match):
            from_hurray(Holder(made))
        assert name_of(made) == FRESH
    assert "list_destroy" not in library.calls and "context_destroy" not in library.calls
    return library


def test_descriptors_that_do_not_decode():
    refused(InvalidDescriptorError, "magic", descriptor=b"XXXX" + bytes(60))
    refused(InvalidDescriptorError, "truncated", descriptor=b"")
    good = wire.descriptor(wire.FLOAT32, (2, 3), 24)
    refused(InvalidDescriptorError, "truncated", descriptor=good[:-1])
    refused(InvalidDescriptorError, "version", descriptor=b"HRRY\x02" + good[5:])


def test_buffers_that_are_not_what_the_descriptor_says():
    two = wire.descriptor(wire.FLOAT32, (2, 3), 24)
    refused(InvalidDescriptorError, "byte_size.*24.*23", changes={"byte_size": 23})
    refused(InvalidDescriptorError, "device_tag.*0.*1", changes={"device_tag": 1})
    refused(InvalidDescriptorError, "memory_class.*0.*2", changes={"memory_class": 2})
    refused(InvalidDescriptorError, "sync_mode.*0.*1", changes={"sync_mode": 1})
    refused(InvalidDescriptorError, "address", changes={"data": None})
    memory, address = aligned()
    for count in (0, 2):
        library = Library([declared(memory, address)] * count, two)
        with pytest.raises(InvalidDescriptorError, match=f"1 buffers, the list {count}"):
            from_hurray(library)


def test_an_address_below_64():
    memory, address = aligned(64 + 24)
    library = Library(
        [declared(memory[16:40], address + 16)], wire.descriptor(wire.FLOAT32, (2, 3), 24)
    )
    with pytest.raises(InvalidDescriptorError, match="alignment.*16"):
        from_hurray(library)


def test_a_larger_buffer_is_used_as_far_as_it_is_declared():
    memory, address = aligned(4096)
    library = Library([declared(memory, address)], wire.descriptor(wire.FLOAT32, (2, 3), 24))
    assert from_hurray(library).nbytes == 24


def test_memory_of_a_device_is_not_read():
    """It is declared to be there, and nobody here knows better."""
    raw = wire.descriptor(wire.FLOAT32, (2, 3), 24, device=1)
    u = from_hurray(foreign(descriptor=raw, changes={"device_tag": 1}))
    assert u.device is hurray.device.cuda
    with pytest.raises(UnsupportedError, match="CPU|cuda"):
        np.asarray(u)
    with pytest.raises(UnsupportedError):
        u.to_cpu()
    again = from_hurray(u)
    with pytest.raises(UnsupportedError):
        again.to_cpu()


def test_what_the_other_library_refuses():
    refused(BufferError, "words of the other library", fails={"context_abi_version": -10})
    refused(InvalidDescriptorError, "words of the other library", fails={"list_get": -11})
    refused(UnsupportedError, "words of the other library", fails={"list_len": -110})
    refused(hurray.InternalError, "internal error", fails={"buffer_byte_size": c_abi.PANIC})


def test_a_composite_has_no_capsule():
    member = tensor(shard=hurray.Shard((2, 3), (0, 0)))
    composite = hurray.Composite(
        "partition", shape=(2, 3), dtype=hurray.float32, members=[member]
    )
    assert not hasattr(composite, "__hurray__")
    with pytest.raises(TypeError, match="Composite"):
        from_hurray(composite)
    library = Library([], composite.descriptor.encode())
    with pytest.raises(UnsupportedError, match="composite.*file or stream"):
        from_hurray(library)
    assert "list_destroy" not in library.calls


# ---- threads ---


def test_one_of_many_consumers_wins():
    t, alive = source()
    for _ in range(50):
        holder, start = Holder(t.__hurray__()), threading.Barrier(8)
        won, lost = [], []

        def consume(holder=holder, start=start, won=won, lost=lost):
            start.wait()
            try:
                won.append(from_hurray(holder))
            except BufferError as error:
                lost.append(str(error))

        threads = [threading.Thread(target=consume) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(won), len(lost)) == (1, 7)
        assert all("already been consumed" in text for text in lost)
        won.clear()
    del t, holder
    gc.collect()
    assert alive() is None


def test_another_consumer_during_a_foreign_call():
    """Its functions may let other threads in; whoever renames first has it."""
    taken = []

    def take(name):
        if name == "context_descriptor" and not taken:
            taken.append(None)  # not again in the inner call
            taken.append(from_hurray(Holder(made)))

    library = foreign(during=take)
    made = library.capsule()
    with pytest.raises(BufferError, match="already been consumed"):
        from_hurray(Holder(made))
    assert np.array_equal(np.asarray(taken[1]), VALUES.reshape(2, 3))
    assert "list_destroy" not in library.calls
    taken.clear()
    assert library.calls.count("list_destroy") == library.calls.count("context_destroy") == 1


def test_threads_hand_over_and_let_go():
    t, alive = source()
    errors = []

    def work():
        try:
            for _ in range(500):
                u = from_hurray(Holder(t.__hurray__()))
                assert from_hurray(u).nbytes == 24
                t.__hurray__()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    del t
    gc.collect()
    assert alive() is None


# ---- a second build of the library ---

needs_twin = pytest.mark.skipif(
    c_abi.TWIN is None, reason="HURRAY_TEST_C_TWIN names the second build of the C library"
)


def test_the_functions_are_bound_inside():
    """Nothing of the C interface is to be found in the extension from outside."""
    extension = sys.modules["hurray._hurray"].__file__
    for name in ("hurray_c_abi_version", "hurray_buffer_list_len", "hurray_last_error"):
        with pytest.raises(AttributeError):
            getattr(ctypes.CDLL(extension), name)


@needs_twin
def test_the_twin_reads_our_capsule_and_ends_it_without_the_gil():
    twin = c_abi.twin()
    t, alive = source()
    capsule = t.__hurray__()
    handles, context = map(ctypes.c_void_p, pair_of(capsule))
    version, count, size = ctypes.c_uint32(), ctypes.c_uint64(), ctypes.c_uint64()
    assert twin.hurray_tensor_context_abi_version(context, ctypes.byref(version)) == 0
    assert version.value == 4
    assert twin.hurray_buffer_list_len(handles, ctypes.byref(count)) == 0 and count.value == 1
    buffer, data = ctypes.c_void_p(), ctypes.c_void_p()
    assert twin.hurray_buffer_list_get(handles, ctypes.c_uint64(0), ctypes.byref(buffer)) == 0
    assert twin.hurray_buffer_byte_size(buffer, ctypes.byref(size)) == 0 and size.value == 24
    assert twin.hurray_buffer_data_ptr(buffer, ctypes.byref(data)) == 0
    assert data.value == np.asarray(t).ctypes.data
    assert twin.hurray_buffer_list_get(handles, ctypes.c_uint64(1), ctypes.byref(buffer)) == -11
    assert b"fewer buffers" in twin.hurray_last_error()
    c_abi.rename(capsule)
    del t, capsule
    # The memory is kept by the context alone, too.
    assert twin.hurray_buffer_list_destroy(ctypes.byref(handles)) == 0 and not handles
    assert alive() is not None
    assert twin.hurray_tensor_context_destroy(ctypes.byref(context)) == 0 and not context
    assert alive() is None


@needs_twin
def test_we_read_the_capsule_of_the_twin():
    twin = c_abi.twin()
    memory, address = aligned()
    memory[:] = VALUES.view(np.uint8)
    events = []
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
        lambda *_: events.append("buffer")
    )
    owner_release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: events.append("owner"))

    def pair(version):
        handle, handles, context = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        raw = wire.descriptor(wire.FLOAT32, (2, 3), 24)
        assert twin.hurray_buffer_from_ptr(
            ctypes.c_void_p(address), ctypes.c_uint64(24), ctypes.c_uint32(64), ctypes.c_uint8(0),
            ctypes.c_uint8(0), ctypes.c_uint8(0), release, None, ctypes.byref(handle),
        ) == 0  # fmt: skip
        assert twin.hurray_buffer_list_new(ctypes.c_uint64(1), ctypes.byref(handles)) == 0
        assert twin.hurray_buffer_list_push(handles, handle) == 0
        assert twin.hurray_tensor_context_new(
            ctypes.c_uint32(version), raw, ctypes.c_uint64(len(raw)), None, owner_release, ctypes.byref(context)
        ) == 0  # fmt: skip
        return handles.value, context.value

    made = c_abi.capsule(*pair(4))
    u = from_hurray(Holder(made))
    assert name_of(made) == USED and u.readonly
    assert np.array_equal(np.asarray(u), VALUES.reshape(2, 3))
    assert np.asarray(u).ctypes.data == address
    # On to a consumer of our own build, and to the twin again.
    v = from_hurray(u)
    del u
    assert events == []
    capsule = v.__hurray__()
    c_abi.end_pair(pair_of(capsule))
    c_abi.rename(capsule)
    assert events == []
    worker = threading.Thread(target=[v].clear)
    del v
    worker.start()
    worker.join()
    del worker
    gc.collect()
    assert events == ["buffer", "owner"]

    events.clear()
    old = pair(3)
    made = c_abi.capsule(*old)
    with pytest.raises(UnsupportedError, match="version 4.*3"):
        from_hurray(Holder(made))
    assert name_of(made) == FRESH and events == []
    c_abi.end_pair(old)
    assert events == ["buffer", "owner"]
