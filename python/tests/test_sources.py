"""Files over objects that are read by position (09-models-and-frameworks.md section 2)."""

import gc
import http.server
import io
import os
import pickle
import signal
import threading
import time
import weakref

import numpy as np
import processes
import pytest

import hurray
from threads import together

MIB = 1 << 20
BIG = np.arange(6 * MIB, dtype=np.uint32).reshape(6, -1)
SMALL = np.arange(1000, dtype=np.int16)


class Counting(io.RawIOBase):
    """Bytes far away: every read is a request."""

    def __init__(self, data):
        self.data, self.at, self.requests = memoryview(data), 0, []

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=0):
        self.at = offset + (0, self.at, len(self.data))[whence]
        return self.at

    def tell(self):
        return self.at

    def readinto(self, view):
        self.requests.append((self.at, len(view)))
        data = self.data[self.at : self.at + len(view)]
        view[: len(data)] = data
        self.at += len(data)
        return len(data)


class Reading:
    """The least that is needed, with answers that are short."""

    def __init__(self, data):
        self.file = io.BytesIO(data)

    def seek(self, *position):
        self.file.seek(*position)

    def tell(self):
        return self.file.tell()

    def read(self, size):
        return self.file.read(min(size, 300_000))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("sources") / "x.hrry"
    many = {f"s{i}": SMALL + i for i in range(300)}
    part = hurray.asarray(SMALL)
    hurray.save(path, {"big": BIG, **many, "head": hurray.Composite("group", shape=[1000], dtype=hurray.int16, members=[part])},
                kv={"epoch": 3})  # fmt: skip
    return path.read_bytes()


def check(f):
    assert f.mode == "memory" and f.kv == {"epoch": 3} and len(f) == 302
    assert np.array_equal(f["s7"].to_numpy(), SMALL + 7) and not f["s7"].readonly
    assert np.array_equal(f["big"].to_numpy(), BIG)
    assert np.array_equal(f.read("big", (slice(2, 4), slice(None, None, 5))).to_numpy(), BIG[2:4, ::5])
    assert np.array_equal(f["head"].members[0].to_numpy(), SMALL)
    f.verify()


@pytest.mark.parametrize("kind", [Counting, io.BytesIO, Reading])
def test_open_load_and_kv(data, kind):
    with hurray.open(kind(data)) as f:
        check(f)
        f.prefetch({"big": slice(0, 2), "s1": ...})
        assert np.array_equal(f.read("big", 1).to_numpy(), BIG[1])
    assert np.array_equal(hurray.load(kind(data), names=["s3"])["s3"].to_numpy(), SMALL + 3)
    assert len(hurray.load(kind(data), verify=True)) == 302
    assert hurray.load_kv(kind(data)) == {"epoch": 3}


def test_files_that_are_open(data, tmp_path):
    (tmp_path / "x.hrry").write_bytes(data)
    for buffering in (0, -1):
        with open(tmp_path / "x.hrry", "rb", buffering=buffering) as file, hurray.open(file) as f:
            assert f.path == str(tmp_path / "x.hrry")
            check(f)


def test_few_requests(data):
    source = Counting(data)
    with hurray.open(source) as f:
        assert source.requests == [(len(data) - MIB, MIB), (0, 512)]
        assert f.io.requests == 2 and f.io.bytes_read == MIB + 512
        for i in range(300):
            f[f"s{i}"]
        assert len(source.requests) <= 5
        before = len(source.requests)
        rows = f.read("big", slice(1, 2))
        assert len(source.requests) - before <= 2 and rows.nbytes == 4 * MIB
        f["big"]
        assert f.io.requests == len(source.requests) <= before + 7
    source = Counting(data)
    hurray.load(source)
    assert len(source.requests) <= 8


def test_it_is_read_and_never_mapped(data, monkeypatch):
    for mode in ("map", "copy_on_write"):
        with pytest.raises(hurray.UnsupportedError, match='BytesIO is read, and cannot be mapped; open it with mode="memory"'):
            hurray.open(io.BytesIO(data), mode=mode)
    monkeypatch.setenv("HURRAY_MODE", "map")  # a default, where that is possible
    with hurray.open(io.BytesIO(data)) as f:
        assert f.mode == "memory"
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(f)
    with pytest.raises(ValueError, match="mode"):
        hurray.open(io.BytesIO(data), mode="r")


def test_the_object_is_given_back(data):
    source = Counting(data)
    alive = weakref.ref(source)
    f = hurray.open(source)
    tensor = f["big"]
    f.prefetch(["big"])
    del source
    f.close()
    del f
    for _ in range(100):
        gc.collect()
        if alive() is None:
            break
        threading.Event().wait(0.05)  # a last request may be on its way
    assert alive() is None and np.array_equal(tensor.to_numpy(), BIG)


@pytest.mark.parametrize("pause", [0.0005, 0.2])
def test_the_end_while_something_is_on_its_way(data, tmp_path, pause):
    (tmp_path / "x.hrry").write_bytes(data)
    for _ in range(3):
        processes.run("""
            import io, time

            class Slow(io.BytesIO):
                slow = False

                def readinto(self, view):
                    if self.slow:
                        time.sleep(float(sys.argv[2]))
                        return super().readinto(view[:4096] if float(sys.argv[2]) < 0.1 else view)
                    return super().readinto(view)

            source = Slow(open(sys.argv[1], "rb").read())
            f = hurray.open(source)
            source.slow = True
            f.prefetch(["big"])
            keep = [[i] for i in range(300_000)]  # the end takes its time
            keep.append(keep)
        """, tmp_path / "x.hrry", str(pause))  # fmt: skip


@pytest.mark.parametrize("wrong, error, words", [
    (io.StringIO("x"), TypeError, "binary mode"),
    (type("T", (), {"seek": lambda s, *a: 100, "read": lambda s, n: "x" * n})(), TypeError, "reads text"),
    (type("T", (), {"seek": lambda s, *a: "x", "read": lambda s, n: b""})(), TypeError, "size must be an int"),
    (type("T", (), {"seek": lambda s, *a: -1, "read": lambda s, n: b""})(), OverflowError, "size"),
    (type("T", (), {"seek": lambda s, *a: 2**63, "read": lambda s, n: b""})(), hurray.FileError, "trunc|size|bytes"),
    (type("T", (), {"seek": lambda s, *a: 5000, "read": lambda s, n: b"x" * (n + 1)})(), hurray.FileError, "returned"),
    (type("T", (), {"seek": lambda s, *a: 5000, "read": lambda s, n: None})(), TypeError, "NoneType"),
    (type("T", (), {"seek": lambda s, *a: 5000, "read": lambda s, n: b""})(), hurray.FileError, "trunc|magic|bytes"),
    (type("T", (), {"seek": lambda s, *a: 5000, "read": 0, "readinto": lambda s, v: "x"})(), hurray.FileError, "readinto|returned"),
    (type("T", (), {"seek": lambda s, *a: 5000, "read": 0, "readinto": lambda s, v: len(v) + 1})(), hurray.FileError, "returned"),
    (io.BytesIO(b""), hurray.FileError, "empty"),
    (io.BytesIO(b"<html>" * 100), hurray.FileError, "HTML"),
    (object(), TypeError, "PathLike"),
])  # fmt: skip
def test_wrong_objects(wrong, error, words):
    for use in (hurray.open, hurray.load, hurray.load_kv):
        with pytest.raises(error, match=words):
            use(wrong)


@pytest.mark.parametrize("raised, got", [(OSError(104, "Connection reset by peer"), hurray.FileError), (KeyboardInterrupt, KeyboardInterrupt),
                                         (ValueError("x"), ValueError), (MemoryError, MemoryError)])  # fmt: skip
def test_what_reading_raises(data, raised, got):
    class Failing(Counting):
        fails = False

        def readinto(self, view):
            if self.fails:
                raise raised
            return super().readinto(view)

    source = Failing(data)
    f = hurray.open(source)
    source.fails = True
    for use in (lambda: f["big"], lambda: f.read("big", 0), lambda: f.descriptor("big"), f.verify, f.descriptors):
        with pytest.raises(got):
            use()
    f.prefetch(["big"])  # in the background: nobody is told until they ask
    with pytest.raises(got):
        f["big"]
    source.fails = False
    check(f)


def test_views_that_are_kept_are_of_memory_that_stays(data):
    kept = []

    class Keeping(io.BytesIO):
        def readinto(self, view):
            kept.append(memoryview(view))
            return super().readinto(view)

    f = hurray.open(Keeping(data))
    check(f)
    del f
    gc.collect()
    assert sum(len(bytes(view)) for view in kept) > len(data) / 2


@pytest.mark.parametrize("error", [
    OSError("HTTP", "foo"), OSError(2**40, "x"), OSError(-1, "x"), OSError(None, None), OSError(),
    type("Mute", (OSError,), {"__str__": lambda self: 1 / 0})(), type("Late", (TimeoutError,), {})("slow"),
    type("NoNumber", (OSError,), {"errno": property(lambda self: 1 / 0)})(),
], ids=repr)  # fmt: skip
def test_exceptions_that_lie(data, error):
    class Failing(io.BytesIO):
        armed = False

        def readinto(self, view):
            if self.armed:
                raise error
            return super().readinto(view)

    source = Failing(data)
    f = hurray.open(source)
    source.armed = True
    with pytest.raises((OSError, ZeroDivisionError)) as raised:
        f["big"]
    assert error in (raised.value, raised.value.__cause__)
    if isinstance(error, TimeoutError):
        assert isinstance(raised.value, TimeoutError) and isinstance(raised.value, hurray.FileError)
    f.prefetch(["big"])
    with pytest.raises((OSError, ZeroDivisionError)):
        f["big"]


def test_files_over_one_object_take_turns(data):
    class Slow(io.BytesIO):
        def readinto(self, view):
            time.sleep(0.001)
            return super().readinto(view)

    source = Slow(data)
    with hurray.open(source) as f, hurray.open(source) as g:
        f.prefetch(["big"])
        for i in range(50):
            assert np.array_equal(g.read("big", (i % 6, slice(i, i + 9))).to_numpy(), BIG[i % 6, i : i + 9])
        assert np.array_equal(f["big"].to_numpy(), BIG)


def test_a_fork_opens_its_own(tmp_path, data):
    (tmp_path / "x.hrry").write_bytes(data)
    processes.run('''
        import io, time

        class Slow(io.BytesIO):
            def readinto(self, view):
                time.sleep(0.05)
                return super().readinto(view)

        source = Slow(open(sys.argv[1], "rb").read())
        f = hurray.open(source)
        f.prefetch(["big"])
        child = os.fork()
        if child == 0:
            try:
                f["big"]
            except RuntimeError as error:
                assert "before a fork" in str(error)
                assert hurray.open(source)["s1"].shape == (1000,)
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert f["big"].shape[0] == 6
    ''', tmp_path / "x.hrry")  # fmt: skip


def test_an_interrupt_ends_the_wait_for_an_object_that_never_answers(tmp_path, data):
    (tmp_path / "x.hrry").write_bytes(data)
    process = processes.start('''
        import io, time

        class Dead(io.BytesIO):
            dead = False

            def readinto(self, view):
                while self.dead:
                    time.sleep(0.1)
                return super().readinto(view)

        source = Dead(open(sys.argv[1], "rb").read())
        f = hurray.open(source)
        source.dead = True
        f.prefetch(["big"])
        time.sleep(0.2)
        import atexit
        print("ends", flush=True)
    ''', tmp_path / "x.hrry")  # fmt: skip
    assert process.stdout.readline() == b"ends\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT


@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes")
def test_names_that_are_no_utf8(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.hrry")
    hurray.save(path, {"a": np.ones(3)})
    with open(path, "rb") as source, hurray.open(source) as f:
        assert f["a"].shape == (3,) and f.path == path


def test_a_file_within_itself(data):
    class Inner(Counting):
        f = None

        def readinto(self, view):
            if self.f is not None:
                self.f["s1"]
            return super().readinto(view)

    source = Inner(data)
    source.f = hurray.open(source)
    with pytest.raises(RuntimeError, match="cannot be used by the object that it reads from"):
        source.f["big"]


def test_threads_share_one_object(data):
    with hurray.open(Counting(data)) as f:
        wrong = []

        def work(k):
            for i in range(k, 300, 4):
                if not np.array_equal(f[f"s{i}"].to_numpy(), SMALL + i):
                    wrong.append(i)
                if not np.array_equal(f.read("big", (i % 6, slice(0, 100))).to_numpy(), BIG[i % 6, :100]):
                    wrong.append(-i)

        together(work, 4)
        assert not wrong


@pytest.fixture
def server(data):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, body):
            start, stop, status = 0, len(data), 200
            if wanted := self.headers.get("Range"):
                first, last = wanted.removeprefix("bytes=").split("-")
                start, stop, status = int(first), min(int(last) + 1, len(data)) if last else len(data), 206
                requests.append(stop - start)
            self.send_response(status)
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
            self.send_header("Content-Length", str(stop - start))
            self.send_header("Accept-Ranges", "bytes")
            self.end_headers()
            if body:
                self.wfile.write(data[start:stop])

        def log_message(self, *arguments):
            pass

    requests = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}/x.hrry", requests
        running.shutdown()
        thread.join()


def test_fsspec_over_http(server):
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    url, requests = server
    with fsspec.open(url, "rb", cache_type="none") as remote:
        with hurray.open(remote) as f:
            assert len(requests) == 2
            assert np.array_equal(f.read("big", 3).to_numpy(), BIG[3])
            assert len(requests) <= 4 and sum(requests) <= 4 * MIB + 3 * MIB
            check(f)
    with fsspec.open(url, "rb") as remote:  # with what fsspec keeps itself
        check(hurray.open(remote))
