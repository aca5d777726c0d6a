"""`hurray.FileWriter`: part 09 section 1."""

import gc
import os
import signal
import threading
import weakref

import numpy as np
import pytest

import hurray
import processes
from saving import VALUES, pair


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.hrry"


def only(path):
    return os.listdir(path.parent) == [path.name]


def test_it_writes_what_save_writes(path, tmp_path):
    tensors = {
        "array": VALUES,
        "column": np.asfortranarray(VALUES),
        "strided": np.arange(20)[::3],
        "flags": np.array([True, False, True]),
        "tensor": hurray.asarray(np.arange(3, dtype=np.int8)),
        "bytes": b"abc",
    }
    kv = {"epoch": 3, "tags": ["a", "b"]}
    with hurray.FileWriter(path, kv=kv) as writer:
        for name, value in tensors.items():
            assert writer.write(name, value) is None
    hurray.save(tmp_path / "saved", tensors, kv=kv)
    ours, saved = path.read_bytes(), (tmp_path / "saved").read_bytes()
    assert ours[28:36] == b"\xff" * 8 and saved[28:36] == (6).to_bytes(8, "little")  # the count, known beforehand
    hurray.save(path, tensors, kv=kv, checksums=False)
    with hurray.FileWriter(tmp_path / "plain", kv=kv, checksums=False) as writer:
        for name, value in tensors.items():
            writer.write(name, value)
    assert (tmp_path / "plain").read_bytes() == path.read_bytes()
    with hurray.open(path) as f:
        assert not f.has_checksums


def test_signature(path):
    with pytest.raises(TypeError):
        hurray.FileWriter(path, {})
    with hurray.FileWriter(path=os.fspath(path), kv=None, checksums=True, sync=False) as writer:
        writer.write(name="a", item=VALUES)
    with hurray.open(path) as f:
        assert f.has_checksums and f.verify() is None and f.names == ("a",)


def test_composites_come_with_their_members(path):
    group = pair()
    with hurray.FileWriter(path) as writer:
        writer.write("c", group)
        with pytest.raises(hurray.FileError, match="c.1"):
            writer.write("c.1", VALUES)
        writer.write("d", VALUES)
    assert list(hurray.load(path)) == ["c", "d"]
    assert np.array_equal(np.asarray(hurray.load(path, names=["c.1"])["c.1"]), VALUES * 2)


def test_kv_may_change_until_the_end(path):
    given = {"epoch": 1}
    writer = hurray.FileWriter(path, kv=given)
    assert writer.kv == {"epoch": 1} and type(writer.kv) is dict
    given["epoch"] = 2  # a copy was taken
    writer.write("a", VALUES)
    writer.kv["loss"] = 0.5
    writer.kv["steps"] = [1, 2]
    writer.finish()
    assert hurray.load_kv(path) == {"epoch": 1, "loss": 0.5, "steps": [1, 2]}
    with pytest.raises(AttributeError):
        writer.kv = {}


def test_refused_kv_can_be_mended(path):
    with pytest.raises(hurray.FileError, match="none"):
        hurray.FileWriter(path, kv={"none": None})
    with pytest.raises(TypeError):
        hurray.FileWriter(path, kv=[1])
    writer = hurray.FileWriter(path)
    writer.write("a", VALUES)
    writer.kv["bad"] = {}
    with pytest.raises(hurray.FileError, match="bad"):
        writer.finish()
    assert not path.exists()
    del writer.kv["bad"]
    writer.finish()
    assert list(hurray.load(path)) == ["a"]
    with pytest.raises(hurray.FileError, match="bad"), hurray.FileWriter(path) as writer:
        writer.kv["bad"] = None
    assert only(path)  # given up at once


def test_the_bytes_are_out_when_write_returns(path):
    values = np.ones(1 << 20, np.float32)
    with hurray.FileWriter(path, sync=False) as writer:
        for k in range(4):
            values[:] = k
            writer.write(f"layer.{k}", values)
            (temporary,) = os.listdir(path.parent)
            assert os.path.getsize(path.parent / temporary) >= (k + 1) * values.nbytes
    for k, tensor in enumerate(hurray.load(path, verify=True).values()):
        assert (np.asarray(tensor) == k).all()


def test_the_item_is_not_kept(path):
    class Array(np.ndarray):
        pass

    with hurray.FileWriter(path) as writer:
        array = np.arange(3).view(Array)
        gone = weakref.ref(array)
        writer.write("a", array)
        del array
        assert gone() is None


@pytest.mark.parametrize(
    "name,item,error,said",
    [
        ("a", VALUES, hurray.FileError, 'another tensor of this file has this name.*"a"|"a".*this name'),
        ("", VALUES, hurray.FileError, "name"),
        ("x" * 65536, VALUES, hurray.FileError, "name"),
        ("\ud800", VALUES, hurray.FileError, "name"),
        (1, VALUES, TypeError, "name must be a str"),
        ("b", [1, 2], hurray.UnsupportedError, '"b".*hurray.Composite'),
        ("b", "text", hurray.UnsupportedError, '"b".*hurray.Composite'),
        ("b", None, hurray.UnsupportedError, '"b".*hurray.Composite'),
        ("b", np.array(["text"]), hurray.UnsupportedError, '"b"'),
    ],
)
def test_refusals_leave_it_usable(path, name, item, error, said):
    with hurray.FileWriter(path) as writer:
        writer.write("a", VALUES)
        with pytest.raises(error, match=said):
            writer.write(name, item)
        writer.write("after", VALUES)
    assert list(hurray.load(path, verify=True)) == ["a", "after"]


def test_nothing_appears_before_the_end_or_after_an_exception(path):
    hurray.save(path, {"old": VALUES})
    with pytest.raises(ZeroDivisionError), hurray.FileWriter(path) as writer:
        assert writer.write("new", VALUES) is None
        assert list(hurray.load(path)) == ["old"] and not only(path)
        1 / 0
    assert list(hurray.load(path)) == ["old"] and only(path)
    with pytest.raises(hurray.FileError, match="given up"):
        writer.write("more", VALUES)
    with pytest.raises(hurray.FileError, match="given up"):
        writer.finish()
    writer = hurray.FileWriter(path)
    writer.write("new", VALUES)
    del writer  # dropped unfinished
    gc.collect()
    assert list(hurray.load(path)) == ["old"] and only(path)


def test_finish_is_idempotent_and_ends_it(path):
    writer = hurray.FileWriter(path)
    assert writer.__enter__() is writer
    writer.write("a", VALUES)
    writer.finish()
    writer.finish()
    with pytest.raises(hurray.FileError, match="finished"):
        writer.write("b", VALUES)
    with writer:
        pass
    assert list(hurray.load(path)) == ["a"]
    with pytest.raises(ValueError), writer:
        raise ValueError
    assert list(hurray.load(path)) == ["a"]


def test_paths_that_cannot_be_written(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        hurray.FileWriter(tmp_path / "no" / "file")
    assert isinstance(missing.value, hurray.FileError) and missing.value.filename
    with pytest.raises(IsADirectoryError):
        hurray.FileWriter(tmp_path)
    with pytest.raises(TypeError):
        hurray.FileWriter(3)


def test_an_error_of_the_system_ends_it(path):
    with pytest.raises(hurray.FileError) as full, hurray.FileWriter("/dev/full") as writer:
        writer.write("a", VALUES)
    assert full.value.errno == 28
    with pytest.raises(hurray.FileError, match="earlier write failed|given up"):
        writer.write("b", VALUES)


def test_a_cycle_is_collected(path):
    class Mark:
        pass

    writer = hurray.FileWriter(path)
    mark = Mark()
    writer.kv["self"] = [writer, mark]
    gone = weakref.ref(mark)
    del writer, mark
    gc.collect()
    assert gone() is None and os.listdir(path.parent) == []


def test_threads_write_one_after_the_other(path):
    values = np.arange(1 << 16)
    with hurray.FileWriter(path, sync=False) as writer:
        threads = [
            threading.Thread(target=lambda t=t: [writer.write(f"{t}.{k}", values + t) for k in range(20)])
            for t in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    loaded = hurray.load(path, verify=True)
    assert len(loaded) == 80
    for name, tensor in loaded.items():
        assert np.array_equal(np.asarray(tensor), values + int(name.split(".")[0]))


@processes.measures_memory
def test_memory_stays_below_16_mib_beyond_the_item(path):
    processes.run(
        """
        values = np.ones((2048, 16384), np.uint16)  # 64 MiB
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")
        before = status("VmRSS")
        with hurray.FileWriter(sys.argv[1], sync=False) as writer:
            for k in range(8):  # a file of 384 MiB
                writer.write(f"{k}.plain", values)
                writer.write(f"{k}.strided", values[:, ::2])
                writer.write(f"{k}.flags", values.view(bool))
        assert status("VmHWM") - before < 16 << 20, status("VmHWM") - before
        """,
        path,
    )


def test_an_interrupt_removes_it_all(path):
    hurray.save(path, {"old": VALUES})
    process = processes.start(
        """
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with hurray.FileWriter(sys.argv[1], sync=False) as writer:
            writer.write("first", np.ones(3))
            print("writing", flush=True)
            writer.write("w", np.broadcast_to(np.float32(1), (1 << 33,)))
        """,
        path,
    )
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and b"KeyboardInterrupt" in errors
    assert list(hurray.load(path)) == ["old"] and only(path)
