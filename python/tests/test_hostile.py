"""What hostile files and objects once did: each as a test of its whole kind."""

import contextlib
import copy
import ctypes
import io
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import hurray
import processes

BIG = 2**63 - 1


@pytest.mark.parametrize("shape", [(BIG, BIG, 0), (0, BIG, 2), (2**32, 2**32, 0), (0, 2**64 - 2)])
def test_shapes_that_nobody_can_count_are_refused_by_every_export(tmp_path, shape):
    made = hurray.zeros(shape, dtype=hurray.float32)
    hurray.save(tmp_path / "t.hrry", {"t": made})
    for t in (made, hurray.load(tmp_path / "t.hrry")["t"]):
        with pytest.raises(hurray.UnsupportedError, match="count"):
            t.__dlpack__(max_version=(1, 1))
        with pytest.raises(hurray.UnsupportedError):
            t.__array_interface__
        with pytest.raises(hurray.UnsupportedError):
            t.to_numpy()
        with pytest.raises(BufferError):
            memoryview(t)
        assert t.size == 0 and t.shape == shape


@pytest.mark.frameworks
def test_torch_survives_a_shape_that_it_cannot_count():
    pytest.importorskip("torch")
    with pytest.raises(hurray.UnsupportedError):
        hurray.zeros((BIG, BIG, 0)).to_torch()


@pytest.mark.parametrize("answer", [10_000, 2**40, -1, "x"])
def test_a_source_that_lies_about_how_much_it_read(answer):
    program = f"""
import io, os, hurray
read, write = os.pipe()
os.write(write, b"HRRY" * 4)
class Lying(io.FileIO):
    def readinto(self, view):
        return {answer!r}
    def seekable(self):
        return False
try:
    for _ in hurray.StreamReader(io.BufferedReader(Lying(read, "r"))):
        pass
except (hurray.StreamError, hurray.FileError, OSError, TypeError, ValueError) as error:
    print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("call", [
    'hurray.load(path, mode="memory")',
    'hurray.open(path, mode="memory")',
    "hurray.StreamReader(path)",
    "hurray.StreamWriter(path)",
    'hurray.save(path, {"a": hurray.zeros([2])})',
])
def test_a_pipe_without_another_end_can_be_interrupted(tmp_path, call):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    program = f"import hurray; path = {os.fspath(path)!r}; print('ready', flush=True); {call}"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode != 0
    assert "KeyboardInterrupt" in errors


def test_dlpack_device_0_is_no_device():
    class Odd:
        def __dlpack_device__(self):
            return (0, 0)

        def __dlpack__(self, **_):
            import ctypes

            capsule = np.zeros(4, np.float32).__dlpack__()
            new = ctypes.pythonapi.PyCapsule_GetPointer
            new.restype, new.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            at = new(capsule, b"dltensor")
            ctypes.c_int32.from_address(at + 8).value = 0
            return capsule

    for copy in (None, False, True):
        with pytest.raises(hurray.UnsupportedError, match="device type 0"):
            hurray.from_dlpack(Odd(), copy=copy)


def test_a_folder_is_no_stream(tmp_path):
    with pytest.raises(IsADirectoryError) as caught:
        hurray.StreamReader(tmp_path)
    assert isinstance(caught.value, hurray.FileError)
    assert caught.value.strerror == os.strerror(caught.value.errno)


def test_the_systems_words_stand_alone(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        hurray.open(tmp_path / "missing.hrry")
    assert caught.value.strerror == os.strerror(caught.value.errno)
    assert caught.value.filename == os.fspath(tmp_path / "missing.hrry")


def test_quantization_and_extension_type_are_none():
    t = hurray.zeros([2])
    for thing in (t, t.descriptor):
        assert thing.quantization is None
        assert thing.extension_type is None


@pytest.mark.filterwarnings("ignore:nanobind")
@pytest.mark.parametrize("kind", [value for value in map(vars(hurray).get, hurray.__all__) if isinstance(value, type)]
                         + [hurray.file.File], ids=lambda kind: kind.__name__)  # fmt: skip
def test_no_member_of_a_half_made_object_is_undefined(kind):
    try:
        half = kind.__new__(kind)
    except TypeError:
        return
    tried = 0
    hidden = {"__class__", "__init_subclass__", "__subclasshook__", "__new__", "__init__", "__dir__"}
    for name in sorted(set(dir(kind)) - hidden):
        for arguments in ((), (1,), (half,), (None, None), (b"",)):
            tried += 1
            with contextlib.suppress(Exception):
                member = getattr(half, name)
                if callable(member):
                    member(*arguments)
    for use in (repr, hash, pickle.dumps, copy.copy, copy.deepcopy, hurray.asarray, hurray.from_dlpack,
                hurray.from_hurray, hurray.StreamWriter().write, hurray.validate_colocation, lambda x: x == half,
                lambda x: hurray.Tensor(bytes(4), x, x), lambda x: hurray.Tensor(bytes(4), hurray.uint8, [4], layout=x),
                lambda x: hurray.Tensor(bytes(4), hurray.uint8, [4], x, statistics=x),
                lambda x: hurray.Composite("group", shape=[], dtype=hurray.float32, members=[x])):  # fmt: skip
        with contextlib.suppress(Exception):
            use(half)
    assert tried > 100 and type(half) is kind


def test_text_that_is_no_text_is_no_name():
    for use in (lambda v: hurray.Composite(v, shape=[], dtype=hurray.float32, members=[]),
                lambda v: hurray.CompositeLayout(v, 1), lambda v: hurray.CompositeLayout("overlay", 1, v),
                lambda v: hurray.BlockPagedLayout(1, 1, 0, 1, v)):  # fmt: skip
        for text in ("\ud800", "nothing", "it's"):
            with pytest.raises(ValueError, match="unknown .* expected one of"):
                use(text)


def test_nothing_is_copied_from_nowhere():
    empty = np.zeros(0, np.float32)
    for take in (hurray.from_numpy, hurray.asarray, hurray.from_dlpack):
        assert take(empty, copy=True).shape == (0,)


class Endless:
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        return 1


SEQUENCES = [
    hurray.zeros, hurray.StridedLayout, lambda s: hurray.Shard(s, [0]),
    lambda s: hurray.Tensor(bytes(8), hurray.uint8, s), lambda s: hurray.Tensor(bytes(8), hurray.uint8, [8], aux_buffers=s),
    lambda s: hurray.Composite("group", shape=s, dtype=hurray.float32, members=[]),
]  # fmt: skip


@pytest.mark.parametrize("take", SEQUENCES)
def test_sequences_are_read_no_further_than_they_are_long(take):
    pointer = ctypes.pointer(ctypes.c_int(1))  # can be indexed for ever, and has no length
    for endless in (pointer, Endless(2**40), Endless(-1)):
        with pytest.raises((TypeError, ValueError)):
            take(endless)
    with contextlib.suppress(TypeError, ValueError):
        take(Endless(2))  # what lies about no more than where it ends is taken for what it says


def test_a_length_is_the_length():
    assert hurray.zeros(Endless(2)).shape == (1, 1)


@pytest.mark.parametrize("number, error", [("x", TypeError), (1.5, TypeError), (1 << 40, OverflowError)])
def test_a_descriptor_is_an_int(tmp_path, number, error):
    class File(io.FileIO):
        def fileno(self):
            return number

    (tmp_path / "x").write_bytes(b"")
    with File(tmp_path / "x") as reading, pytest.raises(error):
        hurray.StreamReader(reading)
    with File(tmp_path / "y", "w") as writing, pytest.raises(error):
        hurray.StreamWriter(writing)


class Interrupting:
    """An object whose look-up of one attribute is interrupted."""

    def __init__(self, attribute, raised):
        self.attribute, self.raised = attribute, raised

    def __getattr__(self, name):
        if name == self.attribute:
            raise self.raised
        raise AttributeError(name)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interrupt_is_not_a_missing_attribute(tmp_path, raised):
    for attribute, uses in {
        "__dlpack__": [hurray.asarray, hurray.from_dlpack, lambda x: hurray.save(tmp_path / "x", {"x": x})],
        "__array__": [hurray.asarray, lambda x: hurray.asarray(x, dtype=hurray.float32)],
        "__array_interface__": [hurray.asarray],
        "__hurray__": [hurray.from_hurray, lambda x: hurray.save(tmp_path / "x", {"x": x})],
        "fileno": [hurray.StreamReader, hurray.StreamWriter],
        "items": [lambda x: hurray.save(tmp_path / "x", x), lambda x: hurray.save(tmp_path / "x", {}, kv=x)],
        "item": [lambda x: hurray.save(tmp_path / "x", {}, kv={"x": x})],
    }.items():
        for use in uses:
            class Object(Interrupting):
                if attribute == "items":
                    def __getitem__(self, key):
                        raise KeyError(key)
            with pytest.raises(raised):
                use(Object(attribute, raised))
    assert not list(tmp_path.iterdir())


def test_what_a_look_up_raises_is_the_cause():
    error = RuntimeError("the device is gone")
    for attribute, use in ({"__dlpack__": hurray.from_dlpack, "__array__": hurray.asarray, "__hurray__": hurray.from_hurray}
                           .items()):  # fmt: skip
        with pytest.raises(hurray.UnsupportedError, match=f"its {attribute} raised RuntimeError: the device is gone") as got:
            use(Interrupting(attribute, error))
        assert got.value.__cause__ is error


def test_lone_surrogates_are_no_names(tmp_path, monkeypatch):
    hurray.save(tmp_path / "x.hrry", {"x": hurray.zeros([1])})
    for use in (hurray.open, hurray.load):
        with pytest.raises(ValueError, match=r'mode: expected one of .*, found .\\ud800'):
            use(tmp_path / "x.hrry", mode="\ud800")
    monkeypatch.setenv("HURRAY_MODE", "\udcff")
    with pytest.raises(ValueError, match=r"HURRAY_MODE: expected one of"):
        hurray.open(tmp_path / "x.hrry")
    for use in (hurray.Dtype.from_name, lambda name: hurray.Device(name), lambda name: hurray.Device("cpu", 0, name)):
        with pytest.raises(hurray.InvalidDescriptorError, match=r"'\\ud800'"):
            use("\ud800")
    for wrong in (5, None, b"float32"):
        with pytest.raises(TypeError, match="name must be a str, got"):
            hurray.Dtype.from_name(wrong)


def test_what_a_stream_file_refuses_is_a_file_error(tmp_path):
    class Lost(io.FileIO):
        def tell(self):
            return -1

    (tmp_path / "x").write_bytes(hurray.StreamWriter().getvalue())
    with Lost(tmp_path / "x") as file, pytest.raises(hurray.FileError):
        hurray.StreamReader(file)
    file = open(tmp_path / "x", "rb")
    reader = hurray.StreamReader(file)
    os.close(file.fileno())
    with pytest.raises(hurray.FileError):
        list(reader)
    with contextlib.suppress(OSError):
        file.close()


def test_subinterpreters_are_refused():
    # A subinterpreter takes the module's objects along to its end: in a process of its own.
    done = processes.run("""
        try:
            import _interpreters as interpreters
        except ImportError:
            try:
                import _xxsubinterpreters as interpreters
            except ImportError:
                print("none here")
                sys.exit()
        one = interpreters.create()
        code = f"import sys\\nsys.path[:] = {sys.path!r}\\ntry:\\n import hurray\\nexcept ImportError as e:\\n print(e.__cause__, flush=True)"
        interpreters.run_string(one, code)
        interpreters.destroy(one)
        print(hurray.zeros([2]).to_numpy())
    """)
    assert done.stdout == "none here\n" or ("subinterpreter" in done.stdout and done.stdout.endswith("[0. 0.]\n"))


@processes.measures_memory
def test_without_memory_everything_is_a_memory_error_and_goes_on(tmp_path):
    done = processes.run("""
        import resource
        n = 1 << 26
        t = hurray.Tensor(bytes(n // 2), hurray.dtype.int4, [n])
        x = np.zeros(n, np.uint8)
        hurray.save(sys.argv[1], {"t": hurray.zeros([2 * n], dtype=hurray.uint8)})
        file = hurray.open(sys.argv[1], mode="memory")
        resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + (8 << 20),) * 2)
        for use in (lambda: hurray.zeros([n]), lambda: hurray.full([n], 1.0), lambda: hurray.from_numpy(x, copy=True),
                    t.to_numpy, t.to_dense, lambda: hurray.asarray(x, dtype=hurray.float32),
                    lambda: file["t"], lambda: hurray.load(sys.argv[1], mode="memory"), lambda: hurray.share({"x": x}),
                    lambda: t.__reduce_ex__(4), lambda: hurray.sparse_coo(x, [x], shape=[4])):
            for _ in range(3):
                try:
                    use()
                except Exception as e:
                    name = type(e).__name__
                else:
                    name = "ok"
            print(name)
        print(t.shape, x.shape, len(file))
    """, tmp_path / "t.hrry")  # fmt: skip
    lines = done.stdout.splitlines()
    assert set(lines[:-1]) <= {"MemoryError", "ok"} and lines[:-1].count("MemoryError") >= 7
    assert lines[-1] == f"({1 << 26},) ({1 << 26},) 1"
