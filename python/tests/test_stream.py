import asyncio
import bz2
import contextlib
import copy
import errno
import gzip
import io
import lzma
import mmap
import os
import pickle
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import zipfile

import numpy as np
import pytest

import hurray
import processes
import wire

TWO = wire.annotated(
    """
0000  48 52 52 59 01 00 35 00 00 00   HRRY 1.0, descriptor_length 53
000A  00 00 00 00 13 01 01 00 00 00   flags 0, uint16, row-major, rank 1
0014  02 00 00 00 00 00 00 00         shape 2
001C  00 00 00 00 00 00 00 00         byte_offset
0024  01                              one buffer
0025  04 00 00 00 00 00 00 00 40 00 00 00 00 00 00 00   4 bytes, alignment 64
0035  0A 00 14 00                     data
0039  48 52 52 59 01 00 35 00 00 00   second descriptor
0043  00 00 00 00 03 01 01 00 00 00   float32, row-major, rank 1
004D  00 00 00 00 00 00 00 00         shape 0
0055  00 00 00 00 00 00 00 00         byte_offset
005D  01                              one buffer
005E  00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00   0 bytes, alignment 1
"""
)
FIRST = 57
ARRAYS = [
    np.arange(10, dtype=np.int16),
    np.zeros((0, 3), np.float32),
    np.array(3.5),
    np.arange(300_000, dtype=np.float32).reshape(300, 1000),
    np.asfortranarray(np.arange(12, dtype=np.int64).reshape(3, 4)),
]


def stream_of(arrays):
    with hurray.StreamWriter() as writer:
        for array in arrays:
            writer.write(array)
    return writer.getvalue()


STREAM = stream_of(ARRAYS)


def check(tensors):
    tensors = list(tensors)
    assert len(tensors) == len(ARRAYS)
    for tensor, array in zip(tensors, ARRAYS):
        values = np.asarray(tensor)
        assert values.dtype == array.dtype and np.array_equal(values, array)


@contextlib.contextmanager
def running(work, *arguments):
    """`work` on a thread, whose exception is raised here."""
    raised = []

    def body():
        try:
            work(*arguments)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    yield
    thread.join(60)
    assert not thread.is_alive()
    if raised:
        raise raised[0]


# ---- bytes ---


def test_the_bytes_of_the_format_page():
    assert stream_of([np.array([10, 20], np.uint16), np.zeros(0, np.float32)]) == TWO
    first, second = hurray.StreamReader(TWO)
    assert np.asarray(first).tolist() == [10, 20] and first.dtype == hurray.dtype.uint16
    assert second.shape == (0,) and second.dtype == hurray.float32


def test_cuts_of_the_format_page():
    for size in range(len(TWO) + 1):
        reader = hurray.StreamReader(TWO[:size])
        if size in (0, FIRST, len(TWO)):
            assert len(list(reader)) == (0, FIRST, len(TWO)).index(size)
            continue
        if size > FIRST:
            next(reader)
        with pytest.raises(hurray.StreamError):
            next(reader)
        assert list(reader) == []


def test_equal_tensors_make_equal_streams():
    values = np.arange(1000, dtype=np.float32)
    with hurray.aligned_allocator():
        aligned = values.copy()
    page = hurray.empty((1000,), dtype=hurray.float32, alignment=4096)
    np.asarray(page)[:] = values
    (received,) = hurray.StreamReader(stream_of([values]))
    sources = [values, aligned, page, received, hurray.from_numpy(values), values[::-1][::-1]]
    assert len({stream_of([source]) for source in sources}) == 1


def test_received_memory_is_aligned_and_measured():
    for tensor in hurray.StreamReader(STREAM):
        (handle,) = tensor.buffer_handles
        address = np.asarray(tensor).ctypes.data
        if handle.is_empty:
            assert handle.alignment == 1
        else:
            assert handle.alignment == min(4096, address & -address) >= 64
        assert not tensor.readonly


# ---- sources of a reader ---


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "stream"
    path.write_bytes(STREAM)
    return path


@pytest.mark.parametrize(
    "kind",
    [
        bytes,
        bytearray,
        memoryview,
        lambda b: np.frombuffer(b, np.uint8),
        lambda b: io.BytesIO(b).getbuffer(),
    ],
    ids=["bytes", "bytearray", "memoryview", "ndarray", "getbuffer"],
)
def test_bytes(kind):
    check(hurray.StreamReader(kind(STREAM)))


def test_paths(path):
    check(hurray.StreamReader(path))
    check(hurray.StreamReader(str(path)))
    check(hurray.StreamReader(source=path))


def test_a_mapped_file(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        with hurray.StreamReader(mapped) as reader:
            check(reader)


def test_bytes_are_held_only_while_they_are_read():
    data = bytearray(STREAM)
    reader = hurray.StreamReader(data)
    with pytest.raises(BufferError):
        data.append(0)
    list(reader)
    data.append(0)
    reader = hurray.StreamReader(data)
    reader.close()
    data.append(0)


@pytest.mark.parametrize("buffering", [0, 16, 8192, 1 << 20])
@pytest.mark.parametrize("mode", ["rb", "r+b"])
def test_files_are_read_from_their_position_and_stand_behind_what_was_read(
    tmp_path, buffering, mode
):
    path = tmp_path / "mixed"
    path.write_bytes(b"head\n" + STREAM + b"middle\n" + TWO + b"tail")
    if mode == "r+b" and buffering == 0:
        pytest.skip("the same object as rb")
    with open(path, mode, buffering=buffering) as file:
        assert file.readline() == b"head\n"
        reader = hurray.StreamReader(file)
        got = [next(reader) for _ in ARRAYS]
        check(got)
        reader.close()
        assert file.tell() == 5 + len(STREAM)
        assert file.readline() == b"middle\n"
        with hurray.StreamReader(file) as reader:
            assert np.asarray(next(reader)).tolist() == [10, 20]
        assert file.read() == TWO[FIRST:] + b"tail"
        file.seek(5 + len(STREAM) + 7)
        reader = hurray.StreamReader(file)
        assert len([next(reader), next(reader)]) == 2
        with pytest.raises(hurray.StreamError):
            next(reader)
        assert file.read() == b"tail"
        file.seek(5)
        reader = hurray.StreamReader(file)
        next(reader)
        del reader
        second = hurray.StreamReader(file)
        assert next(second).shape == (0, 3)


def test_the_end_of_a_file_leaves_it_there(path):
    with open(path, "rb") as file:
        check(hurray.StreamReader(file))
        assert file.tell() == len(STREAM)
        assert file.read() == b""


def test_what_was_written_before_is_flushed(tmp_path):
    with open(tmp_path / "f", "w+b") as file:
        file.write(STREAM)
        file.seek(0)
        check(hurray.StreamReader(file))
        file.write(b"more")
        file.seek(len(STREAM))
        assert file.read() == b"more"


@pytest.mark.parametrize("make", [tempfile.TemporaryFile, tempfile.NamedTemporaryFile])
def test_temporary_files(make):
    with make() as file:
        with hurray.StreamWriter(file) as writer:
            for array in ARRAYS:
                writer.write(array)
        file.seek(0)
        check(hurray.StreamReader(file))


@pytest.mark.parametrize("buffering", [0, -1])
def test_pipes(buffering):
    reading, writing = os.pipe()
    with (
        open(reading, "rb", buffering=buffering) as source,
        open(writing, "wb", buffering=buffering) as out,
    ):

        def write():
            with hurray.StreamWriter(out) as writer:
                for array in ARRAYS:
                    writer.write(array)
            out.close()

        with running(write):
            check(hurray.StreamReader(source))


def test_a_buffered_pipe_that_was_read_from_already():
    reading, writing = os.pipe()
    with open(reading, "rb") as source:
        with open(writing, "wb") as out:
            out.write(b"head\n" + TWO)
        assert source.readline() == b"head\n"
        assert len(list(hurray.StreamReader(source))) == 2


def test_a_tensor_is_there_as_soon_as_its_bytes_are():
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as out:
        reader = hurray.StreamReader(source)
        writer = hurray.StreamWriter(out)
        for i in range(5):
            writer.write(np.full(1000, i))
            assert (np.asarray(next(reader)) == i).all()
        writer.finish()
        out.close()
        del writer
        with pytest.raises(StopIteration):
            next(reader)


def test_pipes_that_do_not_block():
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    for buffering in (0, -1):
        with (
            open(os.dup(reading), "rb", buffering=buffering) as source,
            open(os.dup(writing), "wb", buffering=0) as out,
        ):

            def write():
                with hurray.StreamWriter(out) as writer:
                    for array in ARRAYS:
                        writer.write(array)

            with running(write):
                reader = hurray.StreamReader(source)
                check([next(reader) for _ in ARRAYS])
    os.close(reading)
    os.close(writing)


def tcp_pair():
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    return client, accepted


@pytest.mark.parametrize("pair", [socket.socketpair, tcp_pair], ids=["unix", "tcp"])
@pytest.mark.parametrize("limit", [None, 0, 60])
@pytest.mark.parametrize("wrapper", [None, 0, -1])
def test_sockets(pair, limit, wrapper):
    a, b = pair()
    with a, b:
        if wrapper is None:
            a.settimeout(limit)
            b.settimeout(limit)
        elif limit is not None:
            pytest.skip("makefile() is for blocking sockets")
        source = b if wrapper is None else b.makefile("rb", buffering=-1)
        destination = a if wrapper is None else a.makefile("wb", buffering=-1)

        def write():
            with hurray.StreamWriter(destination) as writer:
                for array in ARRAYS:
                    writer.write(array)
            a.shutdown(socket.SHUT_WR)

        with running(write):
            check(hurray.StreamReader(source))
        a.close()
        assert (a.fileno(), b.fileno() >= 0) == (-1 if wrapper is None else a.fileno(), True)
        if wrapper is not None:
            source.close()
            destination.close()


def tls_pair():
    """A TLS connection without certificates (anonymous Diffie-Hellman)."""
    contexts = []
    for protocol in (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER):
        context = ssl.SSLContext(protocol)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.set_ciphers("aNULL:@SECLEVEL=0")
        except ssl.SSLError:
            pytest.skip("this OpenSSL has no anonymous ciphers")
        contexts.append(context)
    a, b = tcp_pair()
    ends = []
    with running(lambda: ends.append(contexts[1].wrap_socket(b, server_side=True))):
        client = contexts[0].wrap_socket(a)
    return client, ends[0]


@pytest.mark.parametrize("limit", [None, 0, 60])
def test_tls_connections_go_through_their_own_methods(limit):
    a, b = tls_pair()
    with a, b:
        a.settimeout(limit)
        b.settimeout(limit)

        def write():
            with hurray.StreamWriter(a) as writer:
                for array in ARRAYS:
                    writer.write(array)

        with running(write):
            reader = hurray.StreamReader(b)
            check([next(reader) for _ in ARRAYS])
        a.close()
        with pytest.raises((StopIteration, hurray.FileError)):
            next(reader)


def test_tls_files():
    a, b = tls_pair()
    with a, b, b.makefile("rb") as source, a.makefile("wb") as out:

        def write():
            out.write(b"head\n")
            with hurray.StreamWriter(out) as writer:
                for array in ARRAYS:
                    writer.write(array)

        with running(write):
            assert source.readline() == b"head\n"
            reader = hurray.StreamReader(source)
            check([next(reader) for _ in ARRAYS])


def test_subprocess_pipes():
    code = """
import sys, hurray
with hurray.StreamWriter(sys.stdout.buffer) as writer:
    for tensor in hurray.StreamReader(sys.stdin.buffer):
        writer.write(tensor)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:

        def write():
            with hurray.StreamWriter(child.stdin) as writer:
                for array in ARRAYS:
                    writer.write(array)
            child.stdin.close()

        with running(write):
            check(hurray.StreamReader(child.stdout))
    assert child.returncode == 0


def test_asyncio_uses_threads():
    async def main():
        a, b = socket.socketpair()
        with a, b:

            def write():
                with hurray.StreamWriter(a) as writer:
                    for array in ARRAYS:
                        writer.write(array)
                a.shutdown(socket.SHUT_WR)

            _, got = await asyncio.gather(
                asyncio.to_thread(write), asyncio.to_thread(lambda: list(hurray.StreamReader(b)))
            )
            check(got)

    asyncio.run(main())


class Wrapper:
    def __init__(self, inner):
        self.inner = inner

    def fileno(self):
        return self.inner.fileno()

    def read(self, size=-1):
        return self.inner.read(size)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: open(p, encoding="latin-1"),
        lambda p: gzip.open(p),
        lambda p: bz2.open(p),
        lambda p: lzma.open(p),
        lambda p: Wrapper(open(p, "rb")),
        lambda p: io.BytesIO(STREAM),
        lambda p: io.StringIO("text"),
        lambda p: 3,
        lambda p: None,
        lambda p: [b"bytes"],
        lambda p: np.zeros((4, 4), np.uint8)[:, ::2],
    ],
    ids=[
        "text",
        "gzip",
        "bz2",
        "lzma",
        "wrapper",
        "BytesIO",
        "StringIO",
        "int",
        "None",
        "list",
        "strided",
    ],
)
def test_objects_whose_descriptor_is_not_their_content(path, make):
    source = make(path)
    with pytest.raises(TypeError):
        hurray.StreamReader(source)
    if source is not None:
        with pytest.raises(TypeError):
            hurray.StreamWriter(source)
    for opened in (source, getattr(source, "inner", None)):
        if hasattr(opened, "close"):
            opened.close()


def test_a_member_of_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("stream", STREAM)
        with archive.open("stream") as member, pytest.raises(TypeError):
            hurray.StreamReader(member)


def test_bytesio_is_told_what_to_do():
    with pytest.raises(TypeError, match=r"getvalue\(\)"):
        hurray.StreamReader(io.BytesIO(STREAM))


# ---- the reader's own rules ---


def test_a_reader_is_its_own_iterator_and_ends_again():
    reader = hurray.StreamReader(TWO)
    assert iter(reader) is reader
    assert len(list(reader)) == 2
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(reader)


def test_a_closed_reader_is_exhausted():
    with hurray.StreamReader(TWO) as reader:
        next(reader)
    assert list(reader) == []
    reader.close()
    assert list(reader) == []


def test_the_descriptor_of_the_caller_stays_open_and_ours_goes():
    a, b = socket.socketpair()
    reader = hurray.StreamReader(b)
    writer = hurray.StreamWriter(a)
    writer.write(np.arange(3))
    assert np.asarray(next(reader)).tolist() == [0, 1, 2]
    b.close()
    writer.write(np.arange(4))  # the reader's duplicate is still there
    assert np.asarray(next(reader)).tolist() == [0, 1, 2, 3]
    reader.close()
    with pytest.raises(hurray.FileError) as broken:
        for _ in range(100):
            writer.write(np.arange(100_000))
    assert isinstance(broken.value, OSError) and broken.value.errno
    assert a.fileno() >= 0
    a.close()


def test_tensors_outlive_their_reader():
    reader = hurray.StreamReader(bytearray(STREAM))
    tensors = list(reader)
    del reader
    check(tensors)


def message(size, **declared):
    return wire.descriptor(wire.UINT8, (size,), size, **declared)


@pytest.mark.parametrize(
    "limit,value,numbers",
    [
        ("max_descriptor_bytes", 52, ("52", "53")),
        ("max_buffer_bytes", 3, ("3", "4")),
        ("max_tensor_bytes", 3, ("3", "4")),
    ],
)
def test_limits(limit, value, numbers):
    reader = hurray.StreamReader(TWO, **{limit: value})
    with pytest.raises(hurray.StreamError) as exceeded:
        next(reader)
    for number in (*numbers, limit):
        assert number in str(exceeded.value)
    assert list(reader) == []
    assert len(list(hurray.StreamReader(TWO, **{limit: value + 1}))) == 2
    assert len(list(hurray.StreamReader(TWO, **{limit: None}))) == 2
    with pytest.raises(OverflowError):
        hurray.StreamReader(TWO, **{limit: -1})
    with pytest.raises(TypeError):
        hurray.StreamReader(TWO, **{limit: "1"})


def test_composite_depth():
    for depth in (1, 8, 64, None):
        assert len(list(hurray.StreamReader(TWO, max_composite_depth=depth))) == 2
    for depth in (0, 65):
        with pytest.raises(ValueError):
            hurray.StreamReader(TWO, max_composite_depth=depth)


def test_options_are_keywords():
    with pytest.raises(TypeError):
        hurray.StreamReader(TWO, 100)
    with pytest.raises(TypeError):
        hurray.StreamWriter(None, True)
    with pytest.raises(TypeError):
        hurray.StreamReader(TWO, cross_machine=1)


def test_expected_items():
    assert len(list(hurray.StreamReader(TWO, expected_items=2))) == 2
    assert len(list(hurray.StreamReader(TWO, expected_items=1))) == 2
    reader = hurray.StreamReader(TWO, expected_items=3)
    next(reader), next(reader)
    with pytest.raises(hurray.StreamError, match="3"):
        next(reader)
    assert list(reader) == []


@pytest.mark.parametrize(
    "pair", [socket.socketpair, tcp_pair, tls_pair], ids=["unix", "tcp", "tls"]
)
def test_read_timeout(pair):
    a, b = pair()
    with a, b:
        writer = hurray.StreamWriter(a)
        writer.write(np.arange(3))
        reader = hurray.StreamReader(b, read_timeout=0.05)
        assert np.asarray(next(reader)).tolist() == [0, 1, 2]
        with pytest.raises(hurray.StreamError, match="read_timeout") as late:
            next(reader)
        assert isinstance(late.value, TimeoutError) and late.value.errno == errno.ETIMEDOUT
        assert list(reader) == []
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError):
            hurray.StreamReader(TWO, read_timeout=wrong)


@processes.measures_memory
def test_declared_sizes_take_no_memory():
    processes.run(
        """
        import struct
        before = status("VmRSS")
        for size in (1 << 40, 1 << 62):
            head = b"HRRY\\x01\\x00" + struct.pack("<IIBBB3xQQBQI4x", 53, 0, 0x11, 1, 1, size, 0, 1, size, 64)
            try:
                next(hurray.StreamReader(head + b"few"))
            except hurray.StreamError as error:
                assert str(size) in str(error) and "3" in str(error), error
            else:
                raise AssertionError
        assert status("VmRSS") - before < 8 << 20
        """
    )


@pytest.mark.parametrize("pair", [socket.socketpair, tcp_pair, tls_pair], ids=["unix", "tcp", "tls"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_time_limit_of_a_socket_is_kept(pair, wrapped):
    a, b = pair()
    with a, b:
        # Only sockets that block have files; the limit may come later.
        with b.makefile("rb") if wrapped else b as source, a.makefile("wb") if wrapped else a as destination:
            b.settimeout(0.05)
            a.settimeout(0.05)
            with pytest.raises(hurray.StreamError, match="no byte came within the time limit") as late:
                next(hurray.StreamReader(source))
            assert isinstance(late.value, TimeoutError)
            writer = hurray.StreamWriter(destination)
            with pytest.raises(hurray.StreamError, match="no byte was taken within the time limit") as late:
                writer.write(np.zeros(10_000_000))
            assert isinstance(late.value, TimeoutError)
            with pytest.raises(hurray.StreamError, match="an earlier write failed.*it was.*within the time limit"):
                writer.write(np.zeros(1))


def test_a_limit_of_the_reader_goes_before_that_of_the_socket():
    a, b = socket.socketpair()
    with a, b:
        b.settimeout(0.01)
        reader = hurray.StreamReader(b, read_timeout=60)
        sender = threading.Timer(0.2, lambda: hurray.StreamWriter(a).write(np.arange(3)))
        sender.start()
        assert np.asarray(next(reader)).tolist() == [0, 1, 2]
        sender.join()


@processes.measures_memory
def test_resident_memory_follows_what_arrived():
    processes.run(
        """
        size = 256 << 20
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(reading)
            with open(writing, "wb", buffering=0) as out, hurray.StreamWriter(out) as writer:
                writer.write(np.broadcast_to(np.uint8(7), (size,)))
            os._exit(0)
        os.close(writing)
        before = status("VmRSS")
        with open(reading, "rb", buffering=0) as source:
            (tensor,) = hurray.StreamReader(source)
        assert status("VmHWM") - before < size + (16 << 20), status("VmHWM") - before
        assert (np.asarray(tensor) == 7).all()
        """
    )


@pytest.mark.parametrize(
    "data,said",
    [
        (b"GET / HTTP/1.1\r\n\r\n" + bytes(100), "HRRY"),
        (b"HRRYFILE\x01" + bytes(200), ".hrry file"),
        (b"HRRY\x02\x00" + bytes(100), "version"),
        (bytes(100), "HRRY"),
    ],
)
def test_foreign_bytes(data, said):
    reader = hurray.StreamReader(data)
    with pytest.raises(hurray.StreamError) as refused:
        next(reader)
    assert said in str(refused.value)
    assert list(reader) == []


def test_descriptors_that_do_not_decode():
    damaged = bytearray(TWO)
    damaged[14] = 0xEE
    reader = hurray.StreamReader(damaged)
    with pytest.raises(hurray.InvalidDescriptorError):
        next(reader)
    assert list(reader) == []


def test_a_missing_path(tmp_path):
    with pytest.raises(hurray.FileError) as missing:
        hurray.StreamReader(tmp_path / "missing")
    assert isinstance(missing.value, FileNotFoundError)
    assert missing.value.filename == str(tmp_path / "missing")


def test_threads_share_a_reader():
    count = 200
    data = stream_of([np.full(1000, i) for i in range(count)])
    a, b = socket.socketpair()
    seen = []
    with a, b:
        reader = hurray.StreamReader(b)

        def read():
            for tensor in reader:
                values = np.asarray(tensor)
                assert (values == values[0]).all()
                seen.append(int(values[0]))

        with running(read), running(read), running(read):
            a.sendall(data)
            a.shutdown(socket.SHUT_WR)
    assert sorted(seen) == list(range(count))


def test_threads_share_a_writer():
    writer = hurray.StreamWriter()

    def write(start):
        for i in range(start, start + 100):
            writer.write(np.full(5000, i)[::-1])

    with running(write, 0), running(write, 100), running(write, 200):
        pass
    seen = [np.asarray(tensor) for tensor in hurray.StreamReader(writer.getvalue())]
    assert all((values == values[0]).all() for values in seen)
    assert sorted(int(values[0]) for values in seen) == list(range(300))


@pytest.mark.parametrize("end", ["read", "write", "read_buffered", "read_path"])
def test_signals_end_a_wait(tmp_path, end):
    """Ctrl-C while waiting; a handler that returns changes nothing."""
    code = f"""
import signal
reading, writing = os.pipe()
end = {end!r}
seen = []
signal.signal(signal.SIGUSR1, lambda *_: (seen.append(1), print("seen", flush=True)))
try:
    print("ready", flush=True)
    if end == "write":
        with open(writing, "wb", buffering=0) as out:
            hurray.StreamWriter(out).write(np.zeros(1 << 20))
    elif end == "read_path":
        next(hurray.StreamReader(f"/dev/fd/{{reading}}"))
    else:
        with open(reading, "rb", buffering=-1 if end == "read_buffered" else 0) as source:
            next(hurray.StreamReader(source))
except KeyboardInterrupt:
    assert seen == [1], seen
    print("interrupted", flush=True)
"""
    process = processes.start(code)
    try:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == b"seen\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert out == b"interrupted\n", err
        assert process.returncode == 0, err
    finally:
        process.kill()


def test_a_call_from_within_a_call_is_refused():
    processes.run(
        """
        import signal
        reading, writing = os.pipe()
        with open(reading, "rb", buffering=0) as source:
            reader = hurray.StreamReader(source)
            def handler(*_):
                reader.close()
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            try:
                next(reader)
            except RuntimeError as error:
                assert "within" in str(error)
            else:
                raise AssertionError
        """
    )


# ---- destinations of a writer ---


def write_all(writer):
    for array in ARRAYS:
        writer.write(array)


def test_in_memory():
    writer = hurray.StreamWriter()
    assert writer.getvalue() == b""
    writer.write(np.array([10, 20], np.uint16))
    assert writer.getvalue() == TWO[:FIRST]
    writer.write(np.zeros(0, np.float32))
    assert writer.getvalue() == writer.getvalue() == TWO
    writer.finish()
    assert writer.getvalue() == TWO


def test_getvalue_with_a_destination(tmp_path):
    with open(tmp_path / "f", "wb") as out:
        for destination in (tmp_path / "g", out):
            writer = hurray.StreamWriter(destination)
            with pytest.raises(hurray.StreamError, match="destination"):
                writer.getvalue()


def test_a_finished_writer(tmp_path):
    for destination in (None, tmp_path / "f"):
        with hurray.StreamWriter(destination) as writer:
            assert type(writer) is hurray.StreamWriter
            write_all(writer)
        writer.finish()
        with pytest.raises(hurray.StreamError):
            writer.write(ARRAYS[0])
    assert (tmp_path / "f").read_bytes() == STREAM


def test_a_path_appears_at_finish(tmp_path):
    target = tmp_path / "stream"
    target.write_bytes(b"old")
    writer = hurray.StreamWriter(target)
    write_all(writer)
    assert target.read_bytes() == b"old"
    writer.finish()
    assert target.read_bytes() == STREAM
    assert [p.name for p in tmp_path.iterdir()] == ["stream"]


@pytest.mark.parametrize("existing", [None, b"old"])
def test_a_writer_that_is_given_up_leaves_nothing(tmp_path, existing):
    target = tmp_path / "stream"
    if existing is not None:
        target.write_bytes(existing)
    with pytest.raises(ZeroDivisionError):
        with hurray.StreamWriter(target) as writer:
            write_all(writer)
            1 / 0
    with pytest.raises(hurray.StreamError):
        writer.write(ARRAYS[0])
    with pytest.raises(hurray.StreamError):
        writer.finish()
    dropped = hurray.StreamWriter(target)
    write_all(dropped)
    del dropped
    found = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert found == ({} if existing is None else {"stream": existing})


def test_a_reader_of_the_path_keeps_the_old_content(tmp_path):
    target = tmp_path / "stream"
    target.write_bytes(STREAM)
    reader = hurray.StreamReader(target)
    got = [next(reader)]
    with hurray.StreamWriter(target) as writer:
        writer.write(np.zeros(3))
    check(got + list(reader))


@pytest.mark.parametrize("buffering", [0, -1])
@pytest.mark.parametrize("mode", ["wb", "w+b", "ab", "r+b"])
def test_files_take_frames_between_other_bytes(tmp_path, buffering, mode):
    target = tmp_path / "mixed"
    target.write_bytes(b"")
    with open(target, mode, buffering=buffering) as out:
        out.write(b"head\n")
        writer = hurray.StreamWriter(out)
        writer.write(np.array([10, 20], np.uint16))
        out.write(b"")
        writer.write(np.zeros(0, np.float32))
        writer.finish()
        assert out.tell() == 5 + len(TWO)
        out.write(b"tail")
    assert target.read_bytes() == b"head\n" + TWO + b"tail"


def test_an_error_in_a_with_block_ends_a_pipe():
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as out:
        with pytest.raises(ZeroDivisionError):
            with hurray.StreamWriter(out) as writer:
                writer.write(np.arange(3))
                1 / 0
        out.close()
        (tensor,) = hurray.StreamReader(source)
        assert np.asarray(tensor).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "item", [[1, 2], "text", 3, None, object(), {"a": 1}], ids=lambda i: type(i).__name__
)
def test_items_that_are_refused(item):
    writer = hurray.StreamWriter()
    writer.write(np.array([10, 20], np.uint16))
    with pytest.raises(TypeError, match="expected a hurray.Tensor"):
        writer.write(item)
    with pytest.raises(hurray.UnsupportedError):
        writer.write(np.array(["text"]))
    writer.write(np.zeros(0, np.float32))
    assert writer.getvalue() == TWO


def test_a_closed_peer_is_a_file_error():
    a, b = tcp_pair()
    b.close()
    with a, pytest.raises(hurray.FileError) as broken:
        writer = hurray.StreamWriter(a)
        for _ in range(200):
            writer.write(np.zeros(100_000))
    assert isinstance(broken.value, (BrokenPipeError, ConnectionResetError)) and broken.value.errno
    with pytest.raises(hurray.StreamError, match="an earlier write failed.*it was: write: (Broken pipe|Connection reset)"):
        writer.write(np.zeros(1))


def test_a_full_device_is_a_file_error():
    with pytest.raises(hurray.FileError) as full:
        with open("/dev/full", "wb", buffering=0) as out, hurray.StreamWriter(out) as writer:
            writer.write(np.zeros(10))
    assert full.value.errno == 28


@processes.measures_memory
def test_a_writer_takes_little_memory(tmp_path):
    processes.run(
        """
        values = np.ones((2048, 16384), np.uint16)  # 64 MiB
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")
        before = status("VmRSS")
        with hurray.StreamWriter(sys.argv[1]) as writer:
            for source in (values, values.T, values[:, ::2], values.view(">u2"), values.view(bool)):
                writer.write(source)
        assert status("VmHWM") - before < 16 << 20, status("VmHWM") - before
        """,
        tmp_path / "large",
    )


def test_readers_and_writers_are_neither_pickled_nor_copied():
    for item in (hurray.StreamReader(TWO), hurray.StreamWriter(), hurray.aligned_allocator()):
        for take in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                take(item)


@pytest.mark.frameworks
def test_torch_tensors():
    torch = pytest.importorskip("torch")
    sources = [
        torch.arange(6).reshape(2, 3).t(),
        torch.ones(3, dtype=torch.bfloat16),
        torch.tensor(3.5),
    ]
    for source, tensor in zip(sources, hurray.StreamReader(stream_of(sources)), strict=True):
        assert torch.equal(tensor.to_torch(), source)


# ---- declarations are relayed ---

EVENT = message(4, sync=1, device=1, alignment=4096) + b"\x01\x02\x03\x04"
CONSUMER = message(4, sync=2, device=1) + b"\x01\x02\x03\x04"
CUDA = message(4, device=1) + b"\x01\x02\x03\x04"


def refused_paths(tensor):
    yield lambda: np.asarray(tensor)
    yield lambda: tensor.to_numpy()
    yield lambda: memoryview(tensor)
    yield lambda: tensor.__dlpack__()
    yield lambda: tensor.__array_interface__


@pytest.mark.parametrize(
    "frame,mode",
    [(EVENT, "event"), (CONSUMER, "consumer_stream")],
    ids=["event", "consumer_stream"],
)
def test_bytes_that_nobody_may_read_yet_are_relayed(tmp_path, frame, mode):
    (tensor,) = hurray.StreamReader(frame)
    assert [h.sync_mode for h in tensor.buffer_handles] == [mode]
    for refused in (*refused_paths(tensor), lambda: tensor.buffer(0), lambda: tensor.to_cpu()):
        with pytest.raises(hurray.UnsupportedError, match=mode):
            refused()
    assert stream_of([tensor]) == frame
    target = tmp_path / "f"
    hurray.save(target, {"w": tensor})
    assert hurray.open(target).descriptor("w").encode() == frame[:-4]
    for again in (hurray.load(target)["w"], hurray.open(target)["w"]):
        assert stream_of([again]) == frame
        with pytest.raises(hurray.UnsupportedError, match=mode):
            np.asarray(again)


def test_a_declared_device_is_relayed(tmp_path):
    (tensor,) = hurray.StreamReader(CUDA)
    assert tensor.device == hurray.device.cuda
    for refused in refused_paths(tensor):
        with pytest.raises(hurray.UnsupportedError):
            refused()
    assert np.asarray(tensor.to_cpu()).tolist() == [1, 2, 3, 4]
    assert stream_of([tensor]) == CUDA
    hurray.save(tmp_path / "f", {"w": tensor})
    loaded = hurray.load(tmp_path / "f")["w"]
    assert loaded.device == hurray.device.cuda
    assert stream_of([loaded]) == CUDA


@pytest.mark.parametrize(
    "pair,default", [(socket.socketpair, False), (tcp_pair, True), (tls_pair, True)]
)
@pytest.mark.parametrize("given", [None, True, False])
def test_between_machines_only_finished_bytes_travel(pair, default, given):
    refuse = default if given is None else given
    (tensor,) = hurray.StreamReader(EVENT)
    a, b = pair()
    with a, b:
        writer = hurray.StreamWriter(a, cross_machine=given)
        if refuse:
            with pytest.raises(hurray.StreamError, match="producer_synced"):
                writer.write(tensor)
        writer.write(np.arange(3))
        relay = hurray.StreamWriter(a, cross_machine=False)
        relay.write(tensor)
        reader = hurray.StreamReader(b, cross_machine=given)
        assert np.asarray(next(reader)).tolist() == [0, 1, 2]
        if refuse:
            with pytest.raises(hurray.StreamError, match="producer_synced"):
                next(reader)
        else:
            assert next(reader).buffer_handles[0].sync_mode == "event"


def test_cross_machine_can_be_forced_for_bytes():
    assert len(list(hurray.StreamReader(EVENT))) == 1
    with pytest.raises(hurray.StreamError):
        next(hurray.StreamReader(EVENT, cross_machine=True))
    (tensor,) = hurray.StreamReader(EVENT)
    with pytest.raises(hurray.StreamError):
        hurray.StreamWriter(cross_machine=True).write(tensor)
